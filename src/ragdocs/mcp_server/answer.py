"""What all tools share: parameters and schemas, checked arguments, and answers as data and as text.

Text from documents is fenced, and characters that nobody can see are removed and counted.
"""

import difflib
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, cast

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaMode

from ragdocs.errors import IndexMissing, QueryError, RagdocsError
from ragdocs.limits import (
    MAX_ANSWER_TOKENS,
    MAX_ARGUMENT_CHARS,
    MAX_CURSOR_CHARS,
    MAX_ERROR_CHARS,
    MAX_LIST_ITEMS,
    MAX_PATH_CHARS,
    MAX_PROBLEMS_NAMED,
    MIN_ANSWER_TOKENS,
)
from ragdocs.search.budget import tokens
from ragdocs.search.responses import IndexState, Readiness
from ragdocs.text import Cleaner, hidden_ranges, json_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# The kinds of parameters: each with its range and its description, for schema and check alike.


PathText = Annotated[str, Field(max_length=MAX_PATH_CHARS)]
Word = Annotated[str, Field(max_length=MAX_ARGUMENT_CHARS)]


def word_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_ARGUMENT_CHARS, description=description)


def path_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_PATH_CHARS, description=description)


def listed(description: str) -> FieldInfo:
    """For tuples, which a list may stand for."""
    return Field(strict=False, max_length=MAX_LIST_ITEMS, description=description)


def share(description: str) -> FieldInfo:
    return Field(ge=0, le=1, description=description)


def number_field(least: int, most: int, description: str) -> FieldInfo:
    return Field(ge=least, le=most, description=description)


Tokens = Annotated[int, number_field(MIN_ANSWER_TOKENS, MAX_ANSWER_TOKENS, "Most it may cost.")]
Cursor = Annotated[
    str, Field(max_length=MAX_CURSOR_CHARS, description="From the page before; enough by itself.")
]


# Text from files inside an answer: fenced, so that it cannot end its fence or be mistaken.

_BACKTICKS = re.compile("`{3,}")
_PLACE = r"(?<![\w~.:/…])/(?:[^\s/:]+/)+[^\s/:]+"
_WINDOWS_ROOT = r"(?:[A-Za-z]:[\\/]|\\\\)"
# From a drive or a server on: what comes before the last two names of the path.
_WINDOWS_PLACE = re.compile(
    rf"(?<!\w){_WINDOWS_ROOT}(?:[^\s\\/:]+[\\/])*([^\s\\/:]+[\\/][^\s\\/:]+)"
)


def fenced(label: str, text: str) -> str:
    """The fence is longer than any within."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=3)
    fence = "`" * (longest + 1)
    return f"{fence}{label}\n{text.rstrip()}\n{fence}"


def one_line(text: str) -> str:
    """Names, titles and headings, which may have line ends in them."""
    return " ".join(text.split())


def headed(title: str, heading_path: Sequence[str]) -> str:
    """The way to a passage: its document's title, unless the first heading is that."""
    parts = heading_path if heading_path[:1] == (title,) else (title, *heading_path)
    return " > ".join(map(one_line, parts))


def without_home(text: str) -> str:
    """The user's own folder as ~: an answer names no place outside the documents."""
    try:
        home = Path.home()
    except RuntimeError:  # nobody says where it is
        return text
    return text.replace(os.path.join(home, ""), "~/") if len(home.parts) > 1 else text


def without_places(text: str, roots: Iterable[str] = (), known: Iterable[str] = ()) -> str:
    """Of a place outside the documents only the end is named. `roots` are the documents' folders;
    `known` are places that may be in the text, and have blanks that would end a path."""
    kept = [re.escape(without_home(root)) for root in sorted(roots, key=len, reverse=True)]
    for place in sorted(known, key=len, reverse=True):
        if not any(place == root or place.startswith(os.path.join(root, "")) for root in roots):
            text = text.replace(place, _end(without_home(place)))
    stays = "|".join(f"{root}(?![\\w.-])" for root in kept)
    places = re.compile(f"({stays})|{_PLACE}" if stays else f"(?!)()|{_PLACE}")
    shown = places.sub(lambda found: found[1] or _end(found[0]), without_home(text))
    return _WINDOWS_PLACE.sub(r"…/\1", shown)


