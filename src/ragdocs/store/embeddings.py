"""Vectors by (model, hash of the text), whatever documents contain that text.

They outlive documents, renames and rebuilds, so that no text is ever embedded twice by one model.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from ragdocs.chunking.splitting import embedding_text
from ragdocs.errors import REBUILD, IndexCorrupt
from ragdocs.models import DocId
from ragdocs.store.database import Database, Row
from ragdocs.store.generations import Ledger
from ragdocs.store.records import ChunkKey, PendingText, TextHash, VectorBatch
from ragdocs.store.schema import HASH_BYTES
from ragdocs.store.tables import SELECT_CHUNKS, read_chunk

FLOAT_BYTES = 4
_WITHOUT_VECTOR = """ c.text_hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM embeddings e
    WHERE e.model = ? AND e.text_hash = c.text_hash)"""
_DOCUMENTS = 1 << 32
"""More than the largest document number."""
# Full scans of the tables, without SQL indices: they are fast, and a damaged index can neither hide
# a vector nor assign it to another chunk.
_ALL_CHUNKS = "SELECT key, doc, text_hash FROM chunks NOT INDEXED WHERE text_hash IS NOT NULL"
_ALL_VECTORS = "SELECT row_hash, text_hash, vector FROM embeddings NOT INDEXED WHERE model = ?"
_SOME_VECTORS = """SELECT c.key, c.doc, e.row_hash, e.text_hash, e.vector FROM chunks c
    CROSS JOIN embeddings e ON e.model = ? AND e.text_hash = c.text_hash WHERE c.doc IN (*)"""

_VECTORS_OF = (
    "SELECT text_hash, row_hash, vector FROM embeddings WHERE model = ? AND text_hash IN (*)"
)
_UNUSED = "unused_vectors"
_LOOK = 0
"""Not a vector's key: this row records when unused vectors were last looked for."""
# Only a record for dropping the oldest first: created when needed, and not required for anything
# else. So it is not part of the schema or of any row's hash.
_MAKE_UNUSED = f"""CREATE TABLE IF NOT EXISTS {_UNUSED} (embedding INTEGER PRIMARY KEY,
    since INTEGER NOT NULL)"""


@dataclass(frozen=True, slots=True)
class UnusedVector:
    """A stored vector that nothing uses; `since` is when this was first recorded, in seconds."""

    key: int
    size: int
    since: int | None


def vector_hash(model: str, text_hash: bytes, vector: bytes) -> bytes:
    """Includes the model's name, so that a vector is never taken for another model's."""
    hashed = blake2b(text_hash, digest_size=HASH_BYTES)
    hashed.update(len(model).to_bytes(4, "big") + model.encode("utf-8"))
    hashed.update(vector)
    return hashed.digest()


def _is_whole(model: str, dimension: int, text_hash: bytes, hashed: bytes, vector: bytes) -> bool:
    """Whether a vector is intact and has its model's dimension."""
    is_long = len(vector) == dimension * FLOAT_BYTES
    return is_long and vector_hash(model, text_hash, vector) == hashed


def model_key(database: Database, model: str) -> tuple[int, int] | None:
    """The model's internal key and dimension, if it has vectors here."""
    found = database.one("SELECT key, dimension FROM models WHERE identity = ?", (model,))
    return (found[0], found[1]) if found else None


def put_vectors(
    database: Database, ledger: Ledger, model: str, vectors: Sequence[tuple[TextHash, bytes]]
) -> list[TextHash]:
    """Stores vectors; returns the hashes of those that were not stored yet."""
    given = dict(vectors)
    if not given:
        return []
    key = _register(database, model, {len(vector) for vector in given.values()})
    hashes = {text: vector_hash(model, text, vector) for text, vector in given.items()}
    stored = "SELECT text_hash, row_hash FROM embeddings WHERE model = ? AND text_hash IN (*)"
    old = {TextHash(text): hashed for text, hashed in database.all_in(stored, given, (key,))}
    new = [text for text in given if old.get(text) != hashes[text]]
    ledger.drop("embeddings", (old[text] for text in new if text in old))
    database.many(
        """INSERT OR REPLACE INTO embeddings (model, text_hash, row_hash, vector)
        VALUES (?, ?, ?, ?)""",
        ((key, text, hashes[text], given[text]) for text in new),
    )
    ledger.add("embeddings", (hashes[text] for text in new))
    return new


