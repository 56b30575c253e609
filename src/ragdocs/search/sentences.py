"""The sentence that says most of what was asked, told without a model.

Words are compared by their stems, and where those differ by their trigrams: `config` is much of
`configuration`. Where nothing is alike, the beginning of a passage stands for it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ragdocs.indices.analysis import Analyzer

Range = tuple[int, int]

MAX_READ_CHARS = 20_000
"""Of a longer passage only the beginning is compared; a passage is rarely a tenth of this."""
ALIKE = 0.5
"""Dice's coefficient of two words' trigrams: under this they only share an ending or a beginning
(`configur`, `config`: 0.71; `authent`, `author`: 0.46)."""

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


def best_sentence(text: str, queries: Iterable[str], analyzer: Analyzer, within: Range) -> Range:
    """The first of those that say most; of a passage without words, its beginning."""
    start, end = within
    end = min(end, start + MAX_READ_CHARS)
    sought = {token.term for query in queries for token in analyzer.query(query)}
    best, chosen = 0.0, None
    for first, last in sentences(text, start, end):
        score = _overlap(sought, set(analyzer.terms(text[first:last])))
        if chosen is None or score > best:
            best, chosen = score, (first, last)
    return chosen or (start, start)


def _overlap(sought: set[str], terms: set[str]) -> float:
    """Each term sought counts by the word most like it."""
    return sum(
        1.0 if term in terms else max((_alike(term, other) for other in terms), default=0.0)
        for term in sought
    )


@lru_cache(1 << 16)
def _alike(one: str, other: str) -> float:
    ours, theirs = _trigrams(one), _trigrams(other)
    share = 2 * len(ours & theirs) / (len(ours) + len(theirs))
    return share if share >= ALIKE else 0.0


@lru_cache(1 << 14)
def _trigrams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[at : at + 3] for at in range(max(1, len(padded) - 2)))


def _stripped(text: str, start: int, end: int) -> Iterator[Range]:
    piece = text[start:end]
    body = piece.strip()
    if body:
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(body)
