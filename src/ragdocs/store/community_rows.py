"""The communities of linked documents as rows, and the links that they were computed from.

A document that is linked to none has no row; a deleted one loses its row in the same commit.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from ragdocs.models import DocId
from ragdocs.store.connection import Database, Row
from ragdocs.store.ledger import Ledger
from ragdocs.store.records import Position
from ragdocs.store.rows import HASH_BYTES, check_row, row_hash, to_json

SELECT_COMMUNITIES = """SELECT m.row_hash, d.id, m.number FROM communities m
    JOIN documents d ON d.key = m.doc"""
# Only what communities depend on: most edits move links about and join no other documents.
_EDGES = """SELECT DISTINCT doc, target_doc, kind FROM links
    WHERE target_doc <> doc ORDER BY doc, target_doc, kind"""
NO_EDGES = ""


@dataclass(frozen=True, slots=True)
class CommunityOrigin:
    """The commit whose links the stored communities were computed from, and these links' digest."""

    position: Position
    edges: str

    def encoded(self) -> str:
        return to_json([self.position.generation, self.position.stamp, self.edges])

    @classmethod
    def decoded(cls, encoded: str) -> "CommunityOrigin | None":
        if not encoded:
            return None
        generation, stamp, edges = json.loads(encoded)
        return cls(Position(generation, stamp), edges)


def edges_digest(database: Database) -> str:
    """Another one as soon as another pair of documents is linked, or in another way; empty when
    none is."""
    hashed, is_any = blake2b(digest_size=HASH_BYTES), False
    for doc, target, kind in database.each(_EDGES, size=4096):
        hashed.update(f"{doc} {target} {kind}\n".encode())
        is_any = True
    return hashed.hexdigest() if is_any else NO_EDGES


def read_community(row: Row) -> tuple[DocId, int]:
    hashed, *values = row
    check_row("community of", values, hashed)
    return DocId(values[0]), values[1]


def communities_of(database: Database, doc_ids: Collection[DocId]) -> dict[DocId, int]:
    """The community's number of each of the documents that are in one."""
    return dict(
        map(read_community, database.all_in(f"{SELECT_COMMUNITIES} WHERE d.id IN (*)", doc_ids))
    )


def members_with(database: Database, doc_id: DocId) -> tuple[DocId, ...]:
    """All documents of the document's community, itself included, in the order of their ids."""
    rows = database.all(
        f"""{SELECT_COMMUNITIES} WHERE m.number = (SELECT o.number FROM communities o
        JOIN documents s ON s.key = o.doc WHERE s.id = ?) ORDER BY d.id""",
        (doc_id,),
    )
    return tuple(member for member, _ in map(read_community, rows))


def count_communities(database: Database) -> int:
    found = database.one("SELECT count(DISTINCT number) FROM communities")
    return found[0] if found else 0


def replace_communities(database: Database, ledger: Ledger, numbers: Mapping[DocId, int]) -> bool:
    """Writes only the rows that change; returns whether any did. Documents that are gone are left
    out."""
    old: dict[DocId, int] = {}
    hashes: dict[DocId, bytes] = {}
    for row in database.each(SELECT_COMMUNITIES):
        doc_id, number = read_community(row)
        old[doc_id], hashes[doc_id] = number, row[0]
    changed = [doc_id for doc_id in {**old, **numbers} if old.get(doc_id) != numbers.get(doc_id)]
    keys = dict(database.all_in("SELECT id, key FROM documents WHERE id IN (*)", changed))
    new = [
        (doc, numbers[doc_id], row_hash("community of", (doc_id, numbers[doc_id])))
        for doc_id, doc in keys.items()
        if doc_id in numbers
    ]
    database.many("DELETE FROM communities WHERE doc = ?", ((doc,) for doc in keys.values()))
    ledger.drop("communities", (hashes[doc_id] for doc_id in keys if doc_id in hashes))
    database.many("INSERT INTO communities (doc, number, row_hash) VALUES (?, ?, ?)", new)
    ledger.add("communities", (hashed for *_, hashed in new))
    return bool(keys)


def remove_community(database: Database, ledger: Ledger, doc: int) -> None:
    """Takes the document out of its community, if it is in one."""
    rows = database.all("SELECT row_hash FROM communities WHERE doc = ?", (doc,))
    ledger.drop("communities", (hashed for (hashed,) in rows))
    database.run("DELETE FROM communities WHERE doc = ?", (doc,))
