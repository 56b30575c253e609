import os
import sqlite3
import stat
import threading

import pytest

from ragdocs.errors import (
    IndexCorrupt,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
)
from ragdocs.store.database import delete_files
from ragdocs.store.folder import MARK_FILE, claim_folder
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.stores import FINGERPRINT, Section, file, put, run_sql, wiki


def test_without_a_store_there_is_nothing_to_read(tmp_path):
    with pytest.raises(IndexMissing):
        Reader.open(tmp_path)
    with pytest.raises(IndexMissing):
        Reader.open(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_just_being_made_is_missing_and_not_damaged(tmp_path):
    claim_folder(tmp_path)
    (tmp_path / "store.db").touch()
    with pytest.raises(IndexMissing):
        Reader.open(tmp_path)


@pytest.mark.parametrize("name", ["plain", "a b", "q?mode=rw", "h#", "p%41%", "ü 🦊", "n\udcff"])
def test_any_directory_name_works(tmp_path, name):
    directory = tmp_path / name / "index"
    with StoreWriter.open(directory, FINGERPRINT) as writer:
        put(writer, file("a.md"))
        with Reader.open(directory) as reader, reader.snapshot() as snapshot:
            assert snapshot.ledger.count("documents") == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_relative_directory_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from pathlib import Path

    with StoreWriter.open(Path("index"), FINGERPRINT), Reader.open(Path("index")) as reader:
        assert reader.position().generation == 1


def test_files_are_private(tmp_path):
    old = os.umask(0)
    try:
        with StoreWriter.open(tmp_path / "index", FINGERPRINT) as writer:
            put(writer, file("a.md"))
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "index").iterdir()}
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "index").stat().st_mode) == 0o700
    sides = (MARK_FILE, "store.db", "store.db-wal", "store.db-shm", "store.seal")
    assert modes == dict.fromkeys(sides, 0o600)


def test_a_reader_cannot_write(tmp_path):
    with (
        StoreWriter.open(tmp_path, FINGERPRINT),
        Reader.open(tmp_path) as reader,
        reader.snapshot() as snapshot,
        pytest.raises(IndexStoreError, match="readonly"),
    ):
        snapshot.select("DELETE FROM documents")


