"""Ranks one query's hits: the weight of each index and tree, then a second look at the texts."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from math import inf

from ragdocs.config.choices import Fusion
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.hits import Hit
from ragdocs.indices.view import View
from ragdocs.models import DocId, TreeName
from ragdocs.parsers.ids import tree_of
from ragdocs.search.candidates import (
    Candidate,
    ExactToken,
    Strategy,
    Weights,
    best_first,
    bring_nearer,
)
from ragdocs.search.classifier import adaptive_weights
from ragdocs.search.fusion import (
    FLOOR,
    MEASURED,
    Fused,
    Signs,
    Wanted,
    balance,
    by_ideal,
    by_range,
    fuse_by_rank,
    fuse_by_score,
    most_by_rank,
    uncertainty,
    with_links,
)
from ragdocs.search.retrieval import RunningQuery
from ragdocs.store.records import ChunkKey

# With tree normalisation, some hits of every tree go on, however well another tree scores.
#
# Otherwise a tree whose passages all score a little less would be cut off before its scores are
# raised: by the indices, which limit their hits over all trees, or when candidates are chosen.

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
    """The trees without any hit: their passages rank behind all that the indices returned."""
    present = set(_trees(view, [item.key for item in fused]).values())
    return [tree for tree in view.trees() if tree not in present]


def with_best_of(found: RunningQuery, own: RunningQuery) -> RunningQuery:
    """Adds the best hits of a tree that was searched by itself."""
    lists = {
        strategy: sorted(
            [*found.lists.get(strategy, ()), *hits[:LEAST]], key=lambda hit: -hit.score
        )
        for strategy, hits in own.lists.items()
    }
    return replace(found, lists={**found.lists, **lists})


def _trees(view: View, keys: Collection[ChunkKey]) -> dict[ChunkKey, TreeName]:
    return {key: tree_of(doc_id) for key, doc_id in view.documents_of(keys).items()}


# An index whose scores hardly differ does not know which passage is better: its weight is lowered.


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
    # A single hit is no sign of doubt: it may be the only passage with the identifier.
    if len(scores) < 2 or threshold <= 0:
        return 1.0
    mean = sum(scores) / len(scores)
    variance = sum((score - mean) ** 2 for score in scores) / len(scores)
    return min(1.0, max(min_factor, variance / threshold))


# The weight of each index in one query, and the fused list of all hits.


def weigh(found: RunningQuery, settings: SearchConfig, most: int | None = None) -> RunningQuery:
    """With the weights and one list of all hits; with `most`, score fusion may return only the best
    `most` of them."""
    weights = weights_for(found, settings)
    if settings.fusion is not Fusion.SCORE:
        return _weigh_by_rank(found, weights, settings)
    # Rare words and exact tokens may bring a passage to the front from anywhere.
    wanted = None if most is None else Wanted(most, found.rare.keys() | telling_chunks(found.exact))
    fused = fuse_by_score(found.lists, weights, by_ideal(found.ideals), wanted)
    floored: DocId | None = None
    if weights[Strategy.KEYWORD] > 0:
        if settings.balance_enabled and weights[Strategy.SEMANTIC] > 0:
            fused = with_rare(fused, found)
            floored = _floored_document(found)
        fused = with_exact(fused, found.exact)
    return replace(found, fused=fused, weights=weights, floored=floored)


def telling_chunks(exact: Sequence[ExactToken]) -> Set[ChunkKey]:
    """The chunks that an exact token may put first."""
    return frozenset[ChunkKey]().union(*(token.keys for token in exact if token.is_telling))


def weigh_links(found: RunningQuery, linked: Sequence[Hit], settings: SearchConfig) -> RunningQuery:
    """Adds the hits of links: in score fusion they bring a passage nearer to the best, in rank
    fusion they are one more list of the rank sum, as in the seeds."""
    lists = {**found.lists, Strategy.GRAPH: linked}
    if settings.fusion is Fusion.SCORE:
        fused = with_links(found.fused, linked, _share_of_text(found, Strategy.GRAPH))
        return replace(found, lists=lists, fused=fused)
    graph = found.weights[Strategy.GRAPH] * settings.graph_neighbor_weight
    weights = {**found.weights, Strategy.GRAPH: graph}
    return _weigh_by_rank(replace(found, lists=lists), weights, settings)


def with_rank_sums(candidates: Sequence[Candidate], found: RunningQuery) -> list[Candidate]:
    """With the rank sum as each candidate's relevance, instead of its evidence."""
    unit = found.largest_rank_sum or 1.0
    return [
        item.with_changes(relevance=unit * sum(item.contributions.values())) for item in candidates
    ]


