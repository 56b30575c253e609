"""Shared by all tools: parameters and schemas, checked arguments, answers as data and as text.

Text from documents is fenced; invisible characters are removed and counted.
"""

import difflib
import json
import logging
import math
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, cast

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaMode

from ragdocs.errors import IndexMissing, NotThere, QueryError, RagdocsError
from ragdocs.limits import (
    MAX_ANSWER_TOKENS,
    MAX_CURSOR_CHARS,
    MAX_ERROR_CHARS,
    MAX_FILTER_CHARS,
    MAX_FILTER_ITEMS,
    MAX_PROBLEMS_NAMED,
    MAX_REFERENCE_CHARS,
    MIN_ANSWER_TOKENS,
)
from ragdocs.search.budget import tokens
from ragdocs.search.responses import IndexState, Readiness
from ragdocs.text import Cleaner, hidden_ranges, json_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# The kinds of parameters, with range and description: used for the schema and for the check.


PathText = Annotated[str, Field(max_length=MAX_REFERENCE_CHARS)]
Word = Annotated[str, Field(max_length=MAX_FILTER_CHARS)]


def word_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_FILTER_CHARS, description=description)


def path_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_REFERENCE_CHARS, description=description)


def list_field(description: str, most: int = MAX_FILTER_ITEMS) -> FieldInfo:
    """A tuple in Python, a list in JSON."""
    return Field(strict=False, max_length=most, description=description)


def share_field(description: str) -> FieldInfo:
    return Field(ge=0, le=1, description=description)


def number_field(least: int, most: int, description: str) -> FieldInfo:
    return Field(ge=least, le=most, description=description)


Tokens = Annotated[int, number_field(MIN_ANSWER_TOKENS, MAX_ANSWER_TOKENS, "Most it may cost.")]
Cursor = Annotated[
    str, Field(max_length=MAX_CURSOR_CHARS, description="From the page before; enough by itself.")
]


# Text from files inside an answer is fenced, so that it cannot pass for our own text.

_BACKTICKS = re.compile("`{3,}")
_PLACE = r"(?<![\w~.:/…])/(?:[^\s/:]+/)+[^\s/:]+"
_WINDOWS_ROOT = r"(?:[A-Za-z]:[\\/]|\\\\)"
# A path from a drive or a server on; the last two names are kept.
_WINDOWS_PLACE = re.compile(
    rf"(?<!\w){_WINDOWS_ROOT}(?:[^\s\\/:]+[\\/])*([^\s\\/:]+[\\/][^\s\\/:]+)"
)


