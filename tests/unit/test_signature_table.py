import pytest

from ragdocs.errors import IndexCorrupt
from ragdocs.indices.ngrams import ngram_signature
from ragdocs.indices.signatures import TABLE, SignatureIndex, signatures_of
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.stores import indexed, run_sql


@pytest.fixture
def folder(tmp_path):
    put(tmp_path, {"a.md": "# A\n\nSome words.\n", "b.md": "# B\n\nOther words.\n"})
    return tmp_path


def put(folder, texts, removed=()):
    with (
        StoreWriter.open(folder, "test", indices=[SignatureIndex()]) as writer,
        writer.transaction() as transaction,
    ):
        for path, text in texts.items():
            transaction.put(indexed(path, text), 0)
        for path in removed:
            transaction.remove(DocId(f"docs:{path}"))
    return folder


def stored(folder):
    with Reader.open(folder) as reader, reader.snapshot() as snapshot:
        leaves = list(snapshot.leaves())
        found = signatures_of(snapshot, [leaf.key for leaf in leaves])
        rows = snapshot.select(f"SELECT count(*) FROM {TABLE}")[0][0]
    assert len(found) == rows == len(leaves)
    return {leaf.chunk.text: found[leaf.key] for leaf in leaves}


def test_every_leaf_has_the_bitmap_of_its_text(folder):
    found = stored(folder)
    assert len(found) == 2
    assert all(ngrams == ngram_signature(text) for text, ngrams in found.items())


def test_edits_and_deletes_are_followed(folder):
    put(folder, {"a.md": "# A\n\nNew words, and more of them.\n"}, removed=["b.md"])
    assert [text.splitlines()[-1] for text in stored(folder)] == ["New words, and more of them."]


def test_an_index_made_without_the_table_gets_it(tmp_path):
    with StoreWriter.open(tmp_path, "test") as writer, writer.transaction() as transaction:
        transaction.put(indexed("a.md", "# A\n\nSome words.\n"), 0)
    put(tmp_path, {})
    assert len(stored(tmp_path)) == 1


def test_a_damaged_bitmap_is_noticed(folder):
    first = f"SELECT min(key) FROM {TABLE}"
    run_sql(folder, f"UPDATE {TABLE} SET ngrams = zeroblob(512) WHERE key = ({first})")
    with pytest.raises(IndexCorrupt):
        stored(folder)
