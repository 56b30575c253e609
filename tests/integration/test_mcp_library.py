"""The tools that read, list and relate documents, and the documents as resources."""

import json
import os

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceTemplateReference

from ragdocs.errors import IndexCorrupt
from ragdocs.mcp_server.host import Host, ServedApp
from ragdocs.search.responses import least_to_read
from tests.support.machine import until
from tests.support.mcp_clients import ERAS, InMemory, in_memory, indexed_app

LONG = "\n".join(f"Line {number} of a long and tedious document." for number in range(2_000))
TEXTS = {
    "guide/auth.md": (
        "---\ntags: [security, api/tokens]\nauthor: Ines\n---\n# Signing in\n\nHow to sign in.\n\n"
        "## Tokens\n\nA token is a secret. See [roles](roles.md) and [gone](gone.md).\n"
    ),
    "guide/roles.md": "# Roles\n\nWho may do what with a token and a secret.\n",
    "ünïcode & space.md": "# Names\n\nA file with an awkward name.\n",
    "bidi\u202e.md": "# Turned\n\nA file whose name turns round.\n",
    "long.md": f"# Long\n\n{LONG}\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with in_memory(indexed_app(tmp_path_factory.mktemp("mcp"), TEXTS)) as server:
        yield server


def get(server, document, **more):
    return server.call("get_document", document=document, **more)


@pytest.mark.parametrize(
    ("reference", "first_line"),
    [
        ("guide/auth.md", "---"),
        ("docs:guide/auth.md", "---"),
        ("guide/auth.md#tokens", "## Tokens"),
        ("docs:guide/auth.md#tokens", "## Tokens"),
        ("guide/auth.md:5-7", "# Signing in"),
        ("ragdocs://doc/docs/guide/auth.md#tokens", "## Tokens"),
        ("ragdocs://doc/docs/guide/auth.md#L5-L7", "# Signing in"),
        ("ünïcode & space.md", "# Names"),
        ("bidi\u202e.md", "# Turned"),
        ("ragdocs://doc/docs/bidi%E2%80%AE.md", "# Turned"),
    ],
)
def test_a_document_is_found_by_every_name_it_has(server, reference, first_line):
    asked = get(server, reference)
    assert not asked.is_error, asked.text
    assert asked.data["text"].startswith(first_line)
    assert asked.data["text"].rstrip() in asked.text
    assert asked.data["line_start"] >= 1
    again = get(server, asked.data["uri"])
    assert again.data["text"] == asked.data["text"]


def test_lines_an_outline_and_the_whole_document(server):
    lines = get(server, "guide/auth.md", start_line=5, end_line=7)
    assert lines.data["text"] == "# Signing in\n\nHow to sign in.\n"
    outline = get(server, "guide/auth.md", outline=True)
    assert [entry["text"] for entry in outline.data["outline"]] == ["Signing in", "Tokens"]
    assert "- ## Tokens · lines 9-11, " in outline.text
    whole = get(server, "guide/auth.md#tokens", full_document=True)
    assert whole.data["text"] == TEXTS["guide/auth.md"]


def test_pages_joined_are_the_file(server):
    asked, limit = get(server, "long.md", max_tokens=1_000), 1_000
    pages = [asked.data["text"]]
    while cursor := asked.data.get("cursor"):
        assert asked.tokens <= limit
        assert json.dumps({"cursor": cursor}) in asked.text
        limit += 1_000
        asked = server.call("get_document", cursor=cursor, max_tokens=limit)
        pages.append(asked.data["text"])
    assert len(pages) > 3
    assert "".join(pages) == TEXTS["long.md"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("get_document", {}, "no document is given"),
        ("get_document", {"document": "gude/auth.md"}, "guide/auth.md"),
        ("get_document", {"document": "guide/auth.md#nothing"}, "nothing"),
        ("get_document", {"document": "../../etc/passwd"}, "`..` is not accepted"),
        ("get_document", {"document": "/etc/passwd"}, "relative to its tree"),
        ("get_document", {"document": "file:///etc/passwd"}, "etc/passwd"),
        ("get_document", {"document": "ragdocs://doc/docs/../x.md"}, "`..` is not accepted"),
        ("get_document", {"document": "guide/auth.md", "start_line": 9, "end_line": 2}, "swap"),
        ("get_document", {"cursor": "nonsense"}, "cursor"),
        ("list_documents", {"tree": "nope"}, "there is no tree"),
        ("list_documents", {"kind": "chunks"}, "one of documents, trees, outlines, tags"),
        ("list_documents", {"cursor": "nonsense"}, "cursor"),
        ("list_documents", {"limit": 501}, "from 1 to 500"),
        ("find_related", {}, "give either document, or files and diff"),
        ("find_related", {"document": "nope.md"}, "nope.md"),
        ("find_related", {"files": [{"name": "a"}]}, "files is"),
        ("index_status", {"verbose": True}, 'no parameter "verbose", the parameters are: lint'),
    ],
)
def test_bad_input_is_answered_with_advice(server, tool, arguments, said):
    asked = server.call(tool, **arguments)
    assert asked.is_error
    assert said in asked.text
    assert "Traceback" not in asked.text
    assert "root:" not in asked.text


