"""Settings in layers: each file, variable and flag is one layer; the nearest wins for each key.

A layer knows the line of each key, so that an error can name it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from ragdocs.config.problems import (
    LEVEL,
    VARIABLE_PREFIX,
    Findings,
    KeyPath,
    Locate,
    OriginKind,
    Problem,
    SettingOrigin,
    aliases,
    explain,
    find,
    is_known,
    key_text,
    settings,
    unknown_variable,
)
from ragdocs.config.settings import Settings

# Finds the line of each key in a TOML text, because tomllib returns only the values.
#
# tomllib has already accepted the text, so this may be lenient: at worst a key is not found, and
# the line of its table is used instead. It never raises.

MAX_KEY_PARTS = 32
# tomllib's memory grows with the square of the parts of a dotted key: 40 kB took 1.6 GB.
DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+)"""
    f"{{{MAX_KEY_PARTS}}}"
)


# A multi-line string may end in up to five quotes, of which the last three close it.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[A-Za-z0-9_-]+"
    r"|.",
    re.DOTALL,
)
# No setting is nested deeper; without a limit, a key with 100,000 dots has quadratic cost.
_MAX_DEPTH = 8
_SKIPPED = re.compile(r"[ \t\r.]|\#.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int


@dataclass(slots=True)
class _Open:
    """An array or inline table that is being read."""

    path: KeyPath
    is_array: bool
    index: int = 0


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line, from 1, of every key, table header and list element."""
    return _Scanner(_tokens(text)).scan()


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of `path`, or of the nearest thing around it that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _tokens(text: str) -> list[_Token]:
    line = 1
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        if not _SKIPPED.fullmatch(match[0]):
            found.append(_Token(match[0], line))
        line += match[0].count("\n")
    return found


def _name(text: str) -> str:
    """The key without quotes and escapes."""
    if text[0] not in "\"'":
        return text
    try:
        return next(iter(tomllib.loads(f"{text} = 0")))
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _below(path: KeyPath, part: str | int) -> KeyPath:
    return (*path, part) if len(path) < _MAX_DEPTH else path


class _Scanner:
    """Reads the tokens once, statement by statement."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._table: KeyPath = ()
        self._last_index: dict[KeyPath, int] = {}
        self._lines: dict[KeyPath, int] = {}

    def scan(self) -> Mapping[KeyPath, int]:
        while (token := self._peek()) is not None:
            if token.text == "\n":
                self._next += 1
            elif token.text == "[":
                self._header(token.line)
            else:
                self._value(self._key(self._table))
        return self._lines

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _names_until(self, ends: str) -> tuple[str, ...]:
        names: list[str] = []
        while (token := self._peek()) is not None and token.text != "\n":
            self._next += 1
            if token.text in ends:
                break
            names.append(_name(token.text))
        return tuple(names)

    def _key(self, table: KeyPath) -> KeyPath:
        """Reads `key =` or `dotted.key =` and records the line of each part."""
        token = self._peek()
        path = table
        for name in self._names_until("="):
            path = _below(path, name)
            self._lines.setdefault(path, token.line if token else 1)
        return path

    def _header(self, line: int) -> None:
        self._next += 1
        token = self._peek()
        is_array = token is not None and token.text == "["
        self._next += is_array
        names = self._names_until("]")
        self._names_until("]")
        path: KeyPath = ()
        for name in names[:-1]:
            path = self._latest(_below(path, name))
        if names:
            path = _below(path, names[-1])
        if is_array:
            self._last_index[path] = self._last_index.get(path, -1) + 1
            self._lines.setdefault(path, line)
            path = self._latest(path)
        self._table = path
        self._lines.setdefault(path, line)

    def _latest(self, path: KeyPath) -> KeyPath:
        """A sub-table of `[[list]]` belongs to the list's last element."""
        return _below(path, self._last_index[path]) if path in self._last_index else path

    def _value(self, path: KeyPath) -> None:
        """Reads a value to its end; uses its own stack, so that the nesting may be of any depth."""
        stack: list[_Open] = []
        while (token := self._peek()) is not None:
            if token.text == "\n" and not stack:
                return
            self._next += 1
            if token.text in ("[", "{"):
                self._lines.setdefault(path, token.line)
                stack.append(_Open(path, token.text == "["))
                path = self._element(stack[-1])
            elif token.text in ("]", "}") and stack:
                stack.pop()
            elif token.text == "," and stack:
                stack[-1].index += 1
                path = self._element(stack[-1])
            elif token.text != "\n":
                self._lines.setdefault(path, token.line)

    def _element(self, around: _Open) -> KeyPath:
        if around.is_array:
            return _below(around.path, around.index)
        token = self._peek()
        is_empty = token is not None and token.text == "}"
        return around.path if is_empty else self._key(around.path)


# Merging layers.
#
# A layer is flat: it maps the path of a key to its value. A tree is one key, so that a nearer table
# of the same name replaces all of it. Merging is then a plain dictionary update.

Table = dict[str, object]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value, where it was set, and the folder that it must stay inside, if any."""

    value: object
    origin: SettingOrigin
    within: Path | None = None


Layer = Mapping[KeyPath, Assigned]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a layer comes from: its name, the base of its relative paths, its text."""

    kind: OriginKind
    where: str
    base: Path
    text: str = ""


def merge(layers: Iterable[Layer]) -> Layer:
    """The furthest layer first."""
    merged: dict[KeyPath, Assigned] = {}
    for layer in layers:
        merged.update(layer)
    return merged


def layer_of(table: Table, source: Source, findings: Findings) -> Layer:
    """Checks each source separately, to report a bad value even if a nearer one overrides it."""
    lines = key_lines(source.text)
    renamed = _aliases_used(table)

    def locate(path: KeyPath) -> SettingOrigin:
        written = renamed.get(path, path)
        return SettingOrigin(source.kind, source.where, line_of(lines, written))

    table = _with_real_names(table, renamed, locate, findings)
    try:
        checked = Settings.model_validate(table, context={"base": source.base, "partial": True})
    except ValidationError as error:
        findings.problems.extend(explain(error, locate))
        return {}
    given = cast("Table", checked.model_dump(exclude_unset=True))
    return {path: Assigned(value, locate(path)) for path, value in flatten(given)}


def flatten(table: Mapping[str, object], path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    for name, value in table.items():
        here = (*path, name)
        if isinstance(value, dict) and path != ("tree",):
            yield from flatten(cast("Table", value), here)
        else:
            yield here, value


def unflatten(layer: Layer) -> Table:
    whole: Table = {}
    for path, assigned in layer.items():
        _put(whole, path, assigned.value)
    return whole


def environment_layers(
    environ: Mapping[str, str], cwd: Path, findings: Findings
) -> Iterator[Layer]:
    """A layer for each `RAGDOCS_SECTION__KEY`; other `RAGDOCS_` names are not errors."""
    seen: dict[KeyPath, Assigned] = {}
    for variable in sorted(environ):
        if not variable.startswith(VARIABLE_PREFIX):
            continue
        name = variable.removeprefix(VARIABLE_PREFIX).lower()
        path = tuple(name.split(LEVEL))
        if len(path) < 2:
            findings.notes.extend(_suggest_setting(variable, name))
            continue
        if not is_known(path):
            origin = SettingOrigin(OriginKind.ENVIRONMENT, variable)
            findings.problems.append(unknown_variable(path, origin))
            continue
        table: Table = {}
        _put(table, path, _variable_value(path, environ[variable]))
        layer = layer_of(table, Source(OriginKind.ENVIRONMENT, variable, cwd), findings)
        findings.problems.extend(_find_duplicates(seen, layer))
        seen.update(layer)
        yield layer


def _suggest_setting(variable: str, name: str) -> Iterator[Problem]:
    """Points out a variable with one underscore too few: an easy mistake."""
    for path in settings():
        if name in ("_".join(map(str, path)), str(path[-1])):
            meant = VARIABLE_PREFIX + LEVEL.join(map(str, path)).upper()
            origin = SettingOrigin(OriginKind.ENVIRONMENT, variable)
            yield Problem(origin, "", f"is not read; the setting is {meant}")
            return


def _find_duplicates(seen: Layer, layer: Layer) -> Iterator[Problem]:
    """An alias and its setting, or two variables that differ only in upper and lower case."""
    for path in seen.keys() & layer.keys():
        message = f"is also set by {seen[path].origin}; keep one"
        yield Problem(layer[path].origin, key_text(path), message)


def _variable_value(path: KeyPath, text: str) -> object:
    """A TOML value; a bare word, or any value of a text setting, is taken as a string."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    setting = find(aliases().get(path, path))
    value = parsed["value"]
    is_text = setting is not None and setting.is_text and not isinstance(value, str)
    return text if is_text or len(parsed) > 1 else value


def _put(table: Table, path: KeyPath, value: object) -> None:
    *above, last = (str(part) for part in path)
    for name in above:
        table = cast("Table", table.setdefault(name, {}))
    table[last] = value


def _holder(table: Table, path: KeyPath) -> Table | None:
    """The table with the last name of `path`, if there is one. Aliases and their settings are two
    levels deep; nothing deeper is read, so a file cannot make us descend without limit."""
    section, name = path
    found = table.get(str(section))
    return cast("Table", found) if isinstance(found, dict) and name in found else None


def _aliases_used(table: Table) -> dict[KeyPath, KeyPath]:
    """Maps real names to the aliases that this table uses for them."""
    return {meant: alias for alias, meant in aliases().items() if _holder(table, alias)}


def _with_real_names(
    table: Table, renamed: dict[KeyPath, KeyPath], locate: Locate, findings: Findings
) -> Table:
    table = {name: _copy(value) for name, value in table.items()}
    for meant, alias in renamed.items():
        origin = locate(meant)
        value = cast("Table", table[str(alias[0])]).pop(str(alias[1]))
        if _holder(table, meant):
            message = f"is another name for {key_text(meant)}, which is also set; keep one"
            findings.problems.append(Problem(origin, key_text(alias), message))
        elif isinstance(table.setdefault(str(meant[0]), {}), dict):
            message = f"is accepted as another name for {key_text(meant)}"
            findings.notes.append(Problem(origin, key_text(alias), message))
            _put(table, meant, value)
    return table


def _copy(value: object) -> object:
    return dict(cast("Table", value)) if isinstance(value, dict) else value
