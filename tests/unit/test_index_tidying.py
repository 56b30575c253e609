"""Vectors that nothing uses: kept for a while, not for ever."""

from ragdocs.indexing import manager as manager_module
from ragdocs.indexing.manager import IndexManager
from tests.managed_index import CountingEmbedder, held, settled, setup, tree, write


def test_unused_vectors_go_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(manager_module, "SPARE_VECTORS", 0)
    docs = tmp_path / "docs"
    parts = setup(tmp_path / "index", tree(docs))
    with IndexManager(parts, CountingEmbedder(), control=settled()) as manager:
        removed = []
        for number in range(6):
            write(docs, "a.md", f"# A\n\nVersion {number}.\n")
            manager.update()
            manager.fill()
            removed.append(manager.tidy())
    assert removed[0] == 0
    assert sum(removed) >= 2
    (_, _, sums, _) = held(tmp_path / "index")
    assert sums["embeddings"][0] <= 4


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
