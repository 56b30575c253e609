"""SQLite's log and its shared memory, deleted or replaced under those who have them open."""

import pytest

from ragdocs.indexing.manager import IndexManager
from ragdocs.store.reader import Reader
from tests.support.indexes import fresh, held, settled, setup, tree, write
from tests.support.machine import bound_by_permissions
from tests.support.models import CountingEmbedder
from tests.support.stores import store_process


@pytest.mark.parametrize("sides", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_what_is_written_afterwards_is_seen_by_all(tmp_path, sides):
    docs, index = tmp_path / "docs", tmp_path / "index"
    write(docs, "a.md", "# A\n\nOne.\n")
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled()) as manager:
        manager.update()
        with Reader.open(index) as older:
            for side in sides:
                (index / f"store.db{side}").unlink()
            for number in range(2):
                write(docs, f"{number}.md", f"# B\n\nNumber {number}.\n")
                manager.update()
                manager.fill()
                with Reader.open(index) as newer:
                    assert newer.position() == older.position()
                    with newer.snapshot() as snapshot:
                        assert snapshot.ledger.count("documents") == number + 2
    assert held(index) == fresh(tmp_path / "other", tree(docs))


def test_shared_memory_that_was_cut_off_does_not_end_the_process(tmp_path):
    """Whoever closes a connection touches it, and what is not there any more is a SIGBUS."""
    code = (
        "import os\n"
        "writer = StoreWriter.open(directory, FINGERPRINT)\n"
        "put(writer, file('a.md'))\n"
        "reader = Reader.open(directory)\n"
        "for _ in range(2):\n"
        "    os.truncate(directory / 'store.db-shm', 0)\n"
        "    reader.release()\n"
        "    reader.position()\n"
        "os.truncate(directory / 'store.db-shm', 0)\n"
        "reader.close()\n"
        "writer.close()\n"
    )
    with store_process(code, tmp_path) as process:
        assert process.wait(timeout=60) == 0


def test_the_last_writer_of_a_process_leaves_no_log(tmp_path):
    """One that only reads cannot put the log into the store."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    write(docs, "a.md", "# A\n\nOne.\n")
    manager = IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled())
    manager.update()
    with Reader.open(index) as reader:
        assert (index / "store.db-wal").stat().st_size > 0
        manager.close()
        assert not (index / "store.db-wal").exists()
        assert reader.position().generation > 1


def test_where_nothing_can_be_written_a_store_without_a_log_is_read(tmp_path):
    """SQLite wants a file beside it, for those who read to have in common."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    write(docs, "a.md", "# A\n\nOne.\n")
    control = settled()
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=control) as manager:
        manager.update()
    (index / "store.db").chmod(0o400)
    index.chmod(0o500)
    try:
        with bound_by_permissions(), Reader.open(index) as reader:
            assert not (index / "store.db-shm").exists()
            before = reader.position()
    finally:
        index.chmod(0o700)
        (index / "store.db").chmod(0o600)
    with Reader.open(index) as reader:
        assert reader.position() == before


def test_what_was_read_alone_is_read_anew_when_someone_writes(tmp_path):
    reports = []
    docs, index = tmp_path / "docs", tmp_path / "index"
    write(docs, "a.md", "# A\n\nOne.\n")
    control = settled()
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=control) as manager:
        manager.update()
    index.chmod(0o500)
    with Reader(index, report=reports.append) as reader:
        try:
            with bound_by_permissions():
                before = reader.position()
        finally:
            index.chmod(0o700)
        write(docs, "b.md", "# B\n")
        manager = IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=control)
        with manager:
            manager.update()
            assert reader.position().generation > before.generation
            assert len(reports) == 1
