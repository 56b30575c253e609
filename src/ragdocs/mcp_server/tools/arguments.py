"""What a tool is called with: checked by its schema, and refused in words a model can act on."""

import difflib
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from ragdocs.errors import QueryError
from ragdocs.mcp_server.tools.schemas import Schema, schema_of
from ragdocs.mcp_server.visible import Cleaner

_SHOWN_CHARS = 60
_MAX_PROBLEMS = 5
"""More would not be read."""


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
        if name not in problems and len(problems) < _MAX_PROBLEMS:
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