def fence(label: str, text: str) -> str:
    """The fence is longer than any fence in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=3)
    fence = "`" * (longest + 1)
    return f"{fence}{label}\n{text.rstrip()}\n{fence}"


def one_line(text: str) -> str:
    """For names, titles and headings, which may contain line ends."""
    return " ".join(text.split())


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """The headings above a passage, after the document's title unless the first heading repeats
    it."""
    parts = heading_path if heading_path[:1] == (title,) else (title, *heading_path)
    return " > ".join(map(one_line, parts))


def without_home(text: str) -> str:
    """With ~ for the home folder: an answer names no path outside the documents."""
    try:
        home = Path.home()
    except RuntimeError:  # it is not known
        return text
    return text.replace(os.path.join(home, ""), "~/") if len(home.parts) > 1 else text


def without_places(text: str, roots: Iterable[str] = (), known: Iterable[str] = ()) -> str:
    """Shortens each path outside the documents to its end. `roots` are the documents' folders;
    `known` are paths that may be in the text and contain spaces, which would end a path."""
    kept = [re.escape(without_home(root)) for root in sorted(roots, key=len, reverse=True)]
    for place in sorted(known, key=len, reverse=True):
        if not any(place == root or place.startswith(os.path.join(root, "")) for root in roots):
            text = text.replace(place, _end(without_home(place)))
    stays = "|".join(f"{root}(?![\\w.-])" for root in kept)
    places = re.compile(f"({stays})|{_PLACE}" if stays else f"(?!)()|{_PLACE}")
    shown = places.sub(lambda found: found[1] or _end(found[0]), without_home(text))
    return _WINDOWS_PLACE.sub(r"…/\1", shown)


def _end(place: str) -> str:
    """The last two names of an absolute path that has more."""
    is_windows = re.match(_WINDOWS_ROOT, place) is not None
    if not is_windows and not place.startswith("/"):
        return place
    names = [name for name in re.split(r"[\\/]" if is_windows else "/", place) if name]
    names = names[1:] if is_windows and place[1:2] == ":" else names
    return "/".join(["…", *(names[-2:] if len(names) > 2 else names[-1:])])


# JSON Schemas from types, without what clients do not need: titles, docstrings, null, empty
# defaults.

Schema = dict[str, Any]

_NULL = {"type": "null"}


@cache
def schema_of(kind: type[Any], mode: JsonSchemaMode) -> Schema:
    """`validation` for arguments, `serialization` for answers."""
    schema = TypeAdapter(kind).json_schema(mode=mode)
    if mode == "validation":
        schema = _inline(schema, schema.pop("$defs", {}))
    return _compact(schema)


def output_schema(kind: type[Any]) -> Schema:
    """The schema of an answer, in few words: every field, and in the entries of a list those that
    each entry has. Parts of these are left open: a client only checks answers with it."""
    schema = schema_of(kind, "serialization")
    parts = cast(dict[str, Schema], schema.get("$defs", {}))
    fields = {name: _outline(part, parts) for name, part in schema["properties"].items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required}


def _outline(schema: Schema, parts: Mapping[str, Schema], *, is_entry: bool = False) -> Schema:
    schema = _look_up(schema, parts)
    found = {"type": schema["type"]} if "type" in schema else {}
    items = _look_up(schema.get("items", {}), parts)
    if not is_entry and "properties" in items:
        fields = cast(dict[str, Schema], items["properties"])
        always = {
            name: _outline(fields[name], parts, is_entry=True) for name in items.get("required", ())
        }
        found["items"] = {"type": "object", "properties": always}
    return found


def _look_up(schema: Schema, parts: Mapping[str, Schema]) -> Schema:
    return parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _inline(value: Any, parts: Schema) -> Any:  # noqa: ANN401  any part of a schema
    """Not every model follows a reference in the schema of its arguments."""
    if isinstance(value, list):
        return [_inline(each, parts) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    schema = cast(Schema, value)
    if "$ref" in schema:
        return _inline(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {key: _inline(each, parts) for key, each in schema.items()}


def _compact(schema: Schema) -> Schema:
    found = {key: value for key, value in schema.items() if key != "title"}
    if found.get("default") in ("", []):  # the same as leaving it out
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
    """Required properties first, because models read from the top; one that may be null is
    optional."""
    parts = cast(dict[str, Schema], schema["properties"])
    required = [key for key in schema.get("required", ()) if not _may_be_null(parts[key])]
    order = dict.fromkeys((*required, *parts))
    rest = {key: schema[key] for key in schema if key not in ("description", "required")}
    found = {**rest, "properties": {key: _compact(parts[key]) for key in order}}
    return {**found, "required": required} if required else found


def _without_null(schema: Schema) -> Schema:
    """A value that may be null is left out instead, so it needs no default either."""
    if not _may_be_null(schema):
        return schema
    choices = [_compact(each) for each in schema["anyOf"] if each != _NULL]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**choices[0], **rest} if len(choices) == 1 else {"anyOf": choices, **rest}


def _may_be_null(schema: Schema) -> bool:
    return _NULL in schema.get("anyOf", ())


def map_ranges(text: str, ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same ranges in the cleaned text, without those of which nothing is left."""
    ranges = tuple(ranges)
    dropped = list(hidden_ranges(text)) if ranges else []
    if not dropped:
        return ranges

    def at(place: int) -> int:
        return place - sum(min(end, place) - start for start, end in dropped if start < place)

    placed = ((at(start), at(end)) for start, end in ranges)
    return tuple((start, end) for start, end in placed if start < end)


# Errors in words: for the caller, and for the log.

_NO_INDEX = "there is no index yet; it is being built, so ask again in a few seconds"
_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


async def guard(work: Awaitable[_Answer]) -> _Answer:
    """For requests other than tool calls: turns an error into a protocol error without details."""
    try:
        return await work
    except MCPError:
        raise
    except RagdocsError as error:
        raise MCPError(code=INTERNAL_ERROR, message=error_text(error)) from None
    except Exception as error:
        raise MCPError(code=INTERNAL_ERROR, message=_log_failure(error)) from None


def error_result(error: Exception) -> CallToolResult:
    """An expected error, whose message tells the user what to do."""
    return CallToolResult(content=[TextContent(text=error_text(error))], is_error=True)


def internal_error_result(error: Exception) -> CallToolResult:
    """An unexpected error: logs it, and shows only its type."""
    said = f"{_log_failure(error)}: try again; index_status shows the state of the index"
    return CallToolResult(content=[TextContent(text=said)], is_error=True)


def error_text(error: Exception) -> str:
    if isinstance(error, IndexMissing):
        return _NO_INDEX
    said = str(error)
    if isinstance(error, NotThere) and error.folder:
        call = json.dumps({"path": error.folder}, ensure_ascii=False)
        said = f"{said}: list_documents {call} lists its documents"
    text = without_places(Cleaner().clean(said))
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}…"


