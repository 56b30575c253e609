import random
import shutil
import struct

import pytest

from ragdocs.errors import IndexCorrupt, IndexMissing, IndexStoreError
from ragdocs.store.folder import claim_folder
from ragdocs.store.generations import TABLES
from ragdocs.store.integrity import seal
from ragdocs.store.reader import Reader
from ragdocs.store.records import FileFailure
from ragdocs.store.writer import StoreWriter
from tests.support.stores import (
    FINGERPRINT,
    MODEL,
    READ_NS,
    Section,
    file,
    log_into_store,
    markdown,
    put,
    remove,
    run_sql,
    wiki,
)

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def content(directory):
    """All that a reader can see, except positions and keys."""
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        documents = list(snapshot.documents())
        keys = {leaf.key: leaf.chunk.id for leaf in snapshot.leaves()}
        return {
            "documents": documents,
            "headings": [snapshot.headings(found.id) for found in documents],
            "chunks": [[c.chunk for c in snapshot.chunks(found.id)] for found in documents],
            "links": [snapshot.links(found.id) for found in documents],
            "code": [
                [(block.chunk_id, block.block) for block in snapshot.code_blocks(found.id)]
                for found in documents
            ],
            "manifest": snapshot.manifest(),
            "failures": snapshot.failures(),
            "vectors": {
                keys.get(key, key): batch.array()[number].tolist()
                for batch in snapshot.vectors(MODEL)
                for number, key in enumerate(batch.keys)
            },
            "counts": {table: snapshot.ledger.count(table) for table in TABLES},
            "passages": snapshot.count_passages(),
            "unresolved": snapshot.count_unresolved_links(),
        }


