"""From files, environment and flags to the configuration in force, or to all that is wrong."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

from pydantic import ValidationError

from ragdocs.config.advice import advise
from ragdocs.config.catalogue import ANY, KeyPath, key_text, settings
from ragdocs.config.files import ConfigFile, project_chain, read, user_config
from ragdocs.config.layers import (
    Assigned,
    Layer,
    Source,
    environment_layers,
    layer_of,
    merge,
    unflatten,
)
from ragdocs.config.locations import (
    PROJECT_FOLDER,
    IndexPlace,
    cache_folder,
    default_index,
    user_file,
)
from ragdocs.config.problems import Findings, Origin, OriginKind, Problem, explain
from ragdocs.config.resolved import DOCUMENTS_PATH, Config, trees_of
from ragdocs.config.sections import Settings
from ragdocs.errors import ConfigError

_BY_DEFAULT = Origin(OriginKind.DEFAULT)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading brought: a configuration, or the problems why there is none."""

    config: Config | None
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    files: tuple[Path, ...]


def load_config(
    config_file: Path | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration in force in `cwd`; see `read_config` for what counts.

    Raises:
        ConfigError: with every problem that was found.
    """
    reading = read_config(config_file, cwd=cwd, environ=environ, flags=flags)
    if reading.config is None:
        raise ConfigError(problem_text(reading.problems))
    return reading.config


def read_config(
    config_file: Path | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Reading:
    """`config_file` alone, or the files found from `cwd` upwards and then the user's.

    The environment overrides files, `flags` (tables as in a file) override both. Flags that name
    documents, by trees or by a folder, mean exactly those: configured trees are then left out, but
    for the one that is this folder, which keeps its name and patterns.
    """
    findings = Findings()
    here = _working_directory(cwd, findings)
    if here is None:
        return _failed(findings, ())
    environ = os.environ if environ is None else environ
    files = _files(config_file, here, environ, findings)
    layers = _layers(files, here, environ, findings)
    given = layer_of(dict(flags or {}), Source(OriginKind.FLAG, "command line", here), findings)
    merged = _overridden(layers, given)
    paths = tuple(file.path for file in files)
    whole = None if findings.problems else _checked(merged, findings)
    if whole is None:
        return _failed(findings, paths)
    # Without a home there is still one place that is the user's: the working directory.
    cache = cache_folder(environ) or here / PROJECT_FOLDER
    config = _config(whole, merged, paths, cache)
    notes = (*findings.notes, *advise(config))
    return Reading(config, (), notes, paths)


def problem_text(problems: Iterable[Problem]) -> str:
    """All problems as the user reads them, one on a line."""
    lines = [str(problem) for problem in problems]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(
        [f"{len(lines)} problems in the configuration:", *(f"  {one}" for one in lines)]
    )


def _failed(findings: Findings, files: tuple[Path, ...]) -> Reading:
    return Reading(None, tuple(findings.problems), tuple(findings.notes), files)


def _working_directory(cwd: Path | None, findings: Findings) -> Path | None:
    try:
        return (cwd or Path.cwd()).resolve()
    except OSError as error:
        origin = Origin(OriginKind.PROJECT, "the working directory")
        findings.problems.append(Problem(origin, "", f"cannot be used: {error.strerror}"))
        return None


def _files(
    config_file: Path | None, cwd: Path, environ: Mapping[str, str], findings: Findings
) -> list[ConfigFile]:
    """The nearest first."""
    users = user_file(environ)
    if config_file is not None:
        path = cwd / os.path.expanduser(config_file)
        kind = OriginKind.USER if path == users else OriginKind.PROJECT
        file = read(path, kind, findings)
        return [file] if file else []
    found = list(project_chain(cwd, findings))
    last = user_config(users, findings)
    return [*found, last] if last else found


def _layers(
    files: list[ConfigFile], cwd: Path, environ: Mapping[str, str], findings: Findings
) -> Layer:
    """All that is not a flag, merged. Without a word on it, the documents are the project's."""
    projects = [file for file in files if file.source.kind is OriginKind.PROJECT]
    documents = projects[0].source.base.resolve() if projects else cwd

    def furthest_first() -> Iterator[Layer]:
        yield {DOCUMENTS_PATH: Assigned(documents, _BY_DEFAULT)}
        for file in reversed(files):
            yield layer_of(file.table, file.source, findings)
        yield from environment_layers(environ, cwd, findings)

    return merge(furthest_first())


def _overridden(layers: Layer, flags: Layer) -> Layer:
    if DOCUMENTS_PATH not in flags and not any(path[0] == "tree" for path in flags):
        return merge([layers, flags])
    kept = {path: one for path, one in layers.items() if path[0] != "tree"}
    kept[DOCUMENTS_PATH] = Assigned(Path(), _BY_DEFAULT)
    tree = _configured_tree(layers, flags)
    if tree is None:
        return merge([kept, flags])
    others = {path: one for path, one in flags.items() if path != DOCUMENTS_PATH}
    return merge([kept, {tree: layers[tree]}, others])


def _configured_tree(layers: Layer, flags: Layer) -> KeyPath | None:
    """The one tree that is the flags' folder: by another name it would be indexed once more."""
    if DOCUMENTS_PATH not in flags or any(path[0] == "tree" for path in flags):
        return None
    folder = flags[DOCUMENTS_PATH].value
    found = [
        path
        for path, one in layers.items()
        if path[0] == "tree" and cast("Mapping[str, object]", one.value).get("path") == folder
    ]
    return found[0] if len(found) == 1 else None


def _checked(merged: Layer, findings: Findings) -> Settings | None:
    """The merged whole; its values were checked one by one, so now only together."""

    def locate(path: KeyPath) -> Origin:
        return merged[path].origin if path in merged else _BY_DEFAULT

    try:
        return Settings.model_validate(unflatten(merged))
    except ValidationError as error:
        findings.problems.extend(explain(error, locate))
        return None


def _config(whole: Settings, merged: Layer, files: tuple[Path, ...], cache: Path) -> Config:
    trees = trees_of(merged, whole)
    default = default_index(cache, ((one.name, one.root) for one in trees))
    return Config(
        indexing=whole.indexing,
        context=whole.context,
        chunking=whole.chunking,
        search=whole.search,
        embedding=whole.embedding,
        trees=trees,
        index_place=IndexPlace(default, whole.indexing.index_path),
        files=files,
        origins=MappingProxyType(_origins(merged)),
    )


def _origins(merged: Layer) -> dict[str, Origin]:
    origins = {key_text(path): _BY_DEFAULT for path in settings() if ANY not in path}
    origins.update({key_text(path): one.origin for path, one in merged.items()})
    del origins["root"]  # speaks of one file, not of the whole
    return origins
