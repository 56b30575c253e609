"""`ragdocs://` addresses of documents, sections and lines: exact, whatever is in a file's name.

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
    """What stands at an address."""

    DOCUMENT = "doc"
    TREE = "tree"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Address:
    """`name` is a document's id, a tree's name or a tag; `fragment` a slug; the lines 0 when none
    are meant.
    """

    kind: AddressKind
    name: str
    fragment: str = ""
    line_start: int = 0
    line_end: int = 0


def document_uri(doc_id: str) -> str:
    tree, _, encoded = doc_id.partition(":")
    path = decode_path(encoded).encode("utf-8", "surrogateescape")
    return f"{SCHEME}://{AddressKind.DOCUMENT}/{_quoted(tree)}/{quote(path)}"


def lines_uri(doc_id: str, first: int, last: int) -> str:
    return f"{document_uri(doc_id)}#L{first}-L{last}"


def document_of(chunk_id: str) -> str:
    """Whose chunk it is: in a path, `#` and `~` are encoded."""
    return chunk_id.partition("#")[0].partition("~")[0]


def reference(doc_id: str) -> str:
    """By which `get_document` finds it: the id, unless something in it must not be shown."""
    return doc_id if Cleaner().clean(doc_id) == doc_id else document_uri(doc_id)


def parse_address(uri: str) -> Address:
    """Raises QueryError for what is not an address of ours."""
    try:
        parts = urlsplit(uri)
        kind = AddressKind(parts.netloc)
    except ValueError:
        raise _unknown(uri) from None
    if parts.scheme != SCHEME or parts.query:
        raise _unknown(uri)
    path, fragment = parts.path.lstrip("/"), _unquoted(parts.fragment)
    if kind is not AddressKind.DOCUMENT:
        return Address(kind, _unquoted(path))
    tree, _, rest = path.partition("/")
    doc_id = document_id(TreeName(_unquoted(tree)), _unquoted(rest))
    if found := _LINES.fullmatch(fragment):
        return Address(kind, doc_id, "", int(found[1]), int(found[2]))
    return Address(kind, doc_id, fragment)


def is_address(text: str) -> bool:
    return text.startswith(f"{SCHEME}://")


def _unknown(uri: str) -> QueryError:
    shown = uri if len(uri) < 200 and uri.isprintable() else "it"
    return QueryError(f"{shown} is no address of a document: they are {SCHEME}://doc/TREE/PATH")


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _unquoted(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
