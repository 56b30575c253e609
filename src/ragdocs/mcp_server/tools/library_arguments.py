"""The parameters of what reads, lists and relates documents, and the requests they make."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ragdocs.mcp_server.addresses import AddressKind, is_address, parse_address
from ragdocs.mcp_server.tools.arguments import Arguments, BadArguments
from ragdocs.mcp_server.tools.fields import (
    DEFAULT_TOKENS,
    Cursor,
    Tokens,
    Word,
    listed,
    number,
    path_field,
    word_field,
)
from ragdocs.search.library.requests import (
    DEFAULT_ENTRIES,
    DEFAULT_RELATED,
    MAX_ENTRIES,
    MAX_FILE_CHARS,
    MAX_LINE,
    MAX_RELATED,
    ContextRequest,
    DocumentRequest,
    ListKind,
    ListRequest,
    RelatedRequest,
    SourceFile,
)

Line = Annotated[int, number(1, MAX_LINE, "From 1, inclusive; default: all.")]


class DocumentArguments(Arguments):
    """`get_document`"""

    document: Annotated[
        str, path_field("id, path, path#heading, path:10-40 or ragdocs:// URI.")
    ] = ""
    start_line: Line | None = None
    end_line: Line | None = None
    outline: Annotated[bool, Field(description="Headings with lines and sizes only.")] = False
    full_document: Annotated[bool, Field(description="All of the section's document.")] = False
    max_tokens: Tokens = DEFAULT_TOKENS
    cursor: Cursor = ""

    def to_request(self, max_tokens: int) -> DocumentRequest:
        where = resolved(self.document)
        return DocumentRequest(
            reference=where.reference,
            start_line=self.start_line or where.start_line,
            end_line=self.end_line or where.end_line,
            outline=self.outline,
            full_document=self.full_document,
            max_tokens=max_tokens,
            cursor=self.cursor,
        )


class ListArguments(Arguments):
    """`list_documents`"""

    kind: Annotated[
        Literal["documents", "trees", "outlines", "tags"],
        Field(description="What to list; outlines: every heading."),
    ] = "documents"
    tree: Annotated[str, word_field("Only this tree.")] = ""
    path: Annotated[str, path_field("Only this folder or file.")] = ""
    tags: Annotated[tuple[Word, ...], listed("Only with all these tags.")] = ()
    limit: Annotated[int, number(1, MAX_ENTRIES, "Entries per page.")] = DEFAULT_ENTRIES
    max_tokens: Tokens = DEFAULT_TOKENS
    cursor: Cursor = ""

    def to_request(self, max_tokens: int) -> ListRequest:
        return ListRequest(
            kind=ListKind(self.kind),
            tree=self.tree,
            path=self.path,
            tags=self.tags,
            limit=self.limit,
            max_tokens=max_tokens,
            cursor=self.cursor,
        )


class SourceArgument(Arguments):
    """A file that is worked on."""

    path: Annotated[str, path_field("Its path.")]
    content: Annotated[
        str, Field(max_length=MAX_FILE_CHARS, description="Its text, if at hand.")
    ] = ""


class RelatedArguments(Arguments):
    """`find_related`"""

    document: Annotated[str, path_field("As in get_document.")] = ""
    files: Annotated[tuple[SourceArgument, ...], listed("Source files you work on.")] = ()
    diff: Annotated[
        str, Field(max_length=MAX_FILE_CHARS, description="A unified diff, likewise.")
    ] = ""
    limit: Annotated[int, number(1, MAX_RELATED, "At most so many of each kind.")] = DEFAULT_RELATED
    max_tokens: Tokens = DEFAULT_TOKENS

    @property
    def is_about_sources(self) -> bool:
        if bool(self.document.strip()) == bool(self.files or self.diff):
            raise BadArguments("give either document, or files and diff")
        return not self.document.strip()

    def related_request(self, limit: int) -> RelatedRequest:
        return RelatedRequest(reference=resolved(self.document).reference, limit=limit)

    def context_request(self, max_tokens: int) -> ContextRequest:
        return ContextRequest(
            files=tuple(SourceFile(file.path, file.content) for file in self.files),
            diff=self.diff,
            top_n=self.limit,
            max_tokens=max_tokens,
        )


class StatusArguments(Arguments):
    """`index_status`"""


@dataclass(frozen=True, slots=True)
class Where:
    """A document as the library knows it, and the lines that an address names."""

    reference: str
    start_line: int | None = None
    end_line: int | None = None


def resolved(document: str) -> Where:
    """Addresses are ours; everything else the library understands."""
    if not is_address(document):
        return Where(document)
    address = parse_address(document)
    if address.kind is not AddressKind.DOCUMENT:
        raise BadArguments(f"{document} is no document: list_documents shows what it holds")
    if address.line_start:
        return Where(address.name, address.line_start, address.line_end)
    return Where(f"{address.name}#{address.fragment}" if address.fragment else address.name)
