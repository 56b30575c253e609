"""What every index answers with, and what every index may be confined to."""

from typing import NamedTuple

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey

Scope = frozenset[DocId] | None
"""The documents that may answer; None is all of them. A filter becomes this once, and each index
searches within it, so that a small folder inside a large corpus is not starved."""


class Hit(NamedTuple):
    """One index's opinion of one chunk. Lists of hits are best first; higher is better.

    A tuple, because hundreds are made for every query.
    """

    key: ChunkKey
    score: float
