# Two commands on a fresh machine: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := .venv-extras

.PHONY: help demo test test-kernels test-extras stress bench test-clients lint types imports wheel bundle plugin docs picture ci clean
# One environment for all: two targets must not set it up at once.
.NOTPARALLEL:

# An environment does not survive a move of its folder: made elsewhere, it is made again.
ifneq ($(shell cat $(VENV)/.where 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.ready-base $(VENV)/.ready-dev
endif
ifneq ($(shell cat $(EXTRAS)/.where 2>/dev/null),$(CURDIR))
.PHONY: $(EXTRAS)/.ready-extras
endif

help:
	@echo "make demo   set up $(VENV), index the project's own documentation, and ask it questions"
	@echo "make test   set up $(VENV) and run every test"
	@echo "make test-kernels run the numeric tests without wide instructions, and compare rankings"
	@echo "make test-extras  set up $(EXTRAS), with torch and LlamaIndex, and run the tests that need them"
	@echo "make stress run the long reliability tests (an hour or two) and print the measurements"
	@echo "make bench  run every benchmark, about 15 minutes, and keep the dated results in"
	@echo "            docs/benchmarks; BENCH=--full takes longer, BENCH=--tiny only tries them"
	@echo "make test-clients  call every tool through the official MCP Inspector (needs npm)"
	@echo "make lint | types | imports | wheel   the other checks of .ci/run, one by one"
	@echo "make ci     all of .ci/run"
	@echo "make bundle build the .mcpb bundle for desktop clients, in dist"
	@echo "make plugin build the plugin for Claude Code, Codex and Gemini CLI, in dist/plugin, and check it"
	@echo "make docs   regenerate the generated documentation"
	@echo "make picture  record the terminal session that README shows (docs/session.svg)"
	@echo "make clean  remove $(VENV), $(EXTRAS) and what the demo made"

demo: $(VENV)/.ready-base
	@$(BIN)/python scripts/demo.py

# A file's tests stay together: what they share is made once. The files keep the order that tests/conftest.py gives
# them. Bytecode is kept even where the environment says otherwise: hundreds of processes are started.
test: $(VENV)/.ready-dev
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Those that tests/conftest.py marks. Another kernel rounds otherwise: no test may depend on that.
test-kernels: $(VENV)/.ready-dev
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tests.support.machine $(BIN)/python -m pytest -m numeric -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
	@$(BIN)/python scripts/compare_kernels.py

test-extras: $(EXTRAS)/.ready-extras
	@$(EXTRAS)/bin/python -m pytest tests/extras

stress: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest tests/stress

test-clients: $(VENV)/.ready-dev
	@$(BIN)/python scripts/test_clients.py

bench: $(VENV)/.ready-dev
	@$(BIN)/python benchmarks/run_all.py $(BENCH)

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	@$(BIN)/pyright

imports: $(VENV)/.ready-dev
	@$(BIN)/lint-imports

wheel: $(VENV)/.ready-dev
	@$(BIN)/python scripts/check_wheel.py $(DIST)

bundle: $(VENV)/.ready-base
	@$(BIN)/python scripts/build_bundle.py

plugin: $(VENV)/.ready-base
	@$(BIN)/ragdocs plugin build dist/plugin --uvx
	@$(BIN)/ragdocs plugin check dist/plugin

docs: $(VENV)/.ready-dev
	@$(BIN)/python scripts/generate_config_docs.py
	@$(BIN)/python scripts/generate_tool_docs.py
	@$(BIN)/python scripts/generate_cli_docs.py
	@$(BIN)/python scripts/generate_spec_index.py
	@$(BIN)/python scripts/generate_server_json.py

picture: $(VENV)/.ready-base
	@$(BIN)/python scripts/record_session.py

ci:
	@.ci/run

# The stamp is newer than what it was made from, so that the second time costs nothing.
$(VENV)/.ready-base $(VENV)/.ready-dev: pyproject.toml constraints.txt scripts/setup-venv
	@PYTHON="$(PYTHON)" scripts/setup-venv "$(VENV)" "$(@:$(VENV)/.ready-%=%)"

$(EXTRAS)/.ready-extras: pyproject.toml constraints.txt scripts/setup-venv
	@PYTHON="$(PYTHON)" scripts/setup-venv "$(EXTRAS)" extras

clean:
	rm -rf $(VENV) $(EXTRAS) .demo build dist
