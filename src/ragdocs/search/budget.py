"""Packs results into a budget of tokens, best first, and reports what was left out."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from re import Pattern

from ragdocs.indices.languages import HANGUL_TAILS, UNSPACED, marks
from ragdocs.models import ChunkId, DocId, Span, TreeName
from ragdocs.search.passages import MatchRange, Passage, densest
from ragdocs.search.snippets import SENTENCE_END, Range

# Shortens a passage to a number of bytes: one stretch of it, around the match.
#
# It is cut between paragraphs, else between sentences, else between words; never within a code
# fence or a table row, and only where the byte in the file is certain, so that the stretch can be
# cited.

ENOUGH = 0.5
"""A stretch that uses this share of its room is not filled up with smaller pieces."""

_MAX_HEADING = 300
_SPACES = 64
_PARAGRAPH_END = re.compile(r"\n(?:[ \t>]*+\n)+|\n(?=#{1,6}[ \t])")
_ITEM = re.compile(r"\n(?=[ \t>]*+(?:[-*+][ \t]|\d{1,9}[.)][ \t]|\|))")
"""Before an item of a list or a row of a table."""
_HEADING = re.compile(r"[ \t>]*+#{1,6}(?:[ \t][^\n]*)?")
_ROW = re.compile(r"^[ \t>]*+\|[^\n]*$", re.MULTILINE)
_FENCE = re.compile(
    r"^[ \t>]*+((?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+)(`{3,}+(?=[^`\n]*$)|~{3,}+)([^\n]*)$",
    re.MULTILINE,
)


@cache
def _borders_of_text() -> tuple[Pattern[str], ...]:
    """From coarse to fine; words end after white space, and between characters of scripts without
    spaces."""
    run = f"{UNSPACED}{marks()}"
    word_end = re.compile(rf"\s++|(?<=[{run}])(?=[{UNSPACED}])(?![{HANGUL_TAILS}{marks()}])")
    return _PARAGRAPH_END, _ITEM, SENTENCE_END, _LINE_END, word_end


_LINE_END = re.compile(r"\n")
_BORDERS_OF_CODE = _PARAGRAPH_END, _LINE_END


def shorten(
    passage: Passage, limit: int, anchors: Sequence[Range], *, may_cut_fences: bool = False
) -> Range | None:
    """The characters to keep, at most `limit` bytes of UTF-8, around the first anchor for which
    that is possible. A fence is cut, between its lines, only if it may be and is too long itself.
    """
    text = passage.text
    atoms = _Atoms(text)
    ways = [(atoms, _borders_of_text())]
    if may_cut_fences and atoms.fences:
        ways.append((_Atoms(text, has_fences=False), _BORDERS_OF_CODE))
    for first, last in anchors:
        anchor = first, max(first, len(text[:last].rstrip()))
        if anchor[1] - anchor[0] > limit:
            continue
        for uncut, borders in ways:
            levels = _levels(text, anchor, limit, uncut, borders)
            found = _grow((_Cuts.of(passage, each) for each in levels), anchor, limit)
            if found is not None and text[slice(*found)].strip():
                return found
    return None


def widen(passage: Passage, stretch: Range, limit: int) -> Range:
    """A stretch with the whole blocks around it that fit into `limit` bytes; itself if it has more
    or if they would begin or end where the byte in the file is uncertain."""
    blocks = _levels(passage.text, stretch, limit, _Atoms(passage.text), (_PARAGRAPH_END,))
    cuts = _Cuts.of(passage, next(blocks))
    around = _if_fits(cuts, cuts.around(stretch), limit)
    return stretch if around is None else _widen(cuts, around, limit)


def fences(text: str) -> list[Range]:
    """The fenced code blocks, without trailing white space; an unclosed one ends with the text.
    Found line by line rather than parsed, because a passage may begin anywhere.
    """
    found: list[Range] = []
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            opened = line
        elif _is_closing(line, opened):
            found.append((opened.start(), line.end(2)))
            opened = None
    if opened is not None:
        found.append((opened.start(), len(text.rstrip())))
    return found


def _is_closing(line: re.Match[str], opened: re.Match[str]) -> bool:
    is_bare = not line[1] and not line[3].strip()
    return is_bare and line[2].startswith(opened[2])


class _Atoms:
    """The ranges that are never cut: fences and table rows."""

    def __init__(self, text: str, *, has_fences: bool = True) -> None:
        self.fences = fences(text) if has_fences else []
        rows = [row.span() for row in _ROW.finditer(text)]
        self._ranges = sorted([*self.fences, *rows])
        self._starts = [start for start, _ in self._ranges]
        # Rows within a fence begin later and end earlier: the furthest end so far decides.
        self._ends: list[int] = []
        for _, end in self._ranges:
            self._ends.append(max(end, self._ends[-1] if self._ends else 0))

    def may_cut(self, at: int) -> bool:
        before = bisect_left(self._starts, at) - 1
        return before < 0 or self._ends[before] <= at


def _levels(
    text: str, anchor: Range, limit: int, atoms: _Atoms, borders: Sequence[Pattern[str]]
) -> Iterator[list[int]]:
    """Where text may be cut around an anchor, from coarse to fine; each level includes the ones
    before it."""
    reach = limit + _SPACES  # an end within the limit is recognised only by the space after it
    start, end = max(0, anchor[0] - reach), min(len(text), anchor[1] + reach)
    found = {0, len(text)}
    for first, last in atoms.fences:
        found.update((first, text.find("\n", last) + 1 or len(text)))
    for pattern in borders:
        ends = (match.end() for match in pattern.finditer(text, start, end))
        found.update(at for at in ends if at < end and atoms.may_cut(at))
        yield sorted(at for at in found if start <= at <= end)


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Where a stretch may begin and end, and the number of UTF-8 bytes before each place."""

    starts: list[int]
    ends: list[int]
    sizes: dict[int, int]

    @classmethod
    def of(cls, passage: Passage, borders: Sequence[int]) -> "_Cuts":
        text = passage.text
        ends = set(_trim(text, borders))
        offsets = sorted({*borders, *ends})
        certain = passage.certain_offsets(offsets)
        sizes = {at: at for at in offsets}
        if not text.isascii():
            sizes = dict.fromkeys(offsets[:1], 0)
            for before, at in pairwise(offsets):
                sizes[at] = sizes[before] + len(text[before:at].encode("utf-8", "surrogatepass"))
        return cls(
            [at for at in borders if at in certain],
            sorted(at for at in ends if at in certain and _may_end(text, at)),
            sizes,
        )

    def size(self, stretch: Range) -> int:
        return self.sizes[stretch[1]] - self.sizes[stretch[0]]

    def around(self, anchor: Range) -> Range | None:
        """The smallest stretch around the anchor."""
        first = bisect_right(self.starts, anchor[0]) - 1
        last = bisect_left(self.ends, max(anchor[1], anchor[0] + 1))
        if first < 0 or last == len(self.ends):
            return None
        return self.starts[first], self.ends[last]

    def ahead(self, stretch: Range) -> Range:
        """One step longer, or the same at the end."""
        index = bisect_right(self.ends, stretch[1])
        return (stretch[0], self.ends[index]) if index < len(self.ends) else stretch

    def back(self, stretch: Range) -> Range:
        index = bisect_left(self.starts, stretch[0]) - 1
        return (self.starts[index], stretch[1]) if index >= 0 else stretch


