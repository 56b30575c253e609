"""How far a search goes: within which documents, and how many hits of each index it looks at."""

from dataclasses import dataclass, replace

from ragdocs.indices.hits import Scope
from ragdocs.models import DocId

HITS_PER_INDEX = 100
"""Enough that a chunk placed well by one index alone is still seen by the other."""
FEWEST_CANDIDATES, MOST_CANDIDATES = 40, 150
CANDIDATES_PER_RESULT = 4
"""Copies fall, siblings merge and a document has few places: so many are needed for one result."""
DEEPER = 8
"""Where that is not enough, as when many copies come first, this many times as much is looked at;
and that many times again."""
DEEPEST = DEEPER * DEEPER
MOST_LOOKS = 4
MOST_OF_A_DOCUMENT = 20
"""Of what another look finds: most of them would fall again. A document that has so many already
is left out of the next look, which then costs what the first did: to look deeper at the same
documents costs a multiple (specs/0073)."""
MOST_OF_ALL = 1_200
"""Candidates, however deep."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One attempt to find enough."""

    scope: Scope = None
    language: str = ""
    depth: int = 1
    queries: int = 1
    looks: int = 1
    full: frozenset[DocId] = frozenset()
    """The documents that earlier looks found enough of."""

    @property
    def hits(self) -> int:
        return HITS_PER_INDEX * self.depth

    def candidates(self, top_n: int) -> int:
        """How many fused hits of each query are read from the store and go through the stages."""
        usual = min(MOST_CANDIDATES, max(FEWEST_CANDIDATES, CANDIDATES_PER_RESULT * top_n))
        share = max(FEWEST_CANDIDATES, 2 * MOST_CANDIDATES // self.queries)
        known = len(self.full) * most_of_a_document(top_n)
        return min(min(usual, share) * self.depth + known, MOST_OF_ALL // self.queries)

    def of_all(self, top_n: int) -> int:
        """How many go through the stages, of all queries together."""
        return max(2 * MOST_CANDIDATES, self.candidates(top_n))

    @property
    def can_be_deeper(self) -> bool:
        """Several queries look at several times as much already."""
        return self.queries == 1 and self.looks < MOST_LOOKS and self.depth < DEEPEST

    def deeper(self) -> "Reach":
        return replace(self, depth=self.depth * DEEPER, looks=self.looks + 1)

    def beyond(self, full: frozenset[DocId], scope: Scope) -> "Reach":
        """As deep as now, within the documents that are not full."""
        return replace(self, scope=scope, full=full, looks=self.looks + 1)


def most_of_a_document(top_n: int) -> int:
    return max(top_n, MOST_OF_A_DOCUMENT)
