"""What every index answers with, and what every index may be confined to."""

from dataclasses import dataclass

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. A filter becomes this once, and each index
searches within it, so that a small folder inside a large corpus is not starved."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One index's opinion of one chunk. Lists of hits are best first; higher is better."""

    key: ChunkKey
    score: float