def _trim(text: str, borders: Sequence[int]) -> Iterator[int]:
    """Each border moved back over the white space before it, at most to the border before."""
    before, end = 0, 0
    for at in borders:
        body = len(text[before:at].rstrip())
        end = before + body if body else end
        before = at
        yield end


def _may_end(text: str, at: int) -> bool:
    """A heading belongs to what follows it."""
    if at == len(text):
        return True
    # The search back is bounded: a line of megabytes has a border at each word.
    lowest = max(0, at - _MAX_HEADING)
    line = text.rfind("\n", lowest, at) + 1
    is_known = line > 0 or lowest == 0
    return not (is_known and _HEADING.fullmatch(text, line, at))


def _grow(levels: Iterable[_Cuts], anchor: Range, limit: int) -> Range | None:
    stretch: Range | None = None
    for cuts in levels:
        stretch = stretch or _if_fits(cuts, cuts.around(anchor), limit)
        if stretch is None:
            continue
        stretch = _widen(cuts, stretch, limit)
        if cuts.size(stretch) >= ENOUGH * limit:
            break
    return stretch


def _if_fits(cuts: _Cuts, stretch: Range | None, limit: int) -> Range | None:
    return stretch if stretch and cuts.size(stretch) <= limit else None


def _widen(cuts: _Cuts, stretch: Range, limit: int) -> Range:
    """Alternates ahead and back, so that the match stays in the middle; ahead first, because a
    reader goes on rather than back.
    """
    while True:
        longer = _if_fits(cuts, cuts.ahead(stretch), limit) or stretch
        grown = _if_fits(cuts, cuts.back(longer), limit) or longer
        if grown == stretch:
            return stretch
        stretch = grown


