"""Paths that an agent and a person can use: every spelling comes in, the real file goes out.

Real folders, a real index, and the server through the SDK's client.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.errors import QueryError
from ragdocs.library.requests import DocumentRequest, ListKind, ListRequest, RelatedRequest
from ragdocs.lint.findings import LintRequest
from ragdocs.search.requests import Filters, QueryRequest
from tests.support.indexes import write_all
from tests.support.mcp_clients import in_memory
from tests.support.models import CountingEmbedder

GUIDE = """---
title: The guide
author: Ada Lovelace
category: how-to
tags: [project/alpha, soup]
aliases: [handbook]
---
# Guide

Tomatoes are cooked slowly.

## Set up the pot

Fill it with water.
Then wait. ^first-step

- one
- two ^item

| a | b |
|---|---|
| 1 | 2 |

^the-table

See [[Note]].
"""
TEXTS = {
    "docs/guide.md": GUIDE,
    "docs/api/cache.md": "# Cache\n\nTomatoes are kept.\n\n```python\nkeep()\n```\n",
    "docs/odd names/100% #1.md": "# Odd\n\nTomatoes with signs.\n",
    "docs/cafe\u0301.md": "# Cafe\n\nTomatoes and coffee.\n",
    "far/Note.md": "# Note\n\nTomatoes far away. [Gone](gone.md)\n",
    "inner/deep/x.md": "# X\n\nTomatoes deep inside.\n",
}
BAD = os.fsdecode(b"bad\xff.md")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`docs` in the project; `vault`, a link to a folder outside; `inner` and, in it, `deep`."""
    base = tmp_path_factory.mktemp("places")
    folder = base / "my project"
    write_all(folder, {name: text for name, text in TEXTS.items() if not name.startswith("far/")})
    write_all(base, {name: text for name, text in TEXTS.items() if name.startswith("far/")})
    try:
        (folder / "docs" / BAD).write_text("# Bad\n\nTomatoes by another name.\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    (folder / "vault").symlink_to(base / "far")
    return folder


@pytest.fixture(scope="module")
def app(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    index = tmp_path_factory.mktemp("index")
    trees = {name: {"path": str(project / path)} for name, path in TREES.items()}
    flags = {"tree": trees, "indexing": {"index_path": str(index)}}
    config = load_config(None, flags=flags, cwd=project, environ={"HOME": str(index)})
    with App(config, CountingEmbedder()) as made:
        made.places = made.places.based_on(project)
        with made.manager() as manager:
            manager.update()
            manager.fill()
            manager.update_communities()
        yield made


TREES = {"docs": "docs", "vault": "vault", "inner": "inner", "deep": "inner/deep"}


def get(app: App, reference: str):
    return app.library.get(DocumentRequest(reference=reference))


SPELLINGS = [
    ("guide.md", "docs:guide.md"),
    ("docs:guide.md", "docs:guide.md"),
    ("docs/guide.md", "docs:guide.md"),
    ("./docs/guide.md", "docs:guide.md"),
    ("docs/api/../guide.md", "docs:guide.md"),
    ("{project}/docs/guide.md", "docs:guide.md"),
    ("vault/Note.md", "vault:Note.md"),
    ("{project}/vault/Note.md", "vault:Note.md"),
    ("{far}/Note.md", "vault:Note.md"),
    ("../far/Note.md", "vault:Note.md"),
    ("[[handbook]]", "docs:guide.md"),
    ("[[Note|the note]]", "vault:Note.md"),
    ("![[api/cache]]", "docs:api/cache.md"),
    ("docs/odd names/100% #1.md", "docs:odd names/100%25 %231.md"),
    ("odd names/100% #1.md", "docs:odd names/100%25 %231.md"),
    ("docs:odd names/100%25 %231.md", "docs:odd names/100%25 %231.md"),
    ("docs/caf\u00e9.md", "docs:cafe\u0301.md"),
    ("bad%FF.md", "docs:bad%FF.md"),
    ("docs/bad%FF.md", "docs:bad%FF.md"),
    (BAD, "docs:bad%FF.md"),
    ("inner/deep/x.md", "deep:x.md"),
]


@pytest.mark.parametrize(("spelling", "doc_id"), SPELLINGS)
def test_a_document_is_found_by_every_spelling(app, project, spelling, doc_id):
    typed = (
        spelling.format(project=project, far=project.parent / "far")
        if "{" in spelling
        else spelling
    )
    assert get(app, typed).doc_id == doc_id
    related = app.library.related(RelatedRequest(reference=typed))
    assert related.doc_id == doc_id


def test_what_an_answer_shows_can_be_given_back(app, project):
    found = app.search(QueryRequest(queries=("tomatoes",), top_n=50, min_score=0.0)).results
    assert len(found) >= 6
    for one in found:
        assert (project / os.fsdecode(unquoted(one.file))).is_file()
        for given in (one.id, f"{one.tree}:{one.path}", one.file):
            assert get(app, given).doc_id == one.doc_id


def unquoted(file: str) -> bytes:
    return b"docs/bad\xff.md" if file == "docs/bad%FF.md" else file.encode()


def test_every_answer_names_the_tree_the_path_and_the_file(app, project):
    outside = str(project.parent / "far" / "Note.md")
    assert get(app, "guide.md").file == "docs/guide.md"
    assert get(app, "Note.md").file == outside
    documents = app.library.list(ListRequest()).documents
    assert {entry.path: entry.file for entry in documents if entry.tree == "docs"} == {
        "guide.md": "docs/guide.md",
        "api/cache.md": "docs/api/cache.md",
        "odd names/100% #1.md": "docs/odd names/100% #1.md",
        "cafe\u0301.md": "docs/cafe\u0301.md",
        "bad%FF.md": "docs/bad%FF.md",
    }
    outlines = app.library.list(ListRequest(kind=ListKind.OUTLINES, path="guide.md")).outlines
    assert {(one.tree, one.path, one.file) for one in outlines} == {
        ("docs", "guide.md", "docs/guide.md")
    }
    chunks = app.library.list(ListRequest(kind=ListKind.CHUNKS, path="guide.md")).chunks
    assert {one.file for one in chunks} == {"docs/guide.md"}
    related = app.library.related(RelatedRequest(reference="guide.md"))
    assert (related.file, related.links[0].file) == ("docs/guide.md", outside)
    similar = (*related.similar_by_words, *related.similar_by_meaning, *related.community)
    assert similar
    assert all(one.file and one.tree for one in similar)
    packed = app.search(QueryRequest(queries=("tomatoes",), min_score=0.0)).within(60)
    assert packed.left_out
    assert all(one.file for one in (*packed.results, *packed.left_out))
    findings = app.lint(LintRequest(select=("broken-link",))).findings
    assert [(one.tree, one.path, one.file) for one in findings] == [("vault", "Note.md", outside)]


@pytest.mark.parametrize(
    ("reference", "lines"),
    [
        ("guide.md#Set up the pot", (12, 26)),
        ("guide.md#set-up-the-pot", (12, 26)),
        ("[[guide#Set up the pot|pot]]", (12, 26)),
        ("docs/guide.md:10-12", (10, 12)),
        ("./docs/guide.md:10", (10, 10)),
        ("guide.md#^first-step", (14, 15)),
        ("[[handbook#^item]]", (18, 18)),
        ("guide.md#Set up the pot#^the-table", (20, 24)),
    ],
)
def test_a_part_is_found_by_heading_lines_or_block(app, reference, lines):
    found = get(app, reference)
    assert (found.doc_id, found.line_start, found.line_end) == ("docs:guide.md", *lines)


def test_a_block_that_is_not_there_names_those_that_are(app):
    with pytest.raises(
        QueryError, match=r"no block `\^first-stp`; the nearest (is|are) `#\^first-step`"
    ):
        get(app, "guide.md#^first-stp")


@pytest.mark.parametrize(
    "reference",
    ["/etc/passwd", "{project}/README.md", "{project}2/docs/guide.md", "../../etc/x.md"],
)
def test_what_lies_outside_the_trees_is_a_clear_error(app, project, reference):
    with pytest.raises(QueryError, match=r"outside the folders|leaves its tree"):
        get(app, reference.format(project=project))


def test_a_name_that_two_files_share_is_not_guessed(app):
    """`deep/x.md` is a path in `inner`; nothing else has it."""
    assert get(app, "deep/x.md").doc_id in ("inner:deep/x.md", "deep:x.md")


# Filters.


def paths(app: App, **filters) -> set[str]:
    asked = QueryRequest(queries=("tomatoes",), top_n=50, min_score=0.0, filters=Filters(**filters))
    found = app.search(asked)
    return {f"{one.tree}:{one.path}" for one in found.results}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("api", {"docs:api/cache.md"}),
        ("docs/api", {"docs:api/cache.md"}),
        ("./docs/api/", {"docs:api/cache.md"}),
        ("docs:api", {"docs:api/cache.md"}),
        ("{project}/docs/api", {"docs:api/cache.md"}),
        ("{project}/docs/api/cache.md", {"docs:api/cache.md"}),
        ("docs:api/cache.md#cache", {"docs:api/cache.md"}),
        ("[[cache]]", {"docs:api/cache.md"}),
        ("cache.md", {"docs:api/cache.md"}),
        ("vault", {"vault:Note.md"}),
        ("{far}", {"vault:Note.md"}),
        ("inner", {"inner:deep/x.md", "deep:x.md"}),
    ],
)
def test_a_path_filter_takes_every_spelling(app, project, typed, expected):
    path = typed.format(project=project, far=project.parent / "far")
    assert paths(app, paths=(path,)) <= expected
    assert paths(app, paths=(path,))
    listed = app.library.list(ListRequest(path=path)).documents
    assert {f"{one.tree}:{one.path}" for one in listed} == expected
    assert not paths(app, excluded_files=(path,)) & expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"paths": ("API",)}, r"no document is at or below `API`; the nearest is `docs:api`"),
        ({"paths": ("guides/api",)}, r"below `guides/api`; the nearest is `docs:api`"),
        ({"paths": ("cahe.md",)}, r"below `cahe.md`; the nearest .*`docs:api/cache.md`"),
        ({"paths": ("api", "nope", "nix")}, r"`nope`.*; no document is at or below `nix`"),
        ({"tags": frozenset({"sop"})}, r"no document has the tag `sop`; the nearest is `soup`"),
        ({"tags": frozenset({"projct"})}, r"the tag `projct`; the nearest .*`project`"),
        ({"category": "howto"}, r"the category `howto`; the nearest is `how-to`"),
        ({"author": "Ada Lovelase"}, r"the author `Ada Lovelase`; the nearest is `Ada Lovelace`"),
        ({"language": "pyton"}, r"code in `pyton`; the nearest is `python`"),
        ({"paths": ("/etc",)}, r"outside the folders"),
    ],
)
def test_a_filter_that_matches_nothing_names_the_nearest(app, filters, message):
    """It was answered with an empty list: an agent told its user that the documents say nothing."""
    with pytest.raises(QueryError, match=message):
        paths(app, **filters)