def test_a_snapshot_stays_as_it_is_while_the_store_moves_on(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        put(writer, file("a.md", links=[wiki("b")]))
        with reader.snapshot() as before:
            put(writer, file("b.md"), file("a.md"))
            with reader.snapshot() as after:
                assert after.ledger.count("documents") == 2
                assert after.position.generation == before.position.generation + 1
            assert before.ledger.count("documents") == 1
            assert [link.target for link in before.links("docs:a.md")] == [None]


def test_several_threads_may_share_a_reader(tmp_path):
    errors, seen = [], []

    def read(reader):
        try:
            for _ in range(30):
                with reader.snapshot() as snapshot:
                    documents = list(snapshot.documents())
                    assert len(documents) == snapshot.ledger.count("documents")
                    seen.append(len(documents))
        except Exception as error:
            errors.append(error)

    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        threads = [threading.Thread(target=read, args=(reader,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for number in range(30):
            put(writer, file(f"{number}.md"))
        for thread in threads:
            thread.join()
        with reader.snapshot() as snapshot:
            assert snapshot.ledger.count("documents") == 30
    assert errors == []
    assert len(seen) == 180


def test_a_closed_reader_says_so(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT):
        reader = Reader.open(tmp_path)
        with reader.snapshot() as snapshot:
            reader.close()
            assert snapshot.ledger.count("documents") == 0
        with pytest.raises(IndexStoreError, match="closed"):
            reader.position()


def test_a_reader_follows_when_the_store_is_replaced(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        seen = put(writer, file("a.md"))
    with Reader.open(tmp_path) as reader:
        delete_files(tmp_path / "store.db")
        with pytest.raises(IndexMissing):
            reader.position()
        with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
            while writer.position.generation < seen.generation:
                put(writer, file("b.md"))
            assert reader.position() != seen
            with reader.snapshot() as snapshot:
                assert [found.path for found in snapshot.documents()] == ["b.md"]
                assert snapshot.changes_since(seen) is None


def test_closing_a_writer_leaves_the_log_of_a_store_in_its_place_alone(tmp_path):
    # SQLite deletes the log by name when the last connection to a database is closed; that
    # name was another database's by then, and its commits were lost.
    old = StoreWriter.open(tmp_path, FINGERPRINT)
    put(old, file("a.md"))
    delete_files(tmp_path / "store.db")
    with StoreWriter.open(tmp_path, FINGERPRINT) as new:
        put(new, file("b.md"))
        with pytest.raises(IndexIncompatible, match="replaced"):
            put(old, file("c.md"))
        old.close()
        assert (tmp_path / "store.db-wal").stat().st_size > 0
        put(new, file("d.md"))
        with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
            assert [found.path for found in snapshot.documents()] == ["b.md", "d.md"]


def test_a_reader_keeps_to_its_settings(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT), Reader.open(tmp_path, FINGERPRINT) as reader:
        with pytest.raises(IndexIncompatible, match="other settings"):
            Reader.open(tmp_path, "others")
        StoreWriter.open(tmp_path, "others").close()
        with pytest.raises(IndexIncompatible, match="other settings"):
            reader.position()


def test_another_schema_is_incompatible_for_readers_and_rebuilt_by_the_writer(
    tmp_path, monkeypatch
):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        before = put(writer, file("a.md"))
    with Reader.open(tmp_path) as reader:
        run_sql(
            tmp_path,
            "PRAGMA user_version = 99",
            "ALTER TABLE chunks RENAME TO pieces",
            "CREATE VIRTUAL TABLE words USING fts5 (text)",
        )
        with pytest.raises(IndexIncompatible, match="schema 99"):
            reader.position()
        with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
            assert "schema 99" in writer.rebuilt
            assert writer.position.generation == before.generation + 1
            names = run_sql(tmp_path, "SELECT name FROM sqlite_master")
            assert {("pieces",), ("words",)}.isdisjoint(names)
            put(writer, file("a.md", [Section("One")]))
        with reader.snapshot() as snapshot:
            assert snapshot.ledger.count("documents") == 1
            assert snapshot.changes_since(before) is None
            snapshot.verify(deep=True)


def test_a_rebuild_goes_on_counting_generations_and_chunks(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        assert writer.rebuilt is None
        before = put(writer, file("a.md"))
        with reader.snapshot() as snapshot:
            last = max(chunk.key for chunk in snapshot.chunks("docs:a.md"))
        with StoreWriter.open(tmp_path, "others") as other:
            assert "other settings" in other.rebuilt
            assert other.position.generation == before.generation + 1
            put(other, file("a.md"))
        with reader.snapshot() as snapshot:
            assert min(chunk.key for chunk in snapshot.chunks("docs:a.md")) > last


def test_someone_elses_database_is_left_alone(tmp_path):
    """Also in a folder that is ours: someone put it there."""
    claim_folder(tmp_path)
    run_sql(tmp_path, "CREATE TABLE accounts (name)", "INSERT INTO accounts VALUES ('mine')")
    with pytest.raises(IndexStoreError, match="not an index"):
        StoreWriter.open(tmp_path, FINGERPRINT)
    with pytest.raises(IndexIncompatible):
        Reader.open(tmp_path)
    assert run_sql(tmp_path, "SELECT * FROM accounts") == [("mine",)]


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "store.db-shm"])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_directory_in_the_place_of_a_file_makes_way(tmp_path, name, is_full):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    if is_full:
        (tmp_path / name / "precious").mkdir()
    if name != "store.db-shm":  # SQLite can read without
        with pytest.raises(IndexCorrupt):
            Reader.open(tmp_path)
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert f"{name} was not a file" in writer.rebuilt
    assert (tmp_path / name).is_file() or not (tmp_path / name).exists()
    assert len(list(tmp_path.glob(f"{name}.moved-*/precious"))) == is_full


def test_a_broken_symlink_at_the_stores_path_is_replaced(tmp_path):
    claim_folder(tmp_path)
    (tmp_path / "store.db").symlink_to("nowhere")
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.rebuilt
    assert (tmp_path / "store.db").is_file()
    assert not (tmp_path / "nowhere").exists()


def test_busy_is_not_corrupt(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        writer._database.run("PRAGMA busy_timeout = 50")
        put(writer, file("a.md"))
        blocking = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        blocking.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexLocked):
            put(writer, file("b.md"))
        blocking.execute("ROLLBACK")
        blocking.close()
        put(writer, file("b.md"))


def test_the_store_cannot_be_made_where_a_file_is(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(IndexStoreError):
        StoreWriter.open(tmp_path / "file", FINGERPRINT)
    with pytest.raises(IndexStoreError):
        Reader.open(tmp_path / "file")


def test_corrupt_is_an_index_store_error():
    assert issubclass(IndexCorrupt, IndexStoreError)