def _share_of_text(found: RunningQuery, strategy: Strategy) -> float:
    """An index's weight, where the weights of the text's own indices add up to 1."""
    weights = found.weights
    total = sum(max(0.0, weights[measured]) for measured in MEASURED)
    return max(0.0, weights[strategy]) / total if total > 0 else 0.0


def with_rare(fused: list[Fused], found: RunningQuery) -> list[Fused]:
    """Brings passages with rare words nearer to the best, by the square of the rare words' share of
    the weight: otherwise a frequent common word would count more than they do.
    """
    if not fused or not found.rare or found.nearest is None:
        return fused
    best, part = fused[0].score, uncertainty(found.nearest.prominence)
    bring_nearer = (
        _raise(item, item.score + (best - item.score) * part * found.rare[item.key] ** 2)
        if item.key in found.rare
        else item
        for item in fused
    )
    return sorted(bring_nearer, key=_by_score)


def _floored_document(found: RunningQuery) -> DocId | None:
    if found.rarest is None or found.nearest is None:
        return None
    weight = found.rarest.weight * uncertainty(found.nearest.prominence)
    return found.rarest.id if weight >= FLOOR else None


def with_exact(fused: list[Fused], exact: Sequence[ExactToken]) -> list[Fused]:
    """For each exact token that only one document has, puts the best passage with it first: by
    meaning and common words it may rank anywhere, even behind a passage that it seems to be a copy
    of.
    """
    telling = [token.keys for token in exact if token.is_telling]
    firsts = [next((item for item in fused if item.key in keys), None) for keys in telling]
    raised = {item.key: item for item in firsts if item is not None}
    if not raised:
        return fused
    best = fused[0].score
    first = [_raise(item, best) for item in raised.values()]
    return [*first, *(item for item in fused if item.key not in raised)]


def _raise(item: Fused, score: float) -> Fused:
    """Counts the gain as one of its words."""
    words = item.contributions.get(Strategy.KEYWORD, 0.0) + score - item.score
    return item._replace(score=score, contributions={**item.contributions, Strategy.KEYWORD: words})


def _by_score(item: Fused) -> float:
    """Equal ones keep their order."""
    return -item.score


def _weigh_by_rank(found: RunningQuery, weights: Weights, settings: SearchConfig) -> RunningQuery:
    fused = fuse_by_rank(found.lists, weights, settings.rrf_k_constant)
    most = most_by_rank(found.lists, weights, settings.rrf_k_constant)
    scaled = [_scale(item, most) for item in fused]
    return replace(found, fused=scaled, weights=weights, largest_rank_sum=most)


def weights_for(found: RunningQuery, settings: SearchConfig) -> Weights:
    weights: Weights = {
        Strategy.SEMANTIC: settings.semantic_weight,
        Strategy.KEYWORD: settings.keyword_weight,
        Strategy.CODE: settings.code_search_weight,
        Strategy.GRAPH: settings.graph_weight,
    }
    if settings.adaptive_weights_enabled:
        weights = adaptive_weights(weights, found.query_type)
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
        weights = balance(weights, signs)
    return weights


def _scale(item: Fused, most: float) -> Fused:
    parts = {strategy: share / most for strategy, share in item.contributions.items()}
    return item._replace(score=item.score / most, contributions=parts)


# Closeness: whether words that are side by side in a query are so in a passage.
#
# BM25F counts words wherever they occur. Two adjacent words of the query say more if they are also
# adjacent in a passage, and half as much more if they are only near each other (specs/0057).

NEAR_CHARS = 20
NEAR = 0.5
READ = 8
"""How many passages are looked at, best first: each costs as much as marking its matches."""

Range = tuple[int, int]