def test_filters_that_exist_and_leave_nothing_together_are_named(app):
    asked = Filters(paths=("api",), tags=frozenset({"soup"}))
    response = app.search(QueryRequest(queries=("tomatoes",), filters=asked))
    assert not response.results
    assert response.notes[0] == (
        "no document passes all filters together; how many pass each: "
        "path `api` (1), tag `soup` (1)"
    )
    listing = app.library.list(ListRequest(path="api", tags=("soup",)))
    assert "path `api` (1), tag `soup` (1)" in listing.notes[0]


def test_an_exclusion_of_nothing_is_a_note(app):
    asked = Filters(excluded_files=("gide.md",))
    response = app.search(QueryRequest(queries=("tomatoes",), filters=asked))
    assert response.results
    assert "nothing is left out for `gide.md`" in response.notes[0]
    assert "`docs:guide.md`" in response.notes[0]


def test_lint_takes_the_same_paths(app, project):
    for path in ("vault", f"{project}/vault/Note.md", "vault:Note.md"):
        assert len(app.lint(LintRequest(select=("broken-link",), paths=(path,))).findings) == 1
    assert not app.lint(LintRequest(select=("broken-link",), paths=("docs/api",))).findings
    with pytest.raises(QueryError, match="the nearest is `docs:api`"):
        app.lint(LintRequest(paths=("apy",)))


