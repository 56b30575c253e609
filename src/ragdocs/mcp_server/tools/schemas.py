"""JSON Schemas from types, without what no client needs: titles, docstrings, null, defaults that
are empty.
"""

from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

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
