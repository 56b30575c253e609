"""`check-config` and `config`: what is wrong with the settings, and which are in force."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ragdocs.cli.options import json_option
from ragdocs.cli.place import Place, place_options
from ragdocs.wording import advised

if TYPE_CHECKING:
    from ragdocs.config.loading import Reading
    from ragdocs.config.problems import Origin, Problem
    from ragdocs.config.resolved import Config, InForce
    from ragdocs.config.trust import Ignored

WRONG = 2
"""The exit status for a configuration that cannot be used."""


@click.command("check-config")
@place_options
@json_option
@click.pass_context
def check_config(context: click.Context, place: Place, as_json: bool) -> None:
    """Check the configuration, and say everything that is wrong with it.

    Exits with 0 when it can be used, with 2 when it cannot.

    \b
    Example:
      ragdocs check-config --config notes/.ragdocs.toml
    """
    from dataclasses import replace

    from ragdocs.diagnosis.checks.configuration import absent_parts

    reading = place.reading()
    reading = replace(reading, notes=(*reading.notes, *absent_parts(reading)))
    if as_json:
        click.echo(json.dumps(_reading_value(reading), indent=2))
    else:
        _show_reading(reading)
    context.exit(0 if reading.config else WRONG)


@click.command("config")
@place_options
@json_option
@click.option("--changed", is_flag=True, help="Leave out settings that have their default.")
@click.option(
    "--defaults", is_flag=True, help="Every setting there is, with its default; reads no file."
)
def show_config(place: Place, as_json: bool, changed: bool, defaults: bool) -> None:
    """Show the settings in force, and where each comes from.

    The answer is written as TOML. With --defaults, every setting is shown with what it does, even
    where the configuration cannot be used.

    \b
    Example:
      ragdocs config --changed
    """
    from ragdocs.config.problems import OriginKind

    if defaults:
        click.echo(json.dumps(_defaults_value(), indent=2) if as_json else _defaults_text())
        return
    config = place.config(tell=False)
    shown = [
        one for one in config.in_force() if not changed or one.origin.kind is not OriginKind.DEFAULT
    ]
    if as_json:
        click.echo(json.dumps(_config_value(config, shown), indent=2))
    else:
        click.echo("\n".join(_config_lines(config, shown)))


def _defaults_text() -> str:
    from ragdocs.config.rendering import example_file

    return example_file().rstrip()


def _defaults_value() -> dict[str, object]:
    from ragdocs.config.catalogue import key_text, settings
    from ragdocs.config.notation import plain_value

    found = {
        key_text(path): {
            "default": None if one.required else plain_value(one.default),
            "allowed": one.allowed,
            "description": one.description,
        }
        for path, one in settings().items()
    }
    return {"settings": found}


def _show_reading(reading: "Reading") -> None:
    from ragdocs.config.notation import printable
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


def _problems(reading: "Reading") -> str:
    from ragdocs.cli.output import counted

    return counted(len(reading.problems), "problem")


def _config_lines(config: "Config", shown: "list[InForce]") -> Iterator[str]:
    from ragdocs.assembly import index_directory
    from ragdocs.config.notation import printable, toml_value

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


def _ignored_lines(config: "Config") -> Iterator[str]:
    from ragdocs.config.notation import printable, toml_value

    if config.ignored:
        yield f"\n# ignored: not trusted; see {advised('trust')}"
    for one in config.ignored:
        said = printable(f"{one.key} = {toml_value(one.value)}") if one.key else "the whole file"
        yield f"# {said}  # {one.origin}: {one.standing.words}"


def _tree_lines(config: "Config") -> Iterator[str]:
    from ragdocs.config.notation import toml_key, toml_value

    for tree in config.trees:
        origin = config.tree_origin(tree)
        yield f"\n[tree.{toml_key(tree.name)}]  # {tree.scope}, {origin}"
        yield f"path = {toml_value(tree.root)}"
        yield f"include = {toml_value(tree.include)}"
        yield f"exclude = {toml_value(tree.exclude)}"


def _reading_value(reading: "Reading") -> dict[str, object]:
    from ragdocs.config.notation import plain_value

    return {
        "ok": reading.config is not None,
        "files": plain_value(reading.files),
        "problems": [_problem_value(one) for one in reading.problems],
        "notes": [_problem_value(one) for one in reading.notes],
        "ignored": [_ignored_value(one) for one in reading.ignored],
    }


def _problem_value(problem: "Problem") -> dict[str, object]:
    return {
        "origin": _origin_value(problem.origin),
        "key": problem.key,
        "message": problem.message,
        "allowed": problem.allowed,
        "suggestion": problem.suggestion,
    }


def _origin_value(origin: "Origin") -> dict[str, object]:
    from ragdocs.config.notation import printable

    return {"kind": origin.kind.value, "where": printable(origin.where), "line": origin.line}


def _ignored_value(one: "Ignored") -> dict[str, object]:
    return {
        "origin": _origin_value(one.origin),
        "key": one.key,
        "value": one.value,
        "meaning": one.meaning,
        "standing": one.standing.value,
    }


def _config_value(config: "Config", shown: "list[InForce]") -> dict[str, object]:
    from ragdocs.assembly import index_directory
    from ragdocs.config.notation import plain_value

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
                "scope": tree.scope.value,
                "origin": _origin_value(config.tree_origin(tree)),
            }
            for tree in config.trees
        ],
        "ignored": [_ignored_value(one) for one in config.ignored],
    }
