"""Vectors that nothing uses: kept for a while, not for ever."""

from ragdocs.errors import IndexStoreError
from ragdocs.indexing import manager as manager_module
from ragdocs.indexing import vectors as filling
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control
from ragdocs.indexing.vectors import SPARE_BYTES, SPARE_SECONDS, find_excess
from ragdocs.store.embeddings import UnusedVector
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import held, settled, setup, tree, write
from tests.support.models import CountingEmbedder

DAY = 24 * 3600
VECTOR_BYTES = 64
"""Of the tiny model."""


class Clock:
    """Seconds that a test sets."""

    def __init__(self):
        self.seconds = 10**9

    def __call__(self):
        return self.seconds * 10**9


def vectors(directory):
    (_, _, sums, _) = held(directory)
    return sums["embeddings"][0]


def unused_bytes(directory):
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        return snapshot.unused_vector_bytes


def looked(directory):
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        return snapshot.unused_checked_at


def edited(manager, docs, versions, clock=None):
    """The vectors that went, version after version."""
    removed = []
    for number in versions:
        write(docs, "a.md", f"# A\n\nVersion {number}.\n")
        manager.update()
        manager.fill()
        removed.append(manager.tidy())
        if clock:
            clock.seconds += DAY
    return removed


def test_unused_vectors_go_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(manager_module, "SPARE_VECTORS", 0)
    monkeypatch.setattr(filling, "SPARE_BYTES", 2 * VECTOR_BYTES)
    docs = tmp_path / "docs"
    parts = setup(tmp_path / "index", tree(docs))
    with IndexManager(parts, CountingEmbedder(), control=settled()) as manager:
        removed = edited(manager, docs, range(12))
    assert removed[0] == 0
    assert sum(removed) >= 8
    assert vectors(tmp_path / "index") <= 4
    assert unused_bytes(tmp_path / "index") == 2 * VECTOR_BYTES


def test_unused_vectors_go_after_thirty_days_and_not_before(tmp_path):
    docs, index, clock = tmp_path / "docs", tmp_path / "index", Clock()
    with IndexManager(
        setup(index, tree(docs)), CountingEmbedder(), control=Control(clock_ns=clock)
    ) as manager:
        assert edited(manager, docs, range(3), clock) == [0, 0, 0]
        assert unused_bytes(index) == 2 * VECTOR_BYTES
        clock.seconds += 27 * DAY
        assert manager.tidy() == 0
        assert vectors(index) == 3
        clock.seconds += 2 * DAY
        assert manager.tidy() == 1  # the first version's, of which it was noted two days later
        clock.seconds += 30 * DAY
        assert manager.tidy() == 1
        assert (vectors(index), unused_bytes(index)) == (1, 0)


def test_what_is_used_again_is_young_again(tmp_path):
    docs, index, clock = tmp_path / "docs", tmp_path / "index", Clock()
    embedder = CountingEmbedder()
    with IndexManager(
        setup(index, tree(docs)), embedder, control=Control(clock_ns=clock)
    ) as manager:
        edited(manager, docs, [1, 2], clock)
        clock.seconds += 29 * DAY
        assert edited(manager, docs, [1], clock) == [0]  # the undo of an edit
        clock.seconds += 5 * DAY
        assert edited(manager, docs, [3], clock) == [0]
        clock.seconds += 5 * DAY
        assert (manager.tidy(), unused_bytes(index)) == (0, 2 * VECTOR_BYTES)
        edited(manager, docs, [1], clock)
    assert len(embedder.texts) == len(set(embedder.texts))


def test_a_few_are_kept_so_that_a_file_may_come_back(tmp_path):
    docs = tmp_path / "docs"
    embedder = CountingEmbedder()
    file = write(docs, "a.md", "# A\n\nText.\n")
    with IndexManager(
        setup(tmp_path / "index", tree(docs)), embedder, control=settled()
    ) as manager:
        manager.update()
        manager.fill()
        file.unlink()
        manager.update()
        assert manager.tidy() == 0
        write(docs, "b.md", "# A\n\nText.\n")
        manager.update()
        manager.fill()
    assert len(embedder.texts) == 1


def test_another_model_and_back_embeds_nothing_twice(tmp_path):
    docs, parts = tmp_path / "docs", setup(tmp_path / "index", tree(tmp_path / "docs"))
    write(docs, "a.md", "# A\n\nText.\n")
    first, second = CountingEmbedder("words@1"), CountingEmbedder("words@2")
    for embedder in (first, second, first):
        with IndexManager(parts, embedder, control=settled()) as manager:
            manager.update()
            manager.fill()
            assert manager.tidy() == 0
    assert (len(first.texts), len(second.texts)) == (1, 1)


def test_vectors_that_are_looked_for_once_a_day_cost_nothing_meanwhile(tmp_path):
    docs, index, clock = tmp_path / "docs", tmp_path / "index", Clock()
    with IndexManager(
        setup(index, tree(docs)), CountingEmbedder(), control=Control(clock_ns=clock)
    ) as manager:
        edited(manager, docs, [1])
        before = looked(index)
        clock.seconds += 3600
        assert manager.tidy() == 0
        assert looked(index) == before
        clock.seconds += DAY
        assert manager.tidy() == 0
        assert looked(index) == clock.seconds


def test_a_full_disk_does_not_stop_an_update_that_has_nothing_to_write(tmp_path, monkeypatch):
    docs, clock = tmp_path / "docs", Clock()

    def fail(*_):
        raise IndexStoreError("database or disk is full")

    with IndexManager(
        setup(tmp_path / "index", tree(docs)), CountingEmbedder(), control=Control(clock_ns=clock)
    ) as manager:
        edited(manager, docs, [1, 2])
        clock.seconds += 2 * DAY
        monkeypatch.setattr(StoreWriter, "mark_unused", fail)
        assert manager.tidy() == 0


def test_a_model_that_is_missing_keeps_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(manager_module, "SPARE_VECTORS", -100)
    docs = tmp_path / "docs"
    write(docs, "a.md", "# A\n\nText.\n")

    class Missing(CountingEmbedder):
        def load(self):
            self.embed_documents([])

    embedder = Missing()
    embedder.is_broken = True
    with IndexManager(setup(tmp_path / "index", tree(docs)), embedder) as manager:
        manager.update()
        assert manager.tidy() == 0


def test_the_bound_is_what_is_in_use_or_64_megabytes():
    half = SPARE_BYTES // 2
    unused = [UnusedVector(key, half, since) for key, since in ((1, 30), (2, 10), (3, None))]
    assert [one.key for one in find_excess(unused, 0, 40)] == [2]
    assert find_excess(unused, 3 * half, 40) == []
    late = 10 + SPARE_SECONDS + 1
    assert [one.key for one in find_excess(unused, 3 * half, late)] == [2]