def _register(database: Database, model: str, sizes: set[int]) -> int:
    size = sizes.pop()
    if sizes or size == 0 or size % FLOAT_BYTES:
        raise ValueError(f"vectors of {model} must be float32 and all of one dimension")
    dimension = size // FLOAT_BYTES
    database.run(
        "INSERT OR IGNORE INTO models (identity, dimension) VALUES (?, ?)", (model, dimension)
    )
    known = model_key(database, model)
    if known is None or known[1] != dimension:
        raise ValueError(f"the stored vectors of {model} do not have dimension {dimension}")
    return known[0]


def prune(
    database: Database, ledger: Ledger, models: Collection[str], texts: Iterable[TextHash] = ()
) -> int:
    """Deletes vectors of other models, and those whose text is in no chunk and no index inside the
    store; `texts` are the texts of those indices."""
    keys = [found[0] for model in models if (found := model_key(database, model))]
    marks = ",".join("?" * len(keys))
    useless = f"""FROM embeddings WHERE model NOT IN ({marks}) OR (
        text_hash NOT IN (SELECT text_hash FROM chunks WHERE text_hash IS NOT NULL)
        AND hex(text_hash) NOT IN (SELECT value FROM json_each(?)))"""
    values = [*keys, json.dumps([text.hex().upper() for text in texts])]
    rows = database.all(f"SELECT row_hash {useless}", values)
    ledger.drop("embeddings", (row[0] for row in rows))
    count = database.run(f"DELETE {useless}", values)
    database.run("DELETE FROM models WHERE key NOT IN (SELECT model FROM embeddings)")
    return count


def find_unused(
    database: Database, models: Collection[str], texts: Collection[TextHash]
) -> list[UnusedVector]:
    """Vectors of other models, or of texts that are in no chunk and no index inside the store;
    `texts` are the texts of those indices. Read-only."""
    keys = {found[0] for model in models if (found := model_key(database, model))}
    dimensions = dict(database.all("SELECT key, dimension FROM models"))
    since = _marks(database)
    rows = database.each(
        """SELECT e.key, e.model, e.text_hash, EXISTS (SELECT 1 FROM chunks c
        WHERE c.text_hash = e.text_hash) FROM embeddings e"""
    )
    return [
        UnusedVector(key, FLOAT_BYTES * dimensions[model], since.get(key))
        for key, model, text, is_held in rows
        if model not in keys or not (is_held or text in texts)
    ]


def unused_checked_at(database: Database) -> int | None:
    """When unused vectors were last looked for, in seconds."""
    return _marks(database, _LOOK).get(_LOOK)


def mark_unused(database: Database, keys: Collection[int], now: int) -> None:
    """Records that these are unused, since now or since first recorded, that all others are in
    use, and that this was checked now."""
    database.run(_MAKE_UNUSED)
    marked = _marks(database).keys()
    database.many(
        f"DELETE FROM {_UNUSED} WHERE embedding = ?", [(key,) for key in marked - set(keys)]
    )
    database.many(
        f"INSERT OR REPLACE INTO {_UNUSED} (embedding, since) VALUES (?, ?)",
        [(key, now) for key in (_LOOK, *keys) if key not in marked],
    )