def fill(writer, directory, seed=0, count=30):
    rng = random.Random(seed)
    files = [
        file(
            f"{number}.md",
            [Section(rng.choice(WORDS), " ".join(rng.choices(WORDS, k=80)) + "\n")] * 2,
            [wiki(str(rng.randrange(count)), rng.choice(WORDS)), markdown(f"{number + 1}.md")],
            code=[(0, "x = 1")],
        )
        for number in range(count)
    ]
    put(writer, *files)
    with writer.transaction() as transaction:
        transaction.fail(FileFailure("docs", "bad.md", "SourceBinary", "PNG", None, READ_NS))
    leaves = run_sql(directory, "SELECT DISTINCT text_hash FROM chunks WHERE text NOT NULL")
    vectors = [(text, struct.pack("<3f", 1, 2, n)) for n, (text,) in enumerate(leaves)]
    with writer.transaction() as transaction:
        transaction.put_embeddings(MODEL, vectors)
    return files


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of three hundred pages, closed and in one file."""
    directory = tmp_path_factory.mktemp("whole")
    with StoreWriter.open(directory, FINGERPRINT) as writer:
        fill(writer, directory)
    return directory


@pytest.fixture
def store(whole, tmp_path):
    claim_folder(tmp_path)
    shutil.copy(whole / "store.db", tmp_path / "store.db")
    return tmp_path


def assert_declared(directory):
    with (
        Reader.open(directory) as reader,
        reader.snapshot() as snapshot,
        pytest.raises(IndexCorrupt),
    ):
        snapshot.verify(deep=True)


def open_and_refill(directory, expected):
    """After damage a writer finds the store right, or empties it and says why."""
    with StoreWriter.open(directory, FINGERPRINT, deep=True) as writer:
        if writer.rebuilt is None:
            assert content(directory) == expected
        else:
            fill(writer, directory)
        rebuilt = writer.rebuilt
    after = content(directory)
    # Vectors that were kept are the same, those that were not are made again.
    assert after == expected
    return rebuilt


def test_a_healthy_store_is_not_rebuilt(store, whole):
    assert open_and_refill(store, content(whole)) is None


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_declared_or_harmless(store, whole, seed):
    expected = content(whole)
    rng = random.Random(seed)
    path = store / "store.db"
    raw = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "flip", "flip", "zero", "cut", "noise"])
    start = rng.randrange(len(raw))
    if kind == "flip":
        raw[start] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del raw[start:]
    else:
        length = rng.choice([16, 512, 4096])
        filler = bytes(length) if kind == "zero" else rng.randbytes(length)
        raw[start : start + length] = filler[: len(raw) - start]
    path.write_bytes(raw)
    try:
        seen = content(store)
    except IndexStoreError:
        pass
    else:
        if seen != expected:
            assert_declared(store)
    open_and_refill(store, expected)


@pytest.mark.parametrize("table", ["documents", "chunks", "headings", "links", "code_blocks"])
def test_a_changed_row_is_named(store, whole, table):
    column = {"documents": "title", "chunks": "text", "links": "target", "code_blocks": "code"}
    name = column.get(table, "text")
    run_sql(store, f"UPDATE {table} SET {name} = 'wrong' WHERE {name} NOT NULL")
    with pytest.raises(IndexCorrupt, match=r"'docs:[0-9.md#a-z]+' is damaged"):
        content(store)
    with Reader.open(store) as reader:
        seal(store, reader.position())
    with StoreWriter.open(store, FINGERPRINT) as writer:
        # Nothing that is looked at on every opening of a store that is as it was left has changed.
        assert writer.rebuilt is None
    assert "is damaged" in open_and_refill(store, content(whole))


def test_what_is_not_as_it_was_left_is_checked_row_by_row_when_it_is_opened(store, whole):
    """It was sealed as it was, and nobody looked at its rows any more: a server that starts, or
    takes over, does only this."""
    run_sql(store, "UPDATE names SET match_key = 'x' || match_key")
    with StoreWriter.open(store, FINGERPRINT) as writer:
        assert "has lost names" in writer.rebuilt


def test_flipped_bytes_in_the_text_of_a_row_are_noticed(store):
    path = store / "store.db"
    raw = path.read_bytes()
    place = raw.index(b"epsilon")
    for wrong in (b"Epsilon", b"\xffpsilon"):
        path.write_bytes(raw[:place] + wrong + raw[place + len(wrong) :])
        with pytest.raises(IndexCorrupt):
            content(store)


def test_a_damaged_schema_that_is_no_text_any_more(store, whole):
    # SQLite quotes it in its message, and decoding that was a UnicodeDecodeError.
    path = store / "store.db"
    raw = path.read_bytes()
    place = raw.index(b"failuresfailures") + 4
    path.write_bytes(raw[:place] + b"\xf2" + raw[place + 1 :])
    with pytest.raises(IndexCorrupt):
        Reader.open(store)
    assert open_and_refill(store, content(whole))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE embeddings SET vector = zeroblob(12) WHERE key = 1",
        "UPDATE models SET identity = 'tiny@1 dimension=3' || x'00'",
        "UPDATE embeddings SET text_hash = x'00' WHERE key = 1",
        "UPDATE models SET dimension = 11",
    ],
)
def test_a_wrong_vector_is_never_given(store, statement):
    run_sql(store, statement)
    assert_declared(store)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM chunks WHERE key = (SELECT max(key) FROM chunks)",
        "DELETE FROM documents",
        "DELETE FROM meta",
        "DELETE FROM failures",
        "DELETE FROM files WHERE key = 3",
        "DELETE FROM embeddings WHERE key = 2",
        "UPDATE meta SET generation = generation + 1",
        "UPDATE chunks SET parent = 10000 WHERE parent NOT NULL",
        "UPDATE chunks SET doc = 10000 WHERE key = 3",
        "DROP TABLE links",
        "DROP INDEX leaves",
    ],
)
def test_lost_rows_and_tables_are_noticed_on_opening(store, whole, statement):
    run_sql(store, statement)
    expected = content(whole)
    with StoreWriter.open(store, FINGERPRINT) as writer:
        assert writer.rebuilt
        fill(writer, store)
    assert content(store) == expected


def test_a_row_hidden_by_its_index_is_missed(store):
    # The damaged index leads to no row, so there is none whose hash could be wrong.
    run_sql(
        store,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = sql || ' WHERE position <> 1' WHERE name = 'chunks_doc'",
    )
    run_sql(
        store,
        "REINDEX chunks_doc",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ' WHERE position <> 1', '') "
        "WHERE name = 'chunks_doc'",
    )
    with Reader.open(store) as reader, reader.snapshot() as snapshot:
        with pytest.raises(IndexCorrupt, match="lost some of its chunks"):
            snapshot.chunks("docs:1.md")
        with pytest.raises(IndexCorrupt):
            snapshot.verify(deep=True)


def test_a_lost_part_of_the_change_log_is_noticed(store):
    with Reader.open(store) as reader, reader.snapshot() as snapshot:
        seen = snapshot.position
    with StoreWriter.open(store, FINGERPRINT) as writer:
        put(writer, file("x.md"))
        put(writer, file("y.md"))
        run_sql(store, f"DELETE FROM generations WHERE generation = {seen.generation + 1}")
        reader = Reader.open(store)
        with (
            reader,
            reader.snapshot() as snapshot,
            pytest.raises(IndexCorrupt, match="change log"),
        ):
            snapshot.changes_since(seen)


@pytest.mark.parametrize("size", [0, 1, 50, 99, 100, 4096, 5000, 40_000])
def test_a_truncated_store(store, whole, size):
    with (store / "store.db").open("r+b") as opened:
        opened.truncate(size)
    with pytest.raises(IndexMissing if size == 0 else IndexStoreError):
        content(store)
    assert open_and_refill(store, content(whole))


def test_a_zeroed_header(store, whole):
    with (store / "store.db").open("r+b") as opened:
        opened.write(bytes(100))
    with pytest.raises(IndexCorrupt):
        Reader.open(store)
    assert open_and_refill(store, content(whole))


@pytest.mark.parametrize("junk", [b"# Not a database\n" * 500, bytes(8192)])
def test_a_file_that_is_not_a_database(tmp_path, junk):
    claim_folder(tmp_path)
    (tmp_path / "store.db").write_bytes(junk)
    with pytest.raises(IndexCorrupt):
        Reader.open(tmp_path)
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.rebuilt


def test_an_older_copy_is_a_right_store_of_another_history(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        fill(writer, tmp_path, count=5)
        log_into_store(writer)
        before = content(tmp_path)
        shutil.copy(tmp_path / "store.db", tmp_path / "old")
        put(writer, file("new.md"))
        seen = remove(writer, file("1.md"))
    with Reader.open(tmp_path) as reader:
        (tmp_path / "old").replace(tmp_path / "store.db")
        for side in ("-wal", "-shm"):
            (tmp_path / f"store.db{side}").unlink(missing_ok=True)
        assert reader.position() != seen
        assert content(tmp_path) == before
        with StoreWriter.open(tmp_path, FINGERPRINT, deep=True) as writer:
            assert writer.rebuilt is None
            while writer.position.generation < seen.generation:
                put(writer, file(f"later{writer.position.generation}.md"))
            with reader.snapshot() as snapshot:
                # A view that has applied the lost commits must not take these for them.
                assert snapshot.position.generation == seen.generation
                assert snapshot.changes_since(seen) is None


def test_an_older_copy_under_a_newer_log_is_noticed(tmp_path):
    # Both are whole, and so is each row: only the sums of all rows know that they do not belong
    # together.
    work = tmp_path / "work"
    writer = StoreWriter.open(work, FINGERPRINT)
    fill(writer, work, count=40)
    log_into_store(writer)
    shutil.copy(work / "store.db", tmp_path / "old")
    put(writer, *(file(f"{n}.md", intro="changed\n") for n in range(0, 40, 7)))
    log_into_store(writer)
    put(writer, file("39.md", intro="changed again\n"))
    expected = content(work)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(tmp_path / "old", mixed / "store.db")
    shutil.copy(work / "store.db-wal", mixed / "store.db-wal")
    writer.close()
    with StoreWriter.open(mixed, FINGERPRINT) as opened:
        assert opened.rebuilt or content(mixed) == expected
