from dataclasses import replace

import pytest

from ragdocs.errors import IndexIncompatible, SourceError
from ragdocs.models import FileState
from ragdocs.store import generations
from ragdocs.store.generations import TABLES
from ragdocs.store.records import Change, ChangeKind, FileFailure, Position
from ragdocs.store.writer import StoreWriter
from tests.support.stores import (
    FINGERPRINT,
    MODEL,
    READ_NS,
    Section,
    file,
    put,
    remove,
    run_sql,
    wiki,
)

UPSERT, DELETE, LINKS = ChangeKind.UPSERT, ChangeKind.DELETE, ChangeKind.LINKS
STATE = FileState(1, 2, "hash")
FAILURE = FileFailure("docs", "a.md", "SourceBinary", "a PNG", STATE, READ_NS)


def changes(reader, seen):
    with reader.snapshot() as snapshot:
        found = snapshot.changes_since(seen)
    return found if found is None else {change.doc_id: set(change.kinds) for change in found}


def test_each_transaction_is_one_generation(writer, reader):
    start = writer.position
    first = put(writer, file("a.md"), file("b.md"))
    assert first.generation == start.generation + 1
    assert first == writer.position == reader.position()
    assert remove(writer, file("a.md")).generation == first.generation + 1


def test_an_exception_rolls_everything_back(writer, reader):
    before = put(writer, file("a.md"))

    def interrupted():
        with writer.transaction() as transaction:
            transaction.put(file("b.md"), READ_NS)
            transaction.remove("docs:a.md")
            transaction.put_embeddings(MODEL, [(b"x" * 16, b"\0" * 12)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reader.position() == before == writer.position
    with reader.snapshot() as snapshot:
        assert [found.id for found in snapshot.documents()] == ["docs:a.md"]
        snapshot.verify(deep=True)
    assert put(writer, file("b.md")).generation == before.generation + 1


def test_putting_an_unchanged_file_again_changes_nothing(writer, reader):
    given = file("a.md", [Section("One")], [wiki("b"), wiki("a")], code=[(0, "x")])
    position = put(writer, given)
    with reader.snapshot() as snapshot:
        keys = [chunk.key for chunk in snapshot.chunks("docs:a.md")]
    assert put(writer, given) == position
    assert writer.position == position
    with reader.snapshot() as snapshot:
        assert [chunk.key for chunk in snapshot.chunks("docs:a.md")] == keys


def test_a_new_state_of_the_same_content_touches_the_manifest_only(writer, reader):
    given = file("a.md")
    before = put(writer, given)
    state = replace(given.state, mtime_ns=5)
    put(writer, replace(given, state=state))
    assert changes(reader, before) == {}
    with writer.transaction() as transaction:
        assert transaction.touch("docs:a.md", STATE, READ_NS + 1)
    with reader.snapshot() as snapshot:
        assert snapshot.manifest()["docs:a.md"].state == STATE
        snapshot.verify(deep=True)


def test_only_an_indexed_file_can_be_touched(writer, reader):
    with writer.transaction() as transaction:
        transaction.fail(FAILURE)
        for doc_id in ("docs:a.md", "docs:none.md"):
            assert not transaction.touch(doc_id, replace(STATE, mtime_ns=9), READ_NS)
    with reader.snapshot() as snapshot:
        assert snapshot.failures() == (FAILURE,)
        assert set(snapshot.manifest()) == {"docs:a.md"}


def test_putting_a_changed_file_replaces_all_its_rows(writer, reader):
    put(writer, file("a.md", [Section("One"), Section("Two")], [wiki("x")], code=[(0, "x")]))
    with reader.snapshot() as snapshot:
        old = {chunk.key for chunk in snapshot.chunks("docs:a.md")}
    put(writer, file("a.md", [Section("Three")]))
    with reader.snapshot() as snapshot:
        chunks = snapshot.chunks("docs:a.md")
        assert [chunk.chunk.slug for chunk in chunks] == ["", "preamble", "three"]
        assert min(chunk.key for chunk in chunks) > max(old)
        assert [heading.slug for heading in snapshot.headings("docs:a.md")] == ["three"]
        assert snapshot.links("docs:a.md") == ()
        assert list(snapshot.code_blocks()) == []
        snapshot.verify(deep=True)


def test_removing_a_document_leaves_nothing_behind(writer, reader, tmp_path):
    files = [
        file(f"{name}.md", [Section("One")], [wiki("a"), wiki("b")], code=[(0, "x")])
        for name in "abc"
    ]
    put(writer, *files)
    remove(writer, *files)
    with reader.snapshot() as snapshot:
        assert {table: snapshot.ledger.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)
        snapshot.verify(deep=True)
    tables = ("documents", "chunks", "headings", "links", "code_blocks", "names", "files")
    for table in tables:
        assert run_sql(tmp_path, f"SELECT count(*) FROM {table}") == [(0,)]


def test_numbers_of_chunks_are_never_used_again(writer, reader):
    put(writer, file("a.md"))
    with reader.snapshot() as snapshot:
        last = max(chunk.key for chunk in snapshot.chunks("docs:a.md"))
    remove(writer, file("a.md"))
    put(writer, file("a.md"))
    with reader.snapshot() as snapshot:
        assert min(chunk.key for chunk in snapshot.chunks("docs:a.md")) > last


def test_removing_what_is_not_there_commits_nothing(writer):
    before = writer.position
    with writer.transaction() as transaction:
        assert transaction.remove("docs:none.md") is False
    assert transaction.position == before == writer.position


def test_a_failed_file_is_kept_with_its_state_and_loses_its_old_content(writer, reader):
    seen = put(writer, file("a.md"))
    with writer.transaction() as transaction:
        transaction.fail(FAILURE)
    with reader.snapshot() as snapshot:
        assert snapshot.failures() == (FAILURE,)
        assert snapshot.manifest()["docs:a.md"].state == STATE
        assert snapshot.document("docs:a.md") is None
        snapshot.verify(deep=True)
    assert changes(reader, seen) == {"docs:a.md": {DELETE}}


def test_the_same_failure_again_changes_nothing(writer):
    for _ in range(2):
        with writer.transaction() as transaction:
            transaction.fail(FAILURE)
    assert transaction.position == writer.position
    assert writer.position.generation == 2


def test_a_failure_ends_when_the_file_is_indexed_or_removed(writer, reader):
    unknown = replace(FAILURE, path="b.md", state=None, reason="no \udcff permission")
    with writer.transaction() as transaction:
        transaction.fail(FAILURE)
        transaction.fail(unknown)
    with reader.snapshot() as snapshot:
        assert snapshot.manifest()["docs:b.md"].state is None
        assert [failure.path for failure in snapshot.failures()] == ["a.md", "b.md"]
    put(writer, file("a.md"))
    with writer.transaction() as transaction:
        assert transaction.remove("docs:b.md") is True
    with reader.snapshot() as snapshot:
        assert snapshot.failures() == ()
        assert set(snapshot.manifest()) == {"docs:a.md"}
        snapshot.verify(deep=True)


def test_a_file_that_contradicts_itself_is_refused_and_the_others_are_kept(writer, reader):
    good, bad = file("a.md"), file("b.md", [Section("One")])
    twice = replace(bad, chunks=(*bad.chunks, bad.chunks[-1]))
    orphan = replace(bad, chunks=bad.chunks[1:])
    with writer.transaction() as transaction:
        transaction.put(good, READ_NS)
        for wrong in (twice, orphan):
            with pytest.raises(SourceError, match=r"docs:b\.md"):
                transaction.put(wrong, READ_NS)
    with reader.snapshot() as snapshot:
        assert [found.id for found in snapshot.documents()] == ["docs:a.md"]
        assert set(snapshot.manifest()) == {"docs:a.md"}
        snapshot.verify(deep=True)


def test_the_change_log_names_what_each_generation_touched(writer, reader):
    zero = writer.position
    one = put(writer, file("a.md"), file("b.md"))
    two = put(writer, file("a.md", [Section("New")]))
    three = remove(writer, file("b.md"))
    assert changes(reader, three) == {}
    assert changes(reader, two) == {"docs:b.md": {DELETE}}
    assert changes(reader, one) == {"docs:a.md": {UPSERT}, "docs:b.md": {DELETE}}
    assert changes(reader, zero) == {"docs:a.md": {UPSERT}, "docs:b.md": {UPSERT, DELETE}}


def test_what_is_removed_and_put_in_one_transaction_is_an_upsert(writer, reader):
    seen = put(writer, file("a.md"), file("b.md", links=[wiki("a")]))
    with writer.transaction() as transaction:
        transaction.remove("docs:a.md")
        transaction.put(file("a.md"), READ_NS)
    assert changes(reader, seen) == {"docs:a.md": {UPSERT}, "docs:b.md": {LINKS}}
    with reader.snapshot() as snapshot:
        assert [link.target for link in snapshot.links("docs:b.md")] == ["docs:a.md"]


def test_documents_whose_links_lead_elsewhere_are_in_the_log(writer, reader):
    put(writer, file("a.md", links=[wiki("b", "Two")]), file("c.md", links=[wiki("d")]))
    seen = put(writer, file("b.md", [Section("Two")]))
    assert changes(reader, Position(seen.generation - 1, "")) is None
    gone = remove(writer, file("b.md"))
    assert changes(reader, seen) == {"docs:a.md": {LINKS}, "docs:b.md": {DELETE}}
    back = put(writer, file("b.md"))
    assert changes(reader, gone) == {"docs:a.md": {LINKS}, "docs:b.md": {UPSERT}}
    put(writer, file("b.md", [Section("Two")]))
    assert changes(reader, back) == {"docs:a.md": {LINKS}, "docs:b.md": {UPSERT}}


def test_a_view_too_far_behind_is_told_to_start_over(writer, reader, monkeypatch):
    monkeypatch.setattr(generations, "KEPT_GENERATIONS", 3)
    seen = [put(writer, file("a.md", intro=f"{n}\n")) for n in range(6)]
    assert [changes(reader, position) is None for position in seen] == [True] * 3 + [False] * 3
    assert changes(reader, Position(0, "")) is None
    assert changes(reader, Position(10**6, "")) is None


def test_a_commit_of_another_history_is_not_taken_for_ours(writer, reader):
    position = put(writer, file("a.md"))
    assert changes(reader, Position(position.generation, "other")) is None


def test_another_writer_with_other_settings_is_noticed(writer, tmp_path):
    StoreWriter.open(tmp_path, "other settings").close()
    with pytest.raises(IndexIncompatible, match="other settings"):
        put(writer, file("a.md"))


def test_a_second_writer_continues_where_the_first_one_stood(writer, tmp_path, reader):
    put(writer, file("a.md", links=[wiki("b")]))
    with StoreWriter.open(tmp_path, FINGERPRINT) as other:
        assert other.rebuilt is None
        put(other, file("b.md"))
        put(writer, file("c.md", links=[wiki("b")]))
        assert put(other, file("d.md")).generation == 5
    with reader.snapshot() as snapshot:
        assert {link.target for link in snapshot.all_links()} == {"docs:b.md"}
        snapshot.verify(deep=True)


def test_changes_are_values():
    assert Change("docs:a.md", frozenset({UPSERT})) == Change("docs:a.md", frozenset({UPSERT}))