def _log_failure(error: Exception) -> str:
    """The message may quote a query or a document, so it is logged only at level debug."""
    name = type(error).__name__
    _log.error("a request failed: %s", name)
    _log.debug("a request failed", exc_info=error)
    return f"internal error ({name})"


# A tool's answer: the same as data and as text, and its cost in tokens.

FRAME_TOKENS = 150
"""For everything except texts and entries; if it takes more, the answer is packed again."""
MARGIN_TOKENS = 20
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class AnswerLink:
    """A resource that the answer mentions."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """One answer in both forms."""

    structured: dict[str, Any]
    text: str
    links: tuple[AnswerLink, ...] = ()

    @property
    def tokens(self) -> int:
        """The cost of the longer form: a client shows a model one or the other."""
        links = sum(map(_link_tokens, self.links))
        return max(tokens(self.text) + links, tokens(compact_json(self.structured)))


def fit(
    limit: int, pack: Callable[[int], ToolAnswer], shorter: Iterable[ToolAnswer] = ()
) -> ToolAnswer:
    """Packs an answer into a budget of `limit` tokens.

    Packing counts texts and entries only, so an answer whose other fields take too much room is
    packed again with less. If even the smallest pack is too long, the first of `shorter` that fits
    is returned, or the last.
    """
    room = limit - FRAME_TOKENS
    given = pack(max(1, room))
    for _ in range(ATTEMPTS):
        if given.tokens <= limit or room <= 1:
            break
        room = min(room - (given.tokens - limit) - MARGIN_TOKENS, room * limit // given.tokens)
        given = pack(max(1, room))
    if given.tokens > limit:
        for given in shorter:
            if given.tokens <= limit:
                break
    if given.tokens > MAX_ANSWER_TOKENS:
        raise QueryError("the answer is too long: ask for less of it")
    return given


def compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_json(answer: "DataclassInstance", cleaner: Cleaner | None = None) -> dict[str, Any]:
    """As JSON values, with cleaned texts and without nulls."""
    clean = (cleaner or Cleaner()).clean
    return cast(dict[str, Any], json_value(answer, clean, has_null=False))


def _link_tokens(link: AnswerLink) -> int:
    return tokens(
        compact_json({"type": "resource_link", **to_json(link), "mimeType": "text/markdown"})
    )


# A tool's arguments: checked by its schema, and refused with a message that a model can act on.

_SHOWN_CHARS = 60


class BadArguments(QueryError):
    """Wrong arguments; the message says what to change."""


OPTIONS = "options"
"""The parameter that holds those parameters of a tool which few calls need."""


class Arguments(BaseModel):
    """The parameters of one tool; its fields are the schema.

    With `shown`, a client is shown these parameters and `options` with the rest, which is described
    unless `options_as_in` names the tool that describes it. Every parameter is taken in both
    places.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    shown: ClassVar[tuple[str, ...]] = ()
    options_as_in: ClassVar[str] = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Null means not given, a single value stands for a list of one, and a number, a truth
        value, a list or an object may be written as text."""
        known = parameters_of(cls)
        values = {
            name: _as_asked(value, known.get(name, {}))
            for name, value in _flatten(cls, given).items()
            if value is not None or name not in known
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise BadArguments(_describe_errors(error, values, known)) from None


def parameters_of(kind: type[Arguments]) -> dict[str, Schema]:
    """Every parameter, wherever it is shown."""
    return schema_of(kind, "validation").get("properties", {})


def input_schema(kind: type[Arguments]) -> Schema:
    """The schema that a client is shown."""
    whole, parts = schema_of(kind, "validation"), parameters_of(kind)
    if not kind.shown:
        return whole
    options: Schema = {"type": "object"}
    if kind.options_as_in:
        options["description"] = f"As in {kind.options_as_in}."
    else:
        options["description"] = "Rarely needed."
        options["properties"] = {
            name: part for name, part in parts.items() if name not in kind.shown
        }
        options["additionalProperties"] = False
    shown = {name: parts[name] for name in kind.shown if name in parts}
    # Nothing forbids further names: those of the options are taken at the top level too.
    rest = {key: value for key, value in whole.items() if key != "additionalProperties"}
    return {**rest, "properties": {**shown, OPTIONS: options}}


def _flatten(kind: type[Arguments], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the options beside the other parameters."""
    if not kind.shown or OPTIONS not in given:
        return given
    rest = {name: value for name, value in given.items() if name != OPTIONS}
    found: object = _from_json(given[OPTIONS], dict)
    if found is None:
        return rest
    if not isinstance(found, dict):
        raise BadArguments(f'{OPTIONS} is {_show(found)}: it must be an object, {{"name": value}}')
    options = {
        str(name): value for name, value in cast(dict[Any, Any], found).items() if value is not None
    }
    for name, value in options.items():
        if rest.get(name) not in (None, value):
            raise BadArguments(f"{name} is given twice: leave it out of {OPTIONS}")
    return rest | options


