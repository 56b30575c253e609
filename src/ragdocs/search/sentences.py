"""The sentence that says most of what was asked, told without a model.

Words are compared by their stems, and where those differ by their trigrams: `config` is much of
`configuration`. Where nothing is alike, the beginning of a passage stands for it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import fsum

from ragdocs.indices.analysis import Analyzer

Range = tuple[int, int]

MAX_READ_CHARS = 20_000
"""Of a longer passage only the beginning is compared; a passage is rarely a tenth of this."""
ALIKE = 0.5
"""Dice's coefficient of two words' trigrams: under this they only share an ending or a beginning
(`configur`, `config`: 0.71; `authent`, `author`: 0.46)."""
MAX_SOUGHT = 500
"""Terms of the queries that sentences are compared with: more than a page of text has."""

SENTENCE_END = re.compile(
    r"^[ \t>]{0,8}#{1,6}[ \t][^\n]*\n"  # a heading is a sentence of its own
    r"|(?<![.!?…])(?<!^\d)(?<!^\d\d)(?<![\s>]\d)(?<![\s>]\d\d)"  # the number of a list item
    r"[.!?…]++[\"'”’)\]]{0,8}\s+|[。！？]++"  # noqa: RUF001
    r"|\n(?=[ \t>]{0,8}(?:\n|#|[-*+][ \t]|\d{1,9}[.)][ \t]|\||`{3}|~{3}))",
    re.MULTILINE,
)


def sentences(text: str, start: int, end: int) -> Iterator[Range]:
    """The sentences of a stretch in order, without the white space around them."""
    for found in SENTENCE_END.finditer(text, start, end):
        yield from _stripped(text, start, found.end())
        start = found.end()
    yield from _stripped(text, start, end)


class BestSentence:
    """Looks for what some queries ask; made once for all passages of an answer."""

    def __init__(self, queries: Iterable[str], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        sought = (token.term for query in queries for token in analyzer.query(query))
        self._sizes: dict[str, int] = {}
        self._having: dict[str, list[str]] = {}
        for term in islice(dict.fromkeys(sought), MAX_SOUGHT):
            trigrams = _trigrams(term)
            self._sizes[term] = len(trigrams)
            for trigram in trigrams:
                self._having.setdefault(trigram, []).append(term)
        self._known: dict[str, Mapping[str, float]] = {}

    def of(self, text: str, within: Range) -> Range:
        """The first of those that say most; of a passage without words, its beginning."""
        start, end = within
        end = min(end, start + MAX_READ_CHARS)
        best, chosen = 0.0, None
        for first, last in sentences(text, start, end):
            score = self._overlap(self._analyzer.terms(text[first:last]))
            if chosen is None or score > best:
                best, chosen = score, (first, last)
        return chosen or (start, start)

    def _overlap(self, terms: Iterable[str]) -> float:
        """Each term sought counts by the word most like it."""
        best: dict[str, float] = {}
        for term in set(terms):
            if term not in self._known:
                self._known[term] = self._like(term)
            for sought, share in self._known[term].items():
                best[sought] = max(share, best.get(sought, 0.0))
        return fsum(best.values())

    def _like(self, word: str) -> Mapping[str, float]:
        """The terms sought that a word is like. Only those that share a trigram are compared."""
        trigrams = _trigrams(word)
        shared = Counter(term for each in trigrams for term in self._having.get(each, ()))
        shares = {
            term: 2 * count / (self._sizes[term] + len(trigrams)) for term, count in shared.items()
        }
        return {term: share for term, share in shares.items() if share >= ALIKE}


def _trigrams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[at : at + 3] for at in range(max(1, len(padded) - 2)))


def _stripped(text: str, start: int, end: int) -> Iterator[Range]:
    piece = text[start:end]
    body = piece.strip()
    if body:
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(body)
