"""How numbers, sizes, names and values are written: for a person, as TOML, and safe for any
terminal.
"""

import datetime
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import cast

# How values and names are written out: as TOML, and so that any terminal can show them.

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


# Numbers, sizes, processes and commands as a person reads them: in the same words everywhere.

OPTIONS = ("--config", "--docs", "--index")
"""Where the documents, the index and the settings are: what most commands take."""
OPTIONS_OF: dict[str, tuple[str, ...]] = {
    "trust": (),
    "init": (),
    "models": ("--config",),
    "eval": ("--config",),
}
"""The commands that take fewer of them."""
_typed: list[tuple[str, str]] = []


def remember_typed(options: Iterable[tuple[str, str]]) -> None:
    """Which of these options this process was started with: what it advises repeats them."""
    _typed[:] = options


def advised(command: str) -> str:
    """A command to copy, in backticks: with what was typed, so that it means the same place."""
    taken = OPTIONS_OF.get(command.split()[0], OPTIONS)
    options = "".join(f" {name} {_quoted(value)}" for name, value in _typed if name in taken)
    return f"`ragdocs {command}{options}`"


def _quoted(value: str) -> str:
    """For a shell; what would speak to the terminal is written as an escape."""
    import shlex

    if value.isprintable():
        return shlex.quote(value)
    return "$'" + value.encode("unicode_escape").decode().replace("'", "\\'") + "'"


def number_of(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def size_text(count: int) -> str:
    """`12 bytes`, `1.2 MB`."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def process_text(pid: int | None) -> str:
    """`process 12`, if its number is known."""
    return f"process {pid}" if pid else "another process"
