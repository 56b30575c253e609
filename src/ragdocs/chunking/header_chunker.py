"""Document to chunk tree: a node per section that is worth one, leaves that tile the body.

Every character of the body stands in exactly one leaf. A section under the minimum has no node
of its own: it joins its parent's text there, or the section beside it when there is none.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from ragdocs.chunking.sections import Section, outline
from ragdocs.chunking.splitting import Limits, Splitter, overlap_before
from ragdocs.config.chunking_section import ChunkingConfig
from ragdocs.models import PREAMBLE, Chunk, ChunkId, Document, Heading, NodeKind, Slug

MAX_TITLE_CHARS = 200
"""A title goes into every breadcrumb below it; a 100,000-character heading must not."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The settings of `[chunking]` that shape the tree, in characters."""

    leaf: Limits
    small_document: int
    overlap: int

    @classmethod
    def from_settings(cls, settings: ChunkingConfig) -> Self:
        """With parent retrieval on, the child bounds replace the leaf bounds."""
        leaf = Limits(settings.min_leaf_chars, settings.max_leaf_chars)
        if settings.parent_retrieval_enabled:
            leaf = Limits(settings.child_chunk_min_chars, settings.child_chunk_max_chars)
        return cls(leaf, settings.min_document_chars, settings.overlap_chars)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node before it has a range: its name and where it hangs."""

    id: ChunkId
    kind: NodeKind
    parent_id: ChunkId | None
    depth: int
    title: str
    slug: Slug
    breadcrumb: tuple[str, ...]


def chunk_document(document: Document, sizes: ChunkSizes) -> tuple[Chunk, ...]:
    """The nodes of a document in reading order, the document's own node first."""
    builder = _TreeBuilder(document, sizes)
    builder.build(outline(document))
    return tuple(builder.chunks)


