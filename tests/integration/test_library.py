"""Reading and listing: from files on disk to the text, the outline and the lists."""

import json
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from ragdocs.app import Assembly, TreeFiles
from ragdocs.config.settings import ContextConfig
from ragdocs.errors import QueryError
from ragdocs.indexing.ignore import matches_any
from ragdocs.indexing.manager import IndexManager
from ragdocs.indices.embedded import EmbeddedIndex
from ragdocs.library.answers import DocumentPart, TextState
from ragdocs.library.library import Library, LibrarySetup
from ragdocs.library.paging import decode_cursor, encode_cursor
from ragdocs.library.related import MAX_CHARS
from ragdocs.library.requests import (
    ContextRequest,
    DocumentRequest,
    EditedFile,
    ListKind,
    ListRequest,
    RelatedRequest,
)
from ragdocs.places import Places
from ragdocs.search.budget import tokens
from ragdocs.search.orchestrator import QueryOrchestrator
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot
from tests.support.indexes import tree, write
from tests.support.models import CountingEmbedder, MeaningEmbedder
from tests.support.program import config_of


class IndexedLibrary:
    """A library over real files, made of the application's parts: write files, update, ask."""

    def __init__(self, folder: Path, texts, trees: Sequence[str] = ("docs",), **more) -> None:
        self.trees = tuple(tree(folder / name, name) for name in trees)
        for each in self.trees:
            each.root.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.embedder = more.pop("embedder", None) or CountingEmbedder()
        first = self.trees[0].root
        search = {"query_expansion_enabled": False}
        config = replace(config_of(first, folder / "index", search=search), trees=self.trees)
        self.parts = Assembly(config, self.embedder)
        self.write(texts)
        self.reader = Reader.open(self.parts.directory)
        self.index = EmbeddedIndex(self.reader, self.parts.indices)
        self.orchestrator = QueryOrchestrator(self.index, self.parts.query_tools, config.search)
        self.library = self.configured(**more)

    def configured(self, **more) -> Library:
        usual = {
            "trees": self.trees,
            "places": lambda: Places.of(self.trees),
            "context": ContextConfig(),
            "search": self.orchestrator.search,
            "files": TreeFiles(self.parts.config),
            "matches": matches_any,
        }
        return Library(self.index, self.parts.analyzer, LibrarySetup(**{**usual, **more}))

    def write(self, texts, removed: Sequence[str] = ()) -> None:
        self.edit(texts, removed)
        self.update()

    def edit(self, texts, removed: Sequence[str] = ()) -> None:
        """On disk alone: the index does not know yet."""
        for place, text in texts.items():
            write(*self._place(place), text)
        for place in removed:
            root, path = self._place(place)
            (root / path).unlink()

    def update(self) -> None:
        with IndexManager(self.parts.index_setup, self.embedder) as manager:
            manager.update()
            manager.fill()

    def find_communities(self) -> None:
        with IndexManager(self.parts.index_setup, self.embedder) as manager:
            manager.update_communities()

    def _place(self, place: str) -> tuple[Path, str]:
        """`path`, or `tree>path` for another tree than the first."""
        name, _, path = place.rpartition(">")
        return self.folder / (name or self.trees[0].name), path

    def get(self, reference: str = "", **more):
        return self.library.get(DocumentRequest(reference=reference, **more))

    def list(self, **more):
        return self.library.list(ListRequest(**more))

    def related(self, reference: str, **more):
        return self.library.related(RelatedRequest(reference=reference, **more))

    def context(self, *files, **more):
        return self.library.context(ContextRequest(files=files, **more))

    def pages(self, reference: str = "", max_tokens: int = 5_000, **more):
        """Every page of one request, each by the cursor of the one before alone."""
        page = self.get(reference, max_tokens=max_tokens, **more)
        yield page
        for _ in range(4 * page.total_tokens + 1):
            if not page.cursor:
                return
            page = self.get(cursor=page.cursor, max_tokens=max_tokens)
            yield page
        raise AssertionError("the pages have no end")

    def __enter__(self) -> "IndexedLibrary":
        return self

    def __exit__(self, *_: object) -> None:
        self.orchestrator.close()
        self.reader.close()


