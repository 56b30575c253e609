"""Several trees at one level: what each has best counts nearer to what the best of them has.

A folder of short notes and one of long manuals score differently for the same question, and the
one must not fill every answer by that alone. Each tree has one factor for all it has, so the order
within a tree never changes, and one tree alone is left as it is.
"""

from collections.abc import Iterable, Mapping

from ragdocs.models import TreeName

MOST = 2.0
"""No tree is raised further: what has nothing to say must not come before what has."""


def best_by_tree(scored: Iterable[tuple[TreeName, float]]) -> dict[TreeName, float]:
    best: dict[TreeName, float] = {}
    for tree, score in scored:
        best[tree] = max(score, best.get(tree, 0.0))
    return best


def level_factors(best: Mapping[TreeName, float], strength: float) -> dict[TreeName, float]:
    """By a strength of 1 the best of every tree scores the same, unless it is too far behind; by
    0 nothing is changed; between, a part of that.
    """
    top = max(best.values(), default=0.0)
    return {
        tree: min(MOST, (top / own) ** strength) if own > 0 else 1.0 for tree, own in best.items()
    }