def _end(place: str) -> str:
    """The last two names of a whole path, if it has more."""
    is_windows = re.match(_WINDOWS_ROOT, place) is not None
    if not is_windows and not place.startswith("/"):
        return place
    names = [name for name in re.split(r"[\\/]" if is_windows else "/", place) if name]
    names = names[1:] if is_windows and place[1:2] == ":" else names
    return "/".join(["…", *(names[-2:] if len(names) > 2 else names[-1:])])


# JSON Schemas from types, without what no client needs: titles, docstrings, null, defaults that
# are empty.

Schema = dict[str, Any]

_NULL = {"type": "null"}


@cache
def schema_of(kind: type[Any], mode: JsonSchemaMode) -> Schema:
    """`validation` for what is taken, `serialization` for what is given."""
    schema = TypeAdapter(kind).json_schema(mode=mode)
    if mode == "validation":
        schema = _inlined(schema, schema.pop("$defs", {}))
    return _compact(schema)


def _inlined(value: Any, parts: Schema) -> Any:  # noqa: ANN401  any part of a schema
    """Not every client's model follows a reference in what it is to write."""
    if isinstance(value, list):
        return [_inlined(each, parts) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    schema = cast(Schema, value)
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {key: _inlined(each, parts) for key, each in schema.items()}


def _compact(schema: Schema) -> Schema:
    found = {key: value for key, value in schema.items() if key != "title"}
    if found.get("default") in ("", []):  # as if it were not given, which a reader expects
        del found["default"]
    if "properties" in found:
        found = _object(found)
    if "$defs" in found:
        parts = cast(dict[str, Schema], found["$defs"])
        found["$defs"] = {key: _compact(part) for key, part in parts.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = _compact(found[name])
    return _without_null(found)


def _object(schema: Schema) -> Schema:
    """What is required first, because models read from the top; what may be null is not."""
    parts = cast(dict[str, Schema], schema["properties"])
    required = [key for key in schema.get("required", ()) if not _may_be_null(parts[key])]
    order = dict.fromkeys((*required, *parts))
    rest = {key: schema[key] for key in schema if key not in ("description", "required")}
    found = {**rest, "properties": {key: _compact(parts[key]) for key in order}}
    return {**found, "required": required} if required else found


def _without_null(schema: Schema) -> Schema:
    """A value that may be null is left out instead; so it has no default either."""
    if not _may_be_null(schema):
        return schema
    choices = [_compact(each) for each in schema["anyOf"] if each != _NULL]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**choices[0], **rest} if len(choices) == 1 else {"anyOf": choices, **rest}


def _may_be_null(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", ())


def moved(text: str, ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Where stretches of a text are when it has been cleaned; those of which nothing is left are
    not among them.
    """
    ranges = tuple(ranges)
    dropped = list(hidden_ranges(text)) if ranges else []
    if not dropped:
        return ranges

    def at(place: int) -> int:
        return place - sum(min(end, place) - start for start, end in dropped if start < place)

    placed = ((at(start), at(end)) for start, end in ranges)
    return tuple((start, end) for start, end in placed if start < end)


# What went wrong, in words: for whoever asked, and for the log.

_NO_INDEX = "there is no index yet: it is being built, ask again in a few seconds"
_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


async def guarded(work: Awaitable[_Answer]) -> _Answer:
    """For requests that are not calls of tools: an error of the protocol, without details."""
    try:
        return await work
    except MCPError:
        raise
    except RagdocsError as error:
        raise MCPError(code=INTERNAL_ERROR, message=error_text(error)) from None
    except Exception as error:
        raise MCPError(code=INTERNAL_ERROR, message=_logged(error)) from None


def failed(error: Exception) -> CallToolResult:
    """An expected error: its message says what to do."""
    return CallToolResult(content=[TextContent(text=error_text(error))], is_error=True)


def broken(error: Exception) -> CallToolResult:
    """A mistake of ours."""
    said = f"{_logged(error)}: try again; index_status says how the index is"
    return CallToolResult(content=[TextContent(text=said)], is_error=True)


def error_text(error: Exception) -> str:
    if isinstance(error, IndexMissing):
        return _NO_INDEX
    text = without_places(Cleaner().clean(str(error)))
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"


def _logged(error: Exception) -> str:
    """What its message says may be text of a query or a document: that is for debugging only."""
    name = type(error).__name__
    _log.error("a request failed: %s", name)
    _log.debug("a request failed", exc_info=error)
    return f"internal error ({name})"


# What a tool gives back: the same answer as data and as text, and what it costs to read.

FRAME_TOKENS = 150
"""For what stands around texts and entries; when it takes more, less of them is asked for."""
MARGIN_TOKENS = 20
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class AnswerLink:
    """A resource that the answer speaks of."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class Given:
    """One answer in both forms."""

    structured: dict[str, Any]
    text: str
    links: tuple[AnswerLink, ...] = ()

    @property
    def tokens(self) -> int:
        """Of the dearer form: a client shows a model the one or the other."""
        links = sum(map(_link_tokens, self.links))
        return max(tokens(self.text) + links, tokens(compact_json(self.structured)))


def fitted(limit: int, pack: Callable[[int], Given]) -> Given:
    """Packing counts the texts, not what else an answer says. So it is packed again, for less, when
    all of it together is too much, which is rare.
    """
    room = limit - FRAME_TOKENS
    given = pack(max(1, room))
    for _ in range(ATTEMPTS):
        if given.tokens <= limit or room <= 1:
            break
        room = min(room - (given.tokens - limit) - MARGIN_TOKENS, room * limit // given.tokens)
        given = pack(max(1, room))
    if given.tokens > MAX_ANSWER_TOKENS:
        raise QueryError("the answer is too long to be given: ask for less of it")
    return given


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(answer: "DataclassInstance", cleaner: Cleaner | None = None) -> dict[str, Any]:
    """As JSON has it: texts cleaned, and without what is not there."""
    clean = (cleaner or Cleaner()).clean
    return cast(dict[str, Any], json_value(answer, clean, has_null=False))


def _link_tokens(link: AnswerLink) -> int:
    return tokens(
        compact_json({"type": "resource_link", **plain(link), "mimeType": "text/markdown"})
    )


# What a tool is called with: checked by its schema, and refused in words a model can act on.

_SHOWN_CHARS = 60


class BadArguments(QueryError):
    """A call that cannot be answered as it was made; the message says what to change."""


class Arguments(BaseModel):
    """The parameters of one tool; its fields are the schema."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Null means: not given. A single value stands for a list of one."""
        known = input_schema(cls)["properties"]
        values = {
            name: _listed(value, known.get(name, {}))
            for name, value in given.items()
            if value is not None or name not in known
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise BadArguments(_said(error, values, known)) from None


def input_schema(kind: type[Arguments]) -> Schema:
    return schema_of(kind, "validation")


def _listed(value: object, schema: Schema) -> object:
    is_list = schema.get("type") == "array"
    return [cast(object, value)] if is_list and isinstance(value, str | dict) else value


def _said(error: ValidationError, values: Mapping[str, Any], parts: Mapping[str, Schema]) -> str:
    problems: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False):
        name = str(each["loc"][0])
        if name not in problems and len(problems) < MAX_PROBLEMS_NAMED:
            problems[name] = _problem(name, each["type"], values, parts)
    return "; ".join(problems.values())


def _problem(name: str, kind: str, values: Mapping[str, Any], parts: Mapping[str, Schema]) -> str:
    if name not in parts:
        near = difflib.get_close_matches(name[:_SHOWN_CHARS], parts, n=1)
        meant = f", did you mean {near[0]}?" if near else ","
        known = ", ".join(parts) or "none at all"
        return f"there is no parameter {_shown(name)}{meant} there are: {known}"
    expected = _expected(parts[name])
    if kind == "missing" and name not in values:
        return f"{name} is missing: it must be {expected}"
    return f"{name} is {_shown(values[name])}: it must be {expected}"


def _shown(value: object) -> str:
    """Its beginning, however large it is."""
    if isinstance(value, str):
        beginning = json.dumps(value[:_SHOWN_CHARS], ensure_ascii=False)
        more = f"… ({len(value):,} characters)" if len(value) > _SHOWN_CHARS else ""
        return Cleaner().clean(beginning) + more
    pieces = islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _SHOWN_CHARS)
    text = Cleaner().clean("".join(piece[: _SHOWN_CHARS + 1] for piece in pieces))
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _expected(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(_expected(each) for each in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    match schema.get("type"):
        case "string":
            least = schema.get("minLength", 0)
            return f"a text of {least:,} to {schema['maxLength']:,} characters"
        case "integer" | "number" as kind:
            noun = "a whole number" if kind == "integer" else "a number"
            return f"{noun} from {schema['minimum']:,} to {schema['maximum']:,}"
        case "array":
            items = cast(Schema, schema["items"])
            return f"a list of at most {schema['maxItems']}, each {_expected(items)}"
        case "boolean":
            return "true or false"
        case _:
            return _expected_object(schema)


def _expected_object(schema: Schema) -> str:
    parts = cast(dict[str, Schema], schema.get("properties", {}))
    return "{" + ", ".join(f"{name}: {_expected(part)}" for name, part in parts.items()) + "}"


# The state of the index, as every answer tells it.


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefIndexNote:
    """The index that answered. Not complete: something that should be in it is not, yet.

    `notices` are for the user: settings of a project's file that are ignored until it is trusted.
    """

    state: str
    complete: bool
    summary: str
    notices: tuple[str, ...] = ()

    @property
    def _now(self) -> str:
        return ""

    @property
    def _lacking(self) -> str:
        if self.complete:
            return ""
        if self.state == Readiness.DEGRADED:
            return " (incomplete, and waiting does not help: tell the user)"
        return " (incomplete: ask again later for all of it)"

    def line(self) -> str:
        said = (f"\nNote for the user: {one_line(notice)}" for notice in self.notices)
        return f"Index {one_line(self.summary)}{self._now}{self._lacking}{''.join(said)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNote(BriefIndexNote):
    """The same, with its figures."""

    documents: int
    passages: int
    vectors_pending: int
    failed_files: int
    files_waiting: int | None = None
    activity: str | None = None

    @property
    def _now(self) -> str:
        """Nothing where the answer lacks nothing, as while the vocabulary gets its vectors."""
        return f"; now {self.activity}" if self.activity and not self.complete else ""


def brief_note(state: IndexState) -> BriefIndexNote:
    """For answers that are about one document: its own facts need the room."""
    return BriefIndexNote(
        state=state.state.value,
        complete=state.complete,
        summary=_summary(state),
        notices=_notices(state),
    )


def index_note(state: IndexState, activity: str = "") -> IndexNote:
    return IndexNote(
        state=state.state.value,
        complete=state.complete,
        summary=_summary(state),
        notices=_notices(state),
        documents=state.documents,
        passages=state.passages,
        vectors_pending=state.vectors_pending,
        failed_files=state.failed_files,
        files_waiting=state.files_waiting,
        activity=activity or None,
    )


def _notices(state: IndexState) -> tuple[str, ...]:
    return tuple(without_places(Cleaner().clean(notice)) for notice in state.notices)


def _summary(state: IndexState) -> str:
    return without_places(Cleaner().clean(state.in_words()))
