"""From what was typed to what is looked for: spelling, synonyms, and words of a like meaning."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragdocs.config.search_section import SearchConfig
from ragdocs.errors import ConfigError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.flat_vectors import CosineScale
from ragdocs.indices.near_words import Vocabulary
from ragdocs.indices.term_vectors import NearTerm, TermVectors
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import ParsedQuery
from ragdocs.search.classifier import classify_query
from ragdocs.search.expansion import (
    ENOUGH_PASSAGES,
    KNOWN_SHARE,
    LOOKED_AT,
    MIN_SIMILARITY,
    PASSAGES,
    added_words,
    chosen_terms,
)
from ragdocs.search.requests import MAX_GUESSES, QueryType
from ragdocs.search.spelling import Spelled, Spelling
from ragdocs.search.synonyms import Thesaurus, synonyms
from ragdocs.search.understanding import Understanding, understand
from ragdocs.store.rows import clean
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSources:
    """Where words may come from that were not typed. What is not there is not asked."""

    vocabulary: Vocabulary | None = None
    terms: TermVectors | None = None
    thesaurus: Thesaurus | None = None


class Interpreter:
    """Understands queries as the settings say; the words of the documents are its dictionary."""

    def __init__(
        self,
        analyzer: Analyzer,
        sources: WordSources,
        settings: SearchConfig,
        passages: VectorIndex | None = None,
    ) -> None:
        """`passages` tell whether words stand where the query's meaning leads."""
        self._analyzer = analyzer
        self._passages = passages
        self._vocabulary = sources.vocabulary
        self._terms = sources.terms if settings.query_expansion_enabled else None
        self._max_words = settings.query_expansion_max_words
        self._thesaurus = sources.thesaurus if settings.synonyms_enabled else None
        self._spelling = (
            Spelling(analyzer, sources.vocabulary, settings.fuzzy_distance)
            if sources.vocabulary is not None
            else None
        )

    def read(
        self, snapshot: Snapshot, text: str, parsed: ParsedQuery, most_guesses: int = MAX_GUESSES
    ) -> Understanding:
        """All that can be understood without the query's vector. `text` is as it was typed."""
        typed = clean(text).replace("\0", " ").strip()
        spelled = Spelled()
        if self._spelling is not None:
            spelled = self._spelling.read(snapshot, typed, most_guesses)
        understood = understand(typed, parsed, self._analyzer, spelled)
        if self._thesaurus is None:
            return understood
        try:
            return understood.adding(synonyms(parsed.text, self._analyzer, self._thesaurus))
        except ConfigError as error:
            note = f"searched without synonyms: {error}"
            return replace(understood, notes=(*understood.notes, note))

    def may_expand(self, snapshot: Snapshot, understood: Understanding) -> bool:
        """Whether it is worth to wait for the query's vector."""
        if self._terms is None:
            return False
        if self._max_words and not self._is_short_and_unknown(snapshot, understood):
            return False
        self._terms.catch_up(snapshot)
        return len(self._terms) > 0

    def expanded(
        self,
        snapshot: Snapshot,
        understood: Understanding,
        vector: "NDArray[np.float32] | None",
    ) -> tuple[Understanding, Sequence[NearTerm]]:
        """With the words that mean nearly what the whole query means, and their vectors."""
        if self._terms is None or vector is None:
            return understood, ()
        scale = self._passages.scale if self._passages else CosineScale()
        near = [
            replace(each, similarity=scale.of(each.similarity))
            for each in self._terms.nearest(vector, scale.inverse(MIN_SIMILARITY), LOOKED_AT)
        ]
        passages = None
        if self._max_words and near:
            passages = self._terms_nearby(snapshot, vector)
        chosen = chosen_terms(near, understood.own_terms, passages)
        return understood.adding(added_words(chosen)), chosen

    def _is_short_and_unknown(self, snapshot: Snapshot, understood: Understanding) -> bool:
        """A few plain words, none mistyped, of which each is in hardly any document."""
        parsed, terms = understood.parsed, understood.own_terms
        if parsed.is_strict or parsed.wishes or understood.added:
            return False
        if not terms or self._vocabulary is None:
            return False
        if len(parsed.text.split()) > self._max_words:
            return False
        if classify_query(parsed.text) is QueryType.FACTUAL:
            return False
        documents = self._vocabulary.documents(snapshot, terms)
        return documents <= max(1, KNOWN_SHARE * snapshot.ledger.count("documents"))

    def _terms_nearby(self, snapshot: Snapshot, vector: "NDArray[np.float32]") -> Counter[str]:
        """How many of the nearest passages have each term; the very nearest is enough by itself."""
        found = Counter[str]()
        if self._passages is not None:
            self._passages.catch_up(snapshot)
            keys = [hit.key for hit in self._passages.search(vector, PASSAGES)]
            stored = snapshot.chunks_by_key(keys)
            for key in (*keys[:1] * (ENOUGH_PASSAGES - 1), *keys):
                if key in stored:
                    found.update(set(self._analyzer.terms(stored[key].chunk.text or "")))
        return found
