"""How many documents have a term: what tells a telling word from a common one.

Told by the vocabulary; terms of text without spaces, which it leaves out, are asked of the keyword
engine, which counts passages: near enough to compare by.
"""

import json
import math
from collections.abc import Collection, Sequence

from ragdocs.indices.keyword import KeywordEngine
from ragdocs.indices.vocabulary import TABLE
from ragdocs.indices.words import is_spaced
from ragdocs.store.snapshot import Snapshot

COMMON = 0.2
"""The part of all documents from which on a term is common."""
FEW_DOCUMENTS = 50
"""Under this, every term is in a large part of them."""
MAX_ASKED = 64
"""Terms that are asked of the engine, one after another."""


class TermFrequencies:
    """Document frequencies within one snapshot."""

    def __init__(self, snapshot: Snapshot, engine: KeywordEngine) -> None:
        self._snapshot = snapshot
        self._engine = engine
        self.documents = snapshot.ledger.count("documents")

    def of(self, terms: Collection[str]) -> dict[str, int]:
        """Those of the terms that some document has, with the number of documents. Of terms
        without spaces only the first count: each is looked for.
        """
        rows = self._snapshot.select(
            f"""SELECT term, sum(documents) FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?)) GROUP BY term""",
            (json.dumps(sorted(terms)),),
        )
        known = {term: min(count, self.documents) for term, count in rows}
        unspaced = [term for term in terms if term not in known and not is_spaced(term)]
        return {**known, **self._asked(unspaced[:MAX_ASKED])}

    def is_common(self, count: int) -> bool:
        """Whether a term that so many documents have tells little, and costs much to look for."""
        return self.documents >= FEW_DOCUMENTS and count > COMMON * self.documents

    def rarity(self, count: int) -> float:
        """BM25's: about the number of doublings from a few documents to all, and never negative."""
        return math.log(1 + max(0.0, self.documents - count + 0.5) / (count + 0.5))

    def _asked(self, terms: Sequence[str]) -> dict[str, int]:
        if not terms:
            return {}
        found = self._engine.frequencies(self._snapshot, terms)
        return {term: min(count, self.documents) for term, count in found.items() if count}
