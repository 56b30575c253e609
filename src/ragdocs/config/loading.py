"""Reads files, environment and flags into the effective configuration, or reports all problems."""

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self, cast

from pydantic import ValidationError

from ragdocs.config.layers import (
    DEEP_KEY,
    MAX_KEY_PARTS,
    Assigned,
    Layer,
    Source,
    Table,
    environment_layers,
    layer_of,
    merge,
    unflatten,
)
from ragdocs.config.locations import (
    FORMER_NAME,
    PROJECT_FOLDER,
    SINGLE_FILE,
    IndexPlace,
    cache_folder,
    default_index,
    folder_of,
    project_files,
    trust_file,
    user_file,
)
from ragdocs.config.problems import (
    ANY,
    Findings,
    KeyPath,
    OriginKind,
    Problem,
    SettingOrigin,
    explain,
    key_text,
    settings,
)
from ragdocs.config.resolved import DOCUMENTS_PATH, Config, Tree, trees_of
from ragdocs.config.settings import NEEDS, IndexingConfig, Need, Settings
from ragdocs.config.trust import (
    Ignored,
    Request,
    Standing,
    TrustLedger,
    ignored_settings,
    request_of,
    select_granted,
)
from ragdocs.errors import ConfigError
from ragdocs.files import open_file, user_id
from ragdocs.text import printable, toml_key, toml_value

# Settings that are allowed but probably a mistake: reported as notes, never as errors.

_DOCUMENTS = key_text(DOCUMENTS_PATH)
_CALIBRATION = "search.score_calibration_threshold"
_CALIBRATION_SETTINGS = (_CALIBRATION, "search.score_calibration_steepness")
_SMALLEST_EVIDENCE = 0.1
"""Even a query without an answer has more; the 0.035 of earlier systems was a rank sum."""


def advise(config: Config) -> Iterator[Problem]:
    yield from _missing_folders(config)
    yield from _overlaps(config)
    yield from _idle_documents_path(config)
    yield from _unknown_trees(config)
    yield from _old_calibration(config)
    yield from _idle_settings(config)


def _idle_settings(config: Config) -> Iterator[Problem]:
    """Settings that differ from their default and have no effect, with the reason."""
    for key, needs in NEEDS.items():
        unmet = next((need for need in needs if not _is_met(config, need)), None)
        origin = _given_at(config, key)
        if unmet is not None and origin is not None and not _is_usual(config, key):
            values = (f"{other} = {toml_value(config.value_of(other))}" for other in unmet.keys)
            why = unmet.words or "while " + " and ".join(values)
            still = f", except that {unmet.still}" if unmet.still else ""
            yield Problem(origin, key, f"has no effect {why}{still}")


def _is_met(config: Config, need: Need) -> bool:
    return need.is_met(*(config.value_of(key) for key in need.keys))


def _is_usual(config: Config, key: str) -> bool:
    """A default that is written out is not expected to have an effect."""
    return config.value_of(key) == settings()[tuple(key.split("."))].default


def _given_at(config: Config, key: str) -> SettingOrigin | None:
    """Where the user has set it, or a key inside it if it is a table; None if nowhere."""
    inside = (one for at, one in config.origins.items() if at.startswith(f"{key}."))
    every = (config.origins[key], *inside)
    return next((one for one in every if one.kind is not OriginKind.DEFAULT), None)


def _about(config: Config, tree: Tree, message: str) -> Problem:
    key = f"tree.{tree.name}"
    key = key if key in config.origins else _DOCUMENTS
    return Problem(config.tree_origin(tree), key, message)


def _missing_folders(config: Config) -> Iterator[Problem]:
    for tree in config.trees:
        try:
            is_folder = tree.root.is_dir()
        except OSError:
            is_folder = False
        if not is_folder:
            shown = printable(str(tree.root))
            yield _about(config, tree, f"{shown} is not a folder, or cannot be read")


def _overlaps(config: Config) -> Iterator[Problem]:
    """Pairs each tree with the first tree of the same folder, and with trees of folders above."""
    first_at: dict[Path, int] = {}
    for number, tree in enumerate(config.trees):
        first_at.setdefault(tree.root, number)
    pairs = {
        tuple(sorted((number, first_at[folder])))
        for number, tree in enumerate(config.trees)
        for folder in (tree.root, *tree.root.parents)
        if first_at.get(folder, number) != number
    }
    for one, other in sorted(pairs):
        name = config.trees[one].name
        message = f"shares a folder with tree {name}: files in both are indexed twice"
        yield _about(config, config.trees[other], message)


