"""How text, numbers and values are written: without invisible characters, for people, as JSON and
as TOML.
"""

import dataclasses
import datetime
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from pathlib import Path
from re import Match
from typing import TypeAlias, cast

# Invisible characters: bidi controls, tags, control and zero-width characters can carry
# instructions that only a model reads, or control a terminal. Answers to a model omit and count
# them; a terminal shows them as escapes. A joiner between two visible characters affects their
# appearance, and stays.

INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\U000e0000-\U000e007f"
)
"""Soft hyphens, zero-width and bidi controls, tags, as the inside of a regex `[…]`."""
_JOINERS = "\u200c\u200d"
_HIDDEN = f"{INVISIBLE}\ufff9-\ufffb\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
"""A single variation selector changes a character's look; several in a row can hide text."""
# Matches whole runs, so that the neighbour of a match is never hidden itself.
_hidden = re.compile(f"[{_HIDDEN}]+|{_SELECTORS}")
_unsafe = re.compile(f"[{_HIDDEN}\r\x85\u2028\u2029]+|{_SELECTORS}")
"""For a terminal, also characters that move the cursor; line feeds and tabs stay."""


_surrogate = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Lone surrogates (halves of characters), which no store, model or output can carry, become
    U+FFFD. Only file names may rightfully hold them, and those are percent-encoded before."""
    return text if text.isascii() else _surrogate.sub("\ufffd", text)


class Cleaner:
    """Removes invisible characters from the texts of one answer, and counts them."""

    def __init__(self) -> None:
        self.removed = 0

    def clean(self, text: str) -> str:
        """Keeps line feeds and tabs. Lone surrogates become `?`."""
        if text.isascii() and text.isprintable():
            return text
        return _hidden.sub(self._drop, text).encode("utf-8", "replace").decode()

    def _drop(self, found: Match[str]) -> str:
        if _is_joiner_in_use(found):
            return found[0]
        self.removed += len(found[0])
        return ""


def hidden_ranges(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of invisible characters that a `Cleaner` would remove."""
    if text.isascii() and text.isprintable():
        return iter(())
    return (found.span() for found in _hidden.finditer(text) if not _is_joiner_in_use(found))


def escaped(text: str) -> str:
    """The text with every invisible character as its escape, for a terminal."""
    return _unsafe.sub(_escape, text)


_LINE_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


def escaped_line(text: str) -> str:
    """As `escaped`, on one line: a file name with a line break must not look like two results."""
    return escaped(text).translate(_LINE_ESCAPES)


def _escape(found: Match[str]) -> str:
    if _is_joiner_in_use(found):
        return found[0]
    return "".join(f"\\u{ord(character):04x}" for character in found[0])


def _is_joiner_in_use(found: Match[str]) -> bool:
    """Whether the match is a joiner between two visible characters."""
    text, start, end = found.string, found.start(), found.end()
    is_joiner = end - start == 1 and found[0] in _JOINERS
    return is_joiner and _is_visible(text[start - 1 : start]) and _is_visible(text[end : end + 1])


def _is_visible(character: str) -> bool:
    return bool(character) and not character.isspace()


# Values as JSON: the only conversion of our types for `json`.

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


def _unchanged(text: str) -> str:
    return text


def json_value(
    thing: object, clean: Callable[[str], str] = _unchanged, *, has_null: bool = True
) -> Json:
    """Dataclasses and named tuples become objects, with their fields in order. Sets are sorted, so
    that equal answers are equal texts. `clean` is applied to each text; without `has_null`, fields
    that are None are omitted.
    """
    if isinstance(thing, Enum):
        thing = cast("object", thing.value)
    if thing is None or isinstance(thing, int | float):
        return thing
    pairs = _pairs_of(thing)
    if pairs is not None:
        return {
            str(key): json_value(one, clean, has_null=has_null)
            for key, one in pairs
            if has_null or one is not None
        }
    if isinstance(thing, list | tuple | Set):
        items = cast("Iterable[object]", thing)
        ordered = sorted(map(str, items)) if isinstance(thing, Set) else items
        return [json_value(one, clean, has_null=has_null) for one in ordered]
    return clean(thing.isoformat() if isinstance(thing, datetime.datetime) else str(thing))


def _pairs_of(thing: object) -> Iterable[tuple[object, object]] | None:
    """The names and values of an object. Dataclass fields with `repr=False`, such as the function
    that packs an answer again, are not part of its JSON.
    """
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        shown = (field.name for field in dataclasses.fields(thing) if field.repr)
        return [(name, getattr(thing, name)) for name in shown]
    if isinstance(thing, Mapping):
        return cast("Mapping[object, object]", thing).items()
    names = cast("tuple[str, ...] | None", getattr(thing, "_fields", None))
    if names is not None and isinstance(thing, tuple):
        return list(zip(names, cast("tuple[object, ...]", thing), strict=True))
    return None


def json_text(thing: object) -> str:
    """Readable JSON, safe on a terminal: invisible characters are written as escapes."""
    text = json.dumps(json_value(thing), ensure_ascii=False, indent=2)
    return _unsafe.sub(_json_escape, text)


def _json_escape(found: Match[str]) -> str:
    return found[0] if _is_joiner_in_use(found) else json.dumps(found[0])[1:-1]


# Values and names as TOML, and in a form that any terminal can show.

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def printable(text: str) -> str:
    """A path or name with control characters and non-UTF-8 bytes as escapes."""
    shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown)


def toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_string(name)


def toml_string(text: str) -> str:
    # JSON and TOML have the same escapes, except that JSON leaves DEL unescaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: object) -> str:
    """A value as written in a file; None is the empty string."""
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
    """TOML's name for the type of this value, with its article."""
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


# Numbers, sizes, processes and commands for people, in the same words everywhere.

OPTIONS = ("--config", "--docs", "--index")
"""The options that most commands accept, for settings, documents and index."""
OPTIONS_OF: dict[str, tuple[str, ...]] = {
    "trust": (),
    "init": (),
    "models": ("--config",),
    "eval": ("--config",),
}
"""The commands that accept fewer of them."""
_typed: list[tuple[str, str]] = []


def remember_typed(options: Iterable[tuple[str, str]]) -> None:
    """Records which of these options the user typed, to repeat them in advice."""
    _typed[:] = options


def advised(command: str) -> str:
    """A command to copy, in backticks, with the options typed, so that it uses the same index."""
    taken = OPTIONS_OF.get(command.split()[0], OPTIONS)
    options = "".join(f" {name} {_quote(value)}" for name, value in _typed if name in taken)
    return f"`ragdocs {command}{options}`"


def _quote(value: str) -> str:
    """Quotes for a shell; characters that control the terminal become escapes."""
    import shlex

    if value.isprintable():
        return shlex.quote(value)
    return "$'" + value.encode("unicode_escape").decode().replace("'", "\\'") + "'"


def number_of(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def kinds_text(counts: Mapping[str, int]) -> str:
    """`12 .pdf, 3 .docx`: the most frequent first."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{count:,} {extension}" for extension, count in ordered)


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