# Packs as many results as fit, best first, and reports everything that was left out.
#
# Tokens are ⌈UTF-8 bytes / 4⌉. A result costs its text, its snippet and its citation. The report of
# what was left out, one line each, is not counted.

BYTES_PER_TOKEN = 4
CITATION_TOKENS = 16
"""For the lines, score and punctuation around a path and its headings."""
MIN_SHORTENED_TOKENS = 20
"""A shorter text says nothing."""


class Extent(StrEnum):
    """How much of a result is given."""

    WHOLE = "whole"
    EXCERPT = "excerpt"
    """The lines that answer and their surroundings; the whole would be longer than is useful."""
    SHORTENED = "shortened"
    CITED = "cited"
    """No text: only its place and its snippet."""
    BRIEF = "brief"
    """Only its place, because it is unlikely to answer."""
    REPEATED = "repeated"
    """Only its place, because its answer is in the text of a result before it."""
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What the budget must know of a result; the `snippet` is counted in addition to the text.
    `answer`: the characters of the passage that answer.
    """

    chunk_id: ChunkId
    doc_id: DocId
    tree: TreeName
    path: str
    heading_path: tuple[str, ...]
    passage: Passage
    matches: tuple[MatchRange, ...] = ()
    snippet: str = ""
    answer: Range | None = None

    @property
    def place_tokens(self) -> int:
        headings = " > ".join(self.heading_path)
        return CITATION_TOKENS + sum(map(tokens, (self.path, headings)))

    @property
    def citation_tokens(self) -> int:
        return self.place_tokens + tokens(self.snippet)

    @property
    def tokens(self) -> int:
        return self.citation_tokens + tokens(self.passage.text)


@dataclass(frozen=True, slots=True)
class Packed:
    """A result in the answer: the item at `place` with this text, which is the file's at `span`.

    Cited, brief or repeated, it has no text and the span of the whole. `matches` are those within
    the text, counted from its beginning.
    """

    place: int
    extent: Extent
    text: str
    span: Span
    matches: tuple[MatchRange, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """The call of the server's tool that returns what was left out."""

    tool: str
    arguments: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A result that did not fit in full, the cost of all of it, and how to get it."""

    id: ChunkId
    tree: TreeName
    path: str
    line_start: int
    line_end: int
    tokens: int
    extent: Extent
    fetch: Fetch
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Budgeted:
    """The results in the order of the items, and those that did not fit in full."""

    results: tuple[Packed, ...]
    left_out: tuple[LeftOut, ...]
    tokens: int


def tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def pack(
    items: Sequence[Item], max_tokens: int, brief: Set[int] = frozenset(), *, once: bool = False
) -> Budgeted:
    """Adds whole results while they fit; shortens the first that does not, or only cites it. Of the
    items at the places in `brief` it adds only the place; with `once`, also of those whose answer
    is in a text before.

    The one exception to the limit: the first result is cited even when nothing fits.
    """
    results: list[Packed] = []
    left, is_first_over = max_tokens, True
    for place, item in enumerate(items):
        packed = None
        without_text = Extent.BRIEF if place in brief else None
        if once and without_text is None and _is_in(results, items, item):
            without_text = Extent.REPEATED
        if without_text is not None:
            packed = _place_of(place, item, without_text) if item.place_tokens <= left else None
        elif item.tokens <= left:
            packed = _whole(place, item)
        elif is_first_over:
            packed = _cut_down(place, item, left)
            is_first_over = False
        if packed is not None:
            results.append(packed)
            left -= packed.tokens
    if items and not results:
        results.append(_cite(0, items[0]))
    extents = {packed.place: packed.extent for packed in results}
    left_out = (
        _left_out(item, extents.get(place, Extent.LEFT_OUT)) for place, item in enumerate(items)
    )
    return Budgeted(
        tuple(results),
        tuple(item for item in left_out if item.extent not in _NOT_MISSING),
        sum(packed.tokens for packed in results),
    )


_NOT_MISSING = frozenset({Extent.WHOLE, Extent.BRIEF, Extent.REPEATED})


def _is_in(results: Sequence[Packed], items: Sequence[Item], item: Item) -> bool:
    """Whether the item's answer is in the text of a result."""
    answer = item.passage.part(*item.answer) if item.answer else None
    return answer is not None and any(
        each.text and items[each.place].doc_id == item.doc_id and each.span.contains(answer.span)
        for each in results
    )


