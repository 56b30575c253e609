"""Filters by property: the same text over Python, MCP and the command line."""

import json

import pytest

from ragdocs import open_index
from ragdocs.errors import QueryError
from ragdocs.library.requests import ListKind, ListRequest
from ragdocs.limits import MAX_FILTER_TEXT_CHARS
from ragdocs.search.requests import Filters, ListOrder
from tests.support.indexes import write_all
from tests.support.mcp_clients import in_memory, indexed_app
from tests.support.models import MeaningModel
from tests.support.program import called

NOTES = {
    "projects/sync.md": "---\nstatus: Active\npriority: 3\ndue: 2026-01-31\ndate: 2026-01-03\n"
    "area: '#work/api'\nauthor: Jane Doe, Joe\n---\n# Sync\n\nThe dawn of sync.\n",
    "projects/old.md": "---\nstatus: done\npriority: '10'\ndue: 2026-02-01T12:00\n"
    "date: 2025-01-01\n---\n# Old sync\n\nThe dawn was slow.\n\nRating:: 5\n",
    "plain.md": "---\ndate: 2024-06-01\n---\n# Plain\n\nThe dawn [mood:: good] here.\n\n"
    "```python\nprint(1)\n```\n",
    "list.md": "---\nstatus: [active, blocked]\npriority: high\ndate: 2026-01-02\nsize: [1, 10]\n"
    "version: '1.10'\nowner: '[[Jane|J]]'\n---\n# List\n\nThe dawn of lists.\n",
}
EVERY = {"sync", "old", "plain", "list"}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    write_all(folder / "notes", NOTES)
    place = {"indexing": {"index_path": str(folder / "index")}}
    with open_index(folder / "notes", settings=place, embedder=MeaningModel()) as opened:
        yield opened


def listed(index, where, **more):
    found = index.search(filters=Filters(where=where), top_n=50, **more).listing
    return [document.path for document in found.documents]


def names(index, where):
    return {path.rpartition("/")[2].removesuffix(".md") for path in listed(index, where)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("status:active", {"sync", "list"}),
        ("STATUS:ACTIVE", {"sync", "list"}),
        ("-status:active", {"old", "plain"}),
        ("status:active,done", {"sync", "old", "list"}),
        ("status:blocked status:active", {"list"}),
        ("status:* -status:done", {"sync", "list"}),
        ("-status:*", {"plain"}),
        ("priority:>2", {"sync", "old"}),  # 10 is more than 3, as numbers
        ("priority:>3", {"old"}),
        ("priority:>=3", {"sync", "old"}),
        ("priority:<10", {"sync"}),
        ("priority:3.0", {"sync"}),
        ("priority:3..9", {"sync"}),
        ("priority:high", {"list"}),
        ("size:2..9", set()),  # no member is, although 1 and 10 are around it
        ("due:>today", set()),
        ("size:5..20", {"list"}),
        ("due:2026-01-31", {"sync"}),
        ("due:2026-02-01", {"old"}),  # the whole day
        ("due:2026-01", {"sync"}),
        ("due:>2026-01-31", {"old"}),
        ("due:<=2026-01-31", {"sync"}),
        ("due:2026-01-31..2026-02-01", {"sync", "old"}),
        ("due:<today", {"sync", "old"}),
        ("area:work", {"sync"}),
        ("area:#work/api", {"sync"}),
        ("author:joe", {"sync"}),
        ("owner:jane", {"list"}),
        ("version:1.10", {"list"}),
        ("rating:5 mood:good", set()),
        ("rating:5", {"old"}),
        ("mood:*", {"plain"}),
        ("path:projects -status:done", {"sync"}),
        ("title:plain", {"plain"}),
        ("language:py", {"plain"}),
        ("after:2026-01-03", {"sync"}),
        ("before:2025-01-01", {"old", "plain"}),
        ("modified:2026", {"sync", "list"}),
        ("modified:>=2025 modified:<2026-01-03", {"old", "list"}),
        ("tree:notes", EVERY),
    ],
)
def test_a_filter(index, where, expected):
    if not expected:
        found = index.search(filters=Filters(where=where))
        assert found.listing.total == 0
    else:
        assert names(index, where) == expected


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("staus:active", "no document has the property `staus`; the nearest is `status`"),
        ("author:jane", "no document has the author `jane`; the nearest are `Jane Doe`"),
        ("title:plane", "no document has `title: plane`; the nearest is `Plain`"),
        ("tag:nothing", "no document has the tag `nothing`, and none has any tags"),
        ("mood:>1", "no document has a number as `mood`; the most frequent is `good`"),
        ("tree:docs", "there is no tree `docs`; there is `notes`"),
        ("status: active", "has no value"),
        ("x" * 100_000, f"the maximum is {MAX_FILTER_TEXT_CHARS:,}"),
    ],
)
def test_what_no_document_has_is_an_error_that_names_the_nearest(index, where, message):
    for query in ("dawn", ()):
        with pytest.raises(QueryError, match=message):
            index.search(query, filters=Filters(where=where))


