import time

from ragdocs.models import LinkKind
from tests.support.stores import (
    READ_NS,
    Section,
    file,
    markdown,
    put,
    related,
    remove,
    targets,
    wiki,
)


def test_links_are_resolved_whichever_document_comes_first(writer, reader):
    source = file("a.md", links=[wiki("b", "Two"), markdown("sub/c.md"), related("B title")])
    put(writer, source)
    with reader.snapshot() as snapshot:
        assert targets(snapshot, source) == [(None, None)] * 3
        assert len(snapshot.unresolved_links()) == snapshot.count_unresolved_links() == 3
    put(writer, file("b.md", [Section("Two")], title="B title"), file("sub/c.md"))
    with reader.snapshot() as snapshot:
        expected = [("docs:b.md", "two"), ("docs:sub/c.md", None), ("docs:b.md", None)]
        assert targets(snapshot, source) == expected
        assert snapshot.unresolved_links() == ()
        back = snapshot.backlinks("docs:b.md")
        assert [(link.source, link.link.kind) for link in back] == [
            ("docs:a.md", LinkKind.LINKS_TO),
            ("docs:a.md", LinkKind.RELATED),
        ]


def test_links_follow_titles_aliases_and_headings_as_they_change(writer, reader):
    source = file("a.md", links=[wiki("Old", "One"), wiki("New", "Two"), wiki("aka")])
    put(writer, source, file("b.md", [Section("One")], title="Old"))

    def now():
        with reader.snapshot() as snapshot:
            snapshot.verify(deep=True)
            return targets(snapshot, source)

    assert now() == [("docs:b.md", "one"), (None, None), (None, None)]
    put(writer, file("b.md", [Section("Two")], title="New", aliases=["aka"]))
    assert now() == [(None, None), ("docs:b.md", "two"), ("docs:b.md", None)]
    put(writer, file("b.md", [Section("Three")], title="New", aliases=["aka"]))
    assert now() == [(None, None), ("docs:b.md", None), ("docs:b.md", None)]
    put(writer, file("c.md", title="new"), file("d.md", title="New"))
    assert now() == [(None, None), (None, None), ("docs:b.md", None)]
    remove(writer, file("d.md"))
    assert now() == [(None, None), ("docs:b.md", None), ("docs:b.md", None)]
    remove(writer, file("b.md"))
    assert now() == [(None, None), ("docs:c.md", None), (None, None)]


def test_a_link_that_becomes_ambiguous_is_not_guessed(writer, reader):
    source = file("a.md", links=[wiki("x")])
    put(writer, source, file("one/x.md", title="1"))
    put(writer, file("two/x.md", title="2"))
    with reader.snapshot() as snapshot:
        assert targets(snapshot, source) == [(None, None)]
    remove(writer, file("one/x.md"))
    with reader.snapshot() as snapshot:
        assert targets(snapshot, source) == [("docs:two/x.md", None)]


def test_self_links_and_cycles(writer, reader):
    a = file("a.md", [Section("Here")], [wiki("", "Here"), wiki("a"), wiki("b")])
    b = file("b.md", [], [wiki("a", "Here"), wiki("b", "^block"), wiki("", "^block")])
    put(writer, a, b)
    with reader.snapshot() as snapshot:
        assert targets(snapshot, a) == [
            ("docs:a.md", "here"),
            ("docs:a.md", None),
            ("docs:b.md", None),
        ]
        assert targets(snapshot, b) == [
            ("docs:a.md", "here"),
            ("docs:b.md", None),
            ("docs:b.md", None),
        ]
    remove(writer, a)
    with reader.snapshot() as snapshot:
        assert targets(snapshot, b) == [(None, None), ("docs:b.md", None), ("docs:b.md", None)]
        snapshot.verify(deep=True)


def test_a_failed_document_is_no_longer_a_target(writer, reader):
    from ragdocs.store.records import FileFailure

    source = file("a.md", links=[wiki("b")])
    put(writer, source, file("b.md"))
    with writer.transaction() as transaction:
        transaction.fail(FileFailure("docs", "b.md", "SourceBinary", "a PNG", None, READ_NS))
    with reader.snapshot() as snapshot:
        assert targets(snapshot, source) == [(None, None)]


def test_links_to_awkward_names(writer, reader):
    names = ["a b.md", "hash#.md", "50%.md", "\udcff.md", "new\nline.md", "c:d|e.md"]
    urls = ["a%20b.md", "hash%23.md", "50%25.md", "%FF.md", "new%0Aline.md", "c:d|e.md"]
    source = file("source.md", links=[markdown(url) for url in urls])
    put(writer, *(file(name, title="T") for name in names), source)
    with reader.snapshot() as snapshot:
        found = [snapshot.document(target).path for target, _ in targets(snapshot, source)]
    assert found == names


def test_five_thousand_links_and_twenty_thousand_headings_stay_fast(writer, reader):
    headings = [Section(f"Heading {number}", "") for number in range(20_000)]
    links = [wiki("big", f"Heading {number}") for number in range(2500)]
    links += [markdown(f"none-{number}.md") for number in range(2500)]
    many, big = file("many.md", links=links), file("big.md", headings)
    durations = []
    for act, given in ((put, many), (put, big), (remove, big)):
        start = time.process_time()
        act(writer, given)
        durations.append(time.process_time() - start)
        if len(durations) == 2:
            with reader.snapshot() as snapshot:
                found = targets(snapshot, many)
            assert found[2499] == ("docs:big.md", "heading-2499")
            assert snapshot.position.generation == 3
    with reader.snapshot() as snapshot:
        assert snapshot.count_unresolved_links() == 5000
    # A bound on liveness, ten times what it takes, and not a benchmark: what others do beside it
    # is not counted.
    assert max(durations) < 20
