"""The words to search documentation by: frequent in the source, rare in the index."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import NamedTuple

from ragdocs.config.settings import ContextConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.view import View
from ragdocs.library.source_code import WEIGHTS, ReadSource, TermPlace
from ragdocs.limits import MAX_SOURCE_TERMS

# Document frequencies, which distinguish telling terms from common ones.

COMMON = 0.2
"""A term in a larger share of the documents is common."""
FEW_DOCUMENTS = 50
"""With fewer documents, every term is in a large share of them."""


class TermFrequencies:
    """Document frequencies of one generation."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.documents = view.count_documents()

    def of(self, terms: Collection[str]) -> dict[str, int]:
        """The terms that some document has, with the number of documents."""
        return self._view.document_frequencies(terms)

    def is_common(self, count: int) -> bool:
        """Whether a term in this many documents says little and is expensive to search."""
        return self.documents >= FEW_DOCUMENTS and count > COMMON * self.documents

    def rarity(self, count: int) -> float:
        """BM25's idf, never negative."""
        return math.log(1 + max(0.0, self.documents - count + 0.5) / (count + 0.5))


# The most telling words of a text: frequent in it, rare in the index (TF-IDF).


@dataclass(frozen=True, slots=True)
class TellingTerm:
    """A term, its word in the text, its weighted frequency, the number of documents with it, and
    its score.
    """

    term: str
    word: str
    frequency: float
    documents: int
    score: float

    @property
    def emphasis(self) -> float:
        """Its weight by frequency; the engine itself adds the weight by rarity."""
        return damp(self.frequency)


class _Count(NamedTuple):
    """The words of texts as written, and the weight of each occurrence."""

    words: Counter[str]
    weight: float
    place: str
    repeats: bool


