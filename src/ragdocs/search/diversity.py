"""Maximal marginal relevance (P11): each next result is relevant, and unlike those before it."""

from collections.abc import Sequence

from ragdocs.search.candidates import Candidate
from ragdocs.search.dedup import cosines

# Seed 003, risk R1: what is further down is not worth its comparisons.
MAX_CANDIDATES = 50


def select_mmr(
    candidates: Sequence[Candidate], mmr_lambda: float, top_n: int = MAX_CANDIDATES
) -> list[Candidate]:
    """`top_n` of the first candidates, in the order chosen, their scores as they were.

    Each choice has the greatest λ·relevance - (1-λ)·(cosine with the nearest chosen). Relevance is
    the score, scaled so that the best is 1 and the last 0: on its own scale λ would mean little.
    """
    import numpy as np

    items = candidates[:MAX_CANDIDATES]
    if len(items) < 2:
        return list(items[:top_n])
    relevance = np.array(_scaled([item.score for item in items]))
    similarity = cosines(items)
    nearest = np.full(len(items), -np.inf)
    is_open = np.ones(len(items), dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < min(top_n, len(items)):
        penalty = nearest if chosen else np.zeros(len(items))
        value = mmr_lambda * relevance - (1.0 - mmr_lambda) * penalty
        # Of equals the first, which is the better one.
        best = int(np.argmax(np.where(is_open, value, -np.inf)))
        chosen.append(best)
        is_open[best] = False
        nearest = np.maximum(nearest, similarity[best])
    return [items[place] for place in chosen]


def _scaled(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
