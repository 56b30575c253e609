"""Splits the text of leaves to fit the limits, and makes the text to embed."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragdocs.models import Block, BlockKind, Chunk

# The text to embed: the leaf's heading path, a blank line and its text.

PATH_SEPARATOR = " > "


def heading_path(chunk: Chunk) -> str:
    return PATH_SEPARATOR.join(chunk.breadcrumb)


def embedding_text(chunk: Chunk) -> str:
    """Empty for a node without its own text, or with blanks only."""
    content = f"{chunk.overlap}{chunk.text or ''}".strip()
    return f"{heading_path(chunk)}\n\n{content}" if content else ""


# Cuts a range of text into pieces that fit, at the best places.
#
# Between blocks first, then between sentences, then at spaces, and at the maximum if there is no
# better place. A code block, table or formula is cut only if it alone is too long, and then
# between lines.

Range = tuple[int, int]

BLANK_SLACK = 32
_BLANK_IN_QUOTES = "> \t\n"

# Each run of marks is tried only from its first, so that a page of dots takes linear time.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]{0,8}\s+|[。！？]++")  # noqa: RUF001
_LINE_END = re.compile(r"\n")
_CUTS = {
    BlockKind.TEXT: (_SENTENCE_END, _LINE_END),
    BlockKind.HEADING: (_SENTENCE_END, _LINE_END),
    BlockKind.WHOLE: (_LINE_END,),
}
_SPACE_END = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a piece's size, in characters."""

    minimum: int
    maximum: int


class Splitter:
    """Splits ranges of one document's text."""

    def __init__(self, text: str, blocks: Sequence[Block], limits: Limits) -> None:
        self._text = text
        self._blocks = blocks
        self._block_starts = [block.start for block in blocks]
        self._limits = limits

    def fits(self, start: int, end: int) -> bool:
        """Whether a range is within the maximum; a few blank lines at the end do not count."""
        over = end - start - self._limits.maximum
        return over <= 0 or (over <= BLANK_SLACK and self._text[end - over : end].isspace())

    def split(self, start: int, end: int) -> list[Range]:
        """Pieces of [start, end), in order and without gaps, each of which fits."""
        maximum = self._limits.maximum
        if self.fits(start, end):
            return [(start, end)]
        count = -(-(end - start) // maximum)
        return self.pack(self._fitting_units(start, end), -(-(end - start) // count))

    def _fitting_units(self, start: int, end: int) -> Iterator[Range]:
        """Yields units one by one: there may be millions, and only packed ones are kept."""
        for unit, kind in self._units(start, end):
            if self.fits(*unit):
                yield unit
            else:
                yield from self._fit(unit, _CUTS[kind])

    def pack(self, units: Iterable[Range], target: int) -> list[Range]:
        """Joins neighbouring units while they fit, up to the target, so that pieces are even."""
        pieces: list[Range] = []
        for start, end in units:
            if pieces and self._can_join(pieces[-1], end, target):
                pieces[-1] = (pieces[-1][0], end)
            else:
                pieces.append((start, end))
        return pieces

    def _can_join(self, piece: Range, end: int, target: int) -> bool:
        return piece[1] - piece[0] < target and self.fits(piece[0], end)

    def _units(self, start: int, end: int) -> Iterator[tuple[Range, BlockKind]]:
        """The blocks in a range and the text between them; a heading with what follows it."""
        before: tuple[Range, BlockKind] | None = None
        for unit, kind in self._blocks_with_blanks(start, end):
            if before is not None:
                if self._keeps_with(*before, unit):
                    unit = (before[0][0], unit[1])
                else:
                    yield before
            before = unit, kind
        if before is not None:
            yield before

    def _keeps_with(self, before: Range, kind: BlockKind, unit: Range) -> bool:
        """Whether a block of that kind stays with the next one: a heading does, unless that would
        make the next one too long.
        """
        return kind is BlockKind.HEADING and (self.fits(before[0], unit[1]) or not self.fits(*unit))

    def _blocks_with_blanks(self, start: int, end: int) -> Iterator[tuple[Range, BlockKind]]:
        """Blocks with the blank lines after them; other text between blocks is a text block."""
        first = bisect_left(self._block_starts, start)
        last = bisect_left(self._block_starts, end)
        cursor = start
        for index in range(first, last):
            block = self._blocks[index]
            if block.start > cursor:
                yield (cursor, block.start), BlockKind.TEXT
            following = self._block_starts[index + 1] if index + 1 < last else end
            cursor = following if self._takes_blanks(block, following) else min(block.end, end)
            yield (block.start, cursor), block.kind
        if cursor < end:
            yield (cursor, end), BlockKind.TEXT

    def _takes_blanks(self, block: Block, following: int) -> bool:
        """Blank lines belong to the block before them, unless they make it too long."""
        is_blank = not self._text[block.end : following].strip(_BLANK_IN_QUOTES)
        return is_blank and (
            self.fits(block.start, following) or not self.fits(block.start, block.end)
        )

    def _fit(self, unit: Range, cuts: Sequence[re.Pattern[str]]) -> Iterator[Range]:
        """Cuts a unit into parts that fit, no finer than needed; packing joins them again."""
        if self.fits(*unit):
            yield unit
        elif not cuts:
            yield from self._cut_anywhere(*unit)
        else:
            for part in _cut(self._text, unit, cuts[0]):
                yield from self._fit(part, cuts[1:])

    def _cut_anywhere(self, start: int, end: int) -> Iterator[Range]:
        maximum = self._limits.maximum
        while not self.fits(start, end):
            cut = _last_space(self._text, start, start + maximum)
            yield start, cut
            start = cut
        yield start, end


def _cut(text: str, unit: Range, after: re.Pattern[str]) -> Iterator[Range]:
    start, end = unit
    for found in after.finditer(text, start, end):
        yield start, found.end()
        start = found.end()
    if start < end:
        yield start, end


def _last_space(text: str, start: int, limit: int) -> int:
    """The position after the last space before the limit, unless the piece would be too short."""
    space = text.rfind(" ", start + (limit - start) // 2, limit)
    return limit if space == -1 else space + 1


def overlap_before(text: str, start: int, cut: int, length: int) -> str:
    """Up to `length` characters of [start, cut), from a word's beginning."""
    if length <= 0:
        return ""
    begin = max(start, cut - length)
    if begin > start and not text[begin - 1].isspace():
        space = _SPACE_END.search(text, begin, cut)
        begin = space.end() if space else begin
    return text[begin:cut]
