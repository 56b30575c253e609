"""Configuration errors as values, the list of known settings, and how both are shown."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from ragdocs.config.settings import ContextRule, Settings, TreeConfig
from ragdocs.config.values import (
    CROSS_ERROR,
    SETTING_ERROR,
    Authority,
    Disagreement,
    SettingsSection,
)
from ragdocs.text import advised, printable, toml_value, type_name

# The settings as a list, in the form that messages and documentation need.

KeyPath = tuple[str | int, ...]
ANY = "*"
"""Stands for a tree's name, or a rule's number, in the path of a setting."""

_LISTED: Mapping[KeyPath, type[SettingsSection]] = {
    ("tree",): TreeConfig,
    ("context", "rules"): ContextRule,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its path, allowed values, default and description."""

    path: KeyPath
    default: object
    required: bool
    allowed: str
    description: str
    aliases: tuple[KeyPath, ...]
    is_text: bool
    authority: Authority | None = None

    @property
    def name(self) -> str:
        return str(self.path[-1])


@dataclass(frozen=True, slots=True)
class Table:
    """One TOML table: its header, its purpose and its own settings."""

    path: KeyPath
    description: str
    settings: tuple[Setting, ...]

    @property
    def header(self) -> str:
        names = ".".join(str(part) for part in self.path if part != ANY)
        if self.path[-1:] != (ANY,):
            return f"[{names}]" if names else ""
        return f"[{names}.NAME]" if self.path[0] == "tree" else f"[[{names}]]"


@cache
def tables() -> tuple[Table, ...]:
    """Every table, in the order of the models, each before its sub-tables."""
    return tuple(_tables(Settings, ()))


@cache
def settings() -> Mapping[KeyPath, Setting]:
    return {one.path: one for table in tables() for one in table.settings}


@cache
def aliases() -> Mapping[KeyPath, KeyPath]:
    """Maps accepted other names to the real names."""
    return {alias: one.path for one in settings().values() for alias in one.aliases}


def find(path: KeyPath) -> Setting | None:
    return settings().get(general(path))


def authority_of(path: KeyPath) -> Authority | None:
    """Of the setting at `path`, which may be a tree, or a key inside a setting that is a table."""
    if path[0] == "tree":
        is_described = path[2:] == ("description",)
        return settings()["tree", ANY, "description" if is_described else "path"].authority
    while path and path not in settings():
        path = path[:-1]
    return settings()[path].authority if path else None


def is_known(path: KeyPath) -> bool:
    """Whether `path` is a setting, another name of one, or a table."""
    wanted = general(path)
    return path in aliases() or wanted in settings() or wanted in {one.path for one in tables()}


def general(path: KeyPath) -> KeyPath:
    """The path with ANY for a tree's name or a rule's number, as in `settings()`."""
    for listed in _LISTED:
        depth = len(listed)
        if path[:depth] == listed and len(path) > depth:
            return (*listed, ANY, *path[depth + 1 :])
    return path


def names_in(path: KeyPath) -> tuple[str, ...]:
    """What the table at `path` may contain: its settings and its sub-tables."""
    depth = len(path)
    known = {*settings(), *(table.path for table in tables())}
    inside = (one for one in known if len(one) > depth and one[:depth] == path)
    return tuple(sorted({str(one[depth]) for one in inside} - {ANY}))