class _TreeBuilder:
    """Turns one document's outline into chunks, in reading order."""

    def __init__(self, document: Document, sizes: ChunkSizes) -> None:
        self.chunks: list[Chunk] = []
        self._document = document
        self._text = document.source.text
        self._sizes = sizes
        self._splitter = Splitter(self._text, document.blocks, sizes.leaf)
        starts = document.source.line_starts
        self._heading_starts = [starts[h.span.line_start - 1] for h in document.headings]
        self._named: set[ChunkId] = set()

    def build(self, root: Section) -> None:
        title = _short(self._document.title)
        document_id = ChunkId(self._document.id)
        node = _Node(document_id, NodeKind.DOCUMENT, None, 0, title, Slug(""), (title,))
        body = (root.start, root.end)
        is_small = root.size < self._sizes.small_document
        if self._is_blank(*body):
            self._emit(node, body)
        elif not root.children:
            self._fill(node, body, [body] if is_small else None)
        elif is_small:
            self._emit(node, body)
            self._emit_pieces(node, [body])
        else:
            self._emit(node, body)
            self._add_preamble(node, root)
            self._add_children(node, root)

    def _add_preamble(self, node: _Node, root: Section) -> None:
        """Text before the first heading is a node of its own, however short; blank lines are
        none, and go with what follows: a passage of nothing must never be an answer."""
        first = root.children[0].start
        if self._is_blank(root.start, first):
            root.children[0].start = root.start
            return
        self._fill(self._preamble(node), (root.start, first))
        root.start = first

    def _add_section(self, node: _Node, section: Section) -> None:
        if any(child.size >= self._sizes.leaf.minimum for child in section.children):
            self._emit(node, (section.start, section.end))
            self._add_children(node, section)
        else:
            self._fill(node, (section.start, section.end))

    def _add_children(self, node: _Node, section: Section) -> None:
        """The large children as nodes, and the text around them as the section's own pieces."""
        large = [child for child in section.children if child.size >= self._sizes.leaf.minimum]
        self._give_small_runs_away(section, large)
        cursor, pieces = section.start, 0
        for child in large:
            pieces += self._emit_pieces(node, self._pieces(cursor, child.start), pieces)
            if child.heading is not None:
                self._add_section(self._section(node, child.heading), child)
            cursor = child.end
        self._emit_pieces(node, self._pieces(cursor, section.end), pieces)

    def _give_small_runs_away(self, section: Section, large: list[Section]) -> None:
        """Text of the section's own that is under the minimum joins the large child beside it,
        when both then are one leaf: further down it would be cited under headings not its own.

        A heading with nothing below it but the first child's goes there in any case.
        """
        if not large:
            return
        first = large[0]
        if first is section.children[0] and (
            self._is_bare(section, first.start) or self._joins(first, section.start, first.end)
        ):
            first.start = section.start
        ends = [*(child.start for child in large[1:]), section.end]
        for child, end in zip(large, ends, strict=True):
            if self._joins(child, child.start, end):
                child.end = end

    def _joins(self, child: Section, start: int, end: int) -> bool:
        """Whether a child stretched to [start, end) is one leaf, and what it takes in is small."""
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

    def _fill(self, node: _Node, own: Range, pieces: list[Range] | None = None) -> None:
        """A node without child sections is itself the leaf, unless its text must be split."""
        pieces = pieces or self._pieces(*own)
        if len(pieces) == 1:
            self._emit(node, own, self._text[own[0] : own[1]])
        else:
            self._emit(node, own)
            self._emit_pieces(node, pieces)

    def _pieces(self, start: int, end: int) -> list[Range]:
        """A run of text cut at the headings of the small sections in it, then packed to fit."""
        if start >= end:
            return []
        if self._splitter.fits(start, end):
            return [(start, end)]
        first = bisect_left(self._heading_starts, start + 1)
        last = bisect_left(self._heading_starts, end)
        cuts = [start, *self._heading_starts[first:last], end]
        units = (piece for unit in pairwise(cuts) for piece in self._splitter.split(*unit))
        return self._splitter.pack(units, self._sizes.leaf.maximum)

    def _emit_pieces(self, owner: _Node, pieces: list[Range], numbered: int = 0) -> int:
        """Leaves below `owner`; says how many, so that later ones go on counting."""
        previous: int | None = None
        for number, (start, end) in enumerate(pieces, start=numbered + 1):
            heading = self._heading_at(start, end)
            node = self._piece(owner, heading, start, number)
            overlap = ""
            if previous is not None and heading is None:
                overlap = overlap_before(self._text, previous, start, self._sizes.overlap)
            self._emit(node, (start, end), self._text[start:end], overlap)
            previous = start
        return len(pieces)

    def _heading_at(self, start: int, end: int) -> Heading | None:
        """The heading a piece begins with, blank lines before it aside."""
        index = bisect_left(self._heading_starts, start)
        if index == len(self._heading_starts) or self._heading_starts[index] >= end:
            return None
        at = self._heading_starts[index]
        is_first = at == start or self._is_blank(start, at)
        return self._document.headings[index] if is_first else None

    def _piece(self, owner: _Node, heading: Heading | None, start: int, number: int) -> _Node:
        """A piece is named by the small section it begins with, else by its number."""
        if heading is not None:
            section = self._section(owner, heading)
            if section.id not in self._named:
                return section
        elif owner.kind is NodeKind.DOCUMENT and self._is_before_headings(start):
            return self._preamble(owner)
        return _Node(
            ChunkId(f"{owner.id}~{number}"),
            NodeKind.PART,
            owner.id,
            owner.depth + 1,
            owner.title,
            owner.slug,
            owner.breadcrumb,
        )

    def _is_before_headings(self, start: int) -> bool:
        return bool(self._heading_starts) and start == self._document.body_start

    def _section(self, parent: _Node, heading: Heading) -> _Node:
        title = _short(heading.text)
        # A document named by its first heading is not named twice.
        is_new = title and parent.breadcrumb[-1] != title
        return _Node(
            ChunkId(f"{self._document.id}#{heading.slug}"),
            NodeKind.SECTION,
            parent.id,
            heading.level,
            title,
            heading.slug,
            (*parent.breadcrumb, title) if is_new else parent.breadcrumb,
        )

    def _preamble(self, document: _Node) -> _Node:
        node_id = ChunkId(f"{document.id}#{PREAMBLE}")
        kind, title = NodeKind.PREAMBLE, document.title
        return _Node(node_id, kind, document.id, 0, title, PREAMBLE, document.breadcrumb)

    def _emit(self, node: _Node, own: Range, text: str | None = None, overlap: str = "") -> None:
        self._named.add(node.id)
        self.chunks.append(
            Chunk(
                id=node.id,
                doc_id=self._document.id,
                parent_id=node.parent_id,
                kind=node.kind,
                depth=node.depth,
                position=len(self.chunks),
                title=node.title,
                slug=node.slug,
                breadcrumb=node.breadcrumb,
                span=self._document.source.span(*own),
                text=text,
                overlap=overlap,
            )
        )

    def _is_blank(self, start: int, end: int) -> bool:
        return start >= end or self._text[start:end].isspace()


def _short(title: str) -> str:
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"
