"""A list's cursor: the whole request, and the entry after which its next page begins."""

from dataclasses import dataclass, fields, replace

from ragdocs.errors import QueryError
from ragdocs.search.library.cursors import Value, decode_cursor, encode_cursor
from ragdocs.search.library.packing import Key
from ragdocs.search.library.requests import ListKind, ListRequest

_CURSOR = "list"
_CARRIED = ("kind", "tree", "path", "tags")
_DEFAULTS = {field.name: field.default for field in fields(ListRequest)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its cursor read: the page begins after this entry; `notes` say if the index
    has changed since the page before.
    """

    request: ListRequest
    after: Key | None = None
    notes: tuple[str, ...] = ()


def asked(request: ListRequest, generation: int) -> Asked:
    """Raises QueryError when the cursor is damaged, or of another list than is asked for."""
    if not request.cursor:
        return Asked(request)
    values = decode_cursor(_CURSOR, request.cursor)
    tags = values["tags"]
    carried = replace(
        request,
        kind=ListKind(str(values["kind"])),
        tree=str(values["tree"]),
        path=str(values["path"]),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
    )
    for name in _CARRIED:
        given = getattr(request, name)
        if given not in (_DEFAULTS[name], getattr(carried, name)):
            raise QueryError(
                f"the cursor is of a list with another `{name}`: leave one of the two out"
            )
    after = values["after"]
    is_same = values["generation"] == generation
    notes = () if is_same else ("the index has changed since the page before",)
    return Asked(carried, tuple(after) if isinstance(after, list) else None, notes)


def next_cursor(request: ListRequest, last: Key | None, generation: int) -> str | None:
    if last is None:
        return None
    values: dict[str, Value] = {
        "kind": request.kind,
        "tree": request.tree,
        "path": request.path,
        "tags": [*request.tags],
        "generation": generation,
        "after": list(last),
    }
    return encode_cursor(_CURSOR, values)
