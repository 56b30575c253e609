"""What is wrong with a configuration, said so that the user can put it right.

Each problem names where it was found, the key, what is allowed there, and the nearest known name.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ragdocs.config.catalogue import (
    ANY,
    KeyPath,
    aliases,
    find,
    general,
    key_text,
    names_in,
    settings,
    tables,
)
from ragdocs.config.notation import printable, toml_value, type_name
from ragdocs.config.values import CROSS_ERROR, SETTING_ERROR, Disagreement
from ragdocs.wording import advised

VARIABLE_PREFIX = "RAGDOCS_"
LEVEL = "__"
"""Stands between the section and the key in a variable's name."""
MAX_PROBLEMS = 100
MAX_NAMES_SHOWN = 12
MAX_NAME_COMPARED = 100
MAX_SHOWN = 80
_CLOSE = 0.6  # difflib's own measure of a good match
_OUT_OF_RANGE = ("greater_than_equal", "less_than_equal", "finite_number")
_EMPTY = ("too_short", "string_too_short")
_TOO_LONG = ("too_long", "string_too_long")
_OF_A_KEY = "[key]"  # how pydantic marks an error in a table's name


class OriginKind(StrEnum):
    """What gave a setting its value, the weakest first."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: a file and its line, a variable, or the command line."""

    kind: OriginKind
    where: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = printable(self.where or self.kind)
        return f"{place}:{self.line}" if self.line else place


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right; or, among the notes, to know."""

    origin: Origin
    key: str
    message: str
    allowed: str = ""
    suggestion: str = ""
    listing: str = ""
    """Where all that is allowed can be seen, where that is much."""

    def __str__(self) -> str:
        place = f"{self.origin}: {_cut(printable(self.key))}" if self.key else str(self.origin)
        text = f"{place}: {self.message}"
        if self.suggestion:
            rest = self.listing or f"Allowed: {self.allowed}"
            return f"{text}; did you mean {self.suggestion}? {rest}"
        known = f"allowed: {self.allowed}" if self.allowed else ""
        return "; ".join(filter(None, (text, known, self.listing)))


@dataclass(frozen=True, slots=True)
class Findings:
    """Collects what reading a configuration brings up, so that all of it is said at once."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[Problem] = field(default_factory=list[Problem])


Locate = Callable[[KeyPath], Origin]


def explain(error: ValidationError, locate: Locate) -> list[Problem]:
    """What pydantic found, in our words and in the order of the lines."""
    found = sorted(
        islice(_explained(error, locate), MAX_PROBLEMS),
        key=lambda problem: problem.origin.line or 0,
    )
    if error.error_count() > MAX_PROBLEMS:
        message = f"there are {error.error_count() - MAX_PROBLEMS} more problems"
        found.append(Problem(replace(found[0].origin, line=None), "", message))
    return found


def _explained(error: ValidationError, locate: Locate) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        path: KeyPath = tuple(part for part in item["loc"] if part != _OF_A_KEY)
        if item["type"] == CROSS_ERROR:
            yield from _disagreements(item, path, locate)
        elif item["type"] == "extra_forbidden":
            yield unknown(path, locate(path), is_table=isinstance(item["input"], Mapping))
        else:
            yield _unfit(item, path, locate(path))


def unknown(path: KeyPath, origin: Origin, *, is_table: bool = False) -> Problem:
    """A key that means nothing: a setting that does nothing is worse than a missing one."""
    table = general(path[:-1])
    name = _folded(str(path[-1]))
    return Problem(
        origin,
        key_text(path),
        f"there is no such {'section' if is_table else 'setting'}",
        f"{_listed(name, names_in(table))} in {_header(table) or 'the top level'}",
        _nearest(name, table),
        listing=_all_settings(),
    )


def unknown_variable(path: KeyPath, origin: Origin) -> Problem:
    """The same for a variable of the environment, whose whole name may be mistyped."""
    variables = {key_text(one): variable_of(one) for one in settings() if ANY not in one}
    close = difflib.get_close_matches(_folded(key_text(path)), variables, 1, _CLOSE)
    return Problem(
        origin,
        key_text(path),
        "there is no such setting",
        f"{VARIABLE_PREFIX}SECTION{LEVEL}KEY for any setting",
        variables[close[0]] if close else "",
        listing=_all_settings(),
    )


