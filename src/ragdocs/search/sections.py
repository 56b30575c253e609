"""Sections of results: parents of leaves, merged sections, and the section that a match is cited
under.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ragdocs.chunking.splitting import Limits, overlap_before
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Unit
from ragdocs.models import Chunk, ChunkId, DocId, NodeKind, Span
from ragdocs.search.candidates import Candidate, ChunkTree, Evidence, NodesOf, Strategy
from ragdocs.search.passages import MatchRange, Passage, Worth, densest
from ragdocs.search.snippets import Range
from ragdocs.store.records import ChunkKey, StoredChunk

# Parent retrieval (P13) finds small leaves and returns the passage around each: the enclosing
# section, within the size that a reader can use.


def passage_around(leaf: Chunk, nodes: Sequence[Chunk], size: Limits) -> tuple[Chunk, ...]:
    """The leaves of the largest enclosing section that fits, in order, including `leaf`.

    A section under the minimum is extended by the leaves beside it, as long as the whole fits; of
    one over the maximum only the leaves around `leaf` are taken.
    """
    leaves = [node for node in nodes if node.text is not None]
    by_id = {node.id: node for node in nodes}
    here = next(index for index, node in enumerate(leaves) if node.id == leaf.id)
    first, last = _enclosing(leaf, leaves, by_id, size.maximum) or (here, here)
    while _length(leaves, first, last) < size.minimum:
        grown = _grow(leaves, first, last, size.maximum)
        if grown is None:
            break
        first, last = grown
    return tuple(leaves[first : last + 1])


def _enclosing(
    leaf: Chunk, leaves: Sequence[Chunk], by_id: Mapping[ChunkId, Chunk], maximum: int
) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    node = leaf
    while node.parent_id is not None:
        node = by_id[node.parent_id]
        inside = [
            index
            for index, other in enumerate(leaves)
            if other.span.byte_start < node.span.byte_end
            and other.span.byte_end > node.span.byte_start
        ]
        if _length(leaves, inside[0], inside[-1]) > maximum:
            break
        best = inside[0], inside[-1]
    return best


def _grow(leaves: Sequence[Chunk], first: int, last: int, maximum: int) -> tuple[int, int] | None:
    """Adds one leaf, preferably the following one: a reader goes on rather than back."""
    for wider in ((first, last + 1), (first - 1, last)):
        inside = wider[0] >= 0 and wider[1] < len(leaves)
        if inside and _length(leaves, *wider) <= maximum:
            return wider
    return None


def _length(leaves: Sequence[Chunk], first: int, last: int) -> int:
    return sum(len(leaf.text or "") for leaf in leaves[first : last + 1])


MOST_BYTES_PER_CHARACTER = 4
"""In every encoding that is read."""


def expand_to_parents(
    candidates: Sequence[Candidate],
    nodes_of: NodesOf,
    size: Limits,
    overlap: int,
    per_document: int,
) -> list[Candidate]:
    """Replaces each result by its enclosing passage; children of one passage become one result,
    with the best child's score. Passages share no leaf, but each begins with up to `overlap`
    characters of the text before it. Only the first `per_document` results of a document are
    expanded.
    """
    expansion = _Expansion(nodes_of, size, overlap)
    expanded = Counter[DocId]()
    for item in candidates:
        # Merged sections are large enough, and keep their leaves.
        expansion.taken.update(dict.fromkeys((leaf.chunk.id for leaf in item.passage), item.id))
    results: dict[ChunkId, Candidate] = {}
    for item in candidates:
        bearer = expansion.taken.get(item.id)
        if bearer is not None and not item.passage:
            if bearer in results:
                results[bearer] = _join(results[bearer], item)
        elif item.passage or expanded[item.document.id] >= per_document:
            results[item.id] = item
        else:
            expanded[item.document.id] += 1
            results[item.id] = expansion.of(item)
    return list(results.values())


class _Expansion:
    """The passages so far, and their leaves."""

    def __init__(self, nodes_of: NodesOf, size: Limits, overlap: int) -> None:
        self.taken: dict[ChunkId, ChunkId] = {}
        """Leaf → the candidate whose passage contains it."""
        self._nodes_of = nodes_of
        self._size = size
        self._overlap = overlap

    def of(self, item: Candidate) -> Candidate:
        # No passage of this size extends further.
        reach = self._size.maximum * MOST_BYTES_PER_CHARACTER
        tree = ChunkTree(self._nodes_of(item.document.id, (item.stored.key,), beside=reach))
        leaves = self._free_around(item.stored, self._passage(item, tree))
        self.taken.update(dict.fromkeys((leaf.chunk.id for leaf in leaves), item.id))
        if len(leaves) == 1 and leaves[0].chunk.id == item.id:
            return item
        node = _largest_inside(item.stored, leaves, tree)
        before, lead = self._before(leaves[0], tree)
        return replace(
            item,
            stored=node,
            constituents=item.found,
            matched=item.best,
            is_parent=True,
            passage=leaves,
            before=before,
            lead=lead,
        )

    def _before(self, first: StoredChunk, tree: ChunkTree) -> tuple[StoredChunk | None, int]:
        """The leaf before a passage, and how many characters of its end are shown: whole words."""
        for node in tree.nodes:
            text = node.chunk.text
            if text is not None and node.chunk.span.byte_end == first.chunk.span.byte_start:
                return node, len(overlap_before(text, 0, len(text), self._overlap))
        return None, 0

    def _passage(self, item: Candidate, tree: ChunkTree) -> tuple[StoredChunk, ...]:
        nodes = [node.chunk for node in tree.nodes]
        passage = passage_around(item.stored.chunk, nodes, self._size)
        return tuple(tree[leaf.id] for leaf in passage)

    def _free_around(
        self, stored: StoredChunk, leaves: Sequence[StoredChunk]
    ) -> tuple[StoredChunk, ...]:
        """The leaves around a chunk that belong to no other passage."""
        here = next(n for n, leaf in enumerate(leaves) if leaf.chunk.id == stored.chunk.id)
        is_taken = [leaf.chunk.id in self.taken for leaf in leaves]
        first, last = here, here
        while first > 0 and not is_taken[first - 1]:
            first -= 1
        while last + 1 < len(leaves) and not is_taken[last + 1]:
            last += 1
        return tuple(leaves[first : last + 1])


def _largest_inside(
    stored: StoredChunk, leaves: Sequence[StoredChunk], tree: ChunkTree
) -> StoredChunk:
    """The largest section around the match that lies wholly in the passage, and so names it."""
    start, end = leaves[0].chunk.span.byte_start, leaves[-1].chunk.span.byte_end
    node = stored
    for above in tree.ancestors(stored.chunk.id):
        if above.chunk.span.byte_start < start or above.chunk.span.byte_end > end:
            break
        node = above
    return node


def _join(result: Candidate, item: Candidate) -> Candidate:
    found = {node.key: node for node in (*result.found, *item.found)}
    return replace(
        result,
        score=max(result.score, item.score),
        confidence=max(result.confidence, item.confidence),
        constituents=tuple(sorted(found.values(), key=lambda node: node.chunk.position)),
    )


# If enough of a section was found, the section is the answer (seed 004: merging).

IsNamed = Callable[[str], bool]
"""Whether a title or path names what the query asks for."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """`threshold` siblings are merged into their parent, unless it is above `max_depth` (0: the
    document) or has more than `max_bytes`."""

    threshold: int
    bonus: float
    max_depth: int
    max_bytes: int


def merged_score(best_child: float, children: int, bonus: float) -> float:
    """Seed 004's formula; a caller whose scores end at 1 must ensure that itself."""
    return best_child * (1.0 + bonus * children)


