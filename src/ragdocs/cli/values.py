"""Answers as JSON: the fields of their types, by name, in their order."""

import dataclasses
import json
import re
from collections.abc import Mapping, Set
from datetime import datetime
from typing import TypeAlias, cast

from ragdocs.cli.output import UNSAFE

Value: TypeAlias = "dict[str, Value] | list[Value] | str | int | float | bool | None"


def value_of(thing: object) -> Value:
    """What `json` can write. Sets are sorted, so that the same answer is the same text."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        # What is not shown, such as a way to pack an answer again, is no part of it.
        fields = [field for field in dataclasses.fields(thing) if field.repr]
        return {field.name: value_of(getattr(thing, field.name)) for field in fields}
    if isinstance(thing, Mapping):
        entries = cast("Mapping[object, object]", thing)
        return {str(key): value_of(value) for key, value in entries.items()}
    if isinstance(thing, Set):
        return [value_of(item) for item in sorted(map(str, cast("Set[object]", thing)))]
    if isinstance(thing, (list, tuple)):
        return [value_of(item) for item in cast("list[object]", thing)]
    if isinstance(thing, datetime):
        return thing.isoformat()
    return thing if isinstance(thing, (str, int, float, type(None))) else str(thing)


def as_json(thing: object) -> str:
    return json_text(value_of(thing))


def json_text(value: object) -> str:
    """Readable, and safe on a terminal: what could speak to it is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(UNSAFE.sub(_escaped, line) for line in text.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
