import struct

import pytest

from ragdocs.chunking.splitting import embedding_text
from ragdocs.models import DocId
from ragdocs.store.records import ChangeKind, PendingText
from ragdocs.store.tables import text_hash
from ragdocs.store.writer import StoreWriter
from tests.support.stores import MODEL, Section, file, put, remove


def vector(*values):
    return struct.pack("<3f", *values)


def embed(writer, texts, model=MODEL, value=1.0):
    with writer.transaction() as transaction:
        transaction.put_embeddings(
            model, [(text.text_hash, vector(value, 0, number)) for number, text in enumerate(texts)]
        )
    return transaction.position


def missing(reader, *args, **kwargs):
    with reader.snapshot() as snapshot:
        return snapshot.missing_embeddings(MODEL, *args, **kwargs)


def stored(reader, *args, **kwargs):
    with reader.snapshot() as snapshot:
        batches = list(snapshot.vectors(MODEL, *args, **kwargs))
    return {
        key: batch.data[number * 12 : number * 12 + 12]
        for batch in batches
        for number, key in enumerate(batch.keys)
    }


def test_what_waits_for_a_vector_is_the_text_that_the_chunker_gives_the_embedder(writer, reader):
    given = file("a.md", [Section("One", "Text.\n")], title="Title")
    put(writer, given)
    root, _, leaf = given.chunks
    assert text_hash(root) is None
    assert missing(reader)[0] == PendingText(text_hash(leaf), embedding_text(leaf))


def test_a_blank_leaf_has_nothing_to_embed(writer, reader):
    put(writer, file("a.md", intro=" \n"))
    assert missing(reader) == ()


def test_texts_wait_for_their_vectors_and_the_newest_come_first(writer, reader):
    put(writer, file("a.md", [Section("One")]))
    put(writer, file("b.md"))
    texts = missing(reader)
    assert [text.text.split("\n")[0] for text in texts] == ["b", "a > One", "a"]
    assert len(missing(reader, limit=2)) == 2
    assert missing(reader, [DocId("docs:b.md")]) == texts[:1]
    with reader.snapshot() as snapshot:
        assert snapshot.count_missing_embeddings(MODEL) == 3
    embed(writer, texts[:2])
    assert missing(reader) == texts[2:]
    with reader.snapshot() as snapshot:
        assert snapshot.count_missing_embeddings(MODEL) == 1
        assert snapshot.count_missing_embeddings("another") == 3


def test_vectors_come_back_with_the_keys_of_their_chunks(writer, reader):
    put(writer, file("a.md", [Section("One")]), file("b.md"))
    texts = missing(reader)
    embed(writer, texts)
    expected = {text.text_hash: vector(1, 0, number) for number, text in enumerate(texts)}
    with reader.snapshot() as snapshot:
        leaves = list(snapshot.leaves())
        for size in (1, 2, 3, 100):
            batches = list(snapshot.vectors(MODEL, size=size))
            assert {len(batch.keys) for batch in batches[:-1]} <= {size}
            assert stored(reader, size=size) == {
                leaf.key: expected[leaf.text_hash] for leaf in leaves
            }
        batch = next(snapshot.vectors(MODEL, size=100))
        owners = {leaf.key: leaf.chunk.doc_id for leaf in leaves}
        assert [owners[key] for key in batch.keys] == list(batch.doc_ids)
        array = batch.array()
        assert array.shape == (3, 3)
        assert array.dtype == "float32"
        assert array[:, 0].tolist() == pytest.approx([1.0] * 3)
        assert snapshot.models() == {MODEL: 3}
    assert len(stored(reader, [DocId("docs:a.md")])) == 2
    assert stored(reader, [DocId("docs:none.md")]) == {}


def test_equal_texts_share_one_vector(writer, reader):
    put(writer, file("x/a.md", title="T"), file("y/a.md", title="T"))
    texts = missing(reader)
    assert len(texts) == 1
    embed(writer, texts)
    assert len(stored(reader)) == 2
    with reader.snapshot() as snapshot:
        assert snapshot.ledger.count("embeddings") == 1


def test_a_commit_of_vectors_alone_is_seen_by_catching_up(writer, reader):
    put(writer, file("a.md", [Section("One")]))
    seen = put(writer, file("b.md", [Section("Two")]))
    embed(writer, missing(reader, [DocId("docs:b.md")]))
    with reader.snapshot() as snapshot:
        (change,) = snapshot.changes_since(seen)
    assert (change.doc_id, change.kinds) == ("docs:b.md", {ChangeKind.VECTORS})


def test_the_same_vectors_again_commit_nothing_and_other_ones_replace_them(writer, reader):
    put(writer, file("a.md"))
    texts = missing(reader)
    position = embed(writer, texts)
    assert embed(writer, texts) == position
    assert embed(writer, texts, value=2.0).generation == position.generation + 1
    assert list(stored(reader).values()) == [vector(2, 0, 0)]
    with reader.snapshot() as snapshot:
        snapshot.verify(deep=True)


def test_vectors_outlive_removal_renaming_and_rebuilding(writer, reader, tmp_path):
    put(writer, file("a.md", [Section("One")], title="T"))
    embed(writer, missing(reader))
    remove(writer, file("a.md"))
    put(writer, file("renamed.md", [Section("One")], title="T"))
    assert missing(reader) == ()
    with StoreWriter.open(tmp_path, "other settings") as rebuilt:
        assert rebuilt.rebuilt is not None
        put(rebuilt, file("renamed.md", [Section("One")], title="T"))
    assert missing(reader) == ()
    assert len(stored(reader)) == 2
    with reader.snapshot() as snapshot:
        snapshot.verify(deep=True)


def test_models_do_not_see_each_others_vectors(writer, reader):
    put(writer, file("a.md"))
    embed(writer, missing(reader), model="another")
    assert len(missing(reader)) == 1
    assert stored(reader) == {}
    embed(writer, missing(reader), value=5.0)
    assert list(stored(reader).values()) == [vector(5, 0, 0)]


def test_what_no_chunk_holds_is_pruned_on_demand_only(writer, reader):
    put(writer, file("a.md"), file("b.md", [Section("One")]))
    embed(writer, missing(reader), model="another")
    embed(writer, missing(reader))
    remove(writer, file("b.md"))
    with reader.snapshot() as snapshot:
        assert snapshot.ledger.count("embeddings") == 6
    with writer.transaction() as transaction:
        assert transaction.prune_embeddings([MODEL]) == 5
    with reader.snapshot() as snapshot:
        assert snapshot.models() == {MODEL: 3}
        assert snapshot.ledger.count("embeddings") == 1
        snapshot.verify(deep=True)
    position = writer.position
    with writer.transaction() as transaction:
        assert transaction.prune_embeddings([MODEL]) == 0
    assert writer.position == position


@pytest.mark.parametrize(
    "vectors",
    [
        [(b"1" * 16, b"\0" * 8)],
        [(b"1" * 16, b"\0" * 12), (b"2" * 16, b"\0" * 16)],
        [(b"1" * 16, b"\0" * 13)],
        [(b"1" * 16, b"")],
    ],
)
def test_vectors_of_another_shape_are_refused(writer, reader, vectors):
    put(writer, file("a.md"))
    embed(writer, missing(reader))
    with writer.transaction() as transaction, pytest.raises(ValueError, match="dimension"):
        transaction.put_embeddings(MODEL, vectors)
    with writer.transaction() as transaction:
        assert transaction.put_embeddings(MODEL, []) == 0