def names_all(terms: frozenset[str], analyse: Callable[[str], Iterable[str]]) -> IsNamed:
    """A title names the query if it has all of its words."""

    def is_named(title: str) -> bool:
        return bool(terms) and terms <= frozenset(analyse(title))

    # Sections of one page, and pages of one folder, have titles in common.
    return cache(is_named)


def merge_siblings(
    candidates: Sequence[Candidate], nodes_of: NodesOf, rules: MergeRules, is_named: IsNamed
) -> list[Candidate]:
    """Replaces children by their parent, in the place of the first child; never returns a passage
    and one inside it. The result must be sorted again: a merged score may have risen.
    """
    if rules.threshold < 1:
        return list(candidates)
    documents: dict[DocId, list[Candidate]] = {}
    for item in candidates:
        documents.setdefault(item.document.id, []).append(item)
    results: list[Candidate] = []
    for doc_id, found in documents.items():
        if _may_merge(found, rules, is_named):
            keys = {item.stored.key for item in found}
            tree = ChunkTree(nodes_of(doc_id, keys, inside=rules.max_bytes))
            results += _Merger(found, tree, rules, is_named).merge()
        else:
            results += found
    place = {item.id: index for index, item in enumerate(candidates)}
    return sorted(results, key=lambda item: _place(item, place))


