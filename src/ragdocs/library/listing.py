"""Lists trees, documents, headings, tags, properties and chunks."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ragdocs.config.resolved import Tree
from ragdocs.errors import QueryError
from ragdocs.filter_language import PropertyKind, read_value
from ragdocs.indices.view import View
from ragdocs.library.answers import (
    ChunkEntry,
    DocumentEntry,
    Listing,
    OutlineEntry,
    PropertyEntry,
    TagEntry,
    TreeEntry,
    short,
    shown_tags,
)
from ragdocs.library.documents import outline
from ragdocs.library.paging import (
    Entry,
    Key,
    ListPosition,
    Page,
    next_cursor,
    pack_page,
    read_cursor,
)
from ragdocs.library.requests import ListKind, ListRequest
from ragdocs.limits import MAX_PROPERTY_VALUES_SHOWN
from ragdocs.models import DocId
from ragdocs.places import Places, printable_name, shown_path
from ragdocs.references import nearest, resolve_filter
from ragdocs.search.budget import BYTES_PER_TOKEN
from ragdocs.search.requests import Filters, refuse_unknown_trees, to_filter
from ragdocs.store.records import ChunkCounts, StoredChunk, StoredDocument, TreeCounts

# From stored values to the entries of a list.


def tree_entry(tree: Tree, counts: TreeCounts) -> TreeEntry:
    return TreeEntry(
        name=tree.name,
        scope=tree.scope.value,
        root=str(tree.root),
        documents=counts.documents,
        passages=counts.leaves,
        bytes=counts.size,
        failed_files=counts.failures,
    )


def document_entry(document: StoredDocument, counts: ChunkCounts) -> DocumentEntry:
    return DocumentEntry(
        id=document.id,
        tree=document.tree,
        path=shown_path(document.path),
        title=short(document.title),
        tags=shown_tags(document),
        modified=document.date,
        bytes=document.size,
        tokens=_tokens(document.size),
        lines=document.lines,
        chunks=counts.nodes,
        passages=counts.leaves,
    )


def chunk_entry(stored: StoredChunk, document: StoredDocument) -> ChunkEntry:
    chunk, span = stored.chunk, stored.chunk.span
    size = span.byte_end - span.byte_start
    return ChunkEntry(
        id=chunk.id,
        doc_id=chunk.doc_id,
        tree=document.tree,
        path=shown_path(document.path),
        parent_id=chunk.parent_id,
        kind=chunk.kind.value,
        depth=chunk.depth,
        heading_path=chunk.breadcrumb,
        line_start=span.line_start,
        line_end=span.line_end,
        bytes=size,
        tokens=_tokens(size),
        is_leaf=chunk.text is not None,
    )


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


# Tags of many documents: spellings that differ only in case are one tag.


def count_tags(documents: Iterable[StoredDocument]) -> list[TagEntry]:
    """The most used first, in their most frequent spelling."""
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for folded, tag in {tag.casefold(): tag for tag in document.tags}.items():
            spellings[folded][tag] += 1
    found = [
        TagEntry(tag=min(counts, key=lambda tag: (-counts[tag], tag)), documents=counts.total())
        for counts in spellings.values()
    ]
    return sorted(found, key=lambda entry: (-entry.documents, entry.tag.casefold(), entry.tag))


# Properties of many documents.


def count_properties(documents: Iterable[StoredDocument]) -> list[PropertyEntry]:
    """The most used first; values that differ only in case are one, in their most frequent form."""
    holders = Counter[str]()
    values: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for key, texts in document.properties:
            holders[key] += 1
            values[key].update({*texts})
    found = [_property_entry(key, count, values[key]) for key, count in holders.items()]
    return sorted(found, key=lambda entry: (-entry.documents, entry.key))


def _property_entry(key: str, documents: int, spellings: Counter[str]) -> PropertyEntry:
    folded = Counter[str]()
    shown: dict[str, str] = {}
    kinds = Counter[PropertyKind]()
    for text, count in sorted(spellings.items(), key=lambda each: (-each[1], each[0])):
        value = read_value[text]
        folded[value.text] += count
        shown.setdefault(value.text, text)
        kinds[value.kind] += count
    first = sorted(folded.items(), key=lambda each: (-each[1], each[0]))
    return PropertyEntry(
        key=key,
        kinds=tuple(kind.value for kind, _ in kinds.most_common()),
        documents=documents,
        distinct_values=len(folded),
        values={short(shown[name]): count for name, count in first[:MAX_PROPERTY_VALUES_SHOWN]},
    )


# `list`: trees, documents, headings, tags, properties and chunks, in a stable order, page by page.
#
# A page begins after the last entry of the one before, wherever that is by then: entries that are
# added or removed meanwhile neither repeat nor hide others.

_NO_TREE = TreeCounts(0, 0, 0, 0)
_READ_AT_ONCE = 64
_NOTHING = "nothing matches: use fewer filters, or check whether the index is complete"


class Lister:
    """Answers one request from one view."""

    def __init__(
        self, view: View, trees: Sequence[Tree], places: Places, request: ListRequest
    ) -> None:
        """Raises QueryError for an unknown tree, a filter that no document passes, or a cursor of
        another list."""
        self._view = view
        self._trees = sorted(trees, key=lambda tree: tree.name)
        self._asked: ListPosition = read_cursor(request, view.position.generation)
        self._request = self._asked.request
        self._check()
        filters = self._filters()
        refuse_unknown_trees(filters.named_trees, [tree.name for tree in self._trees])
        self._filter = resolve_filter(view, to_filter(filters), places)

    def listing(self) -> Listing:
        match self._request.kind:
            case ListKind.TREES:
                return self._list_trees()
            case ListKind.DOCUMENTS:
                return self._list_documents()
            case ListKind.OUTLINES:
                return self._list_outlines()
            case ListKind.TAGS:
                return self._list_tags()
            case ListKind.PROPERTIES:
                return self._list_properties()
            case ListKind.CHUNKS:
                return self._list_chunks()

    def _check(self) -> None:
        names = [tree.name for tree in self._trees]
        if self._request.tree and self._request.tree not in names:
            near = nearest(self._request.tree, names, len(names)) or names
            known = ", ".join(f"`{name}`" for name in near)
            raise QueryError(
                f"there is no tree `{printable_name(self._request.tree)}`; there is {known}"
            )

    def _list_trees(self) -> Listing:
        counts = self._view.tree_counts()
        entries = [tree_entry(tree, counts.get(tree.name, _NO_TREE)) for tree in self._trees]
        page = self._page(((entry.name,), entry) for entry in entries)
        return replace(self._listing(len(entries), page), trees=page.entries)

    def _list_tags(self) -> Listing:
        entries = count_tags(self._documents())
        page = self._page(
            ((-entry.documents, entry.tag.casefold(), entry.tag), entry) for entry in entries
        )
        return replace(self._listing(len(entries), page), tags=page.entries)

    def _list_properties(self) -> Listing:
        entries = count_properties(self._documents())
        page = self._page(((-entry.documents, entry.key), entry) for entry in entries)
        return replace(self._listing(len(entries), page), properties=page.entries)

    def _list_documents(self) -> Listing:
        ids = self._ids()
        page = self._page(
            ((document.id,), document_entry(document, counts))
            for document, counts in self._documents_with_counts(self._from(ids))
        )
        return replace(self._listing(len(ids), page), documents=page.entries)

    def _list_outlines(self) -> Listing:
        ids = self._ids()
        total = self._view.content_counts(ids).headings
        page = self._page(
            ((doc_id, at), entry)
            for doc_id in self._from(ids)
            for at, entry in enumerate(self._headings(doc_id))
        )
        return replace(self._listing(total, page), outlines=page.entries)

    def _list_chunks(self) -> Listing:
        ids = self._ids()
        total = self._view.content_counts(ids).chunks
        page = self._page(
            ((doc_id, at), chunk_entry(stored, document))
            for doc_id in self._from(ids)
            for at, stored in enumerate(self._view.chunks(doc_id))
            if (document := self._view.document(doc_id)) is not None
        )
        return replace(self._listing(total, page), chunks=page.entries)

    def _listing(self, total: int, page: Page[Entry]) -> Listing:
        notes = (*self._asked.notes, *self._filter.notes)
        if not total and not self._filter.notes and self._request.kind is not ListKind.TREES:
            notes = (*notes, _NOTHING)
        cursor = next_cursor(self._request, page.last, self._view.position.generation)
        return Listing(kind=self._request.kind.value, total=total, cursor=cursor, notes=notes)

    def _page(self, rows: Iterable[tuple[Key, Entry]]) -> Page[Entry]:
        after = self._asked.after
        left = ((key, entry) for key, entry in rows if after is None or key > after)
        return pack_page(left, self._request.limit, self._request.max_tokens)

    def _from(self, ids: Sequence[DocId]) -> Sequence[DocId]:
        """The documents that can have entries on this page."""
        after = self._asked.after
        return ids if after is None else ids[bisect_left(ids, str(after[0])) :]

    def _ids(self) -> list[DocId]:
        """The documents that match the filters, in order."""
        if self._filter.condition is None:
            return self._view.document_ids()
        return sorted(document.id for document in self._documents())

    def _documents(self) -> Iterable[StoredDocument]:
        return self._view.filtered_documents(self._filter.condition)

    def _filters(self) -> Filters:
        request = self._request
        if request.kind is ListKind.TREES:
            return Filters()
        return Filters(
            trees=frozenset({request.tree} - {""}),
            paths=(request.path,) if request.path else (),
            tags=frozenset(request.tags),
            where=request.where,
        )

    def _documents_with_counts(
        self, ids: Sequence[DocId]
    ) -> Iterator[tuple[StoredDocument, ChunkCounts]]:
        for start in range(0, len(ids), _READ_AT_ONCE):
            part = ids[start : start + _READ_AT_ONCE]
            documents = self._view.documents_by_id(part)
            counts = self._view.chunk_counts(part)
            for doc_id in part:
                yield documents[doc_id], counts[doc_id]

    def _headings(self, doc_id: DocId) -> list[OutlineEntry]:
        document = self._view.document(doc_id)
        if document is None:
            return []
        place = {"tree": document.tree, "path": shown_path(document.path)}
        entries = outline(self._view, document)
        return [replace(entry, **place) for entry in entries if entry.level]
