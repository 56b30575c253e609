"""What links add to passages found by their own text.

They bring a passage nearer to the best, never past it: the nearer it is already, the less they add.
So linked pages come along, and cannot crowd out what answers the query by itself.
"""

from collections.abc import Sequence

from ragdocs.indices.hits import Hit
from ragdocs.search.candidates import Evidence, Strategy
from ragdocs.search.fusion import Fused


def with_links(fused: Sequence[Fused], linked: Sequence[Hit], weight: float) -> list[Fused]:
    """Best first. `linked` are the neighbours' passages, best first, with scores in [0, 1]."""
    best = max((item.score for item in fused), default=0.0)
    if not linked or best <= 0 or weight <= 0:
        return list(fused)
    found = {item.key: item for item in fused}
    for rank, hit in enumerate(linked, start=1):
        own = found.get(hit.key) or Fused(hit.key, 0.0, {}, {})
        found[hit.key] = _nearer(own, hit, rank, weight, best)
    return sorted(found.values(), key=_place)


def _nearer(item: Fused, hit: Hit, rank: int, weight: float, best: float) -> Fused:
    gain = (best - item.score) * min(1.0, weight * hit.score / best)
    return item._replace(
        score=item.score + gain,
        evidence={**item.evidence, Strategy.GRAPH: Evidence(rank, hit.score)},
        contributions={**item.contributions, Strategy.GRAPH: gain},
    )


def _place(item: Fused) -> tuple[float, float]:
    """Of equals, the one that owes less to its links comes first, then the one that did before."""
    return -item.score, item.contributions.get(Strategy.GRAPH, 0.0)
