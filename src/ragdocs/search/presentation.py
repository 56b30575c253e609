"""From the last candidates to what a reader gets: cited, with the matches marked, within budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import Unit
from ragdocs.models import Chunk, ChunkId, Span
from ragdocs.search.answers import Answered
from ragdocs.search.budget import BYTES_PER_TOKEN, Extent, Item, Packed, matches_within, pack
from ragdocs.search.candidates import Candidate
from ragdocs.search.match_ranges import MatchRange, match_ranges
from ragdocs.search.passages import Passage
from ragdocs.search.responses import MetadataMaker, Place, Presented, SearchResult
from ragdocs.search.sections import Cited, Citer, asks_for, narrowest_around, offset_of_line
from ragdocs.search.shortening import shortened
from ragdocs.search.snippets import Asked, SnippetMaker, rarity
from ragdocs.search.text_borders import Range

MAX_MARKED_CHARS = 200_000
"""In a longer passage, such as a whole file as one result, matches are not looked for."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A result before the budget."""

    result: SearchResult
    passage: Passage
    matches: tuple[MatchRange, ...]


class Presenter:
    """Presents one answer: marks what any of its queries looked for, and cites where it stands.
    Of a passage about `result_tokens` are given, or all of it for 0.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        answered: Sequence[Answered],
        result_tokens: int = 0,
        metadata: Mapping[ChunkId, MetadataMaker] | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._metadata = metadata or {}
        self._asked = [_asked(each) for each in answered]
        self._units = tuple(dict.fromkeys(unit for asked in self._asked for unit in asked.units))
        self._snippets = SnippetMaker(analyzer)
        self._limit = result_tokens * BYTES_PER_TOKEN
        worths = [rarity(asked) for asked in self._asked]
        self._citer = Citer(
            asks_for((asked.text for asked in self._asked), analyzer),
            lambda unit: max((worth(unit) for worth in worths), default=0),
            lambda text, within: self._snippets.best_sentence(text, self._asked, within),
        )

    def draft(self, candidates: Sequence[Candidate]) -> "Drafts":
        return Drafts([self._draft(item) for item in candidates])

    def _draft(self, candidate: Candidate) -> _Draft:
        passage, focus = _passage(candidate)
        is_marked = len(passage.text) <= MAX_MARKED_CHARS
        matches = match_ranges(passage, self._units, self._analyzer) if is_marked else ()
        sections = [stored.chunk for stored in candidate.sections]
        cited = self._citer.cite(passage, sections, matches, focus) if is_marked else None
        snippet_focus = cited.own if cited else focus
        shown = passage.text[:MAX_MARKED_CHARS]
        own = matches_in(matches, snippet_focus)
        snippet = self._snippets.of(shown, own or matches, self._asked, snippet_focus)
        result = _result(candidate, passage, cited, sections)
        about = self._metadata.get(candidate.id)
        # With parent retrieval the whole parent is what was asked for.
        limit = 0 if candidate.is_parent else self._limit
        kept = _kept(passage, cited, matches, limit) if cited else None
        part = passage.part(*kept) if kept else None
        if kept is not None and part is not None:
            passage, matches = part, matches_within(matches, kept)
            result = replace(result, extent=Extent.EXCERPT)
        result = replace(
            result,
            text=passage.text,
            **_shown_at(passage.span),
            snippet=snippet,
            matches=matches,
            metadata=about(result.byte_start, result.byte_end) if about else None,
        )
        return _Draft(result, passage, matches)


class Drafts:
    """All results, which can be given within any budget."""

    def __init__(self, drafts: Sequence[_Draft]) -> None:
        self._drafts = drafts

    def within(self, max_tokens: int | None) -> Presented:
        if max_tokens is None:
            return Presented(tuple(draft.result for draft in self._drafts))
        packed = pack([_item(draft) for draft in self._drafts], max_tokens)
        results = [
            replace(
                self._drafts[each.place].result,
                text=each.text,
                **_shown_at(each.span),
                matches=each.matches,
                extent=self._extent(each),
            )
            for each in packed.results
        ]
        return Presented(tuple(results), packed.left_out)

    def _extent(self, packed: Packed) -> Extent:
        is_all = packed.extent is Extent.WHOLE
        return self._drafts[packed.place].result.extent if is_all else packed.extent


def matches_in(matches: Sequence[MatchRange], place: Range) -> tuple[MatchRange, ...]:
    return tuple(match for match in matches if place[0] <= match.start and match.end <= place[1])


def _asked(answered: Answered) -> Asked:
    query = answered.found.understanding.query
    units: tuple[Unit, ...] = (*query.units, *query.weaker)
    text = answered.topic.words or answered.topic.meaning or ""
    return Asked(text, units, answered.found.frequencies)


def _passage(candidate: Candidate) -> tuple[Passage, Range]:
    """What may be shown of a candidate, and which characters of it were found.

    The first and the last leaf of a section may have more than is the section's.
    """
    leaves = candidate.leaves
    if candidate.before is not None:
        leaves = (candidate.before, *leaves)
    pieces = [(leaf.chunk.text or "", leaf.chunk.span) for leaf in leaves]
    passage = Passage.of(pieces, candidate.document.encoding)
    first, last = 0, len(passage.text)
    if candidate.before is not None:
        first = len(pieces[0][0]) - candidate.lead
    elif candidate.passage:
        first, last = _own(passage, candidate.stored.chunk.span)
    part = passage.part(first, last) if (first, last) != (0, len(passage.text)) else None
    if part is None:
        first, last, part = 0, len(passage.text), passage
    at = 0
    for leaf in leaves:
        end = at + len(leaf.chunk.text or "")
        if leaf.key == candidate.best.key:
            return part, (max(0, at - first), min(last, end) - first)
        at = end
    return part, (0, len(part.text))


def _own(passage: Passage, span: Span) -> Range:
    """The characters of a section, which begins and ends with a line."""
    first, last = 0, len(passage.text)
    if span.byte_start > passage.span.byte_start:
        first = offset_of_line(passage, span.line_start)
    if span.byte_end < passage.span.byte_end:
        last = offset_of_line(passage, span.line_end + 1)
    return (first, last) if first < last else (0, len(passage.text))


def _result(
    candidate: Candidate, passage: Passage, cited: Cited | None, sections: Sequence[Chunk]
) -> SearchResult:
    """Cited under the section of the best match; a document without sections by its parts."""
    section = candidate.best.chunk
    if cited is not None and cited.section.parent_id is not None:
        section = cited.section
    own = passage.span
    if candidate.before is not None:
        # What a parent begins with, of the passage before it, is not its own.
        first = candidate.leaves[0].chunk.span
        own = replace(own, byte_start=first.byte_start, line_start=first.line_start)
    around = narrowest_around(sections, own)
    within = None
    if around is not None and around.id != section.id:
        within = Place.of(around)
    result = SearchResult.from_candidate(candidate, section, within)
    if cited is None:
        return result
    places = passage.places((cited.answer[0], max(cited.answer[0], cited.answer[1] - 1)))
    lines = [places[at].line for at in sorted(places)]
    return replace(result, answer_lines=(lines[0], lines[-1]))


def _kept(
    passage: Passage, cited: Cited, matches: Sequence[MatchRange], limit: int
) -> Range | None:
    """What is given of a passage that has too much: all of the section that is cited, with what
    stands around it, or as much of that section as there is room for.
    """
    if not limit or _size(passage.text) <= limit:
        return None
    start, end = cited.own
    anchors = [cited.own, cited.answer, *((match.start, match.end) for match in matches[:1])]
    if _size(passage.text[start:end]) <= limit:
        return shortened(passage, limit, anchors)
    own = passage.part(start, end)
    if own is None:
        return shortened(passage, limit, anchors[1:])
    inside = [(max(0, first - start), last - start) for first, last in anchors[1:]]
    kept = shortened(own, limit, inside)
    return None if kept is None else (kept[0] + start, kept[1] + start)


def _shown_at(span: Span) -> dict[str, tuple[int, int]]:
    """Of what is given as a result's text."""
    return {
        "text_lines": (span.line_start, span.line_end),
        "text_bytes": (span.byte_start, span.byte_end),
    }


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _item(draft: _Draft) -> Item:
    result = draft.result
    return Item(
        chunk_id=result.id,
        doc_id=result.doc_id,
        path=result.path,
        heading_path=result.heading_path,
        passage=draft.passage,
        matches=draft.matches,
        snippet=result.snippet.text,
    )
