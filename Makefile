# Two commands on a fresh machine: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types imports wheel docs ci clean
# One environment for all: two targets must not set it up at once.
.NOTPARALLEL:

# An environment does not survive a move of its folder: made elsewhere, it is made again.
ifneq ($(shell cat $(VENV)/.where 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.ready-base $(VENV)/.ready-dev
endif

help:
	@echo "make demo   set up $(VENV), read the project's own documentation, ask it questions"
	@echo "make test   set up $(VENV) and run every test"
	@echo "make lint | types | imports | wheel   the other checks of .ci/run, one by one"
	@echo "make ci     all of .ci/run"
	@echo "make docs   write the generated documentation again"
	@echo "make clean  remove $(VENV) and what the demo made"

demo: $(VENV)/.ready-base
	@$(BIN)/python scripts/demo.py

test: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	@$(BIN)/pyright

imports: $(VENV)/.ready-dev
	@$(BIN)/lint-imports

wheel: $(VENV)/.ready-dev
	@$(BIN)/python scripts/check_wheel.py

docs: $(VENV)/.ready-dev
	@$(BIN)/python scripts/generate_config_docs.py

ci:
	@.ci/run

# The stamp is newer than what it was made from, so that the second time costs nothing.
$(VENV)/.ready-base $(VENV)/.ready-dev: pyproject.toml constraints.txt scripts/setup-venv
	@PYTHON="$(PYTHON)" scripts/setup-venv "$(VENV)" "$(@:$(VENV)/.ready-%=%)"

clean:
	rm -rf $(VENV) .demo build dist