def drop_unused(
    database: Database, ledger: Ledger, keys: Collection[int], models: Collection[str]
) -> int:
    """Deletes these vectors, except those that a chunk has started to use meanwhile."""
    own = ",".join(str(found[0]) for model in models if (found := model_key(database, model)))
    rows = database.all_in(
        f"""SELECT key, row_hash FROM embeddings e WHERE (model NOT IN ({own}) OR NOT EXISTS
        (SELECT 1 FROM chunks c WHERE c.text_hash = e.text_hash)) AND key IN (*)""",
        keys,
    )
    found = dict(rows)
    ledger.drop("embeddings", found.values())
    database.many("DELETE FROM embeddings WHERE key = ?", [(key,) for key in found])
    database.run("DELETE FROM models WHERE key NOT IN (SELECT model FROM embeddings)")
    return len(found)


def unused_bytes(database: Database) -> int:
    """The size of the vectors that were unused at the last check."""
    if not _has_marks(database):
        return 0
    found = database.one(
        f"""SELECT coalesce(sum(m.dimension), 0) FROM {_UNUSED} u
        JOIN embeddings e ON e.key = u.embedding JOIN models m ON m.key = e.model"""
    )
    return FLOAT_BYTES * found[0] if found else 0


def _has_marks(database: Database) -> bool:
    return database.one("SELECT 1 FROM sqlite_master WHERE name = ?", (_UNUSED,)) is not None


def _marks(database: Database, *keys: int) -> dict[int, int]:
    """The recorded times of all vectors, or of some keys."""
    if not _has_marks(database):
        return {}
    where = " WHERE embedding IN (*)" if keys else " WHERE embedding > 0"
    select = f"SELECT embedding, since FROM {_UNUSED}{where}"
    return dict(database.all_in(select, keys) if keys else database.all(select))


def documents_with(database: Database, texts: Iterable[TextHash]) -> set[DocId]:
    rows = database.all_in(
        """SELECT DISTINCT d.id FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.text_hash IN (*)""",
        texts,
    )
    return {DocId(doc_id) for (doc_id,) in rows}


def missing(
    database: Database, model: str, doc_ids: Collection[DocId] | None, limit: int
) -> list[PendingText]:
    """Texts without a vector of this model, the last written first."""
    known = model_key(database, model)
    key = known[0] if known else None
    select = f"{SELECT_CHUNKS} WHERE {_WITHOUT_VECTOR}"
    if doc_ids is None:
        rows = database.each(f"{select} ORDER BY c.key DESC LIMIT ?", (key, limit))
    else:
        rows = database.all_in(f"{select} AND d.id IN (*) ORDER BY c.key DESC", doc_ids, (key,))
    found: dict[TextHash, str] = {}
    for row in rows:
        stored = read_chunk(row)
        if stored.text_hash is not None:
            found.setdefault(stored.text_hash, embedding_text(stored.chunk))
    return [PendingText(text_hash, text) for text_hash, text in found.items()]


def count_missing_texts(database: Database, model: str) -> int:
    """How many different texts still need a vector of this model: chunks may have equal texts."""
    return count_missing(database, model, "count(DISTINCT c.text_hash)")


def count_missing(database: Database, model: str, what: str = "count(*)") -> int:
    """How many chunks still need a vector of this model."""
    known = model_key(database, model)
    # A join takes two thirds of the time of a subquery for each chunk.
    found = database.one(
        f"""SELECT {what} FROM chunks c LEFT JOIN embeddings e
        ON e.model = ? AND e.text_hash = c.text_hash
        WHERE c.text_hash IS NOT NULL AND e.model IS NULL""",
        (known[0] if known else None,),
    )
    return found[0] if found else 0


