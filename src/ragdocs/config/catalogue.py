"""The settings as a list: what the models say, in the form that messages and documents need."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, cast, get_origin

from pydantic.fields import FieldInfo

from ragdocs.config.context_section import ContextRule
from ragdocs.config.indexing_section import TreeConfig
from ragdocs.config.sections import Settings
from ragdocs.config.values import Authority, Section

KeyPath = tuple[str | int, ...]
ANY = "*"
"""Stands for a tree's name, or a rule's number, in the path of a setting."""

_LISTED: Mapping[KeyPath, type[Section]] = {
    ("tree",): TreeConfig,
    ("context", "rules"): ContextRule,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: where it stands, what it may be, what it is otherwise, what it does."""

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
    """One TOML table: its header, what it is for, and its own settings."""

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
    """Other names that are accepted, and the names that they stand for."""
    return {alias: one.path for one in settings().values() for alias in one.aliases}


def find(path: KeyPath) -> Setting | None:
    return settings().get(general(path))


def authority_of(path: KeyPath) -> Authority | None:
    """Of the setting at `path`, which may be a tree, or a key of a table that is one setting."""
    if path[0] == "tree":
        return settings()["tree", ANY, "path"].authority
    while path and path not in settings():
        path = path[:-1]
    return settings()[path].authority if path else None


def is_known(path: KeyPath) -> bool:
    """Whether `path` is a setting, another name of one, or a table."""
    wanted = general(path)
    return path in aliases() or wanted in settings() or wanted in {one.path for one in tables()}


def general(path: KeyPath) -> KeyPath:
    """The path with a tree's name or a rule's number left open, as the catalogue has it."""
    for listed in _LISTED:
        depth = len(listed)
        if path[:depth] == listed and len(path) > depth:
            return (*listed, ANY, *path[depth + 1 :])
    return path


def names_in(path: KeyPath) -> tuple[str, ...]:
    """What may stand in the table at `path`: its settings and its sub-tables."""
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


def _tables(model: type[Section], path: KeyPath) -> Iterator[Table]:
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


def _section(field: FieldInfo, path: KeyPath) -> type[Section] | None:
    if path in _LISTED:
        return _LISTED[path]
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _setting(path: KeyPath, field: FieldInfo) -> Setting:
    extra = cast("dict[str, Any]", field.json_schema_extra or {})
    return Setting(
        path=path,
        default=None if field.is_required() else field.default,
        required=field.is_required(),
        allowed=extra.get("allowed") or _allowed(field),
        description=field.description or "",
        aliases=tuple(tuple(alias.split(".")) for alias in extra.get("aliases", ())),
        is_text=_is_text(field.annotation),
        authority=extra.get("authority"),
    )


def _is_text(kind: object) -> bool:
    return kind in (str, Path, Path | None) or _is_choice(kind)


def _is_choice(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _allowed(field: FieldInfo) -> str:
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
