"""No answer of the server names an absolute path outside the documents (RELIABILITY 9)."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from tests.support.indexes import write_all
from tests.support.machine import until
from tests.support.mcp_clients import ERAS, in_memory
from tests.support.models import CountingEmbedder

TEXTS = {
    "deep/note.md": "---\ntags: [plants]\n---\n# Note\n\nTomatoes. [Away](gone.md), [[other]]\n",
    "other.md": "# Other\n\nSee [note](deep/note.md).\n",
    "bad.md": "\0\0\0\x01PNG",
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("index_status", {}),
    ("query_documents", {"query": "tomatoes", "explain": True}),
    ("query_documents", {"query": "path:/etc/passwd tree:nowhere"}),
    ("query_documents", {"query": "tomatoes", "paths": ["/etc/*"]}),
    ("query_documents", {"query": ""}),
    ("search_with_hypothesis", {"hypothesis": "Tomatoes are plants."}),
    ("get_document", {"path": "deep/note.md"}),
    ("get_document", {"path": "deep/note.md", "outline": True}),
    ("get_document", {"path": "bad.md"}),
    ("get_document", {"path": "../../secret.md"}),
    ("get_document", {"path": "nowhere.md"}),
    ("list_documents", {}),
    ("list_documents", {"what": "trees"}),
    ("list_documents", {"what": "tags"}),
    ("list_documents", {"tree": "nowhere"}),
    ("find_related", {"path": "deep/note.md"}),
    ("find_related", {"files": ["src/a.py"]}),
    ("find_related", {"files": ["../../a.py"]}),
    ("find_related", {"path": "nowhere.md"}),
    ("no_such_tool", {}),
    ("index_status", {"more": 1}),
]
READ = [
    "ragdocs://doc/docs/deep/note.md",
    "ragdocs://doc/docs/../secret.md",
    "ragdocs://doc/docs/nowhere.md",
    "ragdocs://tree/docs",
    "ragdocs://tree/nowhere",
    "ragdocs://tag/plants",
    "file:///etc/passwd",
]


async def everything(client: Client, era: str) -> list[Any]:
    found: list[Any] = []

    async def add(asked: Any) -> None:
        try:
            found.append((await asked).model_dump(mode="json"))
        except MCPError as error:
            found.append({"error": str(error), "data": repr(error.error)})

    await add(client.list_tools())
    await add(client.list_resources())
    await add(client.list_resource_templates())
    await add(client.list_prompts())
    for tool, arguments in CALLS:
        await add(client.call_tool(tool, arguments))
    for uri in READ:
        await add(client.read_resource(uri))
    template = ResourceTemplateReference(uri="ragdocs://doc/{tree}/{+path}")
    await add(client.complete(template, {"name": "path", "value": "de"}))
    await add(client.complete(PromptReference(name="none"), {"name": "x", "value": ""}))
    return found


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def places_in(text: str, root: Path) -> list[str]:
    """Absolute paths of this machine, those of the documents left out."""
    tops = "|".join(re.escape(name) for name in os.listdir("/"))
    rest = text.replace(str(root), "(root)")
    return re.findall(rf"(?<![\w.~…:/])/(?:{tops})(?:/[^\s\"']+)+", rest)


def asked_in(text: str) -> bool:
    """What the question itself said may be said again."""
    return any(text.count(said) for said in ("/etc/passwd", "/etc/*"))


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a blank in its name, and a home that nothing lies in."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    made = tmp_path / "my files"
    made.mkdir()
    return made


def an_app(base: Path, embedder: Any = None, **sections: dict[str, object]) -> App:
    docs = write_all(base / "docs", TEXTS)
    config_file = base / "settings" / "ragdocs.toml"
    config_file.parent.mkdir(exist_ok=True)
    config_file.write_text(
        f"[indexing]\ndocuments_path = {json.dumps(str(docs))}\n"
        f"index_path = {json.dumps(str(base / 'an index'))}\ndebounce_seconds = 0.05\n"
        f"[embedding]\ncache_folder = {json.dumps(str(base / 'a cache'))}\n"
        f"[search]\nrerank_enabled = true\nrerank_model = {json.dumps(str(base / 'ranker'))}\n",
        encoding="utf-8",
    )
    environ = {"HOME": os.environ["HOME"]}
    config = load_config(config_file, cwd=base, environ=environ, flags=sections)
    return App(config, embedder)


def nothing(_base: Path) -> None:
    pass


def a_damaged_store(base: Path) -> None:
    for path in (base / "an index").glob("store.db*"):
        path.unlink()
    (base / "an index" / "store.db").mkdir()


def a_foreign_index(base: Path) -> None:
    shutil.rmtree(base / "an index")
    (base / "an index").mkdir()
    (base / "an index" / "mine.txt").write_text("mine", encoding="utf-8")


def no_documents(base: Path) -> None:
    (base / "docs").rename(base / "away")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("happens", [nothing, a_damaged_store, a_foreign_index, no_documents])
def test_no_answer_names_a_place_outside_the_documents(base: Path, era: str, happens: Any):
    """`index_status` named the model's folder, the index and the configuration."""
    with an_app(base, CountingEmbedder()) as first, first.manager() as manager:
        manager.update()
        manager.fill()
    happens(base)
    app = an_app(base, CountingEmbedder(), search={"keyword_engine": "whoosh"})
    app.service.start()
    with in_memory(app) as server:
        until(lambda: app.service.state.role != "starting")
        found = server.use(lambda client: everything(client, era), era)
    assert len(found) == 4 + len(CALLS) + len(READ) + 2
    texts = [text for text in strings(found) if not asked_in(text)]
    wrong = {place for text in texts for place in places_in(text, base / "docs")}
    assert not wrong, wrong


def test_the_built_in_model_is_named_without_its_place(base: Path):
    app = an_app(base)
    assert isinstance(app.embedder, BuiltinEmbedder)
    assert app.embedder.find().weights.is_relative_to(sys.prefix)
    with in_memory(app) as server:
        asked = server.call("index_status")
    for text in strings([asked.data, asked.text]):
        assert not places_in(text, base / "docs"), text
    assert asked.data["model"]["name"] in asked.text
    assert asked.data["model"]["folder"].startswith("…/")


def test_the_documents_folder_is_named(base: Path):
    """The agent may open files there by itself."""
    app = an_app(base, CountingEmbedder())
    with in_memory(app) as server:
        asked = server.call("index_status")
    assert asked.data["trees"][0]["root"] == str(base / "docs")
    assert str(base / "docs") in asked.text
