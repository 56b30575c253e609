"""What a tool gives back: the same answer as data and as text, and what it costs to read."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from ragdocs.errors import QueryError
from ragdocs.mcp_server.tools.fields import MAX_TOKENS
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.budget import tokens

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FRAME_TOKENS = 150
"""For what stands around texts and entries; when it takes more, less of them is asked for."""
MARGIN_TOKENS = 20
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that the answer speaks of."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class Given:
    """One answer in both forms."""

    structured: dict[str, Any]
    text: str
    links: tuple[Link, ...] = ()

    @property
    def tokens(self) -> int:
        """Of the dearer form: a client shows a model the one or the other."""
        links = sum(map(_link_tokens, self.links))
        return max(tokens(self.text) + links, tokens(as_json(self.structured)))


def fitted(limit: int, ask: Callable[[int], Given]) -> Given:
    """The parts that are asked know what their texts cost, not what else an answer says: so they
    are asked again, for less, when all of it together is too much, which is rare.
    """
    room = limit - FRAME_TOKENS
    given = ask(max(1, room))
    for _ in range(ATTEMPTS):
        if given.tokens <= limit or room <= 1:
            break
        room = min(room - (given.tokens - limit) - MARGIN_TOKENS, room * limit // given.tokens)
        given = ask(max(1, room))
    if given.tokens > MAX_TOKENS:
        raise QueryError("the answer is too long to be given: ask for less of it")
    return given


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(answer: "DataclassInstance", cleaner: Cleaner | None = None) -> dict[str, Any]:
    """As JSON has it: texts cleaned, and without what is not there."""
    return cast(dict[str, Any], _plain(asdict(answer), cleaner or Cleaner()))


def _plain(value: object, cleaner: Cleaner) -> object:
    match value:
        case Enum():
            return value.value
        case str():
            return cleaner.clean(value)
        case datetime():
            return value.isoformat()
        case dict():
            items = cast(dict[str, object], value).items()
            return {key: _plain(each, cleaner) for key, each in items if each is not None}
        case list() | tuple():
            return [_plain(each, cleaner) for each in cast(list[object], value)]
        case _:
            return value


def _link_tokens(link: Link) -> int:
    return tokens(as_json({"type": "resource_link", **asdict(link), "mimeType": "text/markdown"}))
