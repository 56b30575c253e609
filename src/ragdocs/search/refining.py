"""A second look at what was found, without another model: do the query's words stand together, and
what is like the best passage? It needs the texts, so it comes after they were read."""

from collections.abc import Mapping, Sequence

from ragdocs.config.choices import Fusion
from ragdocs.config.search_section import SearchConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.vector import VectorIndex
from ragdocs.search.candidates import Candidate
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
        return with_resemblance(closer, likeness, settings.resemblance_weight)

    def _likeness(self, found: Found, candidates: Sequence[Candidate]) -> Mapping[ChunkKey, float]:
        """How near all are to the first; nothing where meaning has no say, or it has no vector."""
        index, settings = self._vector, self._settings
        is_asked = found.nearest is not None and settings.semantic_weight > 0
        if index is None or not is_asked or not candidates:
            return {}
        best, *_ = keys = [item.stored.key for item in candidates]
        own = index.vectors_of([best])
        return index.in_context(own[best], keys, 0.0) if own else {}
