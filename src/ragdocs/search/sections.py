"""Which section of a passage holds what was looked for: the section under which it is cited.

A passage may have several sections: small ones that were joined for the embedder, or all of a
section whose parts were found. The citation is the narrowest one that holds the best match.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import Unit
from ragdocs.models import Chunk, DocId, NodeKind, Span
from ragdocs.search.candidates import Candidate
from ragdocs.search.match_ranges import MatchRange, Worth, densest
from ragdocs.search.passages import Passage
from ragdocs.search.text_borders import Range
from ragdocs.store.records import ChunkKey, StoredChunk

HEADING_WEIGHT = 2.0
"""A word in a section's own heading counts so many times as one in its text, about as in BM25F."""
ANSWER_CHARS = 300
"""Matches so near to one another answer together: two or three sentences."""

Naming = Callable[[str], int]
"""How exactly a heading is what a query asks for: 0 is not at all."""
SAME_TERMS, SAME_WORDS = 1, 2
SectionsIn = Callable[[Iterable[tuple[ChunkKey, Span]]], Sequence[StoredChunk]]
"""As `Snapshot.sections_in`."""


def asks_for(queries: Iterable[str], analyzer: Analyzer) -> Naming:
    """A heading is asked for by name when one of the queries is made of the same terms."""
    wanted = {terms: _words(text) for text in queries if (terms := _terms(text, analyzer))}
    same = frozenset(wanted.values())
    beginnings = [frozenset(term[:2] for term in terms) for terms in wanted]

    def naming(title: str) -> int:
        words = _words(title)
        if words in same:
            return SAME_WORDS
        # A stem begins as its word does: most headings need not be analysed.
        for each in beginnings:
            for beginning in each:
                if beginning not in words:
                    break
            else:
                return SAME_TERMS if _terms(title, analyzer) in wanted else 0
        return 0

    # Sections of one page, and pages of one folder, have titles in common.
    return cache(naming)


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _terms(text: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(token.term for token in analyzer.query(text))


def is_asked_by_name(item: Candidate, naming: Naming) -> bool:
    """By the heading of its section, of one in it, or by the title of its document."""
    return _exactness(item.best.chunk, naming) > 0 or naming(item.document.title) > 0


def put_named_first(candidates: Sequence[Candidate], naming: Naming) -> list[Candidate]:
    """Within each document the section that a query names is first, with the score of the best that
    was there: it takes that one's place, so that no other document is moved.
    """
    first: dict[DocId, Candidate] = {}
    named: dict[DocId, Candidate] = {}
    exactness: dict[DocId, int] = {}
    for item in candidates:
        doc_id = item.document.id
        first.setdefault(doc_id, item)
        found = _exactness(item.best.chunk, naming)
        if found > exactness.get(doc_id, 0):
            named[doc_id], exactness[doc_id] = item, found
    moved = {item.id: first[doc_id] for doc_id, item in named.items() if item is not first[doc_id]}
    if not moved:
        return list(candidates)
    results: list[Candidate] = []
    for item in candidates:
        own = named.get(item.document.id)
        if own is not None and item is first[item.document.id] and own is not item:
            results.append(_raised_to(own, item))
        if item.id not in moved:
            results.append(item)
    return results


def _exactness(chunk: Chunk, naming: Naming) -> int:
    """Of its own heading or one in it; the document's title is no section's name."""
    most = naming(chunk.breadcrumb[-1]) if len(chunk.breadcrumb) > 1 else 0
    for heading in chunk.headings:
        most = max(most, naming(heading))
    return most


def _raised_to(item: Candidate, best: Candidate) -> Candidate:
    score = max(item.score, best.score)
    boosts = item.boosts
    if item.score > 0 and score > item.score:
        boosts = {**boosts, "named": score / item.score}
    return item.changed(score=score, boosts=boosts)


def with_sections(candidates: Sequence[Candidate], sections_in: SectionsIn) -> list[Candidate]:
    """Each with the sections that its passage has anything of, outermost first."""
    if not candidates:
        return []
    found: dict[DocId, list[StoredChunk]] = {}
    leaves = [leaf for item in candidates for leaf in item.leaves]
    for section in sections_in((leaf.key, leaf.chunk.span) for leaf in leaves):
        found.setdefault(section.chunk.doc_id, []).append(section)
    return [
        item.changed(
            sections=tuple(
                section
                for section in found.get(item.document.id, ())
                if section.chunk.span.byte_start < item.span.byte_end
                and section.chunk.span.byte_end > item.span.byte_start
            )
        )
        for item in candidates
    ]


@dataclass(frozen=True, slots=True)
class Cited:
    """The section that holds the best match, the characters of a passage that are its own there
    (down to the next heading), and those of them that answer.
    """

    section: Chunk
    own: Range
    answer: Range


class Citer:
    """Cites the passages of one answer. `worth`: what a word of the queries counts."""

    def __init__(
        self, naming: Naming, worth: Worth, best_sentence: Callable[[str, Range], Range]
    ) -> None:
        self._naming = naming
        self._worth = worth
        self._best_sentence = best_sentence

    def cite(
        self,
        passage: Passage,
        sections: Sequence[Chunk],
        matches: Sequence[MatchRange],
        focus: Range,
    ) -> Cited | None:
        """Of the sections that begin in `focus` (the part that was found), or have its beginning;
        None when none is given.
        """
        stretches = _stretches(passage, sections, focus)
        if not stretches:
            return None
        best = self._best(passage.text, stretches, matches, focus)
        own = best.start, best.end
        return Cited(best.section, own, self._answer(passage.text, own, matches))

    def _best(
        self,
        text: str,
        stretches: Sequence["_Stretch"],
        matches: Sequence[MatchRange],
        focus: Range,
    ) -> "_Stretch":
        most = max(self._naming(each.section.title) for each in stretches)
        if most:
            stretches = [each for each in stretches if self._naming(each.section.title) == most]
        else:
            # A heading without a text of its own holds nothing, unless it is asked for by name.
            stretches = [each for each in stretches if text[each.below : each.end].strip()] or (
                stretches
            )
        if len(stretches) == 1:
            return stretches[0]
        inside = [match for match in matches if focus[0] <= match.start < focus[1]]
        if not inside and not most:
            begin, _ = self._best_sentence(text, focus)
            starts = [each.start for each in stretches]
            return stretches[max(0, bisect_right(starts, begin) - 1)]
        return max(stretches, key=lambda each: self._value(each, inside))

    def _value(self, stretch: "_Stretch", matches: Sequence[MatchRange]) -> float:
        """Every unit once, where it counts most."""
        best: dict[Unit, float] = {}
        for match in matches:
            if stretch.start <= match.start < stretch.end:
                weight = HEADING_WEIGHT if match.start < stretch.below else 1.0
                for unit in match.units:
                    best[unit] = max(weight * self._worth(unit), best.get(unit, 0.0))
        return sum(best.values())

    def _answer(self, text: str, own: Range, matches: Sequence[MatchRange]) -> Range:
        """Whole lines around the matches that are worth most together, or the best sentence."""
        inside = [match for match in matches if own[0] <= match.start and match.end <= own[1]]
        if inside:
            best = densest(inside, ANSWER_CHARS, self._worth)
            start, end = best[0].start, best[-1].end
        else:
            start, end = self._best_sentence(text, own)
        first = max(own[0], text.rfind("\n", own[0], start) + 1)
        last = text.find("\n", max(start, end - 1), own[1])
        return first, own[1] if last == -1 else last + 1


def narrowest_around(sections: Sequence[Chunk], span: Span) -> Chunk | None:
    """The innermost section that has all of a span."""
    around = [
        section
        for section in sections
        if section.span.byte_start <= span.byte_start and span.byte_end <= section.span.byte_end
    ]
    return around[-1] if around else None


def offset_of_line(passage: Passage, line: int) -> int:
    """Where a line begins in a passage: at its beginning, at its end, or between."""
    at = 0
    for _ in range(line - passage.span.line_start):
        at = passage.text.find("\n", at) + 1
        if not at:
            return len(passage.text)
    return at


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Characters of a passage that stand in a section and in none below it; its heading, if it is
    there, ends at `below`.
    """

    section: Chunk
    start: int
    end: int
    below: int


def _stretches(passage: Passage, sections: Sequence[Chunk], focus: Range) -> list[_Stretch]:
    """The text in the focus, in order."""
    begins = [
        (
            0
            if section.span.byte_start <= passage.span.byte_start
            else offset_of_line(passage, section.span.line_start),
            section,
        )
        for section in sections
    ]
    found: list[_Stretch] = []
    for at, (begin, section) in enumerate(begins):
        end = begins[at + 1][0] if at + 1 < len(begins) else len(passage.text)
        if begin >= end or begin >= focus[1] or end <= focus[0]:
            continue
        start, stop = max(begin, focus[0]), min(end, focus[1])
        below = start
        is_headed = section.span.byte_start >= passage.span.byte_start and begin >= focus[0]
        if section.kind is NodeKind.SECTION and is_headed:
            below = passage.text.find("\n", start, stop) + 1 or stop
        found.append(_Stretch(section, start, stop, below))
    return found