def _idle_documents_path(config: Config) -> Iterator[Problem]:
    origin = config.origins[_DOCUMENTS]
    if origin.kind is OriginKind.DEFAULT:
        return
    folder = config.indexing.documents_path
    for tree in config.trees:
        if tree.root == folder and f"tree.{tree.name}" in config.origins:
            named = f"[tree.{toml_key(tree.name)}]"
            yield Problem(origin, _DOCUMENTS, f"has no effect, because {named} has the same folder")
            return


def _unknown_trees(config: Config) -> Iterator[Problem]:
    known = {str(tree.name) for tree in config.trees}
    for number, rule in enumerate(config.context.rules):
        for name in sorted(set(rule.trees) - known):
            origin = config.origins["context.rules"]
            key = f"context.rules[{number}].trees"
            yield Problem(origin, key, f"there is no tree {printable(name)} here")


def _old_calibration(config: Config) -> Iterator[Problem]:
    curve = config.search.rank_sum_curve
    if curve is not None:
        for key in _CALIBRATION_SETTINGS:
            if origin := _given_at(config, key):
                message = f"with rank fusion, confidence is computed from the {curve.words}"
                yield Problem(origin, key, message)
    elif config.search.score_calibration_threshold < _SMALLEST_EVIDENCE:
        message = (
            "is on the scale of rank sums, but evidence ranges from 0 to 1, so every result would "
            'look certain; remove the setting, or set fusion = "rrf"'
        )
        yield Problem(config.origins[_CALIBRATION], _CALIBRATION, message)


# Configuration files: finding them from a folder upwards, and reading them.

MAX_CONFIG_BYTES = 1_000_000
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_AT_END = re.compile(r"\(at end of document\)$")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that was read: its source for messages, its path, and its tables.

    `project` is the folder in which it was found; None for a file that the user named or owns.
    """

    source: Source
    path: Path
    table: Table
    project: Path | None = None


class _Unusable(Exception):
    """The file cannot be read as a configuration; `line` is where it fails."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read(path: Path, kind: OriginKind, findings: Findings) -> ConfigFile | None:
    """The file; or None, with a problem added to `findings`."""
    try:
        text = _text(path)
        table = _parse(text)
    except _Unusable as error:
        origin = SettingOrigin(kind, str(path), error.line)
        findings.problems.append(Problem(origin, "", str(error)))
        return None
    return ConfigFile(Source(kind, str(path), folder_of(path), text), path, table)


def project_chain(start: Path, findings: Findings, foreign: list[Path]) -> Iterator[ConfigFile]:
    """The files that apply to `start`, nearest first, up to the one with `root = true`.

    A file owned by another account is not read but added to `foreign`: otherwise anyone who can
    write to a folder above could configure everything below it. The owner of `start` may.
    """
    accounts = _accounts(start)
    for folder in (start, *start.parents):
        present = [path for path in project_files(folder) if _is_there(path, findings)]
        there = [path for path in present if _owners(path) <= accounts]
        foreign += [path for path in present if path not in there]
        if len(there) > 1:
            message = (
                f"this folder has two configurations, {PROJECT_FOLDER}/config.toml and "
                f"{SINGLE_FILE}: keep one"
            )
            origin = SettingOrigin(OriginKind.PROJECT, str(folder))
            findings.problems.append(Problem(origin, "", message))
        for path in there:
            file = read(path, OriginKind.PROJECT, findings)
            if file is not None:
                # Not `folder_of`: the folder itself may have the name of our configuration folder.
                yield replace(file, project=folder, source=replace(file.source, base=folder))
            if file is not None and file.table.get("root") is True:
                return


def _accounts(start: Path) -> frozenset[int]:
    """The accounts whose files count: the user, root, and the owner of the folder."""
    mine = {0, user_id() or 0}  # everything is 0 on systems without file owners
    try:
        return frozenset({*mine, os.stat(start).st_uid})
    except OSError:
        return frozenset(mine)


def _owners(path: Path) -> set[int]:
    """The owners of the file, of a link to it, and of its `.mcp-markdown-ragdocs` folder."""
    around = [path.parent] if path.parent.name == PROJECT_FOLDER else []
    try:
        found = {os.lstat(one).st_uid for one in (path, *around)}
        return found | {os.stat(one).st_uid for one in (path, *around)}
    except OSError:  # reading it will report why
        return set()


