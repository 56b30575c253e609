from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from ragdocs.models import DateSource, LinkKind
from tests.support.stores import MODEL, READ_NS, Section, file, markdown, put, related, remove, wiki

AWKWARD = [
    "with space.md",
    "hash#tag.md",
    "percent%41.md",
    "question?.md",
    "star*.md",
    "quote'\".md",
    "new\nline.md",
    "tab\t.md",
    "back\\slash.md",
    "colon:pipe|.md",
    "br[ack](et).md",
    "-dash.md",
    "emoji 🦊.md",
    "rtl \u202eمرحبا.md",
    "n" * 247 + ".md",
    "not utf-8 \udcff\udc80.md",
    "caf\u00e9.md",
    "cafe\u0301.md",
    "Case.md",
    "case.md",
    "a.md",
    "a.txt",
    "separator\u2028.md",
    "folder/a.md",
    "/".join(["deep"] * 300) + "/a.md",
]


def test_a_document_comes_back_as_it_was_put(writer, reader):
    zone = timezone(timedelta(hours=5, minutes=30))
    dates = {DateSource.CREATED: datetime(2020, 1, 2, tzinfo=zone), DateSource.DATE: datetime.max}
    given = file(
        "guide/setup.md",
        [Section("One"), Section("Two", level=2), Section("Three", "Ünï\x00code\u2028 🦊\n", 3)],
        title="Set up",
        aliases=("install", "s\x00tart"),
        description="How to",
        keywords=("k",),
        tags=("t",),
        author="Me",
        category="guide",
        related=("[[other]]",),
        dates=dates,
    )
    put(writer, given)
    with reader.snapshot() as snapshot:
        found = snapshot.document(given.document.id)
        for name in ("id", "tree", "path", "title", "front_matter", "tags", "date", "date_source"):
            assert getattr(found, name) == getattr(given.document, name)
        assert (found.encoding, found.size) == ("utf-8", given.document.source.size)
        assert (found.body_start, found.warnings) == (0, given.document.warnings)
        assert snapshot.headings(found.id) == given.document.headings
        assert tuple(stored.chunk for stored in snapshot.chunks(found.id)) == given.chunks
        assert snapshot.document("docs:nothing.md") is None
        assert snapshot.chunk("docs:nothing.md#a") is None


def test_links_and_code_blocks_come_back_as_they_were_put(writer, reader):
    links = [wiki("b", "x", LinkKind.EMBEDS), markdown("c%20d.md", "y"), related("Title")]
    given = file(
        "a.md",
        [Section("One"), Section("Two")],
        links,
        code=[(0, "zero"), (8, "a\x00b"), (999, "")],
    )
    put(writer, given)
    with reader.snapshot() as snapshot:
        assert [found.link for found in snapshot.links("docs:a.md")] == links
        blocks = list(snapshot.code_blocks("docs:a.md"))
        assert [found.block for found in blocks] == list(given.document.code_blocks)
        assert [found.chunk_id for found in blocks] == [
            "docs:a.md#preamble",
            "docs:a.md#one",
            "docs:a.md#two",
        ]
        assert list(snapshot.code_blocks()) == blocks
        assert list(snapshot.code_blocks("docs:b.md")) == []


def test_awkward_file_names_round_trip_and_are_never_merged(writer, reader):
    given = {path: file(path, title="Title") for path in AWKWARD}
    put(writer, *given.values())
    with reader.snapshot() as snapshot:
        assert {document.path for document in snapshot.documents()} == set(AWKWARD)
        assert {entry.path for entry in snapshot.manifest().values()} == set(AWKWARD)
        for path, indexed in given.items():
            assert snapshot.document(indexed.document.id).path == path
            assert tuple(c.chunk for c in snapshot.chunks(indexed.document.id)) == indexed.chunks
        snapshot.verify(deep=True)
    remove(writer, *given.values())
    with reader.snapshot() as snapshot:
        assert snapshot.ledger.count("files") == 0


def test_lone_surrogates_in_metadata_are_replaced(writer, reader):
    given = file("a.md", [Section("One")], [wiki("x\ud800")], title="t\udcff", aliases=("\ud812",))
    put(writer, given)
    with reader.snapshot() as snapshot:
        assert snapshot.document("docs:a.md").title == "t\ufffd"
        assert snapshot.document("docs:a.md").front_matter.aliases == ("\ufffd",)
        assert all("\udcff" not in text.text for text in snapshot.missing_embeddings(MODEL))
        snapshot.verify(deep=True)
    remove(writer, given)
    with reader.snapshot() as snapshot:
        snapshot.verify(deep=True)


