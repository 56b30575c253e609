"""Turns a document into its chunk tree: a node for every heading, and leaves for the body."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Self

from ragdocs.chunking.splitting import Limits, Splitter, overlap_before
from ragdocs.config.settings import ChunkingConfig
from ragdocs.models import PREAMBLE, Chunk, ChunkId, Document, Heading, NodeKind, Slug, Span

# The outline of a document: every heading is a section, nested by level.


@dataclass(slots=True)
class Section:
    """A heading with everything below it, as characters [start, end) of the text.

    The root is the whole body and has no heading.
    """

    heading: Heading | None
    start: int
    end: int
    children: list["Section"] = field(default_factory=list["Section"])

    @property
    def level(self) -> int:
        return 0 if self.heading is None else self.heading.level

    @property
    def size(self) -> int:
        return self.end - self.start


def outline(document: Document) -> Section:
    """The sections of a document below one root. Skipped levels are allowed."""
    end = len(document.source.text)
    root = Section(None, document.body_start, end)
    open_sections = [root]
    for heading in document.headings:
        start = document.source.line_starts[heading.span.line_start - 1]
        _close(open_sections, heading.level, start)
        section = Section(heading, start, end)
        open_sections[-1].children.append(section)
        open_sections.append(section)
    return root


def _close(open_sections: list[Section], level: int, end: int) -> None:
    while (last := open_sections[-1]).heading is not None and last.heading.level >= level:
        last.end = end
        open_sections.pop()


# The chunk tree: a node for every heading, and leaves that cover the body.
#
# A section's node has exactly its own lines. Leaves are embedded and ranked: every character of the
# body is in exactly one. A section that is large enough is a leaf; small neighbouring ones are
# joined into a part of the section around them.

MAX_TITLE_CHARS = 200
"""Every breadcrumb below a heading has its title, so a heading of 100,000 characters is cut."""
MAX_BARE_CHARS = 400
"""Headings without any text below them, up to this length, are not a passage: they join the text
beside them. A longer list of headings is searched like any other text."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The settings of `[chunking]` that shape the tree, in characters."""

    leaf: Limits
    small_document: int
    overlap: int

    @classmethod
    def from_settings(cls, settings: ChunkingConfig) -> Self:
        """With parent retrieval, the child bounds replace the leaf bounds."""
        leaf = Limits(settings.min_leaf_chars, settings.max_leaf_chars)
        if settings.parent_retrieval_enabled:
            leaf = Limits(settings.child_chunk_min_chars, settings.child_chunk_max_chars)
        return cls(leaf, settings.min_document_chars, settings.overlap_chars)


@dataclass(frozen=True, slots=True)
class _Label:
    """The headings under which a leaf is embedded."""

    title: str
    breadcrumb: tuple[str, ...]

    def below(self, heading: Heading) -> "_Label":
        title = _short(heading.text)
        # A document titled by its first heading does not repeat the title.
        is_new = title and self.breadcrumb[-1] != title
        return _Label(title, (*self.breadcrumb, title) if is_new else self.breadcrumb)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A range of text that is embedded as one, with the end of the previous part. Before `core` it
    has only headings of outer sections, without text of their own.
    """

    label: _Label
    start: int
    end: int
    overlap: str = ""
    core: int = 0


@dataclass(frozen=True, slots=True)
class _Node:
    """The document, its preamble or a section, with exactly its own characters."""

    id: ChunkId
    kind: NodeKind
    parent_id: ChunkId | None
    depth: int
    slug: Slug
    label: _Label
    start: int
    end: int


def chunk_document(document: Document, sizes: ChunkSizes) -> tuple[Chunk, ...]:
    """The nodes of a document in reading order, the document's own node first."""
    if document.cards:
        return tuple(_card_chunks(document, sizes.leaf))
    nodes = list(_nodes(document, outline(document)))
    # Leaves need their own outline, in which sections grow by the text that joins them.
    leaves = _Leaves(document, sizes).of(outline(document))
    return tuple(_tree(document, nodes, leaves))


