"""Pages of long answers: cursors, and as many entries as fit."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from ragdocs.errors import QueryError
from ragdocs.library.answers import DocumentPart
from ragdocs.library.requests import ListKind, ListRequest
from ragdocs.search.budget import BYTES_PER_TOKEN, tokens

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# A cursor says where the next page begins, as one opaque word. Nothing is kept between two pages:
# the cursor contains everything, with a checksum.

CHECK_BYTES = 4
Value = str | int | list[str | int]

_DAMAGED = "the cursor is damaged or belongs to another list: omit it to get the first page"


_KINDS = ("document", "list")
_SHAPES: dict[str, type] = {
    "doc": str,
    "version": str,
    "part": str,
    "extent": DocumentPart,
    "first": int,
    "last": int,
    "outline": int,
    "at": int,
    "line": int,
    "kind": ListKind,
    "tree": str,
    "path": str,
    "tags": list,
    "generation": int,
    "after": list,
    "where": str,
}
_KEY_SHAPES: dict[ListKind, tuple[type, ...]] = {
    ListKind.TREES: (str,),
    ListKind.DOCUMENTS: (str,),
    ListKind.OUTLINES: (str, int),
    ListKind.TAGS: (int, str, str),
    ListKind.PROPERTIES: (int, str),
    ListKind.CHUNKS: (str, int),
}
"""Of `after`: the sort key of an entry in each list."""
_LETTERS = {name: chr(ord("a") + at) for at, name in enumerate((*_KINDS, *_SHAPES))}
"""Models read and repeat cursors: each name is one letter in them."""
_NAMES = {letter: name for name, letter in _LETTERS.items()}


def short_digest(text: str) -> str:
    """Stands for a long name in a cursor."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return base64.urlsafe_b64encode(digest).decode()


def encode_cursor(kind: str, values: Mapping[str, Value]) -> str:
    """Values that are empty or 0 are left out."""
    kept = {_LETTERS[name]: value for name, value in values.items() if value}
    payload = json.dumps([_LETTERS[kind], kept], separators=(",", ":")).encode()
    return _word(_check(payload) + payload)