def _place(item: Candidate, place: Mapping[ChunkId, int]) -> int:
    return min(place[node.chunk.id] for node in item.found if node.chunk.id in place)


def _size(node: StoredChunk) -> int:
    return node.chunk.span.byte_end - node.chunk.span.byte_start


def _may_merge(found: Sequence[Candidate], rules: MergeRules, is_named: IsNamed) -> bool:
    """Whether it is worth fetching the document's tree: most documents have too few matches."""
    nodes = [item.stored for item in found]
    if any(node.chunk.text is None for node in nodes):
        return True
    # A parent is above its children, except the preamble's, which is also at depth 0.
    deep = [node for node in nodes if node.chunk.depth > rules.max_depth or not rules.max_depth]
    siblings = Counter(node.chunk.parent_id for node in deep)
    if max(siblings.values(), default=0) >= rules.threshold:
        return True
    titles = {title for node in deep for title in node.chunk.breadcrumb}
    if not titles:
        return False
    return any(map(is_named, (*titles, found[0].document.path)))


class _Merger:
    """One document's matches, merged from the deepest section upwards."""

    def __init__(
        self, found: Sequence[Candidate], tree: ChunkTree, rules: MergeRules, is_named: IsNamed
    ) -> None:
        self._tree = tree
        self._path = found[0].document.path
        self._rules = rules
        self._is_named = is_named
        self._results = {item.id: item for item in found}
        self._matches = len(found)
        # The scores before merging: a merged section scores higher for other reasons.
        self._found_scores = {item.best.key: item.score for item in found}

    def merge(self) -> list[Candidate]:
        above = {
            node.chunk.id: node
            for match in self._results
            for node in self._tree.ancestors(match)
            if node.chunk.depth >= self._rules.max_depth and _size(node) <= self._rules.max_bytes
        }
        for node in sorted(above.values(), key=lambda node: -node.chunk.position):
            self._consider(node)
        return self._without_nested()

    def _consider(self, node: StoredChunk) -> None:
        children = sum(
            self._tree[match].chunk.parent_id == node.chunk.id for match in self._results
        )
        is_enough = children >= self._rules.threshold
        if is_enough or (children and self._answers_by_name(node)):
            self._replace(node, children)

    def _answers_by_name(self, node: StoredChunk) -> bool:
        chunk = node.chunk
        if chunk.kind is NodeKind.DOCUMENT:
            # Its name alone is no reason to return a whole document for one passage.
            is_named = self._is_named(chunk.title) or self._is_named(self._path)
            return is_named and self._matches >= self._rules.threshold
        return chunk.id in self._results or self._is_named(chunk.title)

    def _replace(self, node: StoredChunk, children: int) -> None:
        """Replaces everything found in a section, however deep, by the section."""
        own = node.chunk.id
        items = [item for item in self._results.values() if self._tree.is_inside(item.id, own)]
        found = [chunk for item in items for chunk in item.found]
        found.sort(key=lambda chunk: chunk.chunk.position)
        for item in items:
            del self._results[item.id]
        best = max(items, key=lambda item: item.score)
        ceiling = max(item.ceiling for item in items)
        self._results[own] = replace(
            best,
            stored=node,
            score=min(ceiling, merged_score(best.score, children, self._rules.bonus)),
            ceiling=ceiling,
            boosts={**best.boosts, "merge": 1.0 + self._rules.bonus * children},
            confidence=max(item.confidence for item in items),
            evidence=_best_evidence(items),
            constituents=tuple(found),
            passage=self._tree.leaves(own),
            matched=max(
                (item.best for item in items), key=lambda leaf: self._found_scores[leaf.key]
            ),
            vector=None,
            content_hash=b"",
            ngrams=0,
        )

    def _without_nested(self) -> list[Candidate]:
        """Of a passage and one inside it that were not merged, the better one stays."""
        kept: list[Candidate] = []
        for item in sorted(self._results.values(), key=lambda item: -item.score):
            is_nested = any(
                self._tree.is_inside(item.id, other.id) or self._tree.is_inside(other.id, item.id)
                for other in kept
            )
            if not is_nested:
                kept.append(item)
        return kept


