"""From the last candidates to what a reader gets: cited, with the matches marked, within budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import Unit
from ragdocs.models import ChunkId
from ragdocs.search.answers import Answered
from ragdocs.search.budget import Item, pack
from ragdocs.search.candidates import Candidate
from ragdocs.search.match_ranges import MatchRange, match_ranges
from ragdocs.search.passages import Passage
from ragdocs.search.responses import Metadata, Presented, SearchResult
from ragdocs.search.snippets import Asked, SnippetMaker
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
    """Presents one answer: marks what any of its queries looked for."""

    def __init__(
        self,
        analyzer: Analyzer,
        answered: Sequence[Answered],
        metadata: Mapping[ChunkId, Metadata] | None = None,
    ) -> None:
        self._analyzer = analyzer
        self._metadata = metadata or {}
        self._asked = [_asked(each) for each in answered]
        self._units = tuple(dict.fromkeys(unit for asked in self._asked for unit in asked.units))
        self._snippets = SnippetMaker(analyzer)

    def draft(self, candidates: Sequence[Candidate]) -> "Drafts":
        return Drafts([self._draft(item) for item in candidates])

    def _draft(self, candidate: Candidate) -> _Draft:
        leaves = candidate.passage or (candidate.stored,)
        pieces = [(leaf.chunk.text or "", leaf.chunk.span) for leaf in leaves]
        passage = Passage.of(pieces, candidate.document.encoding)
        is_marked = len(passage.text) <= MAX_MARKED_CHARS
        matches = match_ranges(passage, self._units, self._analyzer) if is_marked else ()
        shown = passage.text[:MAX_MARKED_CHARS]
        snippet = self._snippets.of(shown, matches, self._asked, _focus(candidate))
        metadata = self._metadata.get(candidate.stored.chunk.id)
        result = SearchResult.from_candidate(candidate, snippet, matches, metadata)
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
                span=each.span,
                matches=each.matches,
            )
            for each in packed.results
        ]
        return Presented(tuple(results), packed.omitted)


def _asked(answered: Answered) -> Asked:
    query = answered.found.understanding.query
    units: tuple[Unit, ...] = (*query.units, *query.weaker)
    text = answered.topic.words or answered.topic.meaning or ""
    return Asked(text, units, answered.found.frequencies)


def _focus(candidate: Candidate) -> Range | None:
    """The first part of a larger passage that was found."""
    found = {part.key for part in candidate.found}
    start = 0
    for leaf in candidate.passage:
        end = start + len(leaf.chunk.text or "")
        if leaf.key in found:
            return (start, end) if end <= MAX_MARKED_CHARS else None
        start = end
    return None


def _item(draft: _Draft) -> Item:
    result = draft.result
    return Item(
        chunk_id=result.chunk_id,
        doc_id=result.doc_id,
        path=result.path,
        heading_path=result.heading_path,
        passage=draft.passage,
        matches=draft.matches,
        snippet=result.snippet.text,
    )
