"""From what was typed to what is looked for: spelling, synonyms, and words of a like meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragdocs.config.search_section import SearchConfig
from ragdocs.errors import ConfigError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.near_words import Vocabulary
from ragdocs.indices.term_vectors import NearTerm, TermVectors
from ragdocs.models import ParsedQuery
from ragdocs.search.expansion import LOOKED_AT, MIN_SIMILARITY, added_words, chosen_terms
from ragdocs.search.requests import MAX_GUESSES
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

    def __init__(self, analyzer: Analyzer, sources: WordSources, settings: SearchConfig) -> None:
        self._analyzer = analyzer
        self._terms = sources.terms if settings.query_expansion_enabled else None
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

    def may_expand(self, snapshot: Snapshot) -> bool:
        """Whether it is worth to wait for the query's vector."""
        if self._terms is None:
            return False
        self._terms.catch_up(snapshot)
        return len(self._terms) > 0

    def expanded(
        self, understood: Understanding, vector: "NDArray[np.float32] | None"
    ) -> tuple[Understanding, Sequence[NearTerm]]:
        """With the words that mean nearly what the whole query means, and their vectors."""
        if self._terms is None or vector is None:
            return understood, ()
        near = self._terms.nearest(vector, MIN_SIMILARITY, LOOKED_AT)
        chosen = chosen_terms(near, understood.own_terms)
        return understood.adding(added_words(chosen)), chosen