def _best_evidence(items: Sequence[Candidate]) -> dict[Strategy, Evidence]:
    """For each index the best rank of any of them."""
    best: dict[Strategy, Evidence] = {}
    for item in items:
        for strategy, evidence in item.evidence.items():
            if strategy not in best or evidence.rank < best[strategy].rank:
                best[strategy] = evidence
    return best


# The citation of a passage: the narrowest section that contains the best match.
#
# A passage may have several sections: small ones that were joined for the embedder, or the parts of
# a merged section.

HEADING_WEIGHT = 2.0
"""The weight of a word in a section's heading, relative to its text; about as in BM25F."""
ANSWER_CHARS = 300
"""Matches this close together form one answer: two or three sentences."""

Naming = Callable[[str], int]
"""How exactly a heading is what a query asks for; 0 is not at all."""
SAME_TERMS, SAME_WORDS = 1, 2
SectionsIn = Callable[[Iterable[tuple[ChunkKey, Span]]], Sequence[StoredChunk]]
"""As `Snapshot.sections_in`."""


def make_naming(queries: Iterable[str], analyzer: Analyzer) -> Naming:
    """A heading is asked for by name if one of the queries has the same terms."""
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
    """By the heading of its section or of one in it, or by the title of its document."""
    return _exactness(item.best.chunk, naming) > 0 or naming(item.document.title) > 0


