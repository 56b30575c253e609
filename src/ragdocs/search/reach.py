"""How far a search goes: within which documents, and how many hits of each index it looks at."""

from dataclasses import dataclass, replace

from ragdocs.indices.hits import Scope

HITS_PER_INDEX = 100
"""Enough that a chunk placed well by one index alone is still seen by the other."""
FEWEST_CANDIDATES, MOST_CANDIDATES = 40, 150
CANDIDATES_PER_RESULT = 4
"""Copies fall, siblings merge and a document has few places: so many are needed for one result."""
DEEPER = 8
"""Where that is not enough, as when one long document or many copies come first, this many times
as much is looked at; and that many times again."""
DEEPEST = DEEPER * DEEPER
MOST_OF_A_DOCUMENT = 20
"""Of what a deeper look finds: most of them would fall again."""
MOST_OF_ALL = 1_200
"""Candidates, however deep."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One attempt to find enough."""

    scope: Scope = None
    language: str = ""
    depth: int = 1
    queries: int = 1

    @property
    def hits(self) -> int:
        return HITS_PER_INDEX * self.depth

    def candidates(self, top_n: int) -> int:
        """How many fused hits of each query are read from the store and go through the stages."""
        usual = min(MOST_CANDIDATES, max(FEWEST_CANDIDATES, CANDIDATES_PER_RESULT * top_n))
        share = max(FEWEST_CANDIDATES, 2 * MOST_CANDIDATES // self.queries)
        return min(min(usual, share) * self.depth, MOST_OF_ALL // self.queries)

    def of_all(self, top_n: int) -> int:
        """How many go through the stages, of all queries together."""
        return max(2 * MOST_CANDIDATES, self.candidates(top_n))

    @property
    def can_be_deeper(self) -> bool:
        """Several queries look at several times as much already."""
        return self.queries == 1 and self.depth < DEEPEST

    def deeper(self) -> "Reach":
        return replace(self, depth=self.depth * DEEPER)