def _card_chunks(document: Document, limits: Limits) -> Iterator[Chunk]:
    """A section for each card of a canvas: a leaf, or the parts of a card that is too long. Cards
    are never joined, because each is cited by its own id."""
    source, label = document.source, _document_label(document)
    splitter = Splitter(source.text, document.blocks, limits)
    whole = ChunkId(document.id)
    span = Span(0, source.size, 1, len(source.line_starts))
    numbers = count()
    yield Chunk(
        whole,
        document.id,
        None,
        NodeKind.DOCUMENT,
        0,
        next(numbers),
        label.title,
        Slug(""),
        label.breadcrumb,
        span,
    )
    for card in document.cards:
        heading, below = card.heading, label.below(card.heading)
        own = ChunkId(f"{document.id}#{heading.slug}")
        pieces = splitter.split(card.start, card.end)
        node = Chunk(
            own,
            document.id,
            whole,
            NodeKind.SECTION,
            1,
            next(numbers),
            below.title,
            heading.slug,
            below.breadcrumb,
            heading.span,
        )
        if len(pieces) == 1:
            yield replace(node, text=source.text[card.start : card.end])
            continue
        yield node
        for number, (start, end) in enumerate(pieces, 1):
            yield replace(
                node,
                id=ChunkId(f"{own}~{number}"),
                parent_id=own,
                kind=NodeKind.PART,
                depth=2,
                position=next(numbers),
                span=source.span(start, end),
                text=source.text[start:end],
            )


def _nodes(document: Document, root: Section) -> Iterator[_Node]:
    """In reading order."""
    label = _document_label(document)
    whole = ChunkId(document.id)
    yield _Node(whole, NodeKind.DOCUMENT, None, 0, Slug(""), label, root.start, root.end)
    first = root.children[0].start if root.children else root.start
    if document.source.text[root.start : first].strip():
        own = ChunkId(f"{document.id}#{PREAMBLE}")
        yield _Node(own, NodeKind.PREAMBLE, whole, 0, PREAMBLE, label, root.start, first)
    waiting = [(child, whole, label) for child in reversed(root.children)]
    while waiting:
        section, parent_id, above = waiting.pop()
        heading = section.heading
        assert heading is not None  # only the root has none
        own, label = ChunkId(f"{document.id}#{heading.slug}"), above.below(heading)
        kind, level = NodeKind.SECTION, heading.level
        start, end = section.start, section.end
        yield _Node(own, kind, parent_id, level, heading.slug, label, start, end)
        waiting += [(child, own, label) for child in reversed(section.children)]


def _tree(document: Document, nodes: list[_Node], leaves: list[_Leaf]) -> Iterator[Chunk]:
    """Nodes and leaves in reading order, each after its parent. A leaf with exactly the range and
    headings of a section is that section's node; any other is a part of the narrowest section that
    contains it, apart from headings above that section.
    """
    text, span = document.source.text, document.source.span
    named = [node for node in nodes if node.kind is NodeKind.SECTION and node.label.title]
    starts = [node.start for node in named]
    exact = {(leaf.start, leaf.end): leaf for leaf in leaves}
    own: dict[ChunkId, _Leaf] = {}
    for node in reversed(nodes):  # the innermost of equal ranges
        leaf = exact.get((node.start, node.end))
        if leaf is not None and leaf.label.breadcrumb == node.label.breadcrumb:
            own[node.id] = exact.pop((node.start, node.end))
    parts = list(_parts(nodes, exact.values()))
    own.update((part.id, leaf) for part, leaf, _ in parts)
    items = [(node.start, -node.end, node) for node in nodes]
    items += [(max(part.start, owner.start), -part.end, part) for part, _, owner in parts]
    items.sort(key=lambda item: item[:2])
    for position, (_, _, node) in enumerate(items):
        leaf = own.get(node.id)
        inside: list[_Node] = []
        if leaf is not None:
            inside = named[bisect_left(starts, leaf.start) : bisect_left(starts, leaf.end)]
        yield Chunk(
            id=node.id,
            doc_id=document.id,
            parent_id=node.parent_id,
            kind=node.kind,
            depth=node.depth,
            position=position,
            title=node.label.title,
            slug=node.slug,
            breadcrumb=node.label.breadcrumb,
            span=span(node.start, node.end),
            text=None if leaf is None else text[leaf.start : leaf.end],
            overlap="" if leaf is None else leaf.overlap,
            headings=tuple(dict.fromkeys(section.label.title for section in inside)),
        )


