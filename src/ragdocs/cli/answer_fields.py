"""What the commands give with `--json`, for their reference page: read off the answers' types."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, cast, get_args

from ragdocs.cli.model_list import Models
from ragdocs.diagnosis.status import Status
from ragdocs.evaluation.measuring import Report
from ragdocs.search.library.answers import DocumentText, Listing
from ragdocs.search.library.context_answers import ContextAnswer
from ragdocs.search.library.relations import Related
from ragdocs.search.query_inspection import InspectedQuery
from ragdocs.search.responses import SearchResponse

ANSWERS: dict[str, type[Any]] = {
    "query": SearchResponse,
    "get": DocumentText,
    "ls": Listing,
    "related": Related,
    "context": ContextAnswer,
    "status": Status,
    "inspect query": InspectedQuery,
    "eval": Report,
    "models": Models,
}
_HEAD = """\
## JSON

What `--json` gives is one value, indented. A field is always there; what is not known is null, or
empty. Of words with a / between them there is one; names of types are in the second table. Fields
may be added; before version 1.0 other changes are told in the [changelog](changelog.md). The
answers of `update` and `rebuild-index` are in [commands.md](commands.md#the-summary-as-json), those
of `doctor` in [status-and-doctor.md](status-and-doctor.md).

| command | fields |
|---|---|
| `config` | `files`, `index_directory`, `settings` (`value`, `origin` by key), `trees`, `ignored` |
| `config --defaults` | `settings` (`default`, `allowed`, `description` by key) |
| `check-config` | `ok`, `files`, `ignored`, `problems`, `notes` (each with `origin`, `key`, …) |
| `trust` | `files` (each with `file`, `standing`, `asks`, `loaded`), `trusted` |
| `inspect doc` | those of the document, `headings`, `links`, `code_blocks`, `chunks`, `note` |"""
_PLAIN = (
    (r"\btuple\[int, int\]", "pair of numbers"),
    (r"\b(?:tuple|frozenset|Sequence)\[(.+?)(?:, \.\.\.)?\]", r"list of \1"),
    (r"\b(?:dict|Mapping)\[(.+?), (.+)\]", r"\2 by \1"),
    (r"\b(?:str|datetime|ChunkId|DocId|TreeName)\b", "text"),
    (r"\b(?:int|float)\b", "number"),
    (r"\bbool\b", "true or false"),
    (r"\bNone\b", "null"),
)


def json_fields() -> Iterator[str]:
    yield _HEAD
    yield from (f"| `{command}` | {_fields(kind)} |" for command, kind in ANSWERS.items())
    yield "\n| type | what it is |\n|---|---|"
    for kind in sorted(_below(ANSWERS.values()), key=lambda kind: kind.__name__):
        yield f"| {kind.__name__} | {_described(kind)} |"
    yield ""


def _described(kind: type[Any]) -> str:
    if dataclasses.is_dataclass(kind):
        return _fields(kind)
    names = cast("tuple[str, ...]", getattr(kind, "_fields", ()))
    return "a list: " + ", ".join(f"`{name}`" for name in names)


def _fields(kind: type[Any]) -> str:
    shown = (each for each in dataclasses.fields(kind) if each.repr)
    return ", ".join(f"`{each.name}` ({_type(each.type)})" for each in shown)


def _type(given: Any) -> str:  # noqa: ANN401  an annotation
    """As a reader of JSON knows it."""
    text = given.__name__ if isinstance(given, type) and not get_args(given) else str(given)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+|'", "", text)
    for pattern, plain in _PLAIN:
        text = re.sub(pattern, plain, text)
    for kind in _named(given):
        if isinstance(kind, type) and issubclass(kind, Enum):
            text = text.replace(kind.__name__, "/".join(str(each.value) for each in kind))
    return text.replace("|", "or")


def _below(kinds: Iterable[type[Any]]) -> set[type[Any]]:
    """All that their fields name, however deep."""
    found: set[type[Any]] = set()
    waiting = [inner for kind in kinds for inner in _inside(kind)]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.add(kind)
            waiting += _inside(kind)
    return found


def _inside(kind: type[Any]) -> list[type[Any]]:
    if not dataclasses.is_dataclass(kind):
        return []
    shown = (each for each in dataclasses.fields(kind) if each.repr)
    named = (inner for each in shown for inner in _named(each.type))
    return [inner for inner in named if isinstance(inner, type) and _is_ours(inner)]


def _is_ours(kind: type[Any]) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _named(given: Any) -> list[Any]:  # noqa: ANN401  an annotation
    parts = get_args(given)
    return [inner for part in parts for inner in _named(part)] if parts else [given]