def test_documents_are_listed_by_tree(writer, reader):
    put(writer, file("b.md"), file("a.md"), file("a.md", tree="notes"))
    with reader.snapshot() as snapshot:
        assert [found.id for found in snapshot.documents()] == [
            "docs:a.md",
            "docs:b.md",
            "notes:a.md",
        ]
        assert [found.id for found in snapshot.documents("notes")] == ["notes:a.md"]
        assert list(snapshot.documents("else")) == []


def test_the_tree_is_walked_by_parents_and_not_by_slugs(writer, reader):
    # "one" is a prefix of "one-more", which is not its child.
    given = file("a.md", [Section("One"), Section("Two", level=2), Section("One more")])
    put(writer, given)
    with reader.snapshot() as snapshot:
        children = snapshot.children("docs:a.md")
        assert [c.chunk.slug for c in children] == ["preamble", "one", "one-more"]
        assert [c.chunk.slug for c in snapshot.children("docs:a.md#one")] == ["two"]
        ancestors = snapshot.ancestors("docs:a.md#two")
        assert [c.chunk.id for c in ancestors] == ["docs:a.md#one", "docs:a.md"]
        assert snapshot.ancestors("docs:a.md") == ()
        assert snapshot.ancestors("docs:none.md") == ()


def test_what_was_read_is_remembered_for_its_commit_alone(writer, reader):
    put(writer, file("a.md", title="Old"))
    with reader.snapshot() as snapshot:
        [leaf] = snapshot.leaves("docs:a.md")
        before = snapshot.chunks_by_key([leaf.key]), snapshot.documents_by_id(["docs:a.md"])
    with reader.snapshot() as snapshot:
        again = snapshot.chunks_by_key([leaf.key]), snapshot.documents_by_id(["docs:a.md"])
        assert again == before
        assert again[0][leaf.key] is before[0][leaf.key]
    put(writer, file("a.md", [Section("One")], title="New"))
    with reader.snapshot() as snapshot:
        assert snapshot.chunks_by_key([leaf.key]) == {}
        assert snapshot.documents_by_id(["docs:a.md"])["docs:a.md"].title == "New"
    remove(writer, file("a.md"))
    with reader.snapshot() as snapshot:
        assert snapshot.documents_by_id(["docs:a.md"]) == {}


def test_leaves_are_found_by_document_by_key_and_by_byte(writer, reader):
    given, other = file("a.md", [Section("One")]), file("b.md")
    put(writer, given, other)
    with reader.snapshot() as snapshot:
        leaves = list(snapshot.leaves("docs:a.md"))
        assert [leaf.chunk.slug for leaf in leaves] == ["preamble", "one"]
        assert len(list(snapshot.leaves())) == 3
        by_key = snapshot.chunks_by_key([leaves[1].key, 10**9])
        assert by_key == {leaves[1].key: leaves[1]}


def test_the_manifest_keeps_the_state_of_each_file_and_when_it_was_read(writer, reader):
    given = file("a.md", mtime_ns=-5)
    put(writer, given, read_ns=READ_NS + 7)
    with reader.snapshot() as snapshot:
        entry = snapshot.manifest()["docs:a.md"]
    assert (entry.state, entry.read_ns) == (given.state, READ_NS + 7)
    assert (entry.tree, entry.path) == ("docs", "a.md")


def test_dates_compare_as_numbers_whatever_their_zone(writer, reader, tmp_path):
    east = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=10)))
    west = datetime(2024, 1, 1, 0, tzinfo=UTC)
    naive = datetime(2024, 1, 1, 0)
    for path, date in (("e.md", east), ("w.md", west), ("n.md", naive), ("x.md", datetime.min)):
        given = file(path)
        put(writer, replace(given, document=replace(given.document, date=date)))
    with reader.snapshot() as snapshot:
        assert {d.path: d.date for d in snapshot.documents()} == {
            "e.md": east,
            "w.md": west,
            "n.md": naive,
            "x.md": datetime.min,
        }
