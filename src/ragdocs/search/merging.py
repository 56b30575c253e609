"""When enough of a section was found, the section is the answer (seed 004: merging)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ragdocs.models import ChunkId, DocId, NodeKind
from ragdocs.search.candidates import Candidate, Evidence, Strategy
from ragdocs.search.chunk_tree import ChunkTree, NodesOf
from ragdocs.store.records import StoredChunk

IsNamed = Callable[[str], bool]
"""Whether a title or path says what the query asks for."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """`threshold` siblings give their parent, if it is not above `max_depth` (0: the document) and
    has at most `max_bytes`."""

    threshold: int
    bonus: float
    max_depth: int
    max_bytes: int


def merged_score(best_child: float, children: int, bonus: float) -> float:
    """Seed 004's formula; a caller whose scores end at 1 must see to that."""
    return best_child * (1.0 + bonus * children)


def names_all(terms: frozenset[str], analyse: Callable[[str], Iterable[str]]) -> IsNamed:
    """A title names the query when it has all its words: then the section is about nothing less."""

    def is_named(title: str) -> bool:
        return bool(terms) and terms <= frozenset(analyse(title))

    # Sections of one page, and pages of one folder, have titles in common.
    return cache(is_named)


def merge_siblings(
    candidates: Sequence[Candidate], nodes_of: NodesOf, rules: MergeRules, is_named: IsNamed
) -> list[Candidate]:
    """Parents in place of their children, each where its first-placed child was; never a passage
    and one inside it. To be sorted again: a merged score may have risen.
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
            results += _Merger(found, tree, rules, is_named).merged()
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
    # A parent is higher up than its children, but for the preamble, which is at 0 like its own.
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
        # Of what was found itself: a merged section scores higher for other reasons.
        self._found_scores = {item.best.key: item.score for item in found}

    def merged(self) -> list[Candidate]:
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
            # Its name alone is no reason to give a whole document for one passage.
            is_named = self._is_named(chunk.title) or self._is_named(self._path)
            return is_named and self._matches >= self._rules.threshold
        return chunk.id in self._results or self._is_named(chunk.title)

    def _replace(self, node: StoredChunk, children: int) -> None:
        """A section for all that was found in it, however deep."""
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
        """Of a passage and one inside it, both found and not merged, the better one stays."""
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
    """For each index the best place it gave to any of them."""
    best: dict[Strategy, Evidence] = {}
    for item in items:
        for strategy, evidence in item.evidence.items():
            if strategy not in best or evidence.rank < best[strategy].rank:
                best[strategy] = evidence
    return best