def test_a_question_is_answered_within_the_filter(index):
    found = index.search("dawn", filters=Filters(where="status:active"), top_n=10)
    assert {result.path for result in found.results} == {"projects/sync.md", "list.md"}
    found = index.search("dawn", filters=Filters(where="status:active mood:good"))
    assert found.results == ()
    together = "no document passes all filters together; how many pass each: "
    assert f"{together}status `active` (2), mood `good` (1)" in found.notes
    where = "after:2026-01-03 before:2026-01-02"
    found = index.search("dawn", filters=Filters(where=where, excluded_files=("plain.md",)))
    assert any(
        "modified from 2026-01-03 (1), modified up to 2026-01-02 (3)" in note
        and "without `plain.md` (3)" in note
        for note in found.notes
    )
    found = index.search("dawn", filters=Filters(where="-status:archivd"), top_n=10)
    assert len(paths(found)) == len(EVERY)
    assert any("no document has `status: archivd`" in note for note in found.notes)


def test_only_a_filter_lists_documents_by_date_or_path_page_by_page(index):
    first = index.search(filters=Filters(where="tree:notes"), top_n=3).listing
    assert [each.path for each in first.documents] == [
        "projects/sync.md",
        "list.md",
        "projects/old.md",
    ]
    assert (first.total, first.next_offset) == (4, 3)
    rest = index.search("", filters=Filters(where="tree:notes"), top_n=3, offset=3).listing
    assert [each.path for each in rest.documents] == ["plain.md"]
    assert rest.next_offset is None
    by_path = listed(index, "tree:notes", order=ListOrder.PATH)
    assert by_path == sorted(by_path)
    with pytest.raises(QueryError, match="the query is empty"):
        index.search("")
    with pytest.raises(QueryError, match="offset is for lists"):
        index.search("dawn", offset=1)


def paths(found):
    return {result.path for result in found.results}


def test_in_a_query_a_known_property_binds(index):
    found = index.search("dawn status:active", top_n=10, explain=True)
    assert paths(found) == {"projects/sync.md", "list.md"}
    assert found.explanation.queries[0].filters == ("status:active",)
    assert paths(index.search("-status:active dawn priority:>2", top_n=10)) == {"projects/old.md"}
    assert listed(index, "status:done") == ["projects/old.md"]
    alone = index.search("status:done").listing
    assert [each.path for each in alone.documents] == ["projects/old.md"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("path:projcts dawn", "no document is at or below `projcts`; the nearest .*`projects`"),
        ("path:Projects dawn", "no document is at or below `Projects`; the nearest is `projects`"),
        ("tree:nope dawn", "there is no tree `nope`; there is `notes`"),
    ],
)
def test_in_a_query_a_wrong_place_is_an_error_too(index, query, message):
    with pytest.raises(QueryError, match=message):
        index.search(query)


def test_in_a_query_a_path_is_found_as_in_a_filter(index):
    assert paths(index.search("path:old.md dawn", top_n=10)) == {"projects/old.md"}
    assert paths(index.search("path:proj dawn", top_n=10)) == {
        "projects/sync.md",
        "projects/old.md",
    }


@pytest.mark.parametrize(
    "query",
    [
        "status: active dawn",
        "dawn state:active",  # no such property
        "why is status:active after dawn?",
        "dawn OR status:active",
        "dawn (status:active)",
        '"dawn status:active"',
        "https://status:active/dawn",
        "dawn status:unknown",
        "a dawn that is one of many with status:active in it or so",
    ],
)
def test_in_a_query_anything_else_is_words(index, query):
    found = index.search(query, top_n=10, explain=True)
    assert found.listing is None
    assert found.explanation.queries[0].filters == ()
    if query.count(":") and query.endswith("it or so"):
        typed = next(word for word in query.split() if ":" in word)
        assert typed in found.explanation.queries[0].as_text


def test_properties_are_listed_with_kinds_and_values(index):
    found = {
        entry.key: entry
        for entry in index.library.list(ListRequest(kind=ListKind.PROPERTIES)).properties
    }
    assert (found["status"].kinds, found["status"].documents) == (("text",), 3)
    assert found["status"].values == {"Active": 2, "blocked": 1, "done": 1}
    assert found["due"].kinds == ("date",)
    assert set(found["priority"].kinds) == {"number", "text"}
    within = ListRequest(kind=ListKind.PROPERTIES, where="status:done")
    assert "mood" not in {one.key for one in index.library.list(within).properties}
    first = index.library.list(ListRequest(kind=ListKind.PROPERTIES, limit=2))
    rest = index.library.list(ListRequest(cursor=first.cursor))
    assert first.total == len(first.properties) + len(rest.properties) == len(found)


