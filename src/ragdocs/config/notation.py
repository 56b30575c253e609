"""How values and names are written out: as TOML, and so that any terminal can show them."""

import datetime
import json
import os
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import cast

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def printable(text: str) -> str:
    """A path or name without controls, and without the marks of bytes that are not UTF-8."""
    shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)


def toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_string(name)


def toml_string(text: str) -> str:
    # JSON's escapes are TOML's, except that JSON lets DEL stand as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: object) -> str:
    """A value as it would stand in a file; nothing at all is the empty string."""
    plain = plain_value(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, str):
        return toml_string(plain)
    if isinstance(plain, list):
        return "[" + ", ".join(map(toml_value, cast("list[object]", plain))) + "]"
    if isinstance(plain, dict):
        pairs = cast("dict[str, object]", plain).items()
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(one)}" for key, one in pairs) + " }"
    return str(plain)


def plain_value(value: object) -> object:
    """A setting's value in the types that JSON has."""
    if value is None:
        return ""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, os.PathLike):
        return printable(str(cast("Path", value)))
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return {str(key): plain_value(one) for key, one in pairs}
    return value


def type_name(value: object) -> str:
    """What TOML calls a value of this type, with its article."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        (int, "a whole number"),
        (float, "a decimal number"),
        (str, "a string"),
        ((list, tuple), "a list"),
        (dict, "a table"),
        ((datetime.date, datetime.time), "a date or time"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "of another type")