def _is_there(path: Path, findings: Findings) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # A folder above that we may not search is no reason to fail, but worth a note.
        origin = SettingOrigin(OriginKind.PROJECT, str(path))
        message = f"cannot look for a configuration here: {error.strerror}"
        findings.notes.append(Problem(origin, "", message))
        return False
    return True


def user_config(path: Path | None, findings: Findings) -> ConfigFile | None:
    if path is None or not _is_there(path, findings):
        return None
    return read(path, OriginKind.USER, findings)


def _text(path: Path) -> str:
    try:
        data = _data(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _Unusable(f"cannot be read: {reason}") from error
    try:
        return data.decode("utf-8-sig")  # some editors write a byte order mark, which TOML forbids
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unusable("is not UTF-8 text", line) from error


def _data(path: Path) -> bytes:
    descriptor = open_file(path, os.O_RDONLY, follow=True)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _Unusable("is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_CONFIG_BYTES:
        raise _Unusable(f"is larger than {MAX_CONFIG_BYTES:,} bytes, too large for a configuration")
    return data


def _parse(text: str) -> Table:
    if deep := DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise _Unusable(f"is not usable: a key has more than {MAX_KEY_PARTS} parts", line)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _Unusable("is not usable: its values are nested too deeply") from error
    except (
        ValueError
    ) as error:  # also a number with too many digits, which is not a TOMLDecodeError
        raise _Unusable(f"is not TOML: {_reason(str(error))}", _line(str(error), text)) from error


def _reason(message: str) -> str:
    return printable(_AT_END.sub("", _AT_LINE.sub("", message)).strip())


def _line(message: str, text: str) -> int | None:
    if found := _AT_LINE.search(message):
        return int(found[1])
    return text.rstrip("\n").count("\n") + 1 if _AT_END.search(message) else None


# From files, environment and flags to the effective configuration, or to all problems.

_BY_DEFAULT = SettingOrigin(OriginKind.DEFAULT)


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """The result of reading: a configuration, or the problems that prevent one."""

    config: Config | None
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    files: tuple[Path, ...]
    ignored: tuple[Ignored, ...] = ()
    """Settings of project files that are not in force because the files are not trusted."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What one project file asks for, its standing, and which of its settings are in force."""

    request: Request
    standing: Standing
    layer: Layer
    whole: Layer

    @property
    def trusted(self) -> Layer:
        """The settings that are in force only because the user trusts the file."""
        if self.standing is not Standing.TRUSTED:
            return {}
        return {
            ask.path: self.whole[ask.path] for ask in self.request.asks if ask.path in self.whole
        }


def load_config(
    config_file: Path | None = None,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The effective configuration in `cwd`; see `read_config` for what is read.

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
) -> ConfigReading:
    """Reads `config_file` alone, or the files found from `cwd` upwards and then the user's file.

    The environment overrides files; `flags` (tables as in a file) override both. Flags that name
    documents, by trees or by a folder, mean exactly those: configured trees are then ignored, but a
    tree with this very folder keeps its name and patterns; and files are searched from these
    documents upwards. If `config_file` is a folder, the search starts there.

    Settings of files that were found apply only as far as `ragdocs trust` allows.
    """
    findings, of_flags = Findings(), Findings()
    here = _working_directory(cwd, findings)
    if here is None:
        return _fail(findings, (), ())
    environ = os.environ if environ is None else environ
    given = layer_of(dict(flags or {}), Source(OriginKind.FLAG, "command line", here), of_flags)
    start = _start(config_file, given, here)
    foreign: list[Path] = []
    if start is None and config_file is not None:
        named = _named_file(config_file, here, environ, findings)
        files = [named] if named else []
    else:
        files = _find_files(start or here, environ, findings, foreign)
    layers = _Layers.read(files, start or here, environ, here, findings)
    findings.problems.extend(of_flags.problems)
    findings.notes.extend(of_flags.notes)
    merged = _override(layers.in_force(), given)
    paths = tuple(file.path for file in files)
    unheard = (*_foreign_files(foreign), *layers.ignored(given))
    whole = None if findings.problems else _check(merged, findings)
    if whole is None:
        return _fail(findings, paths, unheard)
    # Without a home folder, fall back to the working directory, which is the user's too.
    cache = cache_folder(environ) or here / PROJECT_FOLDER
    config = _config(whole, merged, paths, cache, _Patterns(layers, given, whole.indexing))
    config = replace(config, ignored=unheard)
    notes = (*findings.notes, *advise(config))
    return ConfigReading(config, (), notes, paths, unheard)


def read_project_files(
    start: Path, environ: Mapping[str, str], findings: Findings
) -> list[ProjectFile]:
    """The project files that apply to `start`, nearest first, and what they ask for."""
    files = _find_files(start.resolve(), environ, findings, [])
    return _Layers.read(files, start, environ, start, findings).projects


def problem_text(problems: Iterable[Problem]) -> str:
    """All problems as shown to the user, one per line."""
    lines = [str(problem) for problem in problems]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(
        [f"{len(lines)} problems in the configuration:", *(f"  {one}" for one in lines)]
    )


def _fail(
    findings: Findings, files: tuple[Path, ...], unheard: tuple[Ignored, ...]
) -> ConfigReading:
    return ConfigReading(None, tuple(findings.problems), tuple(findings.notes), files, unheard)


def _working_directory(cwd: Path | None, findings: Findings) -> Path | None:
    try:
        return (cwd or Path.cwd()).resolve()
    except OSError as error:
        origin = SettingOrigin(OriginKind.PROJECT, "the working directory")
        findings.problems.append(Problem(origin, "", f"cannot be used: {error.strerror}"))
        return None


def _start(config_file: Path | None, given: Layer, here: Path) -> Path | None:
    """Where the search for project files starts: at the documents that flags name, the folder given
    as `config_file`, or here. None if `config_file` is a file: then there is no search."""
    if config_file is not None:
        folder = here / os.path.expanduser(config_file)
        return folder.resolve() if os.path.isdir(folder) else None
    named = [
        os.fspath(folder)
        for path, one in given.items()
        if (folder := _documents_folder(path, one.value)) is not None
    ]
    return _common_folder(named) if named else here


def _common_folder(folders: list[str]) -> Path:
    """The folder above all of them. Windows drives have none in common, and no project spans
    several drives."""
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:
        return Path(Path(folders[0]).anchor)


def _documents_folder(path: KeyPath, value: object) -> Path | None:
    if path[0] == "tree":
        value = cast("Mapping[str, object]", value).get("path")
    elif path != DOCUMENTS_PATH:
        return None
    return value if isinstance(value, Path) else None


def _named_file(
    config_file: Path, here: Path, environ: Mapping[str, str], findings: Findings
) -> ConfigFile | None:
    """The user named this file, so it needs no trust."""
    path = here / os.path.expanduser(config_file)
    kind = OriginKind.USER if path == user_file(environ) else OriginKind.PROJECT
    return read(path, kind, findings)


def _find_files(
    start: Path, environ: Mapping[str, str], findings: Findings, foreign: list[Path]
) -> list[ConfigFile]:
    """Nearest first."""
    found = list(project_chain(start, findings, foreign))
    last = user_config(user_file(environ), findings)
    return [*found, last] if last else found


def _foreign_files(files: Iterable[Path]) -> Iterator[Ignored]:
    for file in files:
        origin = SettingOrigin(OriginKind.PROJECT, str(file))
        yield Ignored(origin, "", None, "", Standing.FOREIGN)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Everything except flags, grouped by author. Project files are in order, nearest first."""

    default: Layer
    own: Layer
    projects: list[ProjectFile]
    environment: Layer
    problem: str
    """Why the user's record of trusted project files cannot be used."""

    @classmethod
    def read(
        cls,
        files: list[ConfigFile],
        start: Path,
        environ: Mapping[str, str],
        here: Path,
        findings: Findings,
    ) -> Self:
        """If nothing sets the documents, they are in the project's folder."""
        bases = [one.source.base for one in files if one.source.kind is OriginKind.PROJECT]
        documents = bases[0].resolve() if bases else start
        own: Layer = {}
        trusted: Layer = {}
        projects: list[ProjectFile] = []
        ledger = TrustLedger(trust_file(environ))
        for file in reversed(files):
            layer = layer_of(file.table, file.source, findings)
            if file.project is None:
                own = merge([own, layer])
            else:
                request = request_of(file.path, file.project, layer, own, trusted)
                one = _judge(request, layer, ledger)
                projects.insert(0, one)
                trusted = merge([trusted, one.trusted])
        environment = merge(environment_layers(environ, here, findings))
        default = {DOCUMENTS_PATH: Assigned(documents, _BY_DEFAULT)}
        return cls(default, own, projects, environment, ledger.problem)

    def in_force(self) -> Layer:
        projects = (one.layer for one in reversed(self.projects))
        return merge([self.default, self.own, *projects, self.environment])

    def ignored(self, flags: Layer) -> Iterator[Ignored]:
        """Settings that would be in force if every file were trusted, and are not."""
        if not any(one.request.asks for one in self.projects):
            return
        projects = [one.whole for one in reversed(self.projects)]
        wanted = _override(merge([self.default, self.own, *projects, self.environment]), flags)
        origins = {key_text(path): one.origin for path, one in wanted.items()}
        for file in self.projects:
            for one in ignored_settings(file.request, file.standing, self.problem):
                # The description of a tree is part of the tree's table.
                whole = one.key.removesuffix(".description")
                if one.origin in (origins.get(one.key), origins.get(whole)):
                    yield one


class _Patterns:
    """The include and exclude patterns for each tree. A project file affects only trees that are
    inside its folder, that it names, or that a file below it names; never the user's own trees."""

    def __init__(self, layers: _Layers, flags: Layer, whole: IndexingConfig) -> None:
        self._layers = layers
        self._flags = flags
        self._made = {tuple(range(len(layers.projects))): whole}

    def of(self, root: Path, origin: SettingOrigin) -> IndexingConfig:
        heard = tuple(
            number
            for number, file in enumerate(self._layers.projects)
            if self._is_heard(number, file, root, origin)
        )
        if heard not in self._made:
            self._made[heard] = self._merge_patterns(heard)
        return self._made[heard]

    def _is_heard(self, number: int, file: ProjectFile, root: Path, origin: SettingOrigin) -> bool:
        if origin.kind is OriginKind.USER:
            return False
        if root.is_relative_to(file.request.project):
            return True
        nearer = self._layers.projects[: number + 1]
        return origin.kind is OriginKind.PROJECT and any(
            os.fspath(one.request.file) == origin.where for one in nearer
        )

    def _merge_patterns(self, heard: tuple[int, ...]) -> IndexingConfig:
        layers = self._layers
        projects = (layers.projects[number].layer for number in reversed(heard))
        merged = merge(
            [layers.default, layers.own, *projects, layers.environment, self._flags],
        )
        only = {path: one for path, one in merged.items() if path[0] == "indexing"}
        return Settings.model_validate(unflatten(only)).indexing


def _judge(request: Request, layer: Layer, ledger: TrustLedger) -> ProjectFile:
    standing = request.standing(ledger)
    return ProjectFile(request, standing, select_granted(layer, request, standing), layer)


def _override(layers: Layer, flags: Layer) -> Layer:
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
    """The one tree with the folder in the flags: under another name it would be indexed again."""
    if DOCUMENTS_PATH not in flags or any(path[0] == "tree" for path in flags):
        return None
    folder = flags[DOCUMENTS_PATH].value
    found = [
        path
        for path, one in layers.items()
        if path[0] == "tree" and cast("Mapping[str, object]", one.value).get("path") == folder
    ]
    return found[0] if len(found) == 1 else None


def _check(merged: Layer, findings: Findings) -> Settings | None:
    """The merged settings: each value has been checked already, now their combinations are."""

    def locate(path: KeyPath) -> SettingOrigin:
        return merged[path].origin if path in merged else _BY_DEFAULT

    try:
        return Settings.model_validate(unflatten(merged))
    except ValidationError as error:
        findings.problems.extend(explain(error, locate))
        return None


def _config(
    whole: Settings,
    merged: Layer,
    files: tuple[Path, ...],
    cache: Path,
    patterns: _Patterns,
) -> Config:
    trees = trees_of(merged, whole, patterns.of)
    configured = set(whole.tree)
    default = default_index(
        cache,
        ((one.name if one.name in configured else FORMER_NAME, one.root) for one in trees),
    )
    return Config(
        indexing=whole.indexing,
        context=whole.context,
        chunking=whole.chunking,
        search=whole.search,
        embedding=whole.embedding,
        lint=whole.lint,
        terminal=whole.terminal,
        trees=trees,
        index_place=IndexPlace(default, whole.indexing.index_path),
        files=files,
        origins=MappingProxyType(_origins(merged)),
    )


def _origins(merged: Layer) -> dict[str, SettingOrigin]:
    origins = {key_text(path): _BY_DEFAULT for path in settings() if ANY not in path}
    origins.update({key_text(path): one.origin for path, one in merged.items()})
    del origins["root"]  # applies to one file, not to the whole
    return origins
