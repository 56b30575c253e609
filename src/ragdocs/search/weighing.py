"""How much say each index and each tree has in one query."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ragdocs.config.choices import Fusion
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.view import View
from ragdocs.models import DocId, TreeName
from ragdocs.parsers.ids import tree_of
from ragdocs.search.candidates import Candidate, ExactToken, Strategy, Weights
from ragdocs.search.classifier import adaptive_weights
from ragdocs.search.fusion import (
    FLOOR,
    MEASURED,
    Fused,
    Signs,
    Wanted,
    balanced,
    by_ideal,
    by_range,
    fuse_by_rank,
    fuse_by_score,
    most_by_rank,
    unsure,
    with_links,
)
from ragdocs.search.requests import QueryType
from ragdocs.search.retrieval import RunningQuery
from ragdocs.store.records import ChunkKey

# Which hits go on when trees are brought to one level: some of every tree, however loud another.
#
# Without it a tree whose passages all score a little less would be cut off before its scores are
# raised: by the indices, which give so many hits of all trees, or when candidates are chosen.

LEAST = 5
"""As many as an answer usually has."""


def with_every_tree(view: View, fused: Sequence[Fused], count: int) -> list[Fused]:
    """The first `count`, and after them the best of each tree that has fewer than LEAST there."""
    chosen, rest = list(fused[:count]), fused[count:]
    if not rest:
        return chosen
    trees = _trees(view, [item.key for item in fused])
    taken = Counter(trees.get(item.key) for item in chosen)
    for item in rest:
        tree = trees.get(item.key)
        if taken[tree] < LEAST:
            taken[tree] += 1
            chosen.append(item)
    return chosen


def missing_trees(view: View, fused: Sequence[Fused]) -> list[TreeName]:
    """The trees that no hit is of: whatever they have is behind all that the indices gave."""
    present = set(_trees(view, [item.key for item in fused]).values())
    return [tree for tree in view.trees() if tree not in present]


def with_best_of(found: RunningQuery, own: RunningQuery) -> RunningQuery:
    """With the best hits of a tree that was searched by itself."""
    lists = {
        strategy: sorted(
            [*found.lists.get(strategy, ()), *hits[:LEAST]], key=lambda hit: -hit.score
        )
        for strategy, hits in own.lists.items()
    }
    return replace(found, lists={**found.lists, **lists})


def _trees(view: View, keys: Collection[ChunkKey]) -> dict[ChunkKey, TreeName]:
    return {key: tree_of(doc_id) for key, doc_id in view.documents_of(keys).items()}


# An index whose scores hardly differ does not know which passage is better: it gets less say.


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


# How much say each index has in one query, and what its hits come to together.


@dataclass(frozen=True, slots=True)
class Weighed:
    """Chunks best first, their scores in [0, 1] but for what code and links add; and the weights
    in force.
    """

    fused: list[Fused]
    weights: Weights
    floored: DocId | None = None
    """The document that has a place in the answer for its rare words (specs/0096)."""
    largest_rank_sum: float | None = None
    """With rank fusion, the rank sum that is a score of 1."""

    @property
    def word_share(self) -> float:
        """The part that words have in what a passage is measured by."""
        total = self._measured
        return max(0.0, self.weights[Strategy.KEYWORD]) / total if total > 0 else 0.0

    @property
    def link_weight(self) -> float:
        """What links count beside text, whose own weights come to 1."""
        total = self._measured
        return self.weights[Strategy.GRAPH] / total if total > 0 else 0.0

    @property
    def _measured(self) -> float:
        return sum(max(0.0, self.weights[strategy]) for strategy in MEASURED)

    def with_rank_sums(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """With the rank sum as what each is worth, in place of its evidence."""
        unit = self.largest_rank_sum or 1.0
        return [
            item.changed(relevance=unit * sum(item.contributions.values())) for item in candidates
        ]


def weigh(
    found: RunningQuery, query_type: QueryType, settings: SearchConfig, most: int | None = None
) -> Weighed:
    """All that was found; with `most`, score fusion may give the best so many alone."""
    weights = weights_for(found, query_type, settings)
    if settings.fusion is Fusion.SCORE:
        # Rare words and exact tokens may bring a passage to the front from anywhere.
        wanted = (
            None if most is None else Wanted(most, found.rare.keys() | telling_chunks(found.exact))
        )
        fused = fuse_by_score(found.lists, weights, by_ideal(found.ideals), wanted)
        floored: DocId | None = None
        if weights[Strategy.KEYWORD] > 0:
            if settings.balance_enabled and weights[Strategy.SEMANTIC] > 0:
                fused = with_rare(fused, found)
                floored = _floored_document(found)
            fused = with_exact(fused, found.exact)
        return Weighed(fused, weights, floored)
    return _by_rank(found, weights, settings)


def telling_chunks(exact: Sequence[ExactToken]) -> Set[ChunkKey]:
    """Those that may come first by an exact token."""
    return frozenset[ChunkKey]().union(*(token.keys for token in exact if token.is_telling))


def weigh_links(weighed: Weighed, found: RunningQuery, settings: SearchConfig) -> Weighed:
    """Adds the list of links in `found`: in score fusion they bring a passage nearer to the best,
    in rank fusion they are one more list of the rank sum, as the seeds have it."""
    if settings.fusion is Fusion.SCORE:
        linked = found.lists.get(Strategy.GRAPH, ())
        return replace(weighed, fused=with_links(weighed.fused, linked, weighed.link_weight))
    graph = weighed.weights[Strategy.GRAPH] * settings.graph_neighbor_weight
    return _by_rank(found, {**weighed.weights, Strategy.GRAPH: graph}, settings)


def with_rare(fused: list[Fused], found: RunningQuery) -> list[Fused]:
    """Passages with rare words come nearer to the best, by the square of what part of the words'
    weight those have: a common word that stands often would count for more than they do."""
    if not fused or not found.rare or found.nearest is None:
        return fused
    best, part = fused[0].score, unsure(found.nearest.prominence)
    nearer = (
        _raise(item, item.score + (best - item.score) * part * found.rare[item.key] ** 2)
        if item.key in found.rare
        else item
        for item in fused
    )
    return sorted(nearer, key=_by_score)


def _floored_document(found: RunningQuery) -> DocId | None:
    if found.rarest is None or found.nearest is None:
        return None
    weight = found.rarest.weight * unsure(found.nearest.prominence)
    return found.rarest.id if weight >= FLOOR else None


def with_exact(fused: list[Fused], exact: Sequence[ExactToken]) -> list[Fused]:
    """Of each exact token that one document has, the best passage with it comes first: by meaning
    and common words it may stand anywhere, even behind a passage that it is taken for a copy of."""
    telling = [token.keys for token in exact if token.is_telling]
    firsts = [next((item for item in fused if item.key in keys), None) for keys in telling]
    raised = {item.key: item for item in firsts if item is not None}
    if not raised:
        return fused
    best = fused[0].score
    first = [_raise(item, best) for item in raised.values()]
    return [*first, *(item for item in fused if item.key not in raised)]


def _raise(item: Fused, score: float) -> Fused:
    """By its words."""
    words = item.contributions.get(Strategy.KEYWORD, 0.0) + score - item.score
    return item._replace(score=score, contributions={**item.contributions, Strategy.KEYWORD: words})


def _by_score(item: Fused) -> float:
    """Of equals, the first stays first."""
    return -item.score


def _by_rank(found: RunningQuery, weights: Weights, settings: SearchConfig) -> Weighed:
    fused = fuse_by_rank(found.lists, weights, settings.rrf_k_constant)
    most = most_by_rank(found.lists, weights, settings.rrf_k_constant)
    scaled = [_scale(item, most) for item in fused]
    return Weighed(scaled, weights, largest_rank_sum=most)


def weights_for(found: RunningQuery, query_type: QueryType, settings: SearchConfig) -> Weights:
    weights: Weights = {
        Strategy.SEMANTIC: settings.semantic_weight,
        Strategy.KEYWORD: settings.keyword_weight,
        Strategy.CODE: settings.code_search_weight,
        Strategy.GRAPH: settings.graph_weight,
    }
    if settings.adaptive_weights_enabled:
        weights = adaptive_weights(weights, query_type)
    advanced = settings.advanced
    if advanced.dynamic_weights_enabled:
        lists = found.lists
        scaled = {s: by_range(s, [hit.score for hit in hits]) for s, hits in lists.items()}
        weights = score_aware_weights(
            weights, scaled, advanced.variance_threshold, advanced.min_weight_factor
        )
    is_by_score = settings.fusion is Fusion.SCORE
    if settings.balance_enabled and is_by_score and found.nearest is not None:
        prose, code = found.coverage(Strategy.KEYWORD), found.coverage(Strategy.CODE)
        near = found.nearest.best_similarity
        signs = Signs(
            similarity=near,
            prose=prose,
            code=code,
            words=found.words,
            is_name=found.topic.is_name and found.has_known_words,
            rare=max(found.rare.values(), default=0.0),
            prominence=found.nearest.prominence,
        )
        weights = balanced(weights, signs)
    return weights


def _scale(item: Fused, most: float) -> Fused:
    parts = {strategy: share / most for strategy, share in item.contributions.items()}
    return item._replace(score=item.score / most, contributions=parts)