def decode_cursor(kind: str, cursor: str) -> dict[str, Value]:
    """The values of a cursor of this kind. Raises QueryError if it is not one."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
    except (binascii.Error, ValueError):
        raise QueryError(_DAMAGED) from None
    check, payload = raw[:CHECK_BYTES], raw[CHECK_BYTES:]
    # The last character may have bits that stand for nothing: another one must not pass for it.
    if _check(payload) != check or _word(raw) != cursor:
        raise QueryError(_DAMAGED)
    values = _read_payload(kind, payload)
    if values is None or not _is_well_formed(values):
        raise QueryError(_DAMAGED)
    return cast(dict[str, Value], values)


# The checksum finds mistakes, not forgeries, because its key is public: a payload can be anything.


def _read_payload(kind: str, payload: bytes) -> dict[str, object] | None:
    try:
        match json.loads(payload):
            case [found_kind, {**values}] if found_kind == _LETTERS[kind]:
                return {_NAMES[letter]: value for letter, value in values.items()}
            case _:
                return None
    except (ValueError, KeyError, RecursionError):
        return None


def _is_well_formed(values: Mapping[str, object]) -> bool:
    if not all(_has_shape(value, _SHAPES.get(name)) for name, value in values.items()):
        return False
    tags = cast(list[object], values.get("tags", []))
    if any(type(tag) is not str for tag in tags):
        return False
    if "after" in values:
        key = cast(list[object], values["after"])
        kind = ListKind(str(values.get("kind", ListKind.DOCUMENTS)))
        if tuple(map(type, key)) != _KEY_SHAPES[kind]:
            return False
    # Half a character would stop the store, where a part is looked up.
    if any("\ud800" <= letter <= "\udfff" for letter in str(values.get("part", ""))):
        return False
    # A page of text may begin before the body, in front matter; an outline has nothing there.
    return not values.get("outline") or cast(int, values.get("at", 0)) >= 0


def _has_shape(value: object, shape: type | None) -> bool:
    if shape is not None and issubclass(shape, StrEnum):
        return value in [each.value for each in shape]
    return type(value) is shape


def _word(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _check(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=CHECK_BYTES, key=b"cursor").digest()


# How many entries of a list fit on a page.

Key = tuple[str | int, ...]
"""The sort key of an entry in its list."""
Entry = TypeVar("Entry", bound="DataclassInstance")
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


@dataclass(frozen=True, slots=True)
class Page(Generic[Entry]):
    """The entries that fit, their tokens, and the key of the last one if others follow."""

    entries: tuple[Entry, ...]
    tokens: int
    last: Key | None


def pack_page(rows: Iterable[tuple[Key, Entry]], limit: int, max_tokens: int) -> Page[Entry]:
    """The first entries that fit; at least one, if there is one."""
    taken: list[Entry] = []
    used = 0
    last: Key = ()
    for key, entry in rows:
        cost = entry_tokens(entry)
        if len(taken) >= limit or (taken and used + cost > max_tokens):
            return Page(tuple(taken), used, last)
        taken.append(entry)
        used += cost
        last = key
    return Page(tuple(taken), used, None)


def entry_tokens(entry: "DataclassInstance") -> int:
    """Of the entry as JSON, for programs; the form for people is shorter."""
    names = entry.__dataclass_fields__
    return tokens(_encode({name: getattr(entry, name) for name in names}))


# A list's cursor: the whole request, and the entry after which its next page begins.

_CURSOR = "list"
_CARRIED = ("kind", "tree", "path", "tags", "where")
_DEFAULTS = {field.name: field.default for field in fields(ListRequest)}


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A request with its cursor decoded: the page begins after this entry; `notes` say if the index
    has changed since the page before.
    """

    request: ListRequest
    after: Key | None = None
    notes: tuple[str, ...] = ()


def read_cursor(request: ListRequest, generation: int) -> ListPosition:
    """Raises QueryError if the cursor is damaged or of another list."""
    if not request.cursor:
        return ListPosition(request)
    values = decode_cursor(_CURSOR, request.cursor)
    tags = values.get("tags")
    carried = replace(
        request,
        kind=ListKind(str(values.get("kind", ListKind.DOCUMENTS))),
        tree=str(values.get("tree", "")),
        path=str(values.get("path", "")),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        where=str(values.get("where", "")),
    )
    for name in _CARRIED:
        given = getattr(request, name)
        if given not in (_DEFAULTS[name], getattr(carried, name)):
            raise QueryError(
                f"the cursor belongs to a list with another `{name}`: omit one of the two"
            )
    after = values.get("after")
    is_same = values.get("generation", 0) == generation
    notes = () if is_same else ("the index has changed since the previous page",)
    return ListPosition(carried, tuple(after) if isinstance(after, list) else None, notes)


def next_cursor(request: ListRequest, last: Key | None, generation: int) -> str | None:
    if last is None:
        return None
    values: dict[str, Value] = {
        "kind": "" if request.kind is ListKind.DOCUMENTS else request.kind,
        "tree": request.tree,
        "path": request.path,
        "tags": [*request.tags],
        "where": request.where,
        "generation": generation,
        "after": list(last),
    }
    return encode_cursor(_CURSOR, values)


# Where a page ends: after as many lines as fit; a longer line is cut.


def page_end(text: str, start: int, end: int, max_tokens: int) -> int:
    """The end of the page of text[start:end] that begins at `start`. A page is at most `max_tokens`
    long, and ends with a line or within a longer one.
    """
    room = max_tokens * BYTES_PER_TOKEN
    piece = text[start : min(end, start + room)]
    data = piece.encode("utf-8", "replace")
    if len(data) <= room and start + len(piece) == end:
        return end
    fitting = data[:room].decode("utf-8", "ignore")
    lines = fitting.rfind("\n") + 1
    return start + (lines or len(fitting))
