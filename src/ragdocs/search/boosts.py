"""Boosts a passage for reasons other than its text: recency, tree, community. Each has a name."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from ragdocs.models import DocId, TreeName
from ragdocs.search.candidates import Candidate, best_first

# Documents in the same community as the best ones are raised with them.

LEADERS = 3
"""How many of the best documents decide which communities the query is about."""


def raised_documents(ranked: Sequence[DocId], communities: Mapping[DocId, int]) -> frozenset[DocId]:
    """The documents that share a community with a leader; `ranked` is best first.

    Leaders are included, or a follower would pass its leader by the boost alone; a leader without
    followers is not.
    """
    documents = list(dict.fromkeys(ranked))
    members = Counter(communities[doc_id] for doc_id in documents if doc_id in communities)
    leading = {communities.get(doc_id) for doc_id in documents[:LEADERS]}
    return frozenset(
        doc_id
        for doc_id in documents
        if (own := communities.get(doc_id)) is not None and own in leading and members[own] > 1
    )


# The project's own trees are preferred to the user's global ones.


def locality_factors(
    trees: Iterable[TreeName], local: frozenset[TreeName], boost: float
) -> dict[TreeName, float]:
    """If all trees are local, none is preferred and the scores stay as they are."""
    found = frozenset(trees)
    factor = 1.0 if found <= local else boost
    return {tree: factor if tree in local else 1.0 for tree in found}


# Recent documents gain a little.

TIERS = ((timedelta(days=7), 1.2), (timedelta(days=30), 1.1))
"""Seed 001, strategy 4: the first tier that fits counts. The factors are those at BIAS_OF_TIERS."""
BIAS_OF_TIERS = 0.5
MAX_AHEAD = timedelta(days=1)
"""A date further in the future comes from a wrong clock or a typing error."""


def recency_factor(date: datetime, now: datetime, bias: float) -> float:
    """Both dates have a time zone. `bias` scales the gain: 0 for none, 1 for twice the tiers."""
    age = now - date
    if age < -MAX_AHEAD:
        return 1.0
    for limit, factor in TIERS:
        if age <= limit:
            return 1.0 + (factor - 1.0) * bias / BIAS_OF_TIERS
    return 1.0


# Tree normalisation: the best passages of the trees are brought nearer to each other.
#
# A folder of short notes and one of long manuals score differently for the same question; that
# alone must not let one of them fill every answer. Each tree has one factor for all its passages,
# so the order within a tree never changes, and a single tree is left as it is.

MOST = 2.0
"""No tree is raised further: passages that say nothing must not come before those that do."""


def best_by_tree(scored: Iterable[tuple[TreeName, float]]) -> dict[TreeName, float]:
    best: dict[TreeName, float] = {}
    for tree, score in scored:
        best[tree] = max(score, best.get(tree, 0.0))
    return best


def level_factors(best: Mapping[TreeName, float], strength: float) -> dict[TreeName, float]:
    """With a strength of 1 the best of every tree scores the same, unless it is too far behind;
    with 0 nothing changes.
    """
    top = max(best.values(), default=0.0)
    return {
        tree: min(MOST, (top / own) ** strength) if own > 0 else 1.0 for tree, own in best.items()
    }


class BoostKind(StrEnum):
    """Why a passage was raised."""

    RECENCY = "recency"
    COMMUNITY = "community"
    LOCALITY = "locality"
    TREE_LEVEL = "tree_level"


_KINDS = tuple(kind.value for kind in BoostKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostRules:
    """The boosts of one request; the default factors and biases raise nothing."""

    now: datetime
    recency_bias: float = 0.0
    communities: Mapping[DocId, int] = field(default_factory=dict[DocId, int])
    community_factor: float = 1.0
    local_trees: frozenset[TreeName] = frozenset()
    local_factor: float = 1.0
    tree_normalisation: float = 0.0


def apply_boosts(candidates: Sequence[Candidate], rules: BoostRules) -> list[Candidate]:
    """Applies every factor to the score and sorts again."""
    raised = raised_documents([item.document.id for item in candidates], rules.communities)
    trees = (item.document.tree for item in candidates)
    local = locality_factors(trees, rules.local_trees, rules.local_factor)
    best = best_by_tree((item.document.tree, item.score) for item in candidates)
    levels = level_factors(best, rules.tree_normalisation)

    def factors(item: Candidate) -> dict[str, float]:
        document = item.document
        every = (
            recency_factor(document.date, rules.now, rules.recency_bias),
            rules.community_factor if document.id in raised else 1.0,
            local[document.tree],
            levels[document.tree],
        )
        return {kind: factor for kind, factor in zip(_KINDS, every, strict=True) if factor != 1.0}

    return best_first([_raise(item, factors(item)) for item in candidates])


def _raise(item: Candidate, factors: dict[str, float]) -> Candidate:
    if not factors:
        return item
    score = item.score * math.prod(factors.values())
    return item.with_changes(score=score, boosts={**item.boosts, **factors})
