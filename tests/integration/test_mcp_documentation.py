"""What docs/mcp.md and docs/tools.md say of the server is so."""

import json
import re
from pathlib import Path

import pytest
from scripts.generate_tool_docs import limits_page, reference_page

from ragdocs import limits
from ragdocs.cli.main import main
from ragdocs.limits import (
    DEFAULT_ANSWER_TOKENS,
    MAX_ANSWER_TOKENS,
    MAX_UNANSWERED_REQUESTS,
    SEARCHES_AT_ONCE,
)
from ragdocs.mcp_server.tools import SECONDS_BETWEEN, TOOLS
from ragdocs.search.responses import Readiness
from tests.support.documents import markdown
from tests.support.mcp_clients import in_memory, indexed_app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "mcp.md").read_text(encoding="utf-8")


def test_the_page_of_tools_is_that_of_the_schemas():
    assert (DOCS / "tools.md").read_text(encoding="utf-8") == reference_page(), "run make docs"


def test_the_page_of_limits_is_the_table_of_limits():
    page = (DOCS / "limits.md").read_text(encoding="utf-8")
    assert page == limits_page(), "run make docs"
    known = [name for name in vars(limits) if name.isupper()]
    assert re.findall(r"^\| [\d,.]+ \| `(\w+)` \|", page, re.MULTILINE) == known


def test_other_pages_state_the_right_limits():
    page = " ".join((DOCS / "search.md").read_text(encoding="utf-8").split())
    assert f"at most {limits.MAX_QUERIES} queries of {limits.MAX_QUERY_CHARS:,} characters" in page
    assert f"{limits.MAX_QUERIES_CHARS:,} together" in page
    assert f"a hypothesis of {limits.MAX_HYPOTHESIS_CHARS:,}" in page
    assert f"| different words of a request | {limits.MAX_SEARCHED_TERMS} |" in page
    assert f"words and phrases with operators | {limits.MAX_CONDITIONS} |" in page
    assert f"| quotations in plain questions | {limits.MAX_WISHES} |" in page
    assert f"that may be typing errors | {limits.MAX_GUESSES} |" in page
    windows = f"{limits.QUERY_WINDOWS} per query, {limits.HYPOTHESIS_WINDOWS} per hypothesis"
    assert windows in page
    read = f"{limits.MAX_READ_SOURCE_CHARS:,} in all files or in a diff"
    assert f"{read}, {limits.MAX_SOURCE_FILES} files" in page
    assert f"| distinct terms of these files | {limits.MAX_SOURCE_TERMS:,} |" in page
    messages = (DOCS / "reliability.md").read_text(encoding="utf-8")
    assert f"over {limits.MAX_MESSAGE_BYTES // 2**20} MiB" in messages


def test_the_page_names_every_tool_and_the_figures_are_those_in_force():
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(TOOLS)
    assert f"at most {DEFAULT_ANSWER_TOKENS:,} tokens" in PAGE
    assert f"up to {MAX_ANSWER_TOKENS:,}" in PAGE
    assert f"gives at most {MAX_ANSWER_TOKENS:,} tokens" in PAGE
    assert (SEARCHES_AT_ONCE, "At most three searches" in PAGE) == (3, True)
    assert (SECONDS_BETWEEN, "every half second" in PAGE) == pytest.approx((0.5, True))
    assert f"held back at {MAX_UNANSWERED_REQUESTS} unanswered" in PAGE
    for state in Readiness:
        assert f"`{state.value}`" in PAGE


def test_the_entry_for_a_client_is_a_command_that_is_understood():
    [entry] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    server = json.loads(entry)["mcpServers"]["ragdocs"]
    name, *options = server["args"]
    assert server["command"] == "ragdocs"
    [command] = re.findall(r"```sh\n(.*?)\n```", PAGE)
    assert command.split()[:2] == ["ragdocs", name]
    known = {flag for option in main.commands[name].params for flag in option.opts}
    assert {*options[::2], *command.split()[2::2]} <= known


def test_the_answer_that_is_shown_is_the_answer_that_is_given(tmp_path):
    """But for the figures, and the folder: the tests' tiny model has others."""
    [shown] = re.findall(r"`````text\n(.*?)\n`````\n", PAGE, re.DOTALL)
    with in_memory(indexed_app(tmp_path, markdown("markdown_docs"))) as server:
        asked = server.call("query_documents", query="renew a token before it expires", top_n=1)
    assert without_figures(asked.text) == without_figures(shown)


def without_figures(text):
    text = re.sub(r"(?m)^file: .*?(?=/access-tokens.md)", "file: notes", text)
    return re.sub(r"confidence \d\.\d\d", "", text)