BINARY = b"\x00\x01\x02" * 900
LONG = "Tokens expire after an hour and must be refreshed with care. " * 25
GUIDE = f"""---
title: Authentication
tags: [security/tokens, Guide]
aliases: [Signing in]
---
How to sign in, in short.

# Sign in

Ask for a token.

## Token refresh

{LONG}

### Clock skew -- and more

Small.

## Logout

End the session. {LONG}
"""
NOTES = {
    "guide/auth.md": GUIDE,
    "guide/cache.md": "# Caching\n\nKeep answers.\n",
    "api/cache.md": "---\ntags: [guide]\n---\n# Cache API\n\n## Keys\n\nOne.\n\n## Keys\n\nTwo.\n",
    "empty.md": "",
    "blank.md": "\n\n\n",
    "front.md": "---\ntitle: Only this\n---\n",
    "plain.txt": "no headings\nhere\n",
    "notes>garden.md": "# Garden\n\nTomatoes.\n",
    "notes>guide/auth.md": "# Other authentication\n",
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    with IndexedLibrary(tmp_path_factory.mktemp("indexed"), NOTES, ("docs", "notes")) as indexed:
        yield indexed


def lines_of(text: str, first: int, last: int) -> str:
    return "".join(text.splitlines(keepends=True)[first - 1 : last])


def test_a_document_is_given_word_for_word(indexed):
    found = indexed.get("docs:guide/auth.md")
    assert found.text == GUIDE
    assert (found.line_start, found.line_end) == (1, GUIDE.count("\n"))
    assert (found.byte_start, found.byte_end) == (0, len(GUIDE.encode()))
    assert (found.title, found.extent, found.state) == (
        "Authentication",
        DocumentPart.DOCUMENT,
        TextState.CURRENT,
    )
    assert found.tokens == found.total_tokens == tokens(GUIDE)
    assert found.cursor is None


@pytest.mark.parametrize(
    "reference",
    [
        "docs:guide/auth.md",
        "docs:guide/auth",
        "Authentication",
        "signing in",
        "docs:auth.md",
        "docs:./guide//auth.md",
    ],
)
def test_a_document_goes_by_id_path_name_title_and_alias(indexed, reference):
    assert indexed.get(reference).doc_id == "docs:guide/auth.md"


def test_the_end_of_a_path_is_enough_when_one_document_has_it(indexed):
    assert indexed.get("garden.md").doc_id == "notes:garden.md"
    assert indexed.get("api/cache.md").doc_id == "docs:api/cache.md"
    assert indexed.get("API/Cache.md").doc_id == "docs:api/cache.md"


@pytest.mark.parametrize("reference", ["cache.md", "guide/auth.md", "auth.md"])
def test_what_could_be_several_documents_is_asked_back(indexed, reference):
    with pytest.raises(QueryError, match="could be 2 documents: `docs:"):
        indexed.get(reference)


def test_an_unknown_name_is_answered_with_the_nearest(indexed):
    with pytest.raises(
        QueryError, match=r"`guide/cahce\.md`; the nearest (is|are) `guide/cache\.md`"
    ):
        indexed.get("guide/cahce.md")


def test_a_file_that_could_not_be_indexed_is_said_to_be_one(tmp_path):
    message = r"`docs:sub/bad\.md` could not be indexed: .*not text"
    with (
        IndexedLibrary(tmp_path, {"sub/bad.md": BINARY}) as indexed,
        pytest.raises(QueryError, match=message),
    ):
        indexed.get("sub/bad.md#heading")


def test_a_section_is_its_heading_down_to_the_next_of_its_level(indexed):
    found = indexed.get("docs:auth#token-refresh")
    start, end = GUIDE.index("## Token"), GUIDE.index("## Logout")
    assert found.text == GUIDE[start:end]
    assert found.extent is DocumentPart.SECTION
    assert found.heading_path == ("Authentication", "Sign in", "Token refresh")
    assert lines_of(GUIDE, found.line_start, found.line_end) == found.text
    assert GUIDE.encode()[found.byte_start : found.byte_end].decode() == found.text


@pytest.mark.parametrize(
    "fragment",
    [
        "clock-skew----and-more",
        "clock-skew-and-more",
        "Clock skew -- and more",
        "CLOCK-SKEW-AND-MORE",
    ],
)
def test_a_heading_goes_by_its_slug_its_collapsed_slug_and_its_text(indexed, fragment):
    found = indexed.get(f"docs:auth.md#{fragment}")
    assert found.text == "### Clock skew -- and more\n\nSmall.\n\n"


def test_the_text_before_the_first_heading_is_a_section_too(indexed):
    assert indexed.get("docs:auth#preamble").text == "How to sign in, in short.\n\n"
    with pytest.raises(QueryError, match="begins with a heading"):
        indexed.get("guide/cache.md#preamble")


def test_an_unknown_heading_is_answered_with_the_nearest(indexed):
    with pytest.raises(
        QueryError, match=r"no heading `tokn-refresh`; the nearest (is|are) `#token-"
    ):
        indexed.get("docs:auth#tokn-refresh")


def test_repeated_headings_are_told_apart(indexed):
    assert indexed.get("api/cache.md#keys").text == "## Keys\n\nOne.\n\n"
    assert indexed.get("api/cache.md#keys-1").text == "## Keys\n\nTwo.\n"


def test_every_chunk_can_be_read_by_its_id(indexed):
    with indexed.reader.snapshot() as snapshot:
        stored = list(snapshot.leaves())
    assert len(stored) > 8
    for each in stored:
        chunk = each.chunk
        found = indexed.get(chunk.id)
        if chunk.parent_id is None:
            assert chunk.text in found.text  # the whole document, its front matter too
            continue
        assert found.text == chunk.text
        assert (found.line_start, found.line_end) == (chunk.span.line_start, chunk.span.line_end)
        assert (found.byte_start, found.byte_end) == (chunk.span.byte_start, chunk.span.byte_end)


def test_a_chunk_above_others_is_read_with_all_of_them(indexed):
    found = indexed.get("docs:guide/auth.md#sign-in")
    assert found.extent is DocumentPart.CHUNK
    assert found.text == GUIDE[GUIDE.index("# Sign in") :]


@pytest.mark.parametrize("first", range(1, 8))
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_line_range_is_exact(indexed, first, count):
    expected = lines_of(GUIDE, first, first + count)
    assert indexed.get("docs:auth.md", start_line=first, end_line=first + count).text == expected
    by_name = indexed.get(f"docs:auth.md:{first}-{first + count}")
    assert by_name.text == expected
    assert (by_name.line_start, by_name.line_end) == (first, first + count)
    assert by_name.extent is DocumentPart.LINES


def test_lines_past_the_end_are_the_last_ones_or_an_error(indexed):
    count = GUIDE.count("\n")
    assert indexed.get("docs:auth", start_line=count, end_line=99_999).line_end == count
    with pytest.raises(QueryError, match=f"has {count} lines"):
        indexed.get("docs:auth", start_line=count + 1)
    with pytest.raises(QueryError, match="range 9-3 is backwards"):
        indexed.get("docs:auth:9-3")


def test_full_document_widens_a_section_to_its_document(indexed):
    assert indexed.get("docs:auth#logout", full_document=True).text == GUIDE


@pytest.mark.parametrize("size", [5, 40, 333, 10_000])
@pytest.mark.parametrize(
    "reference", ["docs:guide/auth.md", "docs:auth#token-refresh", "plain.txt"]
)
def test_pages_join_to_the_whole(indexed, reference, size):
    pages = list(indexed.pages(reference, max_tokens=size))
    whole = indexed.get(reference)
    assert "".join(page.text for page in pages) == whole.text
    assert all(page.tokens <= size for page in pages)
    assert {page.total_tokens for page in pages} == {whole.tokens}
    assert pages[0].byte_start == whole.byte_start
    for before, after in pairwise(pages):
        assert before.byte_end == after.byte_start
        assert before.line_end <= after.line_start


def test_a_document_that_changed_between_pages_is_noticed(tmp_path):
    with IndexedLibrary(tmp_path, {"a.md": LONG.replace(". ", ".\n")}) as indexed:
        page = indexed.get("a.md", max_tokens=50)
        indexed.write({"a.md": "Another text.\n" * 100})
        with pytest.raises(QueryError, match=f"changed .* start_line {page.line_end + 1}"):
            indexed.get(cursor=page.cursor)
        indexed.write({}, removed=["a.md"])
        with pytest.raises(QueryError, match="no longer exists"):
            indexed.get(cursor=page.cursor)


def test_a_cursor_goes_with_its_own_document_only(indexed):
    cursor = indexed.get("docs:auth", max_tokens=50).cursor
    assert indexed.get("docs:guide/auth.md", cursor=cursor).doc_id == "docs:guide/auth.md"
    with pytest.raises(QueryError, match="another document"):
        indexed.get("garden.md", cursor=cursor)


def test_a_file_edited_since_is_said_and_the_indexed_text_is_given(tmp_path):
    with IndexedLibrary(tmp_path, {"a.md": GUIDE}) as indexed:
        body = GUIDE.partition("---\n")[2].partition("---\n")[2]
        pages = [indexed.get("a.md", max_tokens=5)]
        indexed.edit({"a.md": "# New\n"})
        found = indexed.get("a.md")
        assert found.state is TextState.CHANGED
        assert "changed since" in found.notes[0]
        assert "lines 1-5" in found.notes[1]
        assert (found.text, found.line_start) == (body, 6)
        assert GUIDE.encode()[found.byte_start : found.byte_end].decode() == body
        # The pages go on in the indexed text.
        rest = indexed.get(cursor=indexed.get("a.md", start_line=8, max_tokens=5).cursor)
        assert body.endswith(rest.text)
        assert pages[0].cursor
        (indexed.folder / "docs" / "a.md").unlink()
        gone = indexed.get("a.md:8-9")
        assert (gone.state, gone.text) == (TextState.UNREADABLE, lines_of(GUIDE, 8, 9))
        assert str(indexed.folder) not in gone.notes[0]


def test_a_link_put_in_a_files_place_is_not_followed(tmp_path):
    with IndexedLibrary(tmp_path, {"a.md": "# Own\n"}) as indexed:
        secret = tmp_path / "secret"
        secret.write_text("# Own\n", encoding="utf-8")
        (indexed.folder / "docs" / "a.md").unlink()
        (indexed.folder / "docs" / "a.md").symlink_to(secret)
        assert indexed.get("a.md").state is TextState.UNREADABLE


def test_without_a_way_to_the_files_the_store_answers(tmp_path):
    with IndexedLibrary(
        tmp_path, {"a.md": GUIDE, "b.md": "text\r\nmore\r\n"}, files=None
    ) as indexed:
        found = indexed.get("a.md#logout")
        assert found.text == GUIDE[GUIDE.index("## Logout") :]
        assert found.state is TextState.UNCHECKED
        assert (indexed.get("b.md").text, indexed.get("b.md").byte_end) == ("text\nmore\n", 12)


@pytest.mark.parametrize(
    ("path", "text"), [("empty.md", ""), ("blank.md", "\n\n\n"), ("front.md", NOTES["front.md"])]
)
def test_documents_without_text_are_given_too(indexed, path, text):
    found = indexed.get(path)
    assert (found.text, found.cursor, found.line_start) == (text, None, 1)


@pytest.mark.parametrize(
    "data",
    ["é\r\nb\rc\n".encode("utf-16"), b"a\xff\r\nb\0c\n" + b"plain text\n" * 20, b"\xef\xbb\xbfx\n"],
)
def test_any_bytes_are_read_as_they_were_indexed(tmp_path, data):
    with IndexedLibrary(tmp_path, {"a.txt": data}) as indexed:
        pages = list(indexed.pages("a.txt", max_tokens=1))
        whole = indexed.get("a.txt")
        assert "".join(page.text for page in pages) == whole.text
        stored = indexed.configured(files=None).get(DocumentRequest(reference="a.txt"))
        assert stored.text == whole.text


SCRAPS = [
    "# Heading\n", "## Über-Titel 標題\n", "\r\n", "\r", "\n\n", "word ", "ein längeres Wort. ",
    "😀👩\u200d👩\u200d👧 ", "e\u0301\u0302\u0303", "\u2028", "\x85", "\x0b\x0c", "שלום ",
    "漢字仮名", "\t", "```\n# not a heading\n```\n", "- item\n", "| a | b |\n|---|---|\n",
    "x" * 1500, "<!-- c -->\n",
]  # fmt: skip


def test_any_text_is_given_whole_in_pages_and_lines_from_file_and_store_alike(tmp_path):
    chance = random.Random(2026)
    texts = {}
    for at in range(25):
        front = "---\ntitle: t\n---\n" if at % 3 == 0 else ""
        texts[f"{at}.md"] = front + "".join(chance.choices(SCRAPS, k=chance.randint(1, 60)))
    with IndexedLibrary(tmp_path, texts) as indexed:
        stored = indexed.configured(files=None)
        for name, written in texts.items():
            text = written.replace("\r\n", "\n").replace("\r", "\n")
            data = written.encode()
            lines = text.split("\n")
            for size in (chance.randint(1, 30), chance.randint(30, 600)):
                pages = list(indexed.pages(name, max_tokens=size))
                assert "".join(page.text for page in pages) == text
                for page in pages:
                    own = data[page.byte_start : page.byte_end].decode()
                    assert own.replace("\r\n", "\n").replace("\r", "\n") == page.text
            total = indexed.get(name).total_lines
            assert total == len(lines) - (len(lines) > 1 and not lines[-1])
            first = chance.randint(1, total)
            last = chance.randint(first, total)
            wanted = {"reference": name, "start_line": first, "end_line": last}
            expected = "\n".join(lines[first - 1 : last]) + "\n" * (last < len(lines))
            found = indexed.get(**wanted)
            assert found.text == expected
            assert (found.line_start, found.line_end) == (first, last)
            kept = stored.get(DocumentRequest(**wanted)) if first > 3 else None
            assert kept is None or kept.text == expected


def test_the_outline_has_lines_and_sizes_that_fit_the_text(indexed):
    found = indexed.get("docs:auth", outline=True)
    assert found.extent is DocumentPart.OUTLINE
    assert [(each.level, each.text) for each in found.outline] == [
        (0, ""),
        (1, "Sign in"),
        (2, "Token refresh"),
        (3, "Clock skew -- and more"),
        (2, "Logout"),
    ]
    for entry in found.outline[1:]:
        section = indexed.get(f"docs:auth#{entry.slug}")
        assert (section.line_start, section.line_end) == (entry.line_start, entry.line_end)
        assert (section.tokens, len(section.text.encode())) == (entry.tokens, entry.bytes)
        assert entry.text in indexed.get(entry.id, max_tokens=10_000).text


def test_the_outline_of_a_section_is_what_is_below_it(indexed):
    found = indexed.get("docs:auth#token-refresh", outline=True)
    assert [each.slug for each in found.outline] == ["token-refresh", "clock-skew----and-more"]


def test_a_long_outline_comes_in_pages(tmp_path):
    text = "".join(f"{'#' * (1 + n % 6)} Heading {n}\n\n" for n in range(300))
    with IndexedLibrary(tmp_path, {"a.md": text, "b.md": "# " + "x" * 100_000}) as indexed:
        pages = list(indexed.pages("a.md", outline=True, max_tokens=1_000))
        assert len(pages) > 5
        assert all(page.tokens <= 1_000 for page in pages)
        slugs = [entry.slug for page in pages for entry in page.outline]
        assert slugs == [f"heading-{n}" for n in range(300)]
        assert len(indexed.get("b.md", outline=True).outline[0].text) == 200


NASTY = [
    "with space.md",
    "a#b.md",
    "100%25.md",
    "a%b.md",
    "new\nline.md",
    "tab\there.md",
    "quote'\".md",
    "star*?.md",
    "back\\slash.md",
    "colon:12-14.md",
    "-dash.md",
    "tilde~2.md",
    "[x](y).md",
    "emoji 😀.md",
    "מימין.md",
    "docs:again.md",
    "x" * 200 + ".md",
    os.fsdecode(b"not-utf8-\xff.md"),
]


def test_nasty_names_go_there_and_back(tmp_path):
    texts = {f"deep/{name}": f"# Heading {at}\n\nText.\n" for at, name in enumerate(NASTY)}
    with IndexedLibrary(tmp_path, texts) as indexed:
        listed = indexed.list(limit=500).documents
        assert len(listed) == len(NASTY)
        json.dumps([asdict(entry) for entry in listed], ensure_ascii=False, default=str).encode()
        for entry in listed:
            at = int(indexed.get(entry.id).title.split()[1])
            for reference in (
                entry.id,
                entry.path,
                f"docs:{entry.path}",
                f"deep/{NASTY[at]}",
                f"{entry.id}#heading-{at}",
                f"{entry.path}#heading-{at}",
                f"{entry.path}:1-3",
            ):
                found = indexed.get(reference)
                assert (found.id.partition("#")[0], found.path) == (entry.id, entry.path)
                assert found.text == f"# Heading {at}\n\nText.\n"


def test_twins_in_case_and_unicode_form_stay_apart(tmp_path):
    names = ["Case.md", "case.md", "caf\u00e9.md", "cafe\u0301.md", "a.md", "a.txt"]
    with IndexedLibrary(
        tmp_path, {name: f"text of {at}\n" for at, name in enumerate(names)}
    ) as indexed:
        for at, name in enumerate(names):
            assert indexed.get(name).text == f"text of {at}\n"


def test_references_that_lead_out_never_touch_the_file_system(indexed, monkeypatch):
    def forbidden(*_):
        raise AssertionError("the file system was asked")

    monkeypatch.setattr(TreeFiles, "read", forbidden)
    for reference in (
        "../../etc/passwd",
        "docs:../../etc/passwd",
        "/etc/passwd",
        str(indexed.folder / "docs2" / "garden.md"),
        "a\0.md",
        "\ud800.md",
        "etc/passwd",
        "docs:/etc/passwd",
        "..",
        "..:1-3",
        "docs:",
        "#only-a-heading",
        ":3",
    ):
        with pytest.raises(QueryError) as refused:
            indexed.get(reference)
        assert str(indexed.folder) not in str(refused.value)


def everything(indexed, **more):
    listing = indexed.list(**more)
    yield listing
    for _ in range(listing.total):
        if not listing.cursor:
            return
        listing = indexed.list(cursor=listing.cursor, limit=more.get("limit", 100))
        yield listing
    raise AssertionError("the list has no end")


def test_trees_are_listed_with_their_counts(indexed):
    found = indexed.list(kind=ListKind.TREES)
    assert [(tree.name, tree.documents, tree.failed_files) for tree in found.trees] == [
        ("docs", 7, 0),
        ("notes", 2, 0),
    ]
    assert found.trees[1].bytes == sum(
        len(text.encode()) for place, text in NOTES.items() if place.startswith("notes>")
    )


def test_a_tree_with_nothing_in_it_is_listed_too(tmp_path):
    with IndexedLibrary(tmp_path, {"bad.md": BINARY}, ("docs", "none")) as indexed:
        trees = indexed.list(kind=ListKind.TREES).trees
    assert [(tree.name, tree.documents, tree.failed_files) for tree in trees] == [
        ("docs", 0, 1),
        ("none", 0, 0),
    ]


def test_documents_are_listed_in_order_with_what_they_are(indexed):
    found = indexed.list()
    ids = [entry.id for entry in found.documents]
    assert ids == sorted(ids)
    assert found.total == len(ids) == len(NOTES)
    (guide,) = [entry for entry in found.documents if entry.id == "docs:guide/auth.md"]
    assert (guide.title, guide.tags) == ("Authentication", ("security/tokens", "Guide"))
    assert guide.bytes == len(GUIDE.encode())
    with indexed.reader.snapshot() as snapshot:
        nodes = snapshot.chunks(guide.id)
    assert guide.chunks == len(nodes)
    assert guide.passages == sum(node.chunk.text is not None for node in nodes)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tree": "notes"}, ["notes:garden.md", "notes:guide/auth.md"]),
        ({"path": "api"}, ["docs:api/cache.md"]),
        ({"path": "api/"}, ["docs:api/cache.md"]),
        ({"tags": ("GUIDE",)}, ["docs:api/cache.md", "docs:guide/auth.md"]),
        ({"tags": ("security",)}, ["docs:guide/auth.md"]),
        ({"path": "api", "tags": ("security",)}, []),
        ({"tree": "docs", "path": "guide/auth.md"}, ["docs:guide/auth.md"]),
    ],
)
def test_filters_leave_what_they_say(indexed, filters, expected):
    found = indexed.list(**filters)
    assert [entry.id for entry in found.documents] == expected
    assert found.total == len(expected)
    assert bool(found.notes) == (not expected)


