"""As much as a reader has room for, best first, and a word on everything that was left out.

Tokens are ⌈UTF-8 bytes / 4⌉. A result costs its text, its snippet and its citation. The report of
what is missing is not counted: it is a line for each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ragdocs.models import ChunkId, DocId, Span
from ragdocs.search.match_ranges import MatchRange, densest
from ragdocs.search.passages import Passage
from ragdocs.search.shortening import shortened
from ragdocs.search.text_borders import Range

BYTES_PER_TOKEN = 4
CITATION_TOKENS = 16
"""For the lines, score and punctuation around a path and its headings."""
MIN_SHORTENED_TOKENS = 20
"""Under this a shortened text says nothing."""


class Extent(StrEnum):
    """How much of a result is given."""

    WHOLE = "whole"
    EXCERPT = "excerpt"
    """The lines that answer and what stands around them; all of it is more than is useful."""
    SHORTENED = "shortened"
    CITED = "cited"
    """No text: only where it is, and its snippet."""
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What the budget must know of a result; a `snippet` is counted beside the text."""

    chunk_id: ChunkId
    doc_id: DocId
    path: str
    heading_path: tuple[str, ...]
    passage: Passage
    matches: tuple[MatchRange, ...] = ()
    snippet: str = ""

    @property
    def citation_tokens(self) -> int:
        headings = " > ".join(self.heading_path)
        return CITATION_TOKENS + sum(map(tokens, (self.path, headings, self.snippet)))

    @property
    def tokens(self) -> int:
        return self.citation_tokens + tokens(self.passage.text)


@dataclass(frozen=True, slots=True)
class Packed:
    """A result that is given: the item at `place`, with this text, which is the file's at `span`.

    One that is only cited has no text, and the span of all of it. `matches` are those within the
    text, counted from its beginning.
    """

    place: int
    extent: Extent
    text: str
    span: Span
    matches: tuple[MatchRange, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """The call of the server's tool that gets what was left out."""

    tool: str
    arguments: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A result of which something is missing, what all of it costs, and how to get it."""

    id: ChunkId
    path: str
    line_start: int
    line_end: int
    tokens: int
    extent: Extent
    fetch: Fetch


@dataclass(frozen=True, slots=True)
class Budgeted:
    """What is given, in the order of the items, and all that is not or not wholly."""

    results: tuple[Packed, ...]
    left_out: tuple[LeftOut, ...]
    tokens: int


def tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def pack(items: Sequence[Item], max_tokens: int) -> Budgeted:
    """Whole results while they fit; the first that does not is shortened, or only cited.

    The one exception to the limit: the first result is cited when there is room for nothing.
    """
    results: list[Packed] = []
    left, is_first_over = max_tokens, True
    for place, item in enumerate(items):
        packed = None
        if item.tokens <= left:
            packed = _whole(place, item)
        elif is_first_over:
            packed = _cut_down(place, item, left)
            is_first_over = False
        if packed is not None:
            results.append(packed)
            left -= packed.tokens
    if items and not results:
        results.append(_cited(0, items[0]))
    extents = {packed.place: packed.extent for packed in results}
    left_out = (
        _left_out(item, extents.get(place, Extent.LEFT_OUT)) for place, item in enumerate(items)
    )
    return Budgeted(
        tuple(results),
        tuple(item for item in left_out if item.extent is not Extent.WHOLE),
        sum(packed.tokens for packed in results),
    )


def _whole(place: int, item: Item) -> Packed:
    passage = item.passage
    return Packed(place, Extent.WHOLE, passage.text, passage.span, item.matches, item.tokens)


def _cut_down(place: int, item: Item, left: int) -> Packed | None:
    room = left - item.citation_tokens
    if room < 0:
        return None
    if room < MIN_SHORTENED_TOKENS:
        return _cited(place, item)
    limit = room * BYTES_PER_TOKEN
    kept = shortened(item.passage, limit, _anchors(item, limit))
    part = item.passage.part(*kept) if kept else None
    if kept is None or part is None:
        return _cited(place, item)
    cost = item.citation_tokens + tokens(part.text)
    matches = matches_within(item.matches, kept)
    return Packed(place, Extent.SHORTENED, part.text, part.span, matches, cost)


def _cited(place: int, item: Item) -> Packed:
    return Packed(place, Extent.CITED, "", item.passage.span, (), item.citation_tokens)


def _anchors(item: Item, limit: int) -> list[Range]:
    """What should stay, in order of preference: the best matches, one of them, the beginning."""
    anchors: list[Range] = []
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
    # By its id, because two trees may have a file of the same path.
    arguments: dict[str, str | int] = {
        "document": item.doc_id,
        "start_line": span.line_start,
        "end_line": span.line_end,
    }
    return LeftOut(
        id=item.chunk_id,
        path=item.path,
        line_start=span.line_start,
        line_end=span.line_end,
        tokens=item.tokens,
        extent=extent,
        fetch=Fetch("get_document", arguments),
    )
