"""Requests to the library, checked: a value outside its range raises a QueryError."""

from collections.abc import Sized
from dataclasses import dataclass
from enum import StrEnum

from ragdocs.errors import QueryError
from ragdocs.filter_language import parse_filter
from ragdocs.limits import (
    DEFAULT_ANSWER_TOKENS,
    DEFAULT_PAGE_ENTRIES,
    DEFAULT_PASSAGES,
    DEFAULT_RELATED,
    MAX_ANSWER_TOKENS,
    MAX_CURSOR_CHARS,
    MAX_FILTER_CHARS,
    MAX_FILTER_ITEMS,
    MAX_LINE,
    MAX_PAGE_ENTRIES,
    MAX_REFERENCE_CHARS,
    MAX_RELATED,
    MAX_SOURCE_CHARS,
    MAX_SOURCE_FILES,
    MAX_SOURCES_CHARS,
    MAX_TOP_N,
)

# The messages name the limit; they do not repeat a value that is too long.


def check_number(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise QueryError(f"{name} must be a whole number from {least:,} to {most:,}")
    if not least <= value <= most:
        raise QueryError(f"{name} must be from {least:,} to {most:,}")


def check_length(name: str, value: Sized, most: int) -> None:
    check_sum(name, len(value), most)


def check_sum(name: str, size: int, most: int) -> None:
    if size > most:
        raise QueryError(f"{name} is too long: {size:,} characters; the maximum is {most:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRequest:
    """A document, section or line range; or, by the cursor of a page, the page that follows it.

    `reference` is an id of a document or chunk (`tree:path`, `tree:path#slug`), `path`,
    `path#heading`, or `path:10-40`. Lines are those of the file, from 1, both ends included.
    `outline` asks for headings in place of text; `full_document` for all of the document that the
    reference is in. A cursor is enough by itself.
    """

    reference: str = ""
    start_line: int | None = None
    end_line: int | None = None
    outline: bool = False
    full_document: bool = False
    max_tokens: int = DEFAULT_ANSWER_TOKENS
    cursor: str = ""

    def __post_init__(self) -> None:
        check_length("the reference", self.reference, MAX_REFERENCE_CHARS)
        check_length("the cursor", self.cursor, MAX_CURSOR_CHARS)
        check_number("max_tokens", self.max_tokens, 1, MAX_ANSWER_TOKENS)
        _check_lines(self.start_line, self.end_line)
        if not self.reference.strip() and not self.cursor:
            raise QueryError("no document is given: give an id, a path or a cursor")
        if self.full_document and self.has_lines:
            raise QueryError("full_document and a line range cannot be combined: give one of them")

    @property
    def has_lines(self) -> bool:
        return self.start_line is not None or self.end_line is not None


class ListKind(StrEnum):
    """What to list."""

    TREES = "trees"
    DOCUMENTS = "documents"
    OUTLINES = "outlines"
    """The headings of the documents, one entry each."""
    TAGS = "tags"
    PROPERTIES = "properties"
    """Front-matter properties and inline fields, with their kinds and most frequent values."""
    CHUNKS = "chunks"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """A list of what is in the index. Every given filter must hold; a cursor is enough by itself.

    `path` is a folder or file, by whole components; `tags` are matched without regard to case, and
    a tag includes those nested below it. Filters do not apply to the list of trees.
    """

    kind: ListKind = ListKind.DOCUMENTS
    tree: str = ""
    path: str = ""
    tags: tuple[str, ...] = ()
    where: str = ""
    """Conditions in the filter language."""
    limit: int = DEFAULT_PAGE_ENTRIES
    max_tokens: int = DEFAULT_ANSWER_TOKENS
    cursor: str = ""

    def __post_init__(self) -> None:
        check_length("tree", self.tree, MAX_FILTER_CHARS)
        check_length("path", self.path, MAX_REFERENCE_CHARS)
        check_length("the cursor", self.cursor, MAX_CURSOR_CHARS)
        check_number("limit", self.limit, 1, MAX_PAGE_ENTRIES)
        check_number("max_tokens", self.max_tokens, 1, MAX_ANSWER_TOKENS)
        _ = parse_filter(self.where)
        check_number("the number of tags", len(self.tags), 0, MAX_FILTER_ITEMS)
        for tag in self.tags:
            check_length("a tag", tag, MAX_FILTER_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRequest:
    """What is related to a document or section, or to any other text: `content` is that of a file
    that is not indexed, whose name is the reference. At most `limit` of each kind."""

    reference: str
    limit: int = DEFAULT_RELATED
    content: str | bytes | None = None

    def __post_init__(self) -> None:
        check_length("the reference", self.reference, MAX_REFERENCE_CHARS)
        check_number("limit", self.limit, 1, MAX_RELATED)
        check_length("the text", self.content or "", MAX_SOURCE_CHARS)
        if not self.reference.strip():
            raise QueryError("no document is given: give an id or a path")


@dataclass(frozen=True, slots=True)
class EditedFile:
    """An edited file: its path as the user sees it, and its content, which may be any bytes.

    Without content, only the words of the path count.
    """

    name: str
    content: str | bytes = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """The documentation for source files, for a unified diff, or for both."""

    files: tuple[EditedFile, ...] = ()
    diff: str | bytes = ""
    top_n: int = DEFAULT_PASSAGES
    max_tokens: int = DEFAULT_ANSWER_TOKENS
    trees: frozenset[str] = frozenset()
    explain: bool = False

    def __post_init__(self) -> None:
        check_number("top_n", self.top_n, 1, MAX_TOP_N)
        check_number("max_tokens", self.max_tokens, 1, MAX_ANSWER_TOKENS)
        check_number("the number of files", len(self.files), 0, MAX_SOURCE_FILES)
        for file in self.files:
            check_length("a file's name", file.name, MAX_REFERENCE_CHARS)
            check_length("a file", file.content, MAX_SOURCE_CHARS)
        total = len(self.diff) + sum(len(file.content) for file in self.files)
        check_sum("all files together", total, MAX_SOURCES_CHARS)
        if not self.files and not self.diff:
            raise QueryError("nothing is given: give source files or a diff")


def _check_lines(start: int | None, end: int | None) -> None:
    for name, line in (("start_line", start), ("end_line", end)):
        if line is not None:
            check_number(name, line, 1, MAX_LINE)
    if start is not None and end is not None and start > end:
        raise QueryError(f"start_line {start} is after end_line {end}: swap them")