def _parts(nodes: Sequence[_Node], leaves: Iterable[_Leaf]) -> Iterator[tuple[_Node, _Leaf, _Node]]:
    """A node for each leaf that is not a section, with the leaf and the section around it."""
    by_id = {node.id: node for node in nodes}
    starts = [node.start for node in nodes]
    numbers = Counter[ChunkId]()
    for leaf in leaves:
        owner = nodes[bisect_right(starts, leaf.core) - 1]
        is_joined = leaf.core > leaf.start and (owner.start, owner.end) == (leaf.core, leaf.end)
        while owner.parent_id is not None and (owner.end < leaf.end or is_joined):
            owner, is_joined = by_id[owner.parent_id], False
        numbers[owner.id] += 1
        own, depth = ChunkId(f"{owner.id}~{numbers[owner.id]}"), owner.depth + 1
        place = leaf.start, leaf.end
        part = _Node(own, NodeKind.PART, owner.id, depth, owner.slug, leaf.label, *place)
        yield part, leaf, owner


class _Leaves:
    """Finds the leaves of one document."""

    def __init__(self, document: Document, sizes: ChunkSizes) -> None:
        self._document = document
        self._text = document.source.text
        self._sizes = sizes
        self._splitter = Splitter(self._text, document.blocks, sizes.leaf)
        starts = document.source.line_starts
        self._heading_starts = [starts[h.span.line_start - 1] for h in document.headings]
        self._found: list[_Leaf] = []

    def of(self, root: Section) -> list[_Leaf]:
        """In reading order, without gaps; none for a document without text."""
        label = _document_label(self._document)
        body = (root.start, root.end)
        if self._is_blank(*body):
            return []
        if root.size < self._sizes.small_document:
            self._add_pieces(label, [body])
        elif not root.children:
            self._add_pieces(label, self._pieces(*body))
        else:
            self._add_preamble(label, root)
            self._add_children(label, root)
        return self._join_bare_leaves()

    def _add_preamble(self, label: _Label, root: Section) -> None:
        """Text before the first heading is its own leaf, however short. Blank lines join what
        follows: an empty passage must never be an answer."""
        first = root.children[0].start
        if self._is_blank(root.start, first):
            root.children[0].start = root.start
            return
        self._add_pieces(label, self._pieces(root.start, first))
        root.start = first

    def _add_section(self, label: _Label, section: Section) -> None:
        if any(child.size >= self._sizes.leaf.minimum for child in section.children):
            self._add_children(label, section)
        else:
            self._add_pieces(label, self._pieces(section.start, section.end), section.level)

    def _add_children(self, label: _Label, section: Section) -> None:
        """Adds each large child separately, and the text around them as the section's own."""
        large = [child for child in section.children if child.size >= self._sizes.leaf.minimum]
        self._give_small_runs_away(section, large)
        cursor = section.start
        for child in large:
            self._add_pieces(label, self._pieces(cursor, child.start), section.level)
            if child.heading is not None:
                self._add_section(label.below(child.heading), child)
            cursor = child.end
        self._add_pieces(label, self._pieces(cursor, section.end), section.level)

    def _give_small_runs_away(self, section: Section, large: list[Section]) -> None:
        """Joins text of the section that is below the minimum with the large child beside it, if
        both then are one leaf: otherwise it would be cited under another section's headings.

        A heading directly above the first child always joins it.
        """
        if not large:
            return
        first = large[0]
        if first is section.children[0] and (
            self._is_bare(section, first.start) or self._can_join(first, section.start, first.end)
        ):
            first.start = section.start
        ends = [*(child.start for child in large[1:]), section.end]
        for child, end in zip(large, ends, strict=True):
            if self._can_join(child, child.start, end):
                child.end = end

    def _can_join(self, child: Section, start: int, end: int) -> bool:
        """Whether a child extended to [start, end) is one leaf, and the added text is small."""
        minimum = self._sizes.leaf.minimum
        is_leaf = not any(below.size >= minimum for below in child.children)
        is_small = end - start - child.size < minimum
        return is_leaf and is_small and self._splitter.fits(start, end)

    def _is_bare(self, section: Section, end: int) -> bool:
        if section.heading is None:
            return False
        below = section.heading.span.line_end
        starts = self._document.source.line_starts
        return below >= len(starts) or self._is_blank(starts[below], end)

    def _pieces(self, start: int, end: int) -> list[Range]:
        """Cuts a range at the headings of its small sections, then packs the pieces."""
        if start >= end:
            return []
        if self._splitter.fits(start, end):
            return [(start, end)]
        first = bisect_left(self._heading_starts, start + 1)
        last = bisect_left(self._heading_starts, end)
        cuts = [start, *self._heading_starts[first:last], end]
        units = (piece for unit in pairwise(cuts) for piece in self._splitter.split(*unit))
        return self._splitter.pack(units, self._sizes.leaf.maximum)

    def _add_pieces(self, label: _Label, pieces: list[Range], level: int = 0) -> None:
        """Each piece is embedded under the small section it begins with, if below this level."""
        previous: int | None = None
        for start, end in pieces:
            heading = self._heading_at(start, end)
            overlap = ""
            if previous is not None and heading is None:
                overlap = overlap_before(self._text, previous, start, self._sizes.overlap)
            own = label.below(heading) if heading is not None and heading.level > level else label
            self._found.append(_Leaf(own, start, end, overlap))
            previous = start

    def _heading_at(self, start: int, end: int) -> Heading | None:
        """The heading that a piece begins with, apart from blank lines."""
        index = bisect_left(self._heading_starts, start)
        if index == len(self._heading_starts) or self._heading_starts[index] >= end:
            return None
        at = self._heading_starts[index]
        is_first = at == start or self._is_blank(start, at)
        return self._document.headings[index] if is_first else None

    def _join_bare_leaves(self) -> list[_Leaf]:
        """Joins headings with the text below them, and headings of empty sections and blank lines
        with the text before them."""
        leaves: list[_Leaf] = []
        waiting: _Leaf | None = None
        for leaf in self._found:
            if waiting is not None:
                leaf = replace(leaf, start=waiting.start, overlap=waiting.overlap)
                waiting = None
            is_bare = self._has_no_text(leaf)
            if is_bare and (not leaves or self._continues(leaf)):
                waiting = leaf
            elif is_bare:
                leaves[-1] = replace(leaves[-1], end=leaf.end)
            else:
                leaves.append(leaf)
        if waiting is not None and leaves:
            leaves[-1] = replace(leaves[-1], end=waiting.end)
        elif waiting is not None:
            leaves = [waiting]
        return [replace(leaf, core=self._core(leaf)) for leaf in leaves]

    def _core(self, leaf: _Leaf) -> int:
        """The start of the last of the consecutive headings at the leaf's beginning, each nested in
        the one before."""
        headings, at = self._document.headings, leaf.start
        before = None
        for index in self._headings_in(leaf):
            start = self._heading_starts[index]
            is_below = before is None or headings[index].level > headings[before].level
            after = leaf.start if before is None else self._after_heading(before)
            if not is_below or not self._is_blank(after, start):
                break
            before, at = index, start
        return at

    def _has_no_text(self, leaf: _Leaf) -> bool:
        if leaf.end - leaf.start > MAX_BARE_CHARS:
            return False
        at = leaf.start
        for index in self._headings_in(leaf):
            if not self._is_blank(at, self._heading_starts[index]):
                return False
            at = self._after_heading(index)
        return self._is_blank(at, leaf.end)

    def _continues(self, leaf: _Leaf) -> bool:
        """Whether the text after the leaf belongs to its last heading."""
        inside = self._headings_in(leaf)
        if not inside or inside.stop == len(self._heading_starts):
            return bool(inside) and leaf.end < len(self._text)
        headings = self._document.headings
        is_next = self._heading_starts[inside.stop] == leaf.end
        return not is_next or headings[inside.stop].level > headings[inside.stop - 1].level

    def _headings_in(self, leaf: _Leaf) -> range:
        starts = self._heading_starts
        return range(bisect_left(starts, leaf.start), bisect_left(starts, leaf.end))

    def _after_heading(self, index: int) -> int:
        below = self._document.headings[index].span.line_end
        starts = self._document.source.line_starts
        return starts[below] if below < len(starts) else len(self._text)

    def _is_blank(self, start: int, end: int) -> bool:
        return start >= end or self._text[start:end].isspace()


def _document_label(document: Document) -> _Label:
    title = _short(document.title)
    return _Label(title, (title,))


def _short(title: str) -> str:
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"