def test_related_lines_that_do_not_exist_are_an_error(app):
    with pytest.raises(QueryError, match="there is no line 900: the document has 26 lines"):
        app.library.related(RelatedRequest(reference="guide.md:900-950"))
    front_matter = app.library.related(RelatedRequest(reference="guide.md:1-3"))
    assert "no text" in front_matter.notes[0]


# Over MCP.


def test_an_agent_gets_the_file_and_may_give_it_back(app, project):
    with in_memory(app) as server:
        found = server.call("query_documents", query="tomatoes cooked slowly", top_n=1)
        (passage,) = found.data["results"]
        assert (passage["tree"], passage["path"]) == ("docs", "guide.md")
        assert passage["file"] == "docs/guide.md"
        assert "docs/guide.md" in found.text
        whole = server.call("get_document", document=passage["file"])
        assert whole.data["doc_id"] == "docs:guide.md"
        assert whole.data["file"] == "docs/guide.md"
        missing = server.call("query_documents", query="tomatoes", path="docs/API")
        assert missing.is_error
        assert "the nearest is `docs:api`" in missing.text


def test_several_documents_come_in_one_answer_within_one_budget(app):
    names = ["docs/guide.md", "[[cache]]", "Note.md#^gone", "vault/Note.md"]
    with in_memory(app) as server:
        whole = server.call("get_document", documents=names)
        assert [whole.data["path"], *(one["path"] for one in whole.data["others"])] == [
            "guide.md",
            "api/cache.md",
            "Note.md",
        ]
        assert whole.data["text"] == GUIDE
        assert [one["document"] for one in whole.data["left_out"]] == ["Note.md#^gone"]
        assert "has no block" in whole.data["left_out"][0]["problem"]
        for text in ("Fill it with water.", "Tomatoes are kept.", "Tomatoes far away.", "^gone"):
            assert text in whole.text
        alone = server.call("get_document", documents=["guide.md"])
        assert "others" not in alone.data
        refused = server.call("get_document", documents=["nope.md", "nix.md"])
        assert refused.is_error
        assert "`nope.md`" in refused.text
        assert "`nix.md`" in refused.text
        assert server.call("get_document", documents=names, start_line=3).is_error