_TRUTHS = {"true": True, "false": False}
_MAX_NUMBER_CHARS = 40


def _as_asked(value: object, schema: Schema) -> object:
    """The value as the type that is asked for, if it plainly stands for one; else unchanged."""
    match schema.get("type"):
        case "integer" | "number" as kind:
            return _as_number(value, is_whole=kind == "integer")
        case "boolean" if isinstance(value, str):
            return _TRUTHS.get(value.strip().lower(), value)
        case "array":
            found = _from_json(value, list)
            return [cast(object, found)] if isinstance(found, str | dict) else found
        case _:
            return value


def _as_number(value: object, *, is_whole: bool) -> object:
    number = value
    if isinstance(value, str) and len(value) <= _MAX_NUMBER_CHARS:
        try:
            number = float(value)
        except ValueError:
            return value
    if not isinstance(number, float) or not math.isfinite(number):
        return value
    if not is_whole:
        return number
    return int(number) if number.is_integer() else value


def _from_json(value: object, kind: type[list[Any]] | type[dict[str, Any]]) -> object:
    """What a text contains as JSON, if that is of this kind; some clients send it so."""
    if not isinstance(value, str) or not value.lstrip().startswith("[" if kind is list else "{"):
        return value
    try:
        found: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return cast(object, found) if isinstance(found, kind) else value


def _describe_errors(
    error: ValidationError, values: Mapping[str, Any], parts: Mapping[str, Schema]
) -> str:
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
        known = ", ".join(parts) or "none"
        return f"there is no parameter {_show(name)}{meant} the parameters are: {known}"
    expected = _describe_schema(parts[name])
    if kind == "missing" and name not in values:
        return f"{name} is missing: it must be {expected}"
    return f"{name} is {_show(values[name])}: it must be {expected}"


def _show(value: object) -> str:
    """The beginning of the value, which may be of any size."""
    if isinstance(value, str):
        beginning = json.dumps(value[:_SHOWN_CHARS], ensure_ascii=False)
        more = f"… ({len(value):,} characters)" if len(value) > _SHOWN_CHARS else ""
        return Cleaner().clean(beginning) + more
    pieces = islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _SHOWN_CHARS)
    text = Cleaner().clean("".join(piece[: _SHOWN_CHARS + 1] for piece in pieces))
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _describe_schema(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(_describe_schema(each) for each in schema["anyOf"])
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
            return f"a list of at most {schema['maxItems']}, each {_describe_schema(items)}"
        case "boolean":
            return "true or false"
        case _:
            return _describe_object(schema)


def _describe_object(schema: Schema) -> str:
    parts = cast(dict[str, Schema], schema.get("properties", {}))
    return (
        "{" + ", ".join(f"{name}: {_describe_schema(part)}" for name, part in parts.items()) + "}"
    )


# The state of the index, as every answer shows it.


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefIndexNote:
    """The index that answered; it is not complete while something that belongs in it is missing.

    `notices` are for the user: settings of a project file that are ignored until it is trusted.
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
        # What is ready and still lacks something lacks files that cannot be indexed.
        if self.state in (Readiness.DEGRADED, Readiness.READY):
            return " (incomplete, and waiting does not help: tell the user)"
        return " (incomplete: ask again later for all of it)"

    def line(self) -> str:
        said = (f"\nNote for the user: {one_line(notice)}" for notice in self.notices)
        return f"Index {one_line(self.summary)}{self._now}{self._lacking}{''.join(said)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNote(BriefIndexNote):
    """The same; with figures, if something is missing. If not, the summary has them all."""

    documents: int | None = None
    passages: int | None = None
    vectors_pending: int | None = None
    failed_files: int | None = None
    files_waiting: int | None = None
    activity: str | None = None

    @property
    def _now(self) -> str:
        """Empty if the answer lacks nothing, as while the vocabulary gets its vectors."""
        return f"; now {self.activity}" if self.activity and not self.complete else ""


def brief_note(state: IndexState) -> BriefIndexNote:
    """For answers about one document, which need the room for the document."""
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
        documents=None if state.complete else state.documents,
        passages=None if state.complete else state.passages,
        vectors_pending=None if state.complete else state.vectors_pending,
        failed_files=None if state.complete else state.failed_files,
        files_waiting=None if state.complete else state.files_waiting,
        activity=activity or None,
    )


def _notices(state: IndexState) -> tuple[str, ...]:
    return tuple(without_places(Cleaner().clean(notice)) for notice in state.notices)


def _summary(state: IndexState) -> str:
    return without_places(Cleaner().clean(state.in_words()))
