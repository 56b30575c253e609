"""`ragdocs://` addresses of documents, sections and lines: exact for every file name.

ragdocs://doc/TREE/PATH             a document
ragdocs://doc/TREE/PATH#slug        a section of it
ragdocs://doc/TREE/PATH#L10-L40     some of its lines (slugs have no capitals)
ragdocs://tree/TREE, ragdocs://tag/TAG    what is in a tree, what has a tag
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote_to_bytes, urlsplit

from ragdocs.errors import QueryError
from ragdocs.models import TreeName
from ragdocs.parsers.ids import decode_path, document_id
from ragdocs.text import Cleaner

SCHEME = "ragdocs"
_LINES = re.compile(r"L(\d{1,9})-L(\d{1,9})")


class AddressKind(StrEnum):
    """What an address names."""

    DOCUMENT = "doc"
    TREE = "tree"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Address:
    """`name` is a document's id, a tree's name or a tag; `fragment` is a slug; the lines are 0 if
    the address has none.
    """

    kind: AddressKind
    name: str
    fragment: str = ""
    line_start: int = 0
    line_end: int = 0


def document_uri(doc_id: str) -> str:
    tree, _, encoded = doc_id.partition(":")
    path = decode_path(encoded).encode("utf-8", "surrogateescape")
    return f"{SCHEME}://{AddressKind.DOCUMENT}/{_quote(tree)}/{quote(path)}"


def lines_uri(doc_id: str, first: int, last: int) -> str:
    return f"{document_uri(doc_id)}#L{first}-L{last}"


def document_of(chunk_id: str) -> str:
    """The id of the chunk's document; `#` and `~` are encoded in a path."""
    return chunk_id.partition("#")[0].partition("~")[0]


def reference(doc_id: str) -> str:
    """What `get_document` finds it by: the id, or the address if the id has invisible
    characters."""
    return doc_id if Cleaner().clean(doc_id) == doc_id else document_uri(doc_id)


def parse_address(uri: str) -> Address:
    """Raises QueryError for anything but an address of ours."""
    try:
        parts = urlsplit(uri)
        kind = AddressKind(parts.netloc)
    except ValueError:
        raise _no_address(uri) from None
    if parts.scheme != SCHEME or parts.query:
        raise _no_address(uri)
    path, fragment = parts.path.lstrip("/"), _unquote(parts.fragment)
    if kind is not AddressKind.DOCUMENT:
        return Address(kind, _unquote(path))
    tree, _, rest = path.partition("/")
    doc_id = document_id(TreeName(_unquote(tree)), _unquote(rest))
    if found := _LINES.fullmatch(fragment):
        return Address(kind, doc_id, "", int(found[1]), int(found[2]))
    return Address(kind, doc_id, fragment)


def is_address(text: str) -> bool:
    return text.startswith(f"{SCHEME}://")


def _no_address(uri: str) -> QueryError:
    shown = uri if len(uri) < 200 and uri.isprintable() else "it"
    return QueryError(f"{shown} is not the address of a document; use {SCHEME}://doc/TREE/PATH")


def _quote(text: str) -> str:
    return quote(text, safe="")


def _unquote(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
