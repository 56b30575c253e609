"""How commands print: text from documents with control characters made visible, and answers as
JSON.
"""

import dataclasses
import json
import re
from collections.abc import Mapping, Set
from datetime import datetime
from typing import TypeAlias, cast

# Text from documents on a terminal: shown, never obeyed.

# Control characters, and the invisible ones that reorder or hide text: bidi overrides, zero-width
# runs, tag characters. A document must not be able to speak to the terminal.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


def shown(text: str) -> str:
    """The text with every such character as its escape, so that it is seen."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_lines(text: str) -> str:
    """The same, with line ends kept."""
    return "\n".join(map(shown, text.split("\n")))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Answers as JSON: the fields of their types, by name, in their order.

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