class TermCounter:
    """Counts the terms of weighted texts, and records how they are written and where.

    Words are counted as written, which is cheap; only distinct ones are analysed, and of very many
    only those with the most weight.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._counts: list[_Count] = []
        self._words: dict[str, dict[str, int]] = {}
        self.frequencies: Counter[str] = Counter()
        self.weights: defaultdict[str, float] = defaultdict(float)
        self.places: defaultdict[str, set[str]] = defaultdict(set)

    def add(
        self, text: str, weight: float = 1.0, place: str = "", *, repeats: bool = False
    ) -> None:
        """A text that repeats another adds weight to its words but no occurrences."""
        words = self._analyzer.count_words(text)
        for count in self._counts:
            if (count.weight, count.place, count.repeats) == (weight, place, repeats):
                count.words.update(words)
                return
        self._counts.append(_Count(words, weight, place, repeats))

    def analyse(self, most: int = MAX_SOURCE_TERMS) -> int:
        """Turns the added words into at most `most` terms, the weightiest first; returns their
        number.
        """
        taken = 0
        for word in self._weightiest():
            if taken >= most:
                break
            terms = self._analyzer.terms_of_word(word)
            taken += max(1, len(terms))
            counts = [count for count in self._counts if word in count.words]
            for term, part in terms:
                form = part.casefold()
                if any(map(str.isalpha, form)) and not self._analyzer.is_stop_word(form):
                    self._take(term, form, word, counts)
        self._counts.clear()
        return taken

    def _weightiest(self) -> list[str]:
        weights: dict[str, float] = {}
        for count in self._counts:
            for word, times in count.words.items():
                weights[word] = weights.get(word, 0.0) + count.weight * times
        return sorted(weights, key=weights.__getitem__, reverse=True)

    def _take(self, term: str, form: str, word: str, counts: Iterable[_Count]) -> None:
        forms = self._words.setdefault(term, {})
        for count in counts:
            times = count.words[word]
            self.weights[term] += count.weight * times
            self.places[term].add(count.place)
            self.frequencies[term] += 0 if count.repeats else times
            forms[form] = forms.get(form, 0) + times

    def rank(self, terms: Iterable[str]) -> list[str]:
        """The weightiest first."""
        return sorted(sorted(terms), key=self.weights.__getitem__, reverse=True)

    def word(self, term: str) -> str:
        """The most frequent form, the shortest of equal ones."""
        forms = self._words[term]
        if len(forms) == 1:
            return next(iter(forms))
        return min(forms, key=lambda form: (-forms[form], len(form), form))


def telling_terms(
    counter: TermCounter, known: Mapping[str, int], frequencies: TermFrequencies, limit: int
) -> list[TellingTerm]:
    """The most telling terms, best first; `known` has their document frequencies. Common terms only
    if there are no others.
    """
    rare = {term: count for term, count in known.items() if not frequencies.is_common(count)}
    found = [
        TellingTerm(
            term,
            counter.word(term),
            counter.weights[term],
            count,
            damp(counter.weights[term]) * frequencies.rarity(count),
        )
        for term, count in (rare or known).items()
    ]
    return sorted(found, key=lambda each: (-each.score, each.term))[:limit]


def damp(frequency: float) -> float:
    """The tenth occurrence says less than the second."""
    return math.log1p(frequency)


# The words to search documentation for some files by.

_ONCE_IS_ENOUGH = frozenset({TermPlace.PATH, TermPlace.HEADING})
"""Nobody writes a word there by chance."""


@dataclass(slots=True)
class FoundTerm:
    """A term of one or more files, with its score in all of them together."""

    term: str
    word: str
    documents: int
    frequency: int = 0
    weight: float = 0.0
    score: float = 0.0
    places: set[str] = field(default_factory=set[str])

    @property
    def emphasis(self) -> float:
        return damp(self.weight)


class TermChoice:
    """Chooses terms by the settings of `[context]` and the frequencies of one view."""

    def __init__(
        self, analyzer: Analyzer, settings: ContextConfig, frequencies: TermFrequencies
    ) -> None:
        self._analyzer = analyzer
        self._settings = settings
        self._frequencies = frequencies

    def of(self, sources: Sequence[ReadSource]) -> list[FoundTerm]:
        """The best terms of all files together; each file has the same weight."""
        found: dict[str, FoundTerm] = {}
        counters = self._count(sources)
        wanted = [counter.rank(self._wanted(counter)) for counter in counters]
        documents = self._frequencies.of(_in_turn(wanted))
        for counter, own in zip(counters, wanted, strict=True):
            of_source = {term: documents[term] for term in own if term in documents}
            telling = telling_terms(counter, of_source, self._frequencies, self._settings.terms)
            best = max((each.score for each in telling), default=0.0) or 1.0
            for each in telling:
                known = found.setdefault(each.term, FoundTerm(each.term, each.word, each.documents))
                known.frequency += counter.frequencies[each.term]
                known.weight = max(known.weight, each.frequency)
                known.score += each.score / best
                known.places |= counter.places[each.term]
        ranked = sorted(found.values(), key=lambda each: (-each.score, each.term))
        return ranked[: self._settings.terms]

    def _count(self, sources: Sequence[ReadSource]) -> list[TermCounter]:
        """Each file has its share of the limit, and what those before it left."""
        counters: list[TermCounter] = []
        room = MAX_SOURCE_TERMS
        for number, source in enumerate(sources):
            counter = TermCounter(self._analyzer)
            for piece in source.pieces:
                counter.add(piece.text, WEIGHTS[piece.place], piece.place, repeats=piece.repeats)
            room -= counter.analyse(max(0, room) // (len(sources) - number))
            counters.append(counter)
        return counters

    def _wanted(self, counter: TermCounter) -> set[str]:
        """Long and frequent enough; in a short text, which repeats nothing, every word."""
        fitting = {term for term in counter.weights if self._fits(counter.word(term))}
        often = {
            term
            for term in fitting
            if counter.frequencies[term] >= self._settings.min_term_frequency
            or not _ONCE_IS_ENOUGH.isdisjoint(counter.places[term])
        }
        is_short = all(_ONCE_IS_ENOUGH.issuperset(counter.places[term]) for term in often)
        return fitting if is_short else often

    def _fits(self, word: str) -> bool:
        """In scripts without spaces a word is a pair of characters, and long enough."""
        settings = self._settings
        is_long_enough = len(word) >= settings.min_word_length or not word[0].isascii()
        return is_long_enough and len(word) <= settings.max_word_length


def _in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    """The first of each, the second of each, and so on; each term once."""
    rows = chain.from_iterable(zip_longest(*lists))
    return [term for term in dict.fromkeys(rows) if term is not None]