def test_the_values_of_a_filter_are_known_as_soon_as_the_file_is(tmp_path):
    write_all(tmp_path / "docs", {"a.md": "---\nstatus: new\n---\nText.\n"})
    place = {"indexing": {"index_path": str(tmp_path / "index")}}
    with open_index(tmp_path / "docs", settings=place, embedder=MeaningModel()) as opened:
        assert listed(opened, "status:new") == ["a.md"]
        write_all(tmp_path / "docs", {"a.md": "---\nstatus: old now\n---\nText.\n"})
        opened.update()
        assert listed(opened, 'status:"old now"') == ["a.md"]
        with pytest.raises(QueryError, match="no document has `status: new`"):
            listed(opened, "status:new")


def test_a_standing_filter_is_declared_in_every_answer(tmp_path):
    write_all(tmp_path / "docs", NOTES)
    place = {
        "indexing": {"index_path": str(tmp_path / "index")},
        "search": {"filter": "-status:done -gone:*"},
    }
    with open_index(tmp_path / "docs", settings=place, embedder=MeaningModel()) as opened:
        found = opened.search("dawn", top_n=10)
        assert "projects/old.md" not in paths(found)
        note = "only documents with `-status:done -gone:*` are searched, by the setting"
        assert any(note in each for each in found.notes)
        assert "projects/old.md" not in listed(opened, "priority:>2")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with in_memory(indexed_app(tmp_path_factory.mktemp("mcp"), NOTES)) as server:
        yield server


def test_over_mcp(server):
    asked = server.call("query_documents", query="dawn", filter="status:active", min_score=0)
    assert set(asked.paths) == {"projects/sync.md", "list.md"}
    asked = server.call("query_documents", query="", filter="status:active", top_n=1)
    assert asked.data["total"] == 2
    assert asked.data["documents"][0]["path"] == "projects/sync.md"
    assert asked.data["documents"][0]["properties"] == {"status": ["Active"]}
    assert asked.data["results"] == []
    assert "confidence" not in asked.text
    assert 'the same call with "offset": 1' in asked.text
    asked = server.call("query_documents", query="", options={"offset": 1}, filter="status:active")
    assert [each["path"] for each in asked.data["documents"]] == ["list.md"]
    asked = server.call("query_documents", query="dawn", filter="staus:active")
    assert asked.is_error
    assert "the nearest is `status`" in asked.text
    asked = server.call("list_documents", kind="properties")
    assert "status (text, 3 documents): Active (2), blocked (1), done (1)" in asked.text
    asked = server.call("list_documents", filter="status:done")
    assert [each["path"] for each in asked.data["documents"]] == ["projects/old.md"]


def test_a_mistake_is_told_before_vectors_are_computed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_all(tmp_path / "notes", NOTES)

    def ask(*words):
        return called(tmp_path, "query", *words, "--docs", "notes", "--json")

    found = ask("dawn", "-f", "nokey:2")
    assert (found.returncode, "no property" in found.stdout) == (2, False)
    assert "no document has the property `nokey`" in found.stdout
    found = ask("-f", "status:active")
    assert json.loads(found.stdout)["listing"]["total"] == 2
    shown = called(tmp_path, "query", "-f", "status:active", "--docs", "notes")
    assert "projects/sync.md" in shown.stdout
    assert "vectors" not in shown.stderr
    index = json.loads(found.stdout)["index"]
    assert index["vectors_pending"] == index["passages"] > 0


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_all(tmp_path / "notes", NOTES)

    def ask(*words):
        return called(tmp_path, *words, "--docs", "notes")

    found = ask("query", "-f", "status:active", "-f", "-priority:high")
    assert found.returncode == 0
    assert found.stdout.split()[:2] == ["2026-01-03", "notes/projects/sync.md"]
    ask("query", "dawn")
    found = ask("query", "-f", "status:active", "--json", "--no-update")
    assert json.loads(found.stdout)["listing"]["total"] == 2
    assert json.loads(found.stdout)["index"]["state"] == "ready"
    found = ask("query", "dawn", "-f", "staus:x")
    assert found.returncode == 2
    assert "no document has the property `staus`" in found.stderr
    assert ask("query").returncode == 2
    found = ask("ls", "properties")
    assert "status  (text, 3 documents)  Active (2), blocked (1), done (1)" in found.stdout
    found = ask("ls", "docs", "-f", "status:done", "--json")
    assert [each["path"] for each in json.loads(found.stdout)["documents"]] == ["projects/old.md"]
