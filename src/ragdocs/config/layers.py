"""A configuration in layers: each file, variable and flag is one, and the nearest wins per key.

A layer is flat, from the path of a key to its value; a tree is one key, so that a nearer table of
the same name replaces it whole. Merging is then nothing but laying one over the other.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from ragdocs.config.catalogue import KeyPath, aliases, find, is_known, key_text, settings
from ragdocs.config.problems import (
    LEVEL,
    VARIABLE_PREFIX,
    Findings,
    Locate,
    Origin,
    OriginKind,
    Problem,
    explain,
    unknown_variable,
)
from ragdocs.config.sections import Settings
from ragdocs.config.toml_lines import key_lines, line_of

Table = dict[str, object]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value, where it was given, and the folder that it must not lead out of, if any."""

    value: object
    origin: Origin
    within: Path | None = None


Layer = Mapping[KeyPath, Assigned]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a layer comes from: what it is called, what its paths are relative to, its text."""

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
    """Checks one source by itself, so that a bad value is told even where a nearer one hides it."""
    lines = key_lines(source.text)
    renamed = _aliases_used(table)

    def locate(path: KeyPath) -> Origin:
        written = renamed.get(path, path)
        return Origin(source.kind, source.where, line_of(lines, written))

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
    """A layer for each `RAGDOCS_SECTION__KEY`; other `RAGDOCS_` names are not ours to judge."""
    seen: dict[KeyPath, Assigned] = {}
    for variable in sorted(environ):
        if not variable.startswith(VARIABLE_PREFIX):
            continue
        name = variable.removeprefix(VARIABLE_PREFIX).lower()
        path = tuple(name.split(LEVEL))
        if len(path) < 2:
            findings.notes.extend(_meant_by(variable, name))
            continue
        if not is_known(path):
            origin = Origin(OriginKind.ENVIRONMENT, variable)
            findings.problems.append(unknown_variable(path, origin))
            continue
        table: Table = {}
        _put(table, path, _variable_value(path, environ[variable]))
        layer = layer_of(table, Source(OriginKind.ENVIRONMENT, variable, cwd), findings)
        findings.problems.extend(_set_twice(seen, layer))
        seen.update(layer)
        yield layer


def _meant_by(variable: str, name: str) -> Iterator[Problem]:
    """A variable with one underscore too few is not a setting, and easily written."""
    for path in settings():
        if name in ("_".join(map(str, path)), str(path[-1])):
            meant = VARIABLE_PREFIX + LEVEL.join(map(str, path)).upper()
            origin = Origin(OriginKind.ENVIRONMENT, variable)
            yield Problem(origin, "", f"is not read; the setting is {meant}")
            return


def _set_twice(seen: Layer, layer: Layer) -> Iterator[Problem]:
    """An alias and its name, or two ways of writing one name in capitals and small letters."""
    for path in seen.keys() & layer.keys():
        message = f"is set by {seen[path].origin} too: keep one"
        yield Problem(layer[path].origin, key_text(path), message)


def _variable_value(path: KeyPath, text: str) -> object:
    """A TOML value; a bare word, and all that is meant for a text setting, stands for itself."""
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
    """The table that holds `path`'s last name, if it does. Aliases and their settings are two deep.

    Only those are looked at, so that a file cannot make us follow it to any depth.
    """
    section, name = path
    found = table.get(str(section))
    return cast("Table", found) if isinstance(found, dict) and name in found else None


def _aliases_used(table: Table) -> dict[KeyPath, KeyPath]:
    """From the real name to the alias that stands for it in this table."""
    return {meant: alias for alias, meant in aliases().items() if _holder(table, alias)}


def _with_real_names(
    table: Table, renamed: dict[KeyPath, KeyPath], locate: Locate, findings: Findings
) -> Table:
    table = {name: _copied(value) for name, value in table.items()}
    for meant, alias in renamed.items():
        origin = locate(meant)
        value = cast("Table", table[str(alias[0])]).pop(str(alias[1]))
        if _holder(table, meant):
            message = f"is another name for {key_text(meant)}, which is set too: keep one"
            findings.problems.append(Problem(origin, key_text(alias), message))
        elif isinstance(table.setdefault(str(meant[0]), {}), dict):
            message = f"is accepted as another name for {key_text(meant)}"
            findings.notes.append(Problem(origin, key_text(alias), message))
            _put(table, meant, value)
    return table


def _copied(value: object) -> object:
    return dict(cast("Table", value)) if isinstance(value, dict) else value
