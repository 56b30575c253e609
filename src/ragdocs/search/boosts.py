"""What raises a passage for other reasons than its text, each named so that it can be explained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ragdocs.models import DocId, TreeName
from ragdocs.search.candidates import Candidate
from ragdocs.search.community import raised_documents
from ragdocs.search.locality import locality_factors
from ragdocs.search.ordering import best_first
from ragdocs.search.recency import recency_factor
from ragdocs.search.tree_levels import best_by_tree, level_factors


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


def boosted(candidates: Sequence[Candidate], rules: BoostRules) -> list[Candidate]:
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
