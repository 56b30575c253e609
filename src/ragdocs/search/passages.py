"""A stretch of a file as it is shown, and the way back from its characters to bytes and lines.

A passage's text has only LF line ends and no NUL or bad byte; its length in the file says how much
that left out. A byte is given when that length leaves one possibility only, and else none: never a
guess. Lines are always known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from ragdocs.models import Span

REPLACEMENT = "\ufffd"
_UNITS = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
"""The bytes of a CR, by encoding: what a line end has more when it is CRLF."""
_EXTRA_OF_REPLACEMENT = 2
"""In UTF-8 a replacement character stands for one bad byte or NUL, or is one itself: 3 bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a character stands in the file: its byte, if that is certain, and its line, from 1."""

    byte: int | None
    line: int


@dataclass(frozen=True, slots=True)
class _Size:
    """What some text takes in the file: at least so many bytes, more for each of the doubtful."""

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
    """`text` is the file's text at `span`. `marks` are more characters whose byte is known, in
    order: (character, byte).
    """

    text: str
    span: Span
    encoding: str = "utf-8"
    marks: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, pieces: Sequence[tuple[str, Span]], encoding: str) -> Self:
        """One or more neighbouring leaves: where each begins is known."""
        marks: list[tuple[int, int]] = []
        length = 0
        for text, span in pieces:
            marks.append((length, span.byte_start))
            length += len(text)
        first, last = pieces[0][1], pieces[-1][1]
        span = Span(first.byte_start, last.byte_end, first.line_start, last.line_end)
        return cls("".join(text for text, _ in pieces), span, encoding, tuple(marks[1:]))

    @property
    def _is_bytes(self) -> bool:
        """Whether every character is one byte of the file."""
        size = self.span.byte_end - self.span.byte_start
        return size == len(self.text) and self.encoding == "utf-8" and self.text.isascii()

    def places(self, offsets: Iterable[int]) -> dict[int, Place]:
        """Where the characters at these offsets stand; all of them in one pass over the text."""
        wanted = sorted(set(offsets))
        known = self._bytes(wanted)
        found: dict[int, Place] = {}
        line, at = self.span.line_start, 0
        for offset in wanted:
            line += self.text.count("\n", at, offset)
            at = offset
            found[offset] = Place(known.get(offset), line)
        return found

    def certain(self, offsets: Sequence[int]) -> Container[int]:
        """Those of the offsets, which are in order, whose byte in the file is certain."""
        return self._bytes(offsets)

    def part(self, start: int, end: int) -> Self | None:
        """The characters [start, end) as a passage, or None where their bytes are in doubt."""
        last = max(start, end - 1)
        places = self.places((start, end, last))
        first_byte, end_byte = places[start].byte, places[end].byte
        if end == len(self.text):
            end_byte = self.span.byte_end  # with a character that was cut off by the file's end
        if first_byte is None or end_byte is None:
            return None
        marks = tuple((at - start, byte) for at, byte in self.marks if start < at < end)
        span = Span(first_byte, end_byte, places[start].line, places[last].line)
        return type(self)(self.text[start:end], span, self.encoding, marks)

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
            # A rest smaller than a unit is a character that the end of the file cuts off.
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
    """How much of the whole's extra lies before, if there is only one answer.

    A CRLF has one unit more, a replacement character two: where there are no line ends, the extra
    is even.
    """
    low, high = max(0, extra - after.most_extra), min(extra, before.most_extra)
    if not before.line_ends:
        low, high = low + low % 2, high - high % 2
    if not after.line_ends:
        low, high = low + (extra - low) % 2, high - (extra - high) % 2
    return low if low == high else None