def put_named_first(candidates: Sequence[Candidate], naming: Naming) -> list[Candidate]:
    """Puts the section that a query names first within its document, with the score of the best
    candidate there: it takes that one's place, so no other document moves.
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
            results.append(_raise_to(own, item))
        if item.id not in moved:
            results.append(item)
    return results


def _exactness(chunk: Chunk, naming: Naming) -> int:
    """Of its own heading or one in it; the document's title does not count as a section's name."""
    most = naming(chunk.breadcrumb[-1]) if len(chunk.breadcrumb) > 1 else 0
    for heading in chunk.headings:
        most = max(most, naming(heading))
    return most


def _raise_to(item: Candidate, best: Candidate) -> Candidate:
    score = max(item.score, best.score)
    boosts = item.boosts
    if item.score > 0 and score > item.score:
        boosts = {**boosts, "named": score / item.score}
    return item.with_changes(score=score, boosts=boosts)


def with_sections(candidates: Sequence[Candidate], sections_in: SectionsIn) -> list[Candidate]:
    """Adds to each the sections that overlap its passage, outermost first."""
    if not candidates:
        return []
    found: dict[DocId, list[StoredChunk]] = {}
    leaves = [leaf for item in candidates for leaf in item.leaves]
    for section in sections_in((leaf.key, leaf.chunk.span) for leaf in leaves):
        found.setdefault(section.chunk.doc_id, []).append(section)
    return [
        item.with_changes(
            sections=tuple(
                section
                for section in found.get(item.document.id, ())
                if section.chunk.span.byte_start < item.span.byte_end
                and section.chunk.span.byte_end > item.span.byte_start
            )
        )
        for item in candidates
    ]


def with_surroundings(
    candidates: Sequence[Candidate], nodes_of: NodesOf, rooms: Sequence[int]
) -> list[Candidate]:
    """Adds to the first candidates the leaves that a text of `rooms` bytes around theirs can be of.
    A passage that parent retrieval has widened already stays as it is.
    """
    wider = [
        item if item.is_parent else item.with_changes(around=_around(item, nodes_of, room))
        for item, room in zip(candidates, rooms, strict=False)
    ]
    return [*wider, *candidates[len(wider) :]]


def _around(item: Candidate, nodes_of: NodesOf, room: int) -> tuple[StoredChunk, ...]:
    """The leaves without a gap between them."""
    # CRLF is two characters of the file and one of the text.
    wide = 1 if item.document.encoding.startswith("utf-8") else MOST_BYTES_PER_CHARACTER
    reach = 2 * room * wide
    own = item.leaves
    ends = {own[0].key, own[-1].key}
    nodes = nodes_of(item.document.id, ends, beside=reach)
    beside = [node for node in nodes if node.chunk.text is not None]
    found = list(own)
    for node in reversed(beside):
        if node.chunk.span.byte_end == found[0].chunk.span.byte_start:
            found.insert(0, node)
    for node in beside:
        if node.chunk.span.byte_start == found[-1].chunk.span.byte_end:
            found.append(node)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Citation:
    """The section that contains the best match, its own characters in the passage (down to the next
    heading), and those of them that answer.
    """

    section: Chunk
    own: Range
    answer: Range


class Citer:
    """Cites the passages of one answer. `worth`: the worth of a word of the queries."""

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
    ) -> Citation | None:
        """Chooses among the sections that begin in `focus` (the part that was found) or contain its
        beginning; None if there are none.
        """
        stretches = _stretches(passage, sections, focus)
        if not stretches:
            return None
        best = self._best(passage.text, stretches, matches, focus)
        own = best.start, best.end
        return Citation(best.section, own, self._answer(passage.text, own, matches))

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
            # A heading without text of its own answers only if it is asked for by name.
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
        """Each unit counts once, where it is worth most."""
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


def widest_that_fits(
    passage: Passage, sections: Sequence[Chunk], cited: Chunk, room: int
) -> Range | None:
    """The characters of the outermost section around the cited one, or of itself, that is whole in
    the passage and has at most `room` bytes.
    """
    for section in sections:
        if not (section.span.contains(cited.span) and passage.span.contains(section.span)):
            continue
        start, end = characters_of(passage, section.span)
        if len(passage.text[start:end].encode("utf-8", "surrogatepass")) <= room:
            return start, end
    return None


def characters_of(passage: Passage, span: Span) -> Range:
    """The characters of a section, which has whole lines."""
    first, last = 0, len(passage.text)
    if passage.strings:
        return passage.strings_within(span)
    if span.byte_start > passage.span.byte_start:
        first = offset_of_line(passage, span.line_start)
    if span.byte_end < passage.span.byte_end:
        last = offset_of_line(passage, span.line_end + 1)
    return (first, last) if first < last else (0, len(passage.text))


def narrowest_around(sections: Sequence[Chunk], span: Span) -> Chunk | None:
    """The innermost section that contains the whole span."""
    around = [section for section in sections if section.span.contains(span)]
    return around[-1] if around else None


def offset_of_line(passage: Passage, line: int) -> int:
    """Where a line begins in a passage; the passage's end if it is beyond."""
    if passage.strings:
        found = (at for at, span in passage.strings if span.line_start >= line)
        return next(found, len(passage.text))
    at = 0
    for _ in range(line - passage.span.line_start):
        at = passage.text.find("\n", at) + 1
        if not at:
            return len(passage.text)
    return at


def _begin(passage: Passage, section: Span) -> int:
    """Where a section begins in a passage."""
    if passage.strings:
        found = (at for at, span in passage.strings if span.byte_start >= section.byte_start)
        return next(found, len(passage.text))
    return offset_of_line(passage, section.line_start)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Characters of a passage that are in a section but in none below it; its heading, if present,
    ends at `below`.
    """

    section: Chunk
    start: int
    end: int
    below: int


def _stretches(passage: Passage, sections: Sequence[Chunk], focus: Range) -> list[_Stretch]:
    """The stretches of the text in the focus, in order."""
    begins = [
        (
            0
            if section.span.byte_start <= passage.span.byte_start
            else _begin(passage, section.span),
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
        if section.kind is NodeKind.SECTION and is_headed and not passage.strings:
            below = passage.text.find("\n", start, stop) + 1 or stop
        found.append(_Stretch(section, start, stop, below))
    return found
