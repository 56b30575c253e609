"""`config`, `check-config` and `init`: show the settings, report errors, write a first file."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.main import (
    CommandPlace,
    documents_here,
    existing_folders,
    here,
    json_option,
    name_folders,
    place_options,
)
from ragdocs.cli.status import short
from ragdocs.errors import ConfigError, FileKept, RagdocsError
from ragdocs.text import (
    advised,
    json_text,
    number_of,
    plain_value,
    printable,
    toml_key,
    toml_string,
    toml_value,
)

if TYPE_CHECKING:
    from ragdocs.config.loading import ConfigReading
    from ragdocs.config.problems import KeyPath, Problem, SettingOrigin
    from ragdocs.config.resolved import Config, InForce
    from ragdocs.config.trust import Ignored

# `check-config` and `config`: the errors in the settings, and the effective settings.

WRONG = 2
"""The exit status for a configuration that cannot be used."""


@click.command("check-config")
@place_options
@json_option
@click.pass_context
def check_config(context: click.Context, place: CommandPlace, as_json: bool) -> None:
    """Check the configuration, and report every error in it.

    Exits with 0 when it can be used, 2 when it cannot.

    \b
    Example:
      ragdocs check-config --config notes/.ragdocs.toml
    """
    from dataclasses import replace

    from ragdocs.diagnosis.machine_checks import absent_parts

    reading = place.reading()
    reading = replace(reading, notes=(*reading.notes, *absent_parts(reading)))
    if as_json:
        click.echo(json_text(_reading_value(reading)))
    else:
        _show_reading(reading)
    context.exit(0 if reading.config else WRONG)


@click.command("config")
@place_options
@json_option
@click.option("--changed", is_flag=True, help="Leave out settings at their default.")
@click.option(
    "--defaults", is_flag=True, help="Show every setting with its default; reads no file."
)
def show_config(place: CommandPlace, as_json: bool, changed: bool, defaults: bool) -> None:
    """Show the effective settings, and where each comes from.

    The output is TOML. With --defaults, every setting is shown with its description, even if the
    configuration cannot be used.

    \b
    Example:
      ragdocs config --changed
    """
    from ragdocs.config.problems import OriginKind

    if defaults:
        click.echo(json_text(_defaults_value()) if as_json else _defaults_text())
        return
    config = place.config(warn=False)
    shown = [
        one for one in config.in_force() if not changed or one.origin.kind is not OriginKind.DEFAULT
    ]
    if as_json:
        click.echo(json_text(_config_value(config, shown)))
    else:
        click.echo("\n".join(_config_lines(config, shown)))


def _defaults_text() -> str:
    from ragdocs.config.reference import example_file

    return example_file().rstrip()


def _defaults_value() -> dict[str, object]:
    from ragdocs.config.problems import key_text, settings

    found = {
        key_text(path): {
            "default": None if one.required else plain_value(one.default),
            "allowed": one.allowed,
            "description": one.description,
        }
        for path, one in settings().items()
    }
    return {"settings": found}


def _show_reading(reading: ConfigReading) -> None:
    from ragdocs.config.trust import in_words

    for file in reading.files:
        click.echo(f"read: {printable(str(file))}")
    if not reading.files and not reading.problems:
        click.echo("read: no file")
    for note in reading.notes:
        click.echo(f"note: {note}")
    for line in in_words(reading.ignored):
        click.echo(f"note: {line}")
    for problem in reading.problems:
        click.echo(f"error: {problem}", err=True)
    if reading.config:
        click.echo("The configuration can be used.")
    else:
        click.echo(f"The configuration cannot be used: {_problems(reading)}.", err=True)


def _problems(reading: ConfigReading) -> str:
    return number_of(len(reading.problems), "problem")


def _config_lines(config: Config, shown: list[InForce]) -> Iterator[str]:
    from ragdocs.app import index_directory

    yield f"# index: {printable(str(index_directory(config)))}"
    section = ""
    for one in shown:
        table, _, name = one.key.rpartition(".")
        if table != section:
            section = table
            yield f"\n[{section}]"
        yield f"{name} = {toml_value(one.value)}  # {one.origin}"
    yield from _tree_lines(config)
    yield from _ignored_lines(config)


def _ignored_lines(config: Config) -> Iterator[str]:
    if config.ignored:
        yield f"\n# ignored: not trusted; see {advised('trust')}"
    for one in config.ignored:
        said = printable(f"{one.key} = {toml_value(one.value)}") if one.key else "the whole file"
        yield f"# {said}  # {one.origin}: {one.standing.words}"


def _tree_lines(config: Config) -> Iterator[str]:
    for tree in config.trees:
        origin = config.tree_origin(tree)
        yield f"\n[tree.{toml_key(tree.name)}]  # {tree.scope}, {origin}"
        yield f"path = {toml_value(tree.root)}"
        yield f"include = {toml_value(tree.include)}"
        yield f"exclude = {toml_value(tree.exclude)}"
        if tree.description:
            yield f"description = {toml_value(tree.description)}"


def _reading_value(reading: ConfigReading) -> dict[str, object]:
    return {
        "ok": reading.config is not None,
        "files": plain_value(reading.files),
        "problems": [_problem_value(one) for one in reading.problems],
        "notes": [_problem_value(one) for one in reading.notes],
        "ignored": [_ignored_value(one) for one in reading.ignored],
    }


def _problem_value(problem: Problem) -> dict[str, object]:
    return {
        "origin": _origin_value(problem.origin),
        "key": problem.key,
        "message": problem.message,
        "allowed": problem.allowed,
        "suggestion": problem.suggestion,
    }


def _origin_value(origin: SettingOrigin) -> dict[str, object]:
    return {"kind": origin.kind.value, "where": printable(origin.where), "line": origin.line}


def _ignored_value(one: Ignored) -> dict[str, object]:
    return {
        "origin": _origin_value(one.origin),
        "key": one.key,
        "value": one.value,
        "meaning": one.meaning,
        "standing": one.standing.value,
    }


def _config_value(config: Config, shown: list[InForce]) -> dict[str, object]:
    from ragdocs.app import index_directory

    return {
        "files": plain_value(config.files),
        "index_directory": plain_value(index_directory(config)),
        "settings": {
            one.key: {"value": plain_value(one.value), "origin": _origin_value(one.origin)}
            for one in shown
        },
        "trees": [
            {
                "name": tree.name,
                "root": plain_value(tree.root),
                "include": list(tree.include),
                "exclude": list(tree.exclude),
                "description": tree.description,
                "scope": tree.scope.value,
                "origin": _origin_value(config.tree_origin(tree)),
            }
            for tree in config.trees
        ],
        "ignored": [_ignored_value(one) for one in config.ignored],
    }


# The text of a first configuration: the settings that people really change, with their own
# descriptions.
#
# Settings that are commented out show their default, so the file changes only the documents.

_WIDTH = 98

_CHOSEN: tuple[KeyPath, ...] = (
    ("indexing", "include"),
    ("indexing", "exclude"),
    ("indexing", "respect_gitignore"),
    ("indexing", "index_path"),
    ("chunking", "parent_retrieval_enabled"),
    ("search", "stemmer"),
    ("search", "min_confidence"),
    ("search", "max_chunks_per_doc"),
    ("search", "recency_bias"),
    ("search", "query_expansion_enabled"),
    ("search", "rerank_enabled"),
    ("search", "rerank_model"),
    ("embedding", "threads"),
)
_FOR_EXAMPLE: dict[KeyPath, str] = {
    ("indexing", "exclude"): 'For example ["drafts/", "CHANGELOG.md"].',
    ("search", "stemmer"): "One of eighteen, for example german.",
}
_HEAD = """\
# Settings of mcp-markdown-ragdocs for {whom}. Commented settings show
# their default: remove the `#` and change them. `ragdocs config` lists all settings,
# `ragdocs check-config` reports errors in this file.
"""
_TREES = """\
# Folders that are searched in every project, each with a name. If a project has its own file
# (`ragdocs init`), its documents are searched as well.
"""


def project_starter(folder: Path, docs: tuple[Path, ...]) -> str:
    """For `folder`, which contains the documents unless `docs` names others."""
    parts = [_HEAD.format(whom="this folder and all below it")]
    documents: list[str] = []
    if docs:
        parts += ["# The folders that are searched, each with a name.", *_trees(docs, folder), ""]
    else:
        about = "# Where the documents are, relative to this file's folder."
        documents = [about, f"documents_path = {_path(folder, folder)}"]
    return _text([*parts, *_sections(documents)])


def user_starter(docs: tuple[Path, ...]) -> str:
    trees = list(_trees(docs, None)) or ["#[tree.notes]", '#path = "~/notes"']
    head = _HEAD.format(whom="all of your projects")
    return _text([head, _TREES.rstrip(), *trees, "", *_sections([])])


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _trees(docs: tuple[Path, ...], folder: Path | None) -> Iterator[str]:
    for name, place in name_folders(docs).items():
        yield f"[tree.{toml_key(name)}]"
        yield f"path = {_path(place, folder)}"


def _path(place: Path, folder: Path | None) -> str:
    """Relative if it is inside the folder, unless it would be read as a home folder."""
    text = os.fspath(place)
    if folder is not None and place.is_relative_to(folder):
        inside = os.fspath(place.relative_to(folder))
        text = text if inside.startswith("~") else inside
    return toml_string(text)


def _sections(documents: list[str]) -> Iterator[str]:
    """The sections with a chosen setting; `documents` come first in `[indexing]`."""
    from ragdocs.config.problems import tables

    for table in tables():
        chosen = [path for path in _CHOSEN if path[:-1] == table.path]
        if not chosen:
            continue
        yield f"# {' '.join(table.description.split())}"
        yield table.header
        yield from documents if table.path == ("indexing",) else ()
        for path in chosen:
            yield from _setting(path)
        yield ""


def _setting(path: KeyPath) -> Iterator[str]:
    from ragdocs.config.problems import settings

    one = settings()[path]
    yield from (f"# {line}" for line in textwrap.wrap(one.description, _WIDTH))
    yield from [f"# {_FOR_EXAMPLE[path]}"] if path in _FOR_EXAMPLE else []
    yield f"#{one.name} = {toml_value(one.default)}"


# `init`: writes a short, commented first configuration where the program finds it.


@click.command("init")
@click.option("--global", "is_global", is_flag=True, help="Write your own file, for all projects.")
@click.option(
    "--docs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    callback=existing_folders,
    help="Where the documents are. Repeat it for several folders.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file; a copy of it is kept.")
def init(is_global: bool, docs: tuple[Path, ...], force: bool) -> None:
    """Write a commented configuration to start with.

    For the project in this folder, or with --global for all projects. Nothing has to be configured:
    the commented lines show the defaults.

    \b
    Examples:
      ragdocs init --docs docs
      ragdocs init --global --docs ~/notes
    """
    from ragdocs.cli.edit_files import read_kept

    if is_global:
        path, text = _users(docs)
        file = read_kept(path)
    else:
        path, text = _projects(here() if docs else documents_here(), docs)
        file = read_kept(path, within=here())
    _refuse_to_overwrite(path, is_there=os.path.lexists(path), force=force)
    copy = file.put_aside() if file.data is not None else None
    file.replace(text)
    if not is_global:
        _trust_own(path)
    _report(path, copy)


def _projects(folder: Path, docs: tuple[Path, ...]) -> tuple[Path, str]:
    """Uses the file name that exists already, since having both is an error."""
    from ragdocs.config.locations import project_files

    *others, usual = project_files(folder)
    path = next((other for other in others if os.path.lexists(other)), usual)
    return path, project_starter(folder, docs)


def _users(docs: tuple[Path, ...]) -> tuple[Path, str]:
    from ragdocs.config.locations import user_file

    path = user_file(os.environ)
    if path is None:
        raise ConfigError("there is no home folder: set HOME or XDG_CONFIG_HOME")
    return path, user_starter(docs)


def _refuse_to_overwrite(path: Path, *, is_there: bool, force: bool) -> None:
    if is_there and not force:
        raise FileKept(
            f"{short(str(path))} already exists and was not changed; --force overwrites it and "
            "keeps a copy"
        )


def _trust_own(path: Path) -> None:
    """Trusts the file just written from the user's options; otherwise folders outside the project
    would need `trust`."""
    from ragdocs.cli.trust import trust_file_of_user

    try:
        is_needed = trust_file_of_user(path)
    except RagdocsError as error:
        click.echo(f"It is not trusted yet: {error}. Run {advised('trust')}.", err=True)
        return
    if is_needed:
        click.echo("It is trusted with the folders outside this one that you named.")


def _report(path: Path, copy: Path | None) -> None:
    from ragdocs.config.loading import problem_text, read_config

    click.echo(f"Written: {short(str(path))}")
    if copy:
        click.echo(f"Copy of the old file: {short(str(copy))}")
    reading = read_config()
    if reading.config is None:
        click.echo(f"The configuration cannot be used:\n{problem_text(reading.problems)}", err=True)
        return
    for tree in reading.config.trees:
        click.echo(f"Searched from here: {tree.name}, {short(str(tree.root))}")
    click.echo(f"Next: edit the file as you like, then run {advised('check-config')},")
    click.echo(
        f"{advised('query QUESTION')}, or {advised('install --client CLIENT')} for an MCP client."
    )
