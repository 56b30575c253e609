"""A second look at what was found, without another model: do the query's words stand together, and
what is like the best passage? It needs the texts, so it comes after they were read."""

from collections.abc import Mapping, Sequence

from ragdocs.config.choices import Fusion
from ragdocs.config.search_section import SearchConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.vector import VectorIndex
from ragdocs.search.candidates import Candidate, ExactToken
from ragdocs.search.closeness import with_closeness
from ragdocs.search.resemblance import with_resemblance
from ragdocs.search.retrieval import Found
from ragdocs.search.weighing import Weighed
from ragdocs.store.records import ChunkKey


class Refiner:
    """Orders one query's candidates anew; not with rank fusion, whose scores say little."""

    def __init__(
        self, analyzer: Analyzer, vector: VectorIndex | None, settings: SearchConfig
    ) -> None:
        self._analyzer = analyzer
        self._vector = vector
        self._settings = settings

    def refined(
        self, candidates: Sequence[Candidate], found: Found, weighed: Weighed
    ) -> Sequence[Candidate]:
        settings = self._settings
        if settings.fusion is not Fusion.SCORE:
            return candidates
        terms = [term for unit in found.understanding.query.units for term in unit.terms]
        weight = settings.closeness_weight * weighed.word_share
        closer = with_closeness(candidates, terms, self._analyzer, weight)
        likeness = self._likeness(found, closer)
        refined = with_resemblance(closer, likeness, settings.resemblance_weight)
        return exact_first(refined, found.exact) if weighed.word_share > 0 else refined

    def _likeness(self, found: Found, candidates: Sequence[Candidate]) -> Mapping[ChunkKey, float]:
        """How near all are to the first; nothing where meaning has no say, or it has no vector."""
        index, settings = self._vector, self._settings
        is_asked = found.nearest is not None and settings.semantic_weight > 0
        if index is None or not is_asked or not candidates:
            return {}
        best, *_ = keys = [item.stored.key for item in candidates]
        own = index.vectors_of([best])
        return index.in_context(own[best], keys, 0.0) if own else {}


def exact_first(
    candidates: Sequence[Candidate], exact: Sequence[ExactToken]
) -> Sequence[Candidate]:
    """What has an exact token that one document has stays first: other words that stand together,
    and likeness to the best, must not raise anything above it."""
    telling = (token.keys for token in exact if token.is_telling)
    found = (next((one for one in candidates if one.stored.key in keys), None) for keys in telling)
    first = {item.stored.key: item for item in found if item is not None and item.score > 0}
    if not first:
        return candidates
    best = max(item.score for item in candidates)
    raised = [
        item.changed(score=best, boosts={**item.boosts, "exact": best / item.score})
        if item.score < best
        else item
        for item in first.values()
    ]
    return [*raised, *(item for item in candidates if item.stored.key not in first)]