def with_closeness(
    candidates: Sequence[Candidate], terms: Sequence[str], analyzer: Analyzer, weight: float
) -> list[Candidate]:
    """Best first. `terms` are the query's, in its order. A passage where all pairs of them stand
    side by side is brought nearer to 1 by `weight` of the distance."""
    pairs = [pair for pair in pairwise(terms) if pair[0] != pair[1]]
    if not pairs or weight <= 0:
        return list(candidates)
    wanted = frozenset(terms)
    read = list(candidates[:READ])
    for at, item in enumerate(read):
        if Strategy.KEYWORD in item.evidence:
            places: defaultdict[str, list[Range]] = defaultdict(list)
            for token in analyzer.scattered_tokens_of(item.text, wanted):
                if token.term in wanted:
                    places[token.term].append((token.start, token.end))
            read[at] = bring_nearer(item, weight * closeness(pairs, places), "closeness")
    return best_first([*read, *candidates[READ:]])


def closeness(pairs: Sequence[tuple[str, str]], places: Mapping[str, Sequence[Range]]) -> float:
    """In [0, 1]: the average closeness of the pairs."""
    return sum(_together(places.get(a, ()), places.get(b, ())) for a, b in pairs) / len(pairs)


def _together(first: Sequence[Range], second: Sequence[Range]) -> float:
    """Both are in the order of the text, so each place is compared only with its two neighbours."""
    best = 0.0
    before, furthest = 0, -inf
    for start, end in first:
        while before < len(second) and second[before][0] < start:
            furthest = max(furthest, second[before][1])
            before += 1
        gap = start - furthest
        if before < len(second):
            ahead = second[before][0] - end
            if ahead <= 1:  # a blank, or parts of one word
                return 1.0
            gap = min(gap, ahead)
        if gap <= NEAR_CHARS:
            best = NEAR
    return best


# Resemblance: passages similar to the best one are raised, because answers to one question are
# alike.
#
# This is pseudo-relevance feedback (Rocchio 1971) from the first hit alone: further hits answer
# less surely (specs/0057). The best one resembles itself most, and so stays the best.


def with_resemblance(
    candidates: Sequence[Candidate], cosines: Mapping[ChunkKey, float], weight: float
) -> list[Candidate]:
    """Best first. `cosines` are those with the best passage; one without a vector counts as
    average, so it neither gains nor loses.
    """
    if not cosines or weight <= 0:
        return list(candidates)
    usual = sum(cosines.values()) / len(cosines)

    def closer(item: Candidate) -> Candidate:
        part = weight * cosines.get(item.stored.key, usual)
        return bring_nearer(item, part, "resemblance")

    return best_first([closer(item) for item in candidates])


# A second look at what was found, without another model. It needs the texts, so it comes after they
# were read.


def refine(
    view: View,
    candidates: Sequence[Candidate],
    found: RunningQuery,
    analyzer: Analyzer,
    settings: SearchConfig,
) -> Sequence[Candidate]:
    """Reorders one query's candidates; not with rank fusion, whose scores say little."""
    if settings.fusion is not Fusion.SCORE:
        return candidates
    terms = [term for unit in found.understanding.query.units for term in unit.terms]
    word_share = _share_of_text(found, Strategy.KEYWORD)
    closer = with_closeness(candidates, terms, analyzer, settings.closeness_weight * word_share)
    cosines: Mapping[ChunkKey, float] = {}
    if closer and found.nearest is not None and settings.semantic_weight > 0:
        best, *_ = keys = [item.stored.key for item in closer]
        own = view.passage_vectors([best])
        cosines = view.cosines(own[best], keys, 0.0) if own else {}
    refined = with_resemblance(closer, cosines, settings.resemblance_weight)
    return exact_first(refined, found.exact) if word_share > 0 else refined


def exact_first(
    candidates: Sequence[Candidate], exact: Sequence[ExactToken]
) -> Sequence[Candidate]:
    """Keeps passages first that have an exact token of only one document: closeness and resemblance
    must not raise anything above them."""
    telling = (token.keys for token in exact if token.is_telling)
    found = (next((one for one in candidates if one.stored.key in keys), None) for keys in telling)
    first = {item.stored.key: item for item in found if item is not None and item.score > 0}
    if not first:
        return candidates
    best = max(item.score for item in candidates)
    raised = [
        item.with_changes(score=best, boosts={**item.boosts, "exact": best / item.score})
        if item.score < best
        else item
        for item in first.values()
    ]
    return [*raised, *(item for item in candidates if item.stored.key not in first)]