def key_text(path: KeyPath) -> str:
    """`search.min_confidence`, `context.rules[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _tables(model: type[SettingsSection], path: KeyPath) -> Iterator[Table]:
    fields = model.model_fields
    below = {name: _section(field, (*path, name)) for name, field in fields.items()}
    own = tuple(
        _setting((*path, name), field)
        for name, field in fields.items()
        if below[name] is None or (*path, name) == ("context", "rules")
    )
    yield Table(path, (model.__doc__ or "").strip(), own)
    for name, section in below.items():
        if section is not None:
            deeper = (*path, name)
            yield from _tables(section, (*deeper, ANY) if deeper in _LISTED else deeper)


def _section(field: FieldInfo, path: KeyPath) -> type[SettingsSection] | None:
    if path in _LISTED:
        return _LISTED[path]
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, SettingsSection) else None


def _setting(path: KeyPath, field: FieldInfo) -> Setting:
    extra = cast("dict[str, Any]", field.json_schema_extra or {})
    return Setting(
        path=path,
        default=None if field.is_required() else field.default,
        required=field.is_required(),
        allowed=extra.get("allowed") or _describe_allowed(field),
        description=field.description or "",
        aliases=tuple(tuple(alias.split(".")) for alias in extra.get("aliases", ())),
        is_text=_is_text(field.annotation),
        authority=extra.get("authority"),
    )


def _is_text(kind: object) -> bool:
    return kind in (str, Path, Path | None) or _is_choice(kind)


def _is_choice(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _describe_allowed(field: FieldInfo) -> str:
    kind = field.annotation
    if _is_choice(kind):
        return "one of " + ", ".join(f'"{choice}"' for choice in cast("type[StrEnum]", kind))
    if get_origin(kind) is tuple:
        return "a list of strings"
    plain = {
        bool: "true or false",
        int: f"a whole number{_range(field)}",
        float: f"a number{_range(field)}",
        str: "a string",
    }
    return plain.get(cast("type", kind), "a path")


def _range(field: FieldInfo) -> str:
    bounds = {
        name: getattr(rule, name)
        for rule in field.metadata
        for name in ("ge", "le")
        if hasattr(rule, name)
    }
    return f" from {bounds['ge']} to {bounds['le']}" if len(bounds) == 2 else ""


# Problems of a configuration, described so that the user can fix them.
#
# Each problem names its location, the key, what is allowed there, and the nearest known name.

VARIABLE_PREFIX = "RAGDOCS_"
LEVEL = "__"
"""Separates the section and the key in a variable's name."""
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
    """What set a value, weakest first."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a value was written: a file and its line, a variable, or the command line."""

    kind: OriginKind
    where: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = printable(self.where or self.kind)
        return f"{place}:{self.line}" if self.line else place


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to fix; or, in the notes, to know about."""

    origin: SettingOrigin
    key: str
    message: str
    allowed: str = ""
    suggestion: str = ""
    listing: str = ""
    """How to see everything that is allowed, if that is a long list."""

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
    """Collects everything found while reading a configuration, to report it all at once."""

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[Problem] = field(default_factory=list[Problem])


Locate = Callable[[KeyPath], SettingOrigin]


def explain(error: ValidationError, locate: Locate) -> list[Problem]:
    """Describes what pydantic found, in the order of the lines."""
    found = sorted(
        islice(_explain_each(error, locate), MAX_PROBLEMS),
        key=lambda problem: problem.origin.line or 0,
    )
    if error.error_count() > MAX_PROBLEMS:
        message = f"there are {error.error_count() - MAX_PROBLEMS} more problems"
        found.append(Problem(replace(found[0].origin, line=None), "", message))
    return found


def _explain_each(error: ValidationError, locate: Locate) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        path: KeyPath = tuple(part for part in item["loc"] if part != _OF_A_KEY)
        if item["type"] == CROSS_ERROR:
            yield from _disagreements(item, path, locate)
        elif item["type"] == "extra_forbidden":
            yield unknown(path, locate(path), is_table=isinstance(item["input"], Mapping))
        else:
            yield _unfit(item, path, locate(path))


def unknown(path: KeyPath, origin: SettingOrigin, *, is_table: bool = False) -> Problem:
    """An unknown key. It is an error: a setting without effect is worse than a missing one."""
    table = general(path[:-1])
    name = _fold(str(path[-1]))
    return Problem(
        origin,
        key_text(path),
        f"there is no such {'section' if is_table else 'setting'}",
        f"{_list_names(name, names_in(table))} in {_header(table) or 'the top level'}",
        _nearest(name, table),
        listing=_all_settings(),
    )


def unknown_variable(path: KeyPath, origin: SettingOrigin) -> Problem:
    """The same for an environment variable, where a typo may be anywhere in the name."""
    variables = {key_text(one): variable_of(one) for one in settings() if ANY not in one}
    close = difflib.get_close_matches(_fold(key_text(path)), variables, 1, _CLOSE)
    return Problem(
        origin,
        key_text(path),
        "there is no such setting",
        f"{VARIABLE_PREFIX}SECTION{LEVEL}KEY for any setting",
        variables[close[0]] if close else "",
        listing=_all_settings(),
    )


def _all_settings() -> str:
    """Names a command that reads no file, so it works with a broken configuration."""
    return f"{advised('config --defaults')} lists all settings"


def variable_of(path: KeyPath) -> str:
    return VARIABLE_PREFIX + LEVEL.join(str(part).upper() for part in path)


def _fold(name: str) -> str:
    return name[:MAX_NAME_COMPARED].lower().replace("-", "_")


def _list_names(name: str, known: Iterable[str]) -> str:
    """All known names, or the likeliest if there are many."""
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


def _unfit(item: ErrorDetails, path: KeyPath, origin: SettingOrigin) -> Problem:
    setting = find(path) or find(path[:-1])
    allowed = setting.allowed if setting else f"a table, {_header(general(path))}"
    if item["type"] == SETTING_ERROR and setting is None:
        allowed = ""
    suggestion = ""
    if setting and item["type"] == "enum" and isinstance(item["input"], str):
        choices = setting.allowed.split('"')[1::2]
        close = difflib.get_close_matches(_fold(item["input"]), choices, 1, _CLOSE)
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
        return f"is too long; the maximum is {most:,} {what}"
    if kind == "string_unicode":
        return "is not valid Unicode"
    shown = _show(item["input"])
    if kind in _OUT_OF_RANGE:
        return f"{shown} is out of range"
    return (
        f"{shown} is not a valid choice"
        if kind == "enum"
        else f"{shown} is {type_name(item['input'])}"
    )


def _show(value: object) -> str:
    try:
        text = printable(toml_value(value))
    except (RecursionError, ValueError):  # lists nested 500 deep, numbers with 5,000 digits
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
