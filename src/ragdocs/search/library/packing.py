"""How many entries of a list a page has room for."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ragdocs.search.budget import tokens

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Key = tuple[str | int, ...]
"""An entry's place in the order of its list."""
Entry = TypeVar("Entry", bound="DataclassInstance")
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


@dataclass(frozen=True, slots=True)
class Page(Generic[Entry]):
    """Entries that fit, their tokens, and the key of the last one when others follow."""

    entries: tuple[Entry, ...]
    tokens: int
    last: Key | None


def packed(rows: Iterable[tuple[Key, Entry]], limit: int, max_tokens: int) -> Page[Entry]:
    """The first entries that fit; always one, if there is one."""
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
    """Of the entry as JSON, which is how a program gets it; a person's form is shorter."""
    names = entry.__dataclass_fields__
    return tokens(_encode({name: getattr(entry, name) for name in names}))
