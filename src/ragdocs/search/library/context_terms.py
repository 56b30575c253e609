"""The words by which documentation for some files is looked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from ragdocs.config.context_section import ContextConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.term_frequencies import TermFrequencies
from ragdocs.search.library.source_texts import WEIGHTS, ReadSource, TermPlace
from ragdocs.search.library.telling_terms import MAX_ANALYSED, TermCounter, damped, telling_terms

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
        return damped(self.weight)


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
        counters = self._counted(sources)
        wanted = [counter.ranked(self._wanted(counter)) for counter in counters]
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

    def _counted(self, sources: Sequence[ReadSource]) -> list[TermCounter]:
        """Each analyses its share, and what those before it left."""
        counters: list[TermCounter] = []
        room = MAX_ANALYSED
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
