"""What docs/mcp.md and docs/tools.md say of the server is so."""

import json
import re
from pathlib import Path

import pytest
from scripts.generate_tool_docs import reference_page

from ragdocs.cli.main import main
from ragdocs.mcp_server.answer import DEFAULT_TOKENS, MAX_TOKENS
from ragdocs.mcp_server.calls import SECONDS_BETWEEN, TOOLS
from ragdocs.mcp_server.host import SEARCHES_AT_ONCE
from ragdocs.mcp_server.stdio import MAX_UNANSWERED
from ragdocs.search.responses import Readiness
from tests.documentation import markdown
from tests.mcp_client import in_memory, indexed_app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "mcp.md").read_text(encoding="utf-8")


def test_the_page_of_tools_is_that_of_the_schemas():
    assert (DOCS / "tools.md").read_text(encoding="utf-8") == reference_page(), "run make docs"


def test_the_page_names_every_tool_and_the_figures_are_those_in_force():
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(TOOLS)
    assert f"at most {DEFAULT_TOKENS:,} tokens" in PAGE
    assert f"up to {MAX_TOKENS:,}" in PAGE
    assert f"gives at most {MAX_TOKENS:,} tokens" in PAGE
    assert (SEARCHES_AT_ONCE, "At most three searches" in PAGE) == (3, True)
    assert (SECONDS_BETWEEN, "every half second" in PAGE) == pytest.approx((0.5, True))
    assert f"held back at {MAX_UNANSWERED} unanswered" in PAGE
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
    """But for the figures: the tests' tiny model has others."""
    [shown] = re.findall(r"`````text\n(.*?)\n`````\n", PAGE, re.DOTALL)
    with in_memory(indexed_app(tmp_path, markdown("markdown_docs"))) as server:
        asked = server.call("query_documents", query="renew a token before it expires", top_n=1)
    assert without_figures(asked.text) == without_figures(shown)


def without_figures(text):
    return re.sub(r"confidence \d\.\d\d", "", text)