@pytest.mark.parametrize("kind", ListKind)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_every_list_join_to_the_list(indexed, kind, limit):
    name = kind.value
    whole = indexed.list(kind=kind, limit=500)
    pages = list(everything(indexed, kind=kind, limit=limit))
    entries = getattr(whole, name)
    assert [each for page in pages for each in getattr(page, name)] == list(entries)
    assert all(len(getattr(page, name)) <= limit for page in pages)
    assert {page.total for page in pages} == {len(entries)}
    assert entries


def test_a_page_keeps_to_its_tokens(indexed):
    pages = indexed.list(kind=ListKind.CHUNKS, max_tokens=200)
    size = tokens(json.dumps([asdict(entry) for entry in pages.chunks]))
    assert len(pages.chunks) > 1
    assert size < 250


def test_tags_are_counted_without_regard_to_case(indexed):
    found = indexed.list(kind=ListKind.TAGS)
    assert [(entry.tag, entry.documents) for entry in found.tags] == [
        ("Guide", 2),
        ("security/tokens", 1),
    ]


def test_what_comes_and_goes_between_pages_hides_nothing_else(tmp_path):
    names = [f"{n:02}.md" for n in range(0, 20, 2)]
    with IndexedLibrary(tmp_path, dict.fromkeys(names, "text\n")) as indexed:
        first = indexed.list(limit=4)
        indexed.write({"01.md": "new\n", "13.md": "new\n"}, removed=["02.md", "06.md"])
        rest = indexed.list(cursor=first.cursor, limit=100)
    assert [entry.path for entry in first.documents] == names[:4]
    assert [entry.path for entry in rest.documents] == sorted([*names[4:], "13.md"])
    assert "changed" in rest.notes[0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tree": "dosc"}, "no tree `dosc`; there is `docs`"),
        ({"limit": 0}, "limit must be from 1 to 500"),
        ({"limit": 501}, "limit must be from 1 to 500"),
        ({"max_tokens": 10_001}, "10,000"),
        ({"path": "../.."}, "not accepted"),
        ({"path": "/etc"}, "absolute"),
        ({"path": "ap"}, "no document is at or below `ap`; the nearest is `docs:api`"),
        (
            {"tags": ("security", "guid")},
            "no document has the tag `guid`; the nearest is `(Guide|guide)`",
        ),
        ({"path": "x" * 100_000}, "too long"),
        ({"tags": ("a",) * 51}, "from 0 to 50"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
def test_a_list_that_cannot_be_given_says_why(indexed, more, message):
    with pytest.raises(QueryError, match=message):
        indexed.list(**more)


def test_a_cursor_of_another_list_is_refused(indexed):
    cursor = indexed.list(limit=1, tree="docs").cursor
    assert indexed.list(cursor=cursor, tree="docs").documents[0].tree == "docs"
    with pytest.raises(QueryError, match="another `tree`"):
        indexed.list(cursor=cursor, tree="notes")
    with pytest.raises(QueryError, match="cursor"):
        indexed.get(cursor=cursor)


def test_forged_cursors_are_survived_by_lists_and_documents(indexed):
    """The checksum of these is right, and so is the document."""
    page = decode_cursor("document", indexed.get("docs:auth", max_tokens=50).cursor)
    parts = [{**page, "extent": part, "first": 1, "last": 2} for part in DocumentPart]
    names = "part extent first last outline at line kind tree path tags generation after where"
    odd = [-(10**30), 10**30, "x", "\ud800", "#\0", "title:", [1], ["a"], {"a": 1}]
    for name, value in product(names.split(), odd):
        for values in parts:
            with suppress(QueryError):
                indexed.get(cursor=encode_cursor("document", {**values, name: value}))
        for kind in ListKind:
            with suppress(QueryError):
                indexed.list(cursor=encode_cursor("list", {"kind": kind, name: value}))


LINKED = {
    "hub.md": "---\nrelated: [far.md]\n---\n# Hub\n\n"
    "See [the sun](sun.md#heat) and [[moon|her]].\n\n"
    "![[sun]] and [nowhere](gone.md#x) and [here](#hub).\n",
    "sun.md": "# Sun\n\nDawn and sunrise.\n\n## Heat\n\nWarm is the noon. Back to [[hub]].\n",
    "moon.md": "# Moon\n\nDusk and sunset over craters.\n",
    "far.md": "# Far\n\nA tempest of craters and dusk.\n",
    "noon.md": "# Noon\n\nMidday.\n",
    **{f"f{n}.md": f"# Filler {n}\n\nWords {n} of no use.\n" for n in range(12)},
}


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    with IndexedLibrary(
        tmp_path_factory.mktemp("sky"), LINKED, embedder=CountingMeanings()
    ) as indexed:
        indexed.find_communities()
        yield indexed


class CountingMeanings(CountingEmbedder, MeaningEmbedder):
    """Four meanings, and what it was asked to embed."""

    embed = MeaningEmbedder.embed


def test_links_out_are_told_with_kind_text_and_line(sky):
    found = sky.related("hub.md")
    assert [(link.doc_id, link.slug, link.kind, link.text, link.line) for link in found.links] == [
        ("docs:far.md", None, "related", "far.md", 1),
        ("docs:sun.md", "heat", "links_to", "the sun", 6),
        ("docs:moon.md", None, "links_to", "her", 6),
        ("docs:sun.md", None, "embeds", "sun", 8),
        (None, None, "links_to", "nowhere", 8),
    ]
    assert found.links[-1].target == "gone.md#x"
    assert found.links_total == 5


def test_backlinks_are_told_from_the_other_side(sky):
    found = sky.related("sun.md")
    assert [(link.doc_id, link.kind, link.line) for link in found.backlinks] == [
        ("docs:hub.md", "links_to", 6),
        ("docs:hub.md", "embeds", 8),
    ]
    section = sky.related("sun.md#heat")
    assert [(link.path, link.text) for link in section.backlinks] == [("hub.md", "the sun")]
    assert [link.path for link in section.links] == ["hub.md"]
    assert section.heading_path == ("Sun", "Heat")
    assert not sky.related("docs:sun.md:1-3").links


def test_limits_are_kept_and_the_rest_is_counted(sky):
    found = sky.related("hub.md", limit=2)
    assert (len(found.links), found.links_total) == (2, 5)
    assert len(found.similar_by_words) <= 2


def test_of_a_long_document_only_what_its_words_need_is_read(tmp_path, monkeypatch):
    parts = [f"## Part {n}\n\n{f'word{n % 7} craters dusk ' * 25}\n" for n in range(400)]
    read: list[ChunkKey] = []
    original = Snapshot.chunks_by_key

    def counting(self, keys):
        read.extend(keys := list(keys))
        return original(self, keys)

    with IndexedLibrary(
        tmp_path, {"long.md": "# Long\n\n" + "\n".join(parts), **LINKED}
    ) as indexed:
        monkeypatch.setattr(Snapshot, "chunks_by_key", counting)
        monkeypatch.delattr(Snapshot, "chunks")
        found = indexed.related("long.md")
        whole = len(read)
        section = indexed.related("long.md#part-7")
    assert "docs:moon.md" in [each.doc_id for each in found.similar_by_words]
    assert "docs:moon.md" in [each.doc_id for each in section.similar_by_words]
    assert MAX_CHARS / 700 < whole < 200
    assert len(read) - whole < 50


def test_a_chunk_and_the_section_it_makes_are_related_alike(sky):
    section, chunk = sky.related("sun.md#heat"), sky.related("docs:sun.md#heat")
    assert chunk.similar_by_words == section.similar_by_words


def test_communities_are_told_only_while_they_are_current(tmp_path):
    with IndexedLibrary(tmp_path, LINKED) as indexed:
        before = indexed.related("moon.md")
        assert before.community_size is None
        assert "clusters" in before.notes[0]
        indexed.find_communities()
        after = indexed.related("moon.md")
        assert after.community_size == len(after.community)
        assert after.community[0].doc_id == "docs:hub.md"
        assert [each.is_linked for each in after.community] == sorted(
            (each.is_linked for each in after.community), reverse=True
        )
        assert not any("clusters" in note for note in after.notes)
        assert indexed.related("f1.md").community_size == 0


def test_similar_in_meaning_and_similar_in_words_are_apart_and_need_no_model(sky):
    before = sky.embedder.counts
    found = sky.related("sun.md#heat")
    near, alike = found.similar_by_meaning, found.similar_by_words
    assert sky.embedder.counts == before
    assert [each.path for each in near] == ["noon.md"]
    moon = sky.related("moon.md")
    assert moon.similar_by_words[0].path == "far.md"
    assert set(moon.similar_by_words[0].terms) == {"craters", "dusk"}
    assert all(0 <= each.score <= 1 for each in (*near, *alike, *moon.similar_by_words))


def test_of_a_long_document_the_best_passage_is_given(tmp_path):
    filler = "Nothing of the kind stands here at all. " * 20
    long = (
        f"# Long\n\n## One\n\n{filler} moons\n\n## Two\n\ncraters and moons of jupiter. {filler}\n"
    )
    texts = {"a.md": "# Craters\n\nMoons of Jupiter, and craters.\n", "b.md": long}
    with IndexedLibrary(tmp_path, texts) as indexed:
        (found,) = indexed.related("a.md").similar_by_words
    assert found.id == "docs:b.md#two"
    assert long.splitlines()[found.line_start - 1] == "## Two"
    assert found.snippet.startswith("## Two craters and moons")


def test_nothing_is_related_to_itself(sky):
    for path in LINKED:
        found = sky.related(path)
        lists = (
            found.links,
            found.backlinks,
            found.community,
            found.similar_by_meaning,
            found.similar_by_words,
        )
        assert all(each.doc_id != found.doc_id for each in (one for many in lists for one in many))
        for many in lists[3:]:
            assert len({each.doc_id for each in many}) == len(many)
            scores = [each.score for each in many]
            assert scores == sorted(scores, reverse=True)


def test_a_text_without_vectors_says_so(tmp_path):
    embedder = CountingEmbedder()
    embedder.is_broken = True
    with IndexedLibrary(
        tmp_path, {"a.md": "# Sun\n\nDawn.\n", "b.md": "# Sun\n\nDusk.\n"}, embedder=embedder
    ) as indexed:
        found = indexed.related("a.md")
    assert found.similar_by_meaning == ()
    assert any("no vectors" in note for note in found.notes)
    assert [each.path for each in found.similar_by_words] == ["b.md"]


@pytest.mark.parametrize("reference", ["nowhere.md", "../hub.md", "hub.md#nothing", "/hub.md"])
def test_what_is_not_there_has_nothing_related(sky, reference):
    with pytest.raises(QueryError):
        sky.related(reference)


KNOWLEDGE = {
    "http/retries.md": "# Retry policy\n\nFailed requests are repeated with exponential backoff "
    "and jitter until the budget is spent.\n",
    "http/pools.md": "# Connection pools\n\nA pool keeps sockets open for later requests.\n",
    "auth/tokens.md": "# Tokens\n\nA token is refreshed before it expires.\n",
    "style.md": "# Style\n\nHow we write: short names, small functions.\n",
    "docs/self.md": "# Self\n\nThe exponential backoff of this very file.\n",
    **{f"misc/{n}.md": f"# Subject {n}\n\nOther matters, number {n}.\n" for n in range(20)},
    "notes>retries.md": "# My retries\n\nBackoff should be exponential, with jitter.\n",
}
RETRY = '''"""Exponential backoff for failed requests."""


class RetryPolicy:
    """Repeats requests with jitter."""

    def backoff(self, attempt: int) -> float:
        jitter = self.random()
        return jitter * self.backoff_base**attempt
'''


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("knowledge")
    with IndexedLibrary(folder, KNOWLEDGE, ("docs", "notes")) as indexed:
        yield indexed


def context(indexed, *files, rules=(), request=None, **settings):
    config = ContextConfig.model_validate({"rules": list(rules), **settings})
    library = indexed.configured(context=config)
    return library.context(ContextRequest(files=files, explain=True, **(request or {})))


def test_source_code_finds_its_documentation(knowledge):
    found = context(knowledge, EditedFile("src/net/retry.py", RETRY))
    assert found.results[0].path in ("http/retries.md", "retries.md")
    terms = {term.word: term for term in found.explanation.terms}
    assert {"backoff", "jitter", "requests"} <= set(terms)
    assert terms["backoff"].frequency == 3
    assert set(terms["backoff"].origins) == {"body", "comment", "name"}
    assert set(terms["retry"].origins) == {"body", "name", "path"}
    assert "self" not in terms
    assert all(f"{word}^" in found.explanation.query for word in ("backoff", "jitter"))
    assert len(found.explanation.meanings) == 1
    assert found.index is not None


def test_a_diff_finds_the_same(knowledge):
    lines = "".join(f"+{line}\n" for line in RETRY.splitlines())
    diff = f"--- /dev/null\n+++ b/src/net/retry.py\n@@ -0,0 +1,{RETRY.count(chr(10))} @@\n{lines}"
    found = context(knowledge, request={"diff": diff})
    assert found.results[0].path in ("http/retries.md", "retries.md")
    assert [file.name for file in found.files] == ["src/net/retry.py"]


@pytest.mark.parametrize("name", ["docs/self.md", "docs/docs/self.md", "{root}/docs/docs/self.md"])
def test_the_files_themselves_are_not_their_documentation(knowledge, name):
    file = EditedFile(name.format(root=knowledge.folder), KNOWLEDGE["docs/self.md"])
    found = context(knowledge, file)
    assert found.files[0].doc_id == "docs:docs/self.md"
    assert found.results
    assert "docs:docs/self.md" not in {result.doc_id for result in found.results}


def test_a_file_that_only_shares_a_name_is_not_taken_for_the_document(knowledge):
    found = context(knowledge, EditedFile("other/project/self.md", "exponential backoff\n"))
    assert found.files[0].doc_id is None
    assert "docs:docs/self.md" in {result.doc_id for result in found.results}


def test_rules_add_words_restrict_trees_and_give_documents(knowledge):
    root = str(knowledge.folder / "docs" / "style.md")
    rules = [
        {"match": ["*.py"], "trees": ["docs"], "terms": ["token"], "include": [root]},
        {"match": "src/**", "include": ["docs:auth/tokens.md", "docs:gone.md"]},
        {"match": "*.rs", "terms": ["never"], "include": ["docs:http/pools.md"]},
    ]
    found = context(knowledge, EditedFile("src/retry.py", RETRY), rules=rules)
    assert found.files[0].rules == ("*.py", "src/**")
    assert [(each.doc_id, each.because) for each in found.included] == [
        ("docs:style.md", "*.py"),
        ("docs:auth/tokens.md", "src/**"),
    ]
    assert any("`docs:gone.md`" in note for note in found.notes)
    assert found.explanation.terms[0].word == "token"
    assert found.explanation.terms[0].origins == ("rule",)
    assert found.explanation.trees == ("docs",)
    assert {result.doc_id.partition(":")[0] for result in found.results} == {"docs"}
    assert "docs:auth/tokens.md" in {result.doc_id for result in found.results}


def test_an_inclusion_outside_the_trees_is_told_by_its_name_alone(knowledge):
    rules = [{"match": "*", "include": ["/somewhere/secret/plan.md"]}]
    found = context(knowledge, EditedFile("a.py", RETRY), rules=rules)
    (note,) = [note for note in found.notes if "plan.md" in note]
    assert "secret" not in note


def words(found):
    return {term.word for term in found.explanation.terms}


def test_every_setting_changes_the_terms(knowledge):
    file = EditedFile("x.txt", "backoff backoff jitter sockets sockets budget budget\n")
    assert words(context(knowledge, file)) == {"backoff", "sockets", "budget"}
    assert "jitter" in words(context(knowledge, file, min_term_frequency=1))
    assert len(words(context(knowledge, file, terms=1))) == 1
    assert words(context(knowledge, file, min_word_length=7)) == {"backoff", "sockets"}
    assert words(context(knowledge, file, max_word_length=6)) == {"budget"}


def test_a_short_text_that_repeats_nothing_counts_by_every_word(knowledge):
    assert words(context(knowledge, EditedFile("", "jitter and sockets"))) == {"jitter", "sockets"}


def test_the_words_of_a_path_count_without_any_text(knowledge):
    found = context(knowledge, EditedFile("src/http/connectionPools.ts"))
    assert found.results[0].path == "http/pools.md"
    assert {term.origins for term in found.explanation.terms} == {("path",)}


def test_several_files_have_the_same_say(knowledge):
    long = EditedFile("a.txt", "sockets pool " * 2_000)
    short = EditedFile("b.txt", "token refreshed token refreshed\n")
    found = context(knowledge, long, short)
    assert {"http/pools.md", "auth/tokens.md"} <= {result.path for result in found.results[:3]}


def test_a_long_file_does_not_push_out_a_short_one(knowledge):
    long = EditedFile("", "sockets " * 2_000 + "pool " * 500)
    short = EditedFile("", "token token token expires\n")
    assert words(context(knowledge, long, short, terms=2)) == {"sockets", "token"}


def test_a_rare_word_tells_more_than_a_frequent_one(knowledge):
    found = context(knowledge, EditedFile("", "subject " * 6 + "jitter " * 3))
    assert [term.word for term in found.explanation.terms] == ["jitter", "subject"]


def test_what_the_index_does_not_know_is_said(knowledge):
    found = context(knowledge, EditedFile("", "qqqq wwww qqqq wwww"))
    assert any("no word of these files" in note for note in found.notes)
    binary = context(knowledge, EditedFile("retries.png", b"\x89PNG\0\1\2\3" * 500))
    assert "not text" in binary.files[0].problem
    assert binary.results[0].path.endswith("retries.md")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "nothing is given"),
        ({"files": (EditedFile("a"),) * 51}, "number of files"),
        ({"files": (EditedFile("a", "x" * 1_000_001),)}, "too long"),
        ({"files": (EditedFile("a" * 20_000, "x"),)}, "too long"),
        ({"files": (EditedFile("a", "x" * 900_000),) * 5}, "together"),
        ({"diff": b"x" * 4_000_001}, "together"),
        ({"diff": "x", "top_n": 0}, "top_n"),
        ({"diff": "x", "max_tokens": 10_001}, "max_tokens"),
    ],
)
def test_input_out_of_bounds_is_refused_with_the_bound(more, message):
    with pytest.raises(QueryError, match=message):
        ContextRequest(**more)


def test_an_unknown_tree_is_refused(knowledge):
    with pytest.raises(QueryError, match="no tree `nope`; there is `docs`, `notes`"):
        context(knowledge, EditedFile("a.py", RETRY), request={"trees": frozenset({"nope"})})
