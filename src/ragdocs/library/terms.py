"""The words by which documentation is looked for: frequent in the source, rare in the index."""

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

# How many documents have a term: what tells a telling word from a common one.

COMMON = 0.2
"""The part of all documents from which on a term is common."""
FEW_DOCUMENTS = 50
"""Under this, every term is in a large part of them."""


class TermFrequencies:
    """Document frequencies of one generation."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.documents = view.count_documents()

    def of(self, terms: Collection[str]) -> dict[str, int]:
        """Those of the terms that some document has, with the number of documents."""
        return self._view.document_frequencies(terms)

    def is_common(self, count: int) -> bool:
        """Whether a term that so many documents have tells little, and costs much to look for."""
        return self.documents >= FEW_DOCUMENTS and count > COMMON * self.documents

    def rarity(self, count: int) -> float:
        """BM25's: about the number of doublings from a few documents to all, and never negative."""
        return math.log(1 + max(0.0, self.documents - count + 0.5) / (count + 0.5))


# The words that tell what a text is about: frequent in it, rare in the index (TF-IDF).


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
        return damp(self.frequency)


class _Count(NamedTuple):
    """The words of texts as they are written, and what each occurrence is worth."""

    words: Counter[str]
    weight: float
    place: str
    repeats: bool


class TermCounter:
    """Counts the terms of texts, each with a weight, and remembers how and where they stand.

    Words are counted as they are written, which is cheap; only the distinct ones are analysed, and
    of very many those with the most weight.
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
        """A text that repeats another adds weight to its words, not occurrences."""
        words = self._analyzer.count_words(text)
        for count in self._counts:
            if (count.weight, count.place, count.repeats) == (weight, place, repeats):
                count.words.update(words)
                return
        self._counts.append(_Count(words, weight, place, repeats))

    def analyse(self, most: int = MAX_SOURCE_TERMS) -> int:
        """Turns what was added into terms, the weightiest words first, up to so many; returns how
        many there were.
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
        """The form that is most often written, the shortest of those."""
        forms = self._words[term]
        if len(forms) == 1:
            return next(iter(forms))
        return min(forms, key=lambda form: (-forms[form], len(form), form))


def telling_terms(
    counter: TermCounter, known: Mapping[str, int], frequencies: TermFrequencies, limit: int
) -> list[TellingTerm]:
    """The most telling of the terms that so many documents have, best first; common ones only if
    there are no others.
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


# The words by which documentation for some files is looked for.

_ONCE_IS_ENOUGH = frozenset({TermPlace.PATH, TermPlace.HEADING})
"""Nobody writes a word there by chance."""


@dataclass(slots=True)
class FoundTerm:
    """A term of one or more files, with what it is worth in all of them together."""

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
    """Chooses terms by the settings of `[context]` and the frequencies of one snapshot."""

    def __init__(
        self, analyzer: Analyzer, settings: ContextConfig, frequencies: TermFrequencies
    ) -> None:
        self._analyzer = analyzer
        self._settings = settings
        self._frequencies = frequencies

    def of(self, sources: Sequence[ReadSource]) -> list[FoundTerm]:
        """The best of all files together, each file having the same say."""
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
        """Each analyses its share, and what those before it left."""
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
        """Long and frequent enough; of a short text, which repeats nothing, every word."""
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
        """A word of characters without spaces between them is a pair of them, and long enough."""
        settings = self._settings
        is_long_enough = len(word) >= settings.min_word_length or not word[0].isascii()
        return is_long_enough and len(word) <= settings.max_word_length


def _in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    """The first of each, the second of each, and so on; each term once."""
    rows = chain.from_iterable(zip_longest(*lists))
    return [term for term in dict.fromkeys(rows) if term is not None]
