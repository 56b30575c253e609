"""A passage as it is shown, the mapping from its characters to the file, and its matches."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Self

from ragdocs.indices.analysis import Analyzer, Token
from ragdocs.indices.conditions import Unit
from ragdocs.models import JSON_STRINGS, QueryField, Span

# A stretch of a file as it is shown, and the mapping from its characters to bytes and lines.
#
# A passage's text has only LF line ends and no NUL or invalid byte; its length in the file shows
# how much was replaced. A byte offset is given only if that length allows a single possibility; it
# is never guessed. Lines are always known.

REPLACEMENT = "\ufffd"
_BETWEEN_CARDS = "\n\n"
_UNITS = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
"""The size of a CR by encoding: how much longer CRLF is than LF."""
_EXTRA_OF_REPLACEMENT = 2
"""In UTF-8 a replacement character stands for one invalid byte or NUL, or is in the file itself,
with 3 bytes.
"""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The place of a character in the file: its byte, if that is certain, and its line, from 1."""

    byte: int | None
    line: int


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of some text in the file: at least `least` bytes, more for uncertain characters."""

    least: int
    line_ends: int
    replaced: int

    @property
    def most_extra(self) -> int:
        return self.line_ends + _EXTRA_OF_REPLACEMENT * self.replaced

    def plus(self, other: "_Size") -> "_Size":
        return _Size(
            self.least + other.least,
            self.line_ends + other.line_ends,
            self.replaced + other.replaced,
        )

    def minus(self, other: "_Size") -> "_Size":
        return self.plus(_Size(-other.least, -other.line_ends, -other.replaced))


@dataclass(frozen=True, slots=True)
class Passage:
    """`text` is the file's text at `span`. `marks` are further characters whose byte is known, in
    order: (character, byte).
    """

    text: str
    span: Span
    encoding: str = "utf-8"
    marks: tuple[tuple[int, int], ...] = ()
    strings: tuple[tuple[int, Span], ...] = ()
    """In a canvas: the first character of each JSON string, and the string's place. Characters may
    be escapes there, so a part of a string is cited by the whole string."""

    @classmethod
    def of(cls, pieces: Sequence[tuple[str, Span]], encoding: str) -> Self:
        """Joins neighbouring leaves, whose beginnings are known."""
        if encoding == JSON_STRINGS:
            return cls._of_strings(pieces)
        marks: list[tuple[int, int]] = []
        length = 0
        for text, span in pieces:
            marks.append((length, span.byte_start))
            length += len(text)
        first, last = pieces[0][1], pieces[-1][1]
        span = Span(first.byte_start, last.byte_end, first.line_start, last.line_end)
        return cls("".join(text for text, _ in pieces), span, encoding, tuple(marks[1:]))

    @classmethod
    def _of_strings(cls, pieces: Sequence[tuple[str, Span]]) -> Self:
        """Joins cards, with a blank line between two, and parts of a card without."""
        texts: list[str] = []
        strings: list[tuple[int, Span]] = []
        length, before = 0, pieces[0][1].byte_start
        for text, span in pieces:
            gap = "" if span.byte_start == before else _BETWEEN_CARDS
            strings.append((length + len(gap), span))
            texts += (gap, text)
            length += len(gap) + len(text)
            before = span.byte_end
        marks = tuple((at, span.byte_start) for at, span in strings[1:])
        first, last = pieces[0][1], pieces[-1][1]
        whole = Span(first.byte_start, last.byte_end, first.line_start, last.line_end)
        return cls("".join(texts), whole, JSON_STRINGS, marks, tuple(strings))

    @property
    def starts(self) -> tuple[int, ...]:
        """The first character of each leaf that it was joined from."""
        return (0, *(at for at, _ in self.marks))

    def strings_within(self, span: Span) -> tuple[int, int]:
        """In a canvas: the characters of the strings in a stretch of the file; all if none is."""
        inside = [at for at, (_, own) in enumerate(self.strings) if span.contains(own)]
        if not inside:
            return 0, len(self.text)
        after = inside[-1] + 1
        if after == len(self.strings):
            return self.strings[inside[0]][0], len(self.text)
        (_, own), (end, following) = self.strings[inside[-1]], self.strings[after]
        gap = 0 if own.byte_end == following.byte_start else len(_BETWEEN_CARDS)
        return self.strings[inside[0]][0], end - gap

    def string_at(self, offset: int) -> int:
        """In a canvas: the number of the string with the character."""
        return max(0, bisect_right(self.strings, offset, key=lambda one: one[0]) - 1)

    @property
    def _is_bytes(self) -> bool:
        """Whether every character is one byte of the file."""
        size = self.span.byte_end - self.span.byte_start
        return size == len(self.text) and self.encoding == "utf-8" and self.text.isascii()

    def places(self, offsets: Iterable[int]) -> dict[int, FilePlace]:
        """The places of the characters at these offsets, in one pass over the text."""
        wanted = sorted(set(offsets))
        if self.strings:
            spans = {at: self.strings[self.string_at(at)][1] for at in wanted}
            return {at: FilePlace(None, span.line_start) for at, span in spans.items()}
        known = self._bytes(wanted)
        found: dict[int, FilePlace] = {}
        line, at = self.span.line_start, 0
        for offset in wanted:
            line += self.text.count("\n", at, offset)
            at = offset
            found[offset] = FilePlace(known.get(offset), line)
        return found

    def certain_offsets(self, offsets: Sequence[int]) -> Container[int]:
        """The offsets, of these sorted ones, whose byte in the file is certain."""
        return self._bytes(offsets)

    def part(self, start: int, end: int) -> Self | None:
        """The characters [start, end) as a passage, or None if their bytes are uncertain."""
        last = max(start, end - 1)
        if self.strings:
            return self._part_of_strings(start, end)
        places = self.places((start, end, last))
        first_byte, end_byte = places[start].byte, places[end].byte
        if end == len(self.text):
            end_byte = self.span.byte_end  # including a character that the end of the file cut off
        if first_byte is None or end_byte is None:
            return None
        marks = tuple((at - start, byte) for at, byte in self.marks if start < at < end)
        span = Span(first_byte, end_byte, places[start].line, places[last].line)
        return type(self)(self.text[start:end], span, self.encoding, marks)

    def _part_of_strings(self, start: int, end: int) -> Self:
        inside = self.strings[self.string_at(start) : self.string_at(max(start, end - 1)) + 1]
        strings = tuple((max(0, at - start), span) for at, span in inside)
        first, last = inside[0][1], inside[-1][1]
        span = Span(first.byte_start, last.byte_end, first.line_start, last.line_end)
        marks = tuple((at, span.byte_start) for at, span in strings[1:])
        return type(self)(self.text[start:end], span, self.encoding, marks, strings)

    def _bytes(self, wanted: Sequence[int]) -> dict[int, int]:
        """The bytes that are certain."""
        if self._is_bytes:
            return {offset: self.span.byte_start + offset for offset in wanted}
        found: dict[int, int] = {}
        unit = _UNITS.get(self.encoding)
        if unit is None:
            return found
        known = [
            (0, self.span.byte_start),
            *self.marks,
            (len(self.text), self.span.byte_end),
        ]
        for (first, byte), (last, byte_end) in pairwise(known):
            here = wanted[bisect_left(wanted, first) : bisect_right(wanted, last)]
            whole = self._size(first, last) if here else _Size(0, 0, 0)
            # A remainder smaller than a unit is a character that the end of the file cuts off.
            extra = (byte_end - byte - whole.least) // unit
            before, at = _Size(0, 0, 0), first
            for offset in here:
                before = before.plus(self._size(at, offset))
                at = offset
                more = _only_extra(before, whole.minus(before), extra) if extra else 0
                if more is not None:
                    found[offset] = byte + before.least + more * unit
        return found

    def _size(self, start: int, end: int) -> _Size:
        text = self.text[start:end]
        size = len(text.encode(self.encoding, "surrogatepass"))
        replaced = text.count(REPLACEMENT) if self.encoding == "utf-8" else 0
        return _Size(size - _EXTRA_OF_REPLACEMENT * replaced, text.count("\n"), replaced)


def _only_extra(before: _Size, after: _Size, extra: int) -> int | None:
    """How much of the extra length lies before, if there is only one answer.

    A CRLF has one extra unit, a replacement character two: without line ends the extra is even.
    """
    low, high = max(0, extra - after.most_extra), min(extra, before.most_extra)
    if not before.line_ends:
        low, high = low + low % 2, high - high % 2
    if not after.line_ends:
        low, high = low + (extra - low) % 2, high - (extra - high) % 2
    return low if low == high else None


# The matches of a query in a passage.
#
# With the same analysis as at index time: a stem marks the word it came from, a phrase only words
# that follow one another. Overlapping or touching matches become one range: an identifier and its
# parts, the pairs of a Chinese word.

_SHOWN_FIELDS = (None, QueryField.CONTENT, QueryField.HEADERS)
"""A passage contains its headings; a search in a title or tag marks no text."""

Worth = Callable[[Unit], int]
"""The worth of a unit; a whole number, so that sums can be compared."""
_Found = tuple[int, int, Unit]


@dataclass(frozen=True, slots=True)
class MatchRange:
    """Characters [start, end) of the passage, their place in the file (lines from 1; bytes None if
    uncertain), and every unit that matches there.
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
    merged = list(_merge(sorted(found, key=lambda item: item[:2])))
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
    """The neighbouring matches within `length` characters whose distinct units are worth most; of
    equal ones the first.
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
    """Where all terms follow one another; by Knuth, Morris and Pratt, which is linear."""
    borders = _borders(terms)
    length, position = 0, -inf
    for index, token in enumerate(plain):
        if token.position != position + 1:
            length = 0  # a word too long to be kept is between
        position = token.position
        while length and (length == len(terms) or terms[length] != token.term):
            length = borders[length - 1]
        length += terms[length] == token.term
        if length == len(terms):
            yield index - length + 1, index


def _borders(terms: tuple[str, ...]) -> list[int]:
    """For each prefix of the phrase, the length of its longest suffix that is also a prefix."""
    borders = [0]
    length = 0
    for term in terms[1:]:
        while length and terms[length] != term:
            length = borders[length - 1]
        length += terms[length] == term
        borders.append(length)
    return borders


def _merge(found: Iterable[_Found]) -> Iterator[tuple[int, int, dict[Unit, None]]]:
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