def test_documents_trees_headings_and_tags_are_listed(server):
    documents = server.call("list_documents")
    assert documents.data["total"] == len(TEXTS)
    assert documents.data["index"]["complete"] is True
    listed = [entry["path"] for entry in documents.data["documents"]]
    assert listed == ["bidi.md", "guide/auth.md", "guide/roles.md", "long.md", "ünïcode & space.md"]
    assert documents.data["documents"][0]["uri"] == "ragdocs://doc/docs/bidi%E2%80%AE.md"
    assert "- docs:guide/auth.md · Signing in · " in documents.text
    trees = server.call("list_documents", kind="trees")
    assert [entry["name"] for entry in trees.data["trees"]] == ["docs"]
    tags = server.call("list_documents", kind="tags")
    assert {entry["tag"] for entry in tags.data["tags"]} == {"security", "api/tokens"}
    assert "- #security: 1 document" in tags.text
    outlines = server.call("list_documents", kind="outlines", path="guide")
    assert [entry["text"] for entry in outlines.data["outlines"]] == [
        "Signing in",
        "Tokens",
        "Roles",
    ]
    tagged = server.call("list_documents", tags=["api"])
    assert [entry["path"] for entry in tagged.data["documents"]] == ["guide/auth.md"]


def test_a_list_comes_in_pages(server):
    found, cursor = [], ""
    while True:
        asked = server.call("list_documents", **({"cursor": cursor} if cursor else {"limit": 2}))
        found += [entry["path"] for entry in asked.data["documents"]]
        cursor = asked.data.get("cursor")
        if not cursor:
            break
        assert f"list_documents {json.dumps({'cursor': cursor})}" in asked.text
    assert len(found) == len(set(found)) == len(TEXTS)


def test_what_is_related_is_told_with_its_kind(server):
    asked = server.call("find_related", document="guide/auth.md")
    related = asked.data["related"]
    assert [link["path"] for link in related["links"]][:1] == ["guide/roles.md"]
    assert "links out: 2 of 2" in asked.text
    assert "(broken link)" in asked.text
    back = server.call("find_related", document="guide/roles.md").data["related"]
    assert [link["path"] for link in back["backlinks"]] == ["guide/auth.md"]
    assert "similar by meaning: " in asked.text
    assert "same cluster: " in asked.text
    least = server.call("find_related", document="guide/auth.md", limit=1, max_tokens=700)
    assert least.tokens <= 700


TAGS = ", ".join(f"a-long-tag-with-the-number-{number}" for number in range(60))
HEAVY = {
    f"folder-{number}/document-{number}.md": (
        f"---\ntitle: {'Many words ' * 15}\ntags: [{TAGS}]\n---\n# {'Heading ' * 20}\n\n"
        f"Links to [[document-{(number + 1) % 12}]] and [[document-{(number + 2) % 12}]].\n\n"
        + "Tokens and secrets. "
        * 40
    )
    for number in range(12)
}


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    with in_memory(indexed_app(tmp_path_factory.mktemp("heavy"), HEAVY)) as server:
        yield server