def vectors(
    database: Database, model: str, doc_ids: Collection[DocId] | None, size: int
) -> Iterator[VectorBatch]:
    """The vectors of all chunks, or of those of some documents, in batches, in no particular
    order."""
    known = model_key(database, model)
    if known is None:
        return
    key, dimension = known
    if doc_ids is None:
        names = dict(database.all("SELECT key, id FROM documents NOT INDEXED"))
        rows = _all_vectors(database, key, model, dimension)
    else:
        names = dict(database.all_in("SELECT key, id FROM documents WHERE id IN (*)", doc_ids))
        rows = database.all_in(_SOME_VECTORS, names, (key,))
    while part := list(islice(rows, size)):
        for chunk, doc, hashed, text_hash, vector in part:
            whole = _is_whole(model, dimension, text_hash, hashed, vector)
            if not whole or doc not in names:
                raise IndexCorrupt(f"the vector of chunk {chunk} is damaged", REBUILD)
        yield VectorBatch(
            keys=tuple(ChunkKey(row[0]) for row in part),
            doc_ids=tuple(DocId(names[row[1]]) for row in part),
            dimension=dimension,
            data=b"".join(row[4] for row in part),
        )


def vectors_of(
    database: Database, model: str, texts: Collection[TextHash]
) -> Iterator[tuple[TextHash, bytes]]:
    """The vectors of these texts, for those that have one."""
    for text_hash, vector in _vectors_of(database, model, texts):
        if vector is None:
            raise IndexCorrupt("a stored vector is damaged", REBUILD)
        yield text_hash, vector


def whole_vectors(
    database: Database, model: str, texts: Collection[TextHash]
) -> Iterator[tuple[TextHash, bytes]]:
    """The same for a store that is not ours to repair: skips damaged vectors."""
    for text_hash, vector in _vectors_of(database, model, texts):
        if vector is not None:
            yield text_hash, vector


def _vectors_of(
    database: Database, model: str, texts: Collection[TextHash]
) -> Iterator[tuple[TextHash, bytes | None]]:
    """None for a damaged vector."""
    known = model_key(database, model)
    if known is None:
        return
    key, dimension = known
    for text_hash, hashed, vector in database.all_in(_VECTORS_OF, texts, (key,)):
        try:
            is_whole = _is_whole(model, dimension, text_hash, hashed, vector)
        except TypeError:  # a flipped bit can turn bytes into text
            is_whole = False
        yield TextHash(text_hash), vector if is_whole else None


def _all_vectors(database: Database, key: int, model: str, dimension: int) -> Iterator[Row]:
    owners, others = _owners(database)
    for hashed, text_hash, vector in database.each(_ALL_VECTORS, (key,)):
        if text_hash not in owners and not _is_whole(model, dimension, text_hash, hashed, vector):
            # Perhaps it has an owner, but its text hash is damaged.
            raise IndexCorrupt("a stored vector is damaged", REBUILD)
        first = owners.get(text_hash)
        for pair in () if first is None else (first, *others.get(text_hash, ())):
            chunk, doc = divmod(pair, _DOCUMENTS)
            yield chunk, doc, hashed, text_hash, vector


def _owners(database: Database) -> tuple[dict[bytes, int], dict[bytes, list[int]]]:
    """The first chunk of each text with its document, and any others; as one number each, because
    tuples in lists for 100,000 texts would leave 20 MB behind.
    """
    first: dict[bytes, int] = {}
    others: dict[bytes, list[int]] = {}
    for chunk, doc, text_hash in database.each(_ALL_CHUNKS):
        try:
            pair = chunk * _DOCUMENTS + doc
        except TypeError:  # a flipped bit can turn a number into text
            raise IndexCorrupt(f"chunk {chunk} is damaged", REBUILD) from None
        if first.setdefault(text_hash, pair) != pair:
            others.setdefault(text_hash, []).append(pair)
    return first, others


def check_vectors(database: Database) -> None:
    """Raises at the first damaged vector, used or not."""
    rows = database.each(
        """SELECT m.identity, m.dimension, e.text_hash, e.row_hash, e.vector
        FROM embeddings e JOIN models m ON m.key = e.model"""
    )
    for model, dimension, text_hash, hashed, vector in rows:
        if not _is_whole(model, dimension, text_hash, hashed, vector):
            raise IndexCorrupt(f"the stored vector of text {text_hash.hex()} is damaged")
