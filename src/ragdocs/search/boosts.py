"""What raises a passage for reasons other than its text: recency, tree, community. Each
has a name.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from ragdocs.models import DocId, TreeName
from ragdocs.search.candidates import Candidate, best_first

# Documents that are linked with the best ones are raised with them.

# How many of the best documents say which communities the query is about.
LEADERS = 3


def raised_documents(ranked: Sequence[DocId], communities: Mapping[DocId, int]) -> frozenset[DocId]:
    """Those that share a community with one of the first, best first given.

    The leaders themselves are among them, or a follower would pass its leader by the boost alone;
    a leader that has no follower here has nothing to share.
    """
    documents = list(dict.fromkeys(ranked))
    members = Counter(communities[doc_id] for doc_id in documents if doc_id in communities)
    leading = {communities.get(doc_id) for doc_id in documents[:LEADERS]}
    return frozenset(
        doc_id
        for doc_id in documents
        if (own := communities.get(doc_id)) is not None and own in leading and members[own] > 1
    )


# The project's own trees are preferred to those the user has everywhere.


def locality_factors(
    trees: Iterable[TreeName], local: frozenset[TreeName], boost: float
) -> dict[TreeName, float]:
    """Where all trees are local there is nothing to prefer, and scores stay as they are."""
    found = frozenset(trees)
    factor = 1.0 if found <= local else boost
    return {tree: factor if tree in local else 1.0 for tree in found}


# New documents gain a little.

# Seed 001, strategy 4: the youngest tier that fits counts. These are the figures at BIAS_OF_TIERS.
TIERS = ((timedelta(days=7), 1.2), (timedelta(days=30), 1.1))
BIAS_OF_TIERS = 0.5
# A date this far ahead is a broken clock or a typing error, not news.
MAX_AHEAD = timedelta(days=1)


def recency_factor(date: datetime, now: datetime, bias: float) -> float:
    """Both dates have a time zone. `bias` scales the gain: 0 is none, 1 twice the tiers' own."""
    age = now - date
    if age < -MAX_AHEAD:
        return 1.0
    for limit, factor in TIERS:
        if age <= limit:
            return 1.0 + (factor - 1.0) * bias / BIAS_OF_TIERS
    return 1.0


# Several trees at one level: what each has best counts nearer to what the best of them has.
#
# A folder of short notes and one of long manuals score differently for the same question, and the
# one must not fill every answer by that alone. Each tree has one factor for all it has, so the
# order within a tree never changes, and one tree alone is left as it is.

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


# What raises a passage for other reasons than its text, each named so that it can be explained.


class BoostKind(StrEnum):
    """Why a passage was raised."""

    RECENCY = "recency"
    COMMUNITY = "community"
    LOCALITY = "locality"
    TREE_LEVEL = "tree_level"


_KINDS = tuple(kind.value for kind in BoostKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostRules:
    """The boosts in force; a factor or bias that is left alone raises nothing."""

    now: datetime
    recency_bias: float = 0.0
    communities: Mapping[DocId, int] = field(default_factory=dict[DocId, int])
    community_factor: float = 1.0
    local_trees: frozenset[TreeName] = frozenset()
    local_factor: float = 1.0
    tree_normalisation: float = 0.0


def apply_boosts(candidates: Sequence[Candidate], rules: BoostRules) -> list[Candidate]:
    """Every factor applied to the score, and the result sorted again."""
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
    return item.changed(score=score, boosts={**item.boosts, **factors})