@pytest.mark.parametrize("limit", [300, 500, 1_000])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_related", {"document": "folder-3/document-3.md", "limit": 50}),
        ("find_related", {"diff": "+++ b/x.py\n+token = secret()\n"}),
        ("find_related", {"files": [{"path": f"src/some/token{n}.py"} for n in range(50)]}),
        ("get_document", {"document": "folder-3/document-3.md"}),
        ("list_documents", {}),
    ],
    ids=["related", "diff", "files", "document", "list"],
)
def test_an_answer_about_long_documents_keeps_to_its_budget(heavy, tool, arguments, limit):
    """What goes with a document took 1,180 tokens of 300."""
    asked = heavy.call(tool, max_tokens=limit, **arguments)
    assert not asked.is_error, asked.text
    assert asked.tokens <= limit
    if limit == 300:
        assert "max_tokens" in asked.text


def test_kinds_of_relation_that_have_no_room_are_named(heavy):
    asked = heavy.call("find_related", document="folder-3/document-3.md", max_tokens=300)
    related = asked.data["related"]
    assert related["links_total"] == 2
    assert related["similar_by_words"] == []
    *_, note = related["notes"]
    assert note.startswith("left out to stay within max_tokens: ")
    assert note.endswith("similar by meaning, similar by words")
    assert note in asked.text


def test_a_document_and_what_is_related_tell_the_state_of_the_index(server):
    """In an index that is half built a document has fewer backlinks, and they said nothing."""
    for asked in (
        get(server, "guide/auth.md"),
        server.call("find_related", document="guide/auth.md"),
    ):
        assert asked.data["index"]["state"] == "ready"
        assert "Index ready: 5 documents" in asked.text


@pytest.mark.parametrize("folder", ["guide", "guide/", "docs:guide"])
def test_a_folder_is_told_with_the_call_that_lists_its_documents(server, folder):
    asked = server.call("get_document", document=folder)
    assert asked.is_error
    assert f"`{folder}` is a folder, not a document" in asked.text
    call = json.loads(asked.text.partition("list_documents ")[2].partition(" lists")[0])
    listed = server.call("list_documents", **call)
    assert {one["path"] for one in listed.data["documents"]} == {
        path for path in TEXTS if path.startswith("guide/")
    }


@pytest.mark.parametrize("tool", ["get_document", "find_related"])
def test_what_is_not_complete_is_said_beside_a_document(tmp_path, tool):
    app = indexed_app(tmp_path, TEXTS)
    with in_memory(app) as server:

        def unsure():
            os.utime(tmp_path / "index" / "store.db")  # the indexing thread may be quicker
            asked = server.call(tool, document="guide/roles.md")
            # Or so quick that it has checked the store, and not yet compared the files.
            return "changed by another program" in asked.text and asked

        assert not until(unsure).data["index"]["complete"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"files": [{"path": "src/tokens.py", "content": "def make_token(): return secret\n"}]},
        {"files": [{"path": "src/roles/token.py"}]},
        {"diff": "--- a/token.py\n+++ b/token.py\n@@ -1 +1 @@\n-old\n+token = secret()\n"},
    ],
    ids=["content", "path", "diff"],
)
def test_the_documentation_for_source_files(server, arguments):
    asked = server.call("find_related", **arguments)
    assert not asked.is_error, asked.text
    context = asked.data["context"]
    assert context["results"][0]["path"] in ("guide/auth.md", "guide/roles.md")
    assert context["results"][0]["text"].rstrip() in asked.text
    assert asked.links[0].uri.startswith(f"ragdocs://doc/docs/{context['results'][0]['path']}#L")
    least = least_to_read(found["confidence"] for found in context["results"])
    for found in context["results"][1:]:
        assert (found.get("extent") == "brief") == (found["confidence"] < least)


def test_the_status_says_all_and_names_no_home(server, monkeypatch, tmp_path):
    asked = server.call("index_status")
    assert asked.text.count("ready: ") == 1
    assert asked.data["index"]["state"] == "ready"
    assert asked.data["holdings"]["documents"] == len(TEXTS)
    assert asked.data["trees"][0]["name"] == "docs"
    assert "indexing.documents_path" in asked.data["settings"]
    assert "settings other than the defaults: " in asked.text
    assert asked.tokens <= 5_000
    home = asked.data["trees"][0]["root"].rpartition("/")[0]
    monkeypatch.setenv("HOME", home)
    assert home not in (said := server.call("index_status")).text + json.dumps(said.data)


