"""The words that tell what a text is about: frequent in it, rare in the index (TF-IDF)."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.term_frequencies import TermFrequencies


@dataclass(frozen=True, slots=True)
class TellingTerm:
    """A term, a word of the text that it stands for, how much it occurs (weighted), the documents
    that have it, and what that comes to.
    """

    term: str
    word: str
    frequency: float
    documents: int
    score: float

    @property
    def emphasis(self) -> float:
        """What it gains by being frequent; an engine adds by itself what it gains by being rare."""
        return damped(self.frequency)


class TermCounter:
    """Counts the terms of texts, each with a weight, and remembers how and where they stand."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._words: dict[str, dict[str, int]] = {}
        self.frequencies: Counter[str] = Counter()
        self.weights: defaultdict[str, float] = defaultdict(float)
        self.places: defaultdict[str, set[str]] = defaultdict(set)

    def add(
        self, text: str, weight: float = 1.0, place: str = "", *, repeats: bool = False
    ) -> None:
        """A text that repeats another adds weight to its words, not occurrences."""
        for token in self._analyzer.query(text):
            word = text[token.start : token.end].casefold()
            if not any(map(str.isalpha, word)) or self._analyzer.is_stop_word(word):
                continue
            self.weights[token.term] += weight
            self.places[token.term].add(place)
            self.frequencies[token.term] += not repeats
            forms = self._words.setdefault(token.term, {})
            forms[word] = forms.get(word, 0) + 1

    def word(self, term: str) -> str:
        """The form that is most often written, the shortest of those."""
        forms = self._words[term]
        return min(forms, key=lambda form: (-forms[form], len(form), form))


def telling_terms(
    counter: TermCounter, terms: Iterable[str], frequencies: TermFrequencies, limit: int
) -> list[TellingTerm]:
    """The most telling of the terms that the index knows, best first; common ones only if there
    are no others.
    """
    known = frequencies.of(set(terms))
    rare = {term: count for term, count in known.items() if not frequencies.is_common(count)}
    found = [
        TellingTerm(
            term,
            counter.word(term),
            counter.weights[term],
            count,
            damped(counter.weights[term]) * frequencies.rarity(count),
        )
        for term, count in (rare or known).items()
    ]
    return sorted(found, key=lambda each: (-each.score, each.term))[:limit]


def damped(frequency: float) -> float:
    """The tenth occurrence says less than the second."""
    return math.log1p(frequency)