def _whole(place: int, item: Item) -> Packed:
    passage = item.passage
    return Packed(place, Extent.WHOLE, passage.text, passage.span, item.matches, item.tokens)


def _cut_down(place: int, item: Item, left: int) -> Packed | None:
    room = left - item.citation_tokens
    if room < 0:
        return None
    if room < MIN_SHORTENED_TOKENS:
        return _cite(place, item)
    limit = room * BYTES_PER_TOKEN
    kept = shorten(item.passage, limit, _anchors(item, limit))
    part = item.passage.part(*kept) if kept else None
    if kept is None or part is None:
        return _cite(place, item)
    cost = item.citation_tokens + tokens(part.text)
    matches = matches_within(item.matches, kept)
    return Packed(place, Extent.SHORTENED, part.text, part.span, matches, cost)


def _cite(place: int, item: Item) -> Packed:
    return Packed(place, Extent.CITED, "", item.passage.span, (), item.citation_tokens)


def _place_of(place: int, item: Item, extent: Extent) -> Packed:
    return Packed(place, extent, "", item.passage.span, (), item.place_tokens)


def _anchors(item: Item, limit: int) -> list[Range]:
    """What should stay, best choice first: the answer, the best matches, the first of them, the
    beginning."""
    anchors: list[Range] = [item.answer] if item.answer else []
    if item.matches:
        best = densest(item.matches, limit / 2, lambda unit: round(1000 * unit.weight))
        anchors += [(best[0].start, best[-1].end), (best[0].start, best[0].end)]
    return [*anchors, (0, 0)]


def matches_within(matches: Sequence[MatchRange], kept: Range) -> tuple[MatchRange, ...]:
    start, end = kept
    return tuple(
        replace(match, start=match.start - start, end=match.end - start)
        for match in matches
        if start <= match.start and match.end <= end
    )


def _left_out(item: Item, extent: Extent) -> LeftOut:
    span = item.passage.span
    # By id, because two trees may have a file with the same path.
    arguments: dict[str, str | int] = {
        "document": item.doc_id,
        "start_line": span.line_start,
        "end_line": span.line_end,
    }
    if item.passage.strings:  # of a canvas, whose other cards may be on the same line
        arguments = {"document": item.chunk_id}
    return LeftOut(
        id=item.chunk_id,
        tree=item.tree,
        path=item.path,
        line_start=span.line_start,
        line_end=span.line_end,
        tokens=item.tokens,
        extent=extent,
        fetch=Fetch("get_document", arguments),
    )