@pytest.mark.parametrize("era", ERAS)
def test_resources_are_listed_and_read(server, era):
    listed = server.use(lambda client: client.list_resources(), era).resources
    assert len(listed) == len(TEXTS)
    texts = {
        one.uri: server.use(lambda client, one=one: client.read_resource(one.uri), era)
        for one in listed
    }
    by_name = {one.name: texts[one.uri].contents[0] for one in listed}
    assert by_name["guide/auth.md"].text == TEXTS["guide/auth.md"]
    assert by_name["guide/auth.md"].mime_type == "text/markdown"
    cut = texts["ragdocs://doc/docs/long.md"].contents
    assert TEXTS["long.md"].startswith(cut[0].text)
    assert "Cut here" in cut[1].text
    rest = server.use(lambda client: client.read_resource(cut[1].uri), era)
    assert rest.contents[0].text


def test_a_tree_and_a_tag_are_resources_too(server):
    def text(uri):
        return server.use(lambda client: client.read_resource(uri)).contents[0].text

    assert "docs:guide/auth.md" in text("ragdocs://tree/docs")
    assert "docs:guide/roles.md" not in text("ragdocs://tag/security")
    assert "docs:guide/auth.md" in text("ragdocs://tag/api%2Ftokens")
    assert text("ragdocs://doc/docs/guide/auth.md#tokens").startswith("## Tokens")


@pytest.mark.parametrize(("era", "code"), [(ERAS[0], -32002), (ERAS[1], -32602)])
@pytest.mark.parametrize(
    "uri", ["ragdocs://doc/docs/no.md", "file:///etc/passwd", "ragdocs://doc/docs/../x.md"]
)
def test_a_resource_that_is_not_there(server, era, code, uri):
    with pytest.raises(MCPError) as caught:
        server.use(lambda client: client.read_resource(uri), era)
    assert caught.value.error.code == code


def test_templates_and_completions_name_what_there_is(server):
    templates = server.use(lambda client: client.list_resource_templates()).resource_templates
    found = {one.name: one.uri_template for one in templates}
    assert found["document"] == "ragdocs://doc/{tree}/{+path}"

    def complete(name, variable, value, **known):
        ref = ResourceTemplateReference(uri=found[name])
        argument = {"name": variable, "value": value}
        work = lambda client: client.complete(ref, argument, context_arguments=known or None)  # noqa: E731
        return server.use(work).completion.values

    assert complete("document", "path", "guide") == ["guide/auth.md", "guide/roles.md"]
    assert complete("document", "path", "ROLES") == ["guide/roles.md"]
    assert complete("document", "path", "", tree="nope") == []
    assert "bidi\u202e.md" not in complete("document", "path", "")
    assert complete("document", "tree", "d") == ["docs"]
    assert complete("tag", "tag", "") == ["api/tokens", "security"]
    assert complete("document", "nope", "") == []


class DamagedLibrary(ServedApp):
    """Every read finds a damaged row; keeps what is reported."""

    reported = ()

    @property
    def library(self):
        raise IndexCorrupt("the stored chunk 'docs:a.md' is damaged", "rebuild it")

    def report(self, error):
        self.reported += (str(error),)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_document", {"document": "guide/auth.md"}),
        ("list_documents", {}),
        ("find_related", {"document": "guide/auth.md"}),
    ],
)
def test_damage_that_a_read_finds_is_reported_for_repair(tmp_path, tool, arguments):
    backend = DamagedLibrary(indexed_app(tmp_path, TEXTS))
    with InMemory(Host(lambda: backend)) as server:
        asked = server.call(tool, **arguments)
    assert asked.is_error
    assert "is damaged" in asked.text
    assert len(backend.reported) == 1


@pytest.mark.parametrize("limit", [300, 500])
def test_an_outline_of_very_long_headings_keeps_to_its_budget(tmp_path, limit):
    """An entry has its heading three times over; one took 544 tokens of 300."""
    text = "".join(f"# {number} {'wordy ' * 80}\n\nText.\n\n" for number in range(5))
    with in_memory(indexed_app(tmp_path, {"headings.md": text})) as server:
        asked = get(server, "headings.md", outline=True, max_tokens=limit)
        assert asked.tokens <= limit
        [first, *_] = asked.data["outline"]
        assert get(server, first["id"]).data["line_start"] == first["line_start"]
        more = server.call("get_document", cursor=asked.data["cursor"], max_tokens=limit)
        assert more.data["outline"][0]["line_start"] > first["line_start"]
