"""Where what was looked for stands in a passage.

The same analysis as at index time: a stem marks the word it came from, a phrase only words that
follow one another. What overlaps or touches is one range: an identifier and its parts, the pairs
of a Chinese word.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragdocs.indices.analysis import Analyzer, Token
from ragdocs.indices.keyword import Unit
from ragdocs.models import QueryField
from ragdocs.search.passages import Passage

_SHOWN_FIELDS = (None, QueryField.CONTENT, QueryField.HEADERS)
"""A passage holds its own headings; what was sought in a title or a tag marks no text."""

Worth = Callable[[Unit], int]
"""What a unit counts; a whole number, so that equal sums are equal."""
_Found = tuple[int, int, Unit]


@dataclass(frozen=True, slots=True)
class MatchRange:
    """Characters [start, end) of the passage, the same in the file (lines from 1; bytes None when
    they are not certain), and every unit that stands there.
    """

    start: int
    end: int
    line_start: int
    line_end: int
    byte_start: int | None
    byte_end: int | None
    units: tuple[Unit, ...]


def match_ranges(
    passage: Passage, units: Iterable[Unit], analyzer: Analyzer
) -> tuple[MatchRange, ...]:
    """In the order of the text; no two overlap or touch."""
    wanted = [unit for unit in dict.fromkeys(units) if unit.terms and unit.field in _SHOWN_FIELDS]
    if not wanted:
        return ()
    terms = frozenset(term for unit in wanted for term in unit.terms)
    has_phrases = any(len(unit.terms) > 1 for unit in wanted)
    look = analyzer.tokens_of if has_phrases else analyzer.scattered_tokens_of
    tokens = look(passage.text, terms)
    found = [*_single(tokens, wanted), *_phrases(tokens, wanted)]
    merged = list(_merged(sorted(found, key=lambda item: item[:2])))
    places = passage.places(at for start, end, _ in merged for at in (start, end))
    return tuple(
        MatchRange(
            start=start,
            end=end,
            line_start=places[start].line,
            line_end=places[end].line,
            byte_start=None if places[end].byte is None else places[start].byte,
            byte_end=None if places[start].byte is None else places[end].byte,
            units=tuple(matched),
        )
        for start, end, matched in merged
    )


def densest(matches: Sequence[MatchRange], length: float, worth: Worth) -> Sequence[MatchRange]:
    """The neighbours within `length` characters whose distinct units are worth most; of equal
    ones the first.
    """
    counts = Counter[Unit]()
    total, best, first = 0, -1, 0
    chosen = range(0)
    for last, match in enumerate(matches):
        total += sum(worth(unit) for unit in match.units if not counts[unit])
        counts.update(match.units)
        while first < last and match.end - matches[first].start > length:
            counts.subtract(matches[first].units)
            total -= sum(worth(unit) for unit in matches[first].units if not counts[unit])
            first += 1
        if total > best:
            best, chosen = total, range(first, last + 1)
    return matches[chosen.start : chosen.stop]


def _single(tokens: Sequence[Token], wanted: Sequence[Unit]) -> Iterator[_Found]:
    by_term: dict[str, list[Unit]] = {}
    for unit in wanted:
        if len(unit.terms) == 1:
            by_term.setdefault(unit.terms[0], []).append(unit)
    for token in tokens:
        for unit in by_term.get(token.term, ()):
            yield token.start, token.end, unit


def _phrases(tokens: Sequence[Token], wanted: Sequence[Unit]) -> Iterator[_Found]:
    phrases = [unit for unit in wanted if len(unit.terms) > 1]
    if not phrases:
        return
    plain = [token for token in tokens if not token.is_whole]
    present = {token.term for token in plain}
    for unit in phrases:
        if present.issuperset(unit.terms):
            for first, last in _runs(plain, unit.terms):
                yield plain[first].start, plain[last].end, unit


def _runs(plain: Sequence[Token], terms: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where all terms follow one another: Knuth, Morris and Pratt's way, which is linear."""
    borders = _borders(terms)
    length, position = 0, -inf
    for index, token in enumerate(plain):
        if token.position != position + 1:
            length = 0  # a word too long to keep stood between
        position = token.position
        while length and (length == len(terms) or terms[length] != token.term):
            length = borders[length - 1]
        length += terms[length] == token.term
        if length == len(terms):
            yield index - length + 1, index


def _borders(terms: tuple[str, ...]) -> list[int]:
    """For each beginning of the phrase, how long its longest end is that also begins it."""
    borders = [0]
    length = 0
    for term in terms[1:]:
        while length and terms[length] != term:
            length = borders[length - 1]
        length += terms[length] == term
        borders.append(length)
    return borders


def _merged(found: Iterable[_Found]) -> Iterator[tuple[int, int, dict[Unit, None]]]:
    current: tuple[int, int, dict[Unit, None]] | None = None
    for start, end, unit in found:
        if current is None or start > current[1]:
            if current is not None:
                yield current
            current = start, end, {unit: None}
        else:
            current[2][unit] = None
            current = current[0], max(current[1], end), current[2]
    if current is not None:
        yield current