def _all_settings() -> str:
    """By a command that reads no file: it works where the configuration does not."""
    return f"{advised('config --defaults')} lists all settings"


def variable_of(path: KeyPath) -> str:
    return VARIABLE_PREFIX + LEVEL.join(str(part).upper() for part in path)


def _folded(name: str) -> str:
    return name[:MAX_NAME_COMPARED].lower().replace("-", "_")


def _listed(name: str, known: Iterable[str]) -> str:
    """All known names, or of many the likeliest."""
    ranked = sorted(known, key=lambda one: -difflib.SequenceMatcher(None, name, one).ratio())
    text = ", ".join(sorted(ranked[:MAX_NAMES_SHOWN]))
    more = len(ranked) - MAX_NAMES_SHOWN
    return f"{text} and {more} more" if more > 0 else text


def _nearest(name: str, table: KeyPath) -> str:
    """The same name elsewhere, else the closest here (aliases count), else the closest anywhere."""
    every = {**{path: path for path in settings()}, **aliases()}
    homes = {meant for path, meant in every.items() if path[-1] == name}
    if homes:
        return " or ".join(sorted(name if home[:-1] == table else key_text(home) for home in homes))
    here = {str(path[-1]): str(meant[-1]) for path, meant in every.items() if path[:-1] == table}
    here.update({one: one for one in names_in(table)})
    anywhere = {str(path[-1]): key_text(meant) for path, meant in every.items()}
    for candidates in (here, anywhere):
        if close := difflib.get_close_matches(name, candidates, 1, _CLOSE):
            return candidates[close[0]]
    return ""


def _header(path: KeyPath) -> str:
    return next((table.header for table in tables() if table.path == path), "")


def _unfit(item: ErrorDetails, path: KeyPath, origin: Origin) -> Problem:
    setting = find(path) or find(path[:-1])
    allowed = setting.allowed if setting else f"a table, {_header(general(path))}"
    if item["type"] == SETTING_ERROR and setting is None:
        allowed = ""
    suggestion = ""
    if setting and item["type"] == "enum" and isinstance(item["input"], str):
        choices = setting.allowed.split('"')[1::2]
        close = difflib.get_close_matches(_folded(item["input"]), choices, 1, _CLOSE)
        suggestion = f'"{close[0]}"' if close else ""
    return Problem(origin, key_text(path), _complaint(item), allowed, suggestion)


def _complaint(item: ErrorDetails) -> str:
    kind = item["type"]
    if kind == SETTING_ERROR:
        return item["msg"]
    if kind == "missing":
        return "is missing"
    if kind in _EMPTY:
        return "must not be empty"
    if kind in _TOO_LONG:
        most = item.get("ctx", {}).get("max_length", 0)
        what = "characters" if isinstance(item["input"], str) else "entries"
        return f"is too long: at most {most:,} {what} are read"
    if kind == "string_unicode":
        return "is not valid Unicode"
    shown = _shown(item["input"])
    if kind in _OUT_OF_RANGE:
        return f"{shown} is out of range"
    return f"{shown} is no choice" if kind == "enum" else f"{shown} is {type_name(item['input'])}"


def _shown(value: object) -> str:
    try:
        text = printable(toml_value(value))
    except (RecursionError, ValueError):  # lists 500 deep, numbers of 5,000 digits
        return "this"
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _disagreements(item: ErrorDetails, path: KeyPath, locate: Locate) -> Iterator[Problem]:
    context = item.get("ctx", {})
    values = cast("Mapping[str, object]", item["input"])
    for one in cast("tuple[Disagreement, ...]", context["disagreements"]):
        places = [(key, locate((*path, key))) for key in one.keys]
        said = ", ".join(
            f"{key} = {toml_value(_value(path, key, values))} ({origin})" for key, origin in places
        )
        blamed = max(
            (origin for _, origin in places), key=lambda one: list(OriginKind).index(one.kind)
        )
        yield Problem(blamed, key_text((*path, one.keys[0])), f"{one.why}: {said}")


def _value(path: KeyPath, key: str, values: Mapping[str, object]) -> object:
    setting = find((*path, key))
    return values.get(key, setting.default if setting else None)