def test_what_does_not_fit_of_several_documents_is_named(tmp_path):
    texts = {f"{at}.md": f"# Page {at}\n\n" + f"Word {at} of many. " * 400 for at in range(4)}
    texts["small.md"] = "# Small\n\nA word.\n"
    docs = write_all(tmp_path / "docs", texts)
    config = load_config(
        None,
        flags={"indexing": {"documents_path": str(docs), "index_path": str(tmp_path / "i")}},
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
    )
    with App(config, CountingEmbedder()) as made:
        with made.manager() as manager:
            manager.update()
        with in_memory(made) as server:
            for limit in (300, 700, 1500):
                asked = server.call("get_document", documents=[*sorted(texts)], max_tokens=limit)
                given = [asked.data, *asked.data["others"]]
                named = {one["path"] for one in given}
                left = {one["document"] for one in asked.data["left_out"]}
                assert named | left == set(texts)
                assert not named & left
                assert all(one["text"] for one in given)
                assert all(one.get("cursor") for one in given if one["path"] != "small.md")
                assert asked.tokens <= limit
            cursor = asked.data["others"][0]["cursor"]
            more = server.call("get_document", cursor=cursor)
            assert more.data["path"] == asked.data["others"][0]["path"]


def test_a_server_for_other_machines_names_no_file(app, project):
    before = app.places
    app.places = replace(before, has_files=False)
    try:
        with in_memory(app) as server:
            found = server.call("query_documents", query="tomatoes cooked slowly", top_n=1)
            assert "file" not in found.data["results"][0]
            refused = server.call("get_document", document=f"{project}/docs/guide.md")
            assert refused.is_error
    finally:
        app.places = before
