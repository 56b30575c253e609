"""An index whose scores hardly differ does not know which passage is better: it gets less say."""

from collections.abc import Mapping, Sequence

from ragdocs.search.candidates import Strategy, Weights


def score_aware_weights(
    weights: Weights,
    scores: Mapping[Strategy, Sequence[float]],
    threshold: float,
    min_factor: float,
) -> dict[Strategy, float]:
    """`weight · max(min_factor, variance / threshold)`, at most the weight, then scaled so that the
    sum stays (seed 001, strategy 8). `scores` are scaled to [0, 1]: BM25 and cosine have no
    variance in common. Indices without scores keep their weight.
    """
    lowered = {
        strategy: weight * _factor(scores[strategy], threshold, min_factor)
        for strategy, weight in weights.items()
        if strategy in scores
    }
    before = sum(weights[strategy] for strategy in lowered)
    after = sum(lowered.values())
    if after <= 0:
        return dict(weights)
    return {**weights, **{s: weight * before / after for s, weight in lowered.items()}}


def _factor(scores: Sequence[float], threshold: float, min_factor: float) -> float:
    # One hit alone is no sign of doubt: it may be the only passage that has the identifier.
    if len(scores) < 2 or threshold <= 0:
        return 1.0
    mean = sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / len(scores)
    return min(1.0, max(min_factor, variance / threshold))
