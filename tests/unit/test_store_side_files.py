"""SQLite's log and its shared memory, deleted or replaced under those who have them open."""

import pytest

from ragdocs.indexing.manager import IndexManager
from ragdocs.store.reader import Reader
from tests.managed_index import CountingEmbedder, fresh, held, settled, setup, tree, write


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
