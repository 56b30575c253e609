"""`index`: list the indices on this machine, and delete those that are not needed."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs.cli.failures import NOTHING_FOUND
from ragdocs.cli.main import CommandPlace, json_option, tolerant_place_options
from ragdocs.text import escaped_line, json_text, number_of, printable, size_text

if TYPE_CHECKING:
    from ragdocs.diagnosis.inventory import IndexBuild, IndexedFolder, IndexPlaceUse, Pruned

_DEFAULT_AGE = "30d"
_MAX_KEYS = 3


class _Age(click.ParamType[float]):
    """`30d`, `6w`, `3m`, `1y`: as seconds."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from ragdocs.dates import parse_age

        age = parse_age(str(value))
        if age is None:
            self.fail("give an age such as 30d, 6w, 3m or 1y", param, ctx)
        return age.total_seconds()


@click.group("index")
def index() -> None:
    """List the indices on this machine, and delete those that you do not need.

    An index has nothing that is not in your files: deleting it only means that it is built again.

    \b
    Example:
      ragdocs index list
    """


@index.command("list")
@tolerant_place_options
@json_option
@click.pass_context
def list_indices(context: click.Context, place: CommandPlace, as_json: bool) -> None:
    """List all indices in your cache: size, last use, folders, who uses them.

    \b
    Example:
      ragdocs index list
    """
    found = _inventory(place)
    if as_json:
        click.echo(json_text({"indices": [_place_value(one) for one in found]}))
    elif not found:
        click.echo("There is no index on this machine.")
    else:
        for line in _table(found):
            click.echo(line)
    context.exit(0 if found else NOTHING_FOUND)


@index.command("show")
@click.argument("name")
@tolerant_place_options
@json_option
def show_index(name: str, place: CommandPlace, as_json: bool) -> None:
    """Show one index: NAME, the beginning of it, or a folder of its documents.

    \b
    Example:
      ragdocs index show notes
    """
    from ragdocs.diagnosis.inventory import find_index

    found = find_index(_inventory(place), name)
    if as_json:
        click.echo(json_text(_place_value(found)))
        return
    for line in _details(found):
        click.echo(line)


_T = TypeVar("_T")


def _deleting(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds the options of commands that delete."""
    command = json_option(command)
    command = click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
    dry_run = click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
    return tolerant_place_options(dry_run(command))


@index.command("prune")
@click.option(
    "--older-than",
    "age",
    type=_Age(),
    metavar="AGE",
    help=f"Indices not used for this long: 30d, 6w, 3m, 1y.  [default: {_DEFAULT_AGE}]",
)
@click.option("--gone", is_flag=True, help="Indices of documents whose folders are gone.")
@_deleting
@click.pass_context
def prune(
    context: click.Context,
    age: float | None,
    gone: bool,
    place: CommandPlace,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete indices that were not used for 30 days or whose documents are gone.

    With --older-than or --gone, only those. Never deletes an index that a process uses, nor
    anything that is not an index of this program. A folder that may be on a drive that is not
    mounted does not count as gone.

    \b
    Examples:
      ragdocs index prune --dry-run
      ragdocs index prune --older-than 90d --yes
    """
    from ragdocs.diagnosis.inventory import prunable, remove_builds

    if age is None and not gone:
        age, gone = _Age().convert(_DEFAULT_AGE, None, None), True
    builds = prunable(_inventory(place), age, gone=gone)
    if not dry_run:
        _ask(builds, yes=yes, as_json=as_json)
    _report(remove_builds(builds, dry_run=dry_run), dry_run=dry_run, as_json=as_json)
    context.exit(0)


@index.command("remove")
@click.argument("names", nargs=-1, required=True)
@_deleting
@click.pass_context
def remove(
    context: click.Context,
    names: tuple[str, ...],
    place: CommandPlace,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the indices with these NAMES, as `ragdocs index list` shows them.

    Exits with 1 if one was kept because a process uses it or it is not an index of this program.

    \b
    Example:
      ragdocs index remove notes --dry-run
    """
    from ragdocs.diagnosis.inventory import find_index, remove_builds
    from ragdocs.store.variants import Drop

    found = _inventory(place)
    wanted = {one.path: one for one in (find_index(found, name) for name in names)}
    builds = [build for one in wanted.values() for build in one.builds]
    if not dry_run:
        _ask(builds, yes=yes, as_json=as_json)
    results = remove_builds(builds, dry_run=dry_run)
    _report(results, dry_run=dry_run, as_json=as_json)
    is_done = all(one.result is Drop.DONE for one in results)
    context.exit(0 if is_done else NOTHING_FOUND)


def _inventory(place: CommandPlace) -> "list[IndexPlaceUse]":
    """Also with a configuration that cannot be used: then no settings are compared."""
    from ragdocs.diagnosis.inventory import inventory

    return inventory(place.reading().config, os.environ)


def _ask(builds: "Sequence[IndexBuild]", *, yes: bool, as_json: bool) -> None:
    if yes or not builds:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask on: give --yes, or --dry-run to see what"
        )
    for one in builds:
        click.echo(f"  {_build_line(one)}", err=True)
    size = size_text(sum(one.bytes for one in builds))
    number = number_of(len(builds), "index", "indices")
    click.confirm(f"Delete {number} ({size})?", abort=True, err=True)


def _report(results: "Sequence[Pruned]", *, dry_run: bool, as_json: bool) -> None:
    from ragdocs.store.variants import Drop

    done = [one for one in results if one.result is Drop.DONE]
    kept = [one for one in results if one.result is not Drop.DONE]
    if as_json:
        answer = {
            "dry_run": dry_run,
            "removed": [{"path": printable(str(one.path)), "bytes": one.bytes} for one in done],
            "kept": [
                {"path": printable(str(one.path)), "reason": one.result.value} for one in kept
            ],
        }
        click.echo(json_text(answer))
        return
    verb = "Would delete" if dry_run else "Deleted"
    for one in done:
        click.echo(f"{verb} {_short(str(one.path))} ({size_text(one.bytes)})")
    for one in kept:
        click.echo(f"Kept {_short(str(one.path))}: {one.result.value}", err=True)
    if not results:
        click.echo("Nothing to delete.")


def _table(found: "Sequence[IndexPlaceUse]") -> Iterator[str]:
    rows = [("name", "size", "last used", "folders")]
    rows += [(one.name, size_text(one.bytes), _age(one), _place_text(one)) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)]
        line = "  ".join(cells).rstrip()
        yield click.style(line, dim=True) if number == 0 else line
    total = size_text(sum(one.bytes for one in found))
    yield f"{number_of(len(found), 'index', 'indices')}, {total} in all"


def _age(one: "IndexPlaceUse | IndexBuild") -> str:
    from ragdocs.diagnosis.inventory import age_text

    return age_text(one.last_used)


def _place_text(one: "IndexPlaceUse") -> str:
    said = [", ".join(dict.fromkeys(map(_folder_text, one.folders))) or "unknown folders"]
    if any(build.is_own for build in one.builds):
        said.append("used here")
    if len(one.builds) > 1:
        said.append(f"{len(one.builds)} sets of settings")
    said += [_users(one.users)] if one.users else []
    return "  ".join(said)


def _folder_text(folder: "IndexedFolder") -> str:
    gone = " (gone)" if folder.is_gone and not folder.may_return else ""
    away = " (gone, or on a drive that is not mounted)" if folder.may_return else ""
    return f"{_short(folder.path)}{gone}{away}"


def _users(users: Iterable[int]) -> str:
    return "in use by " + ", ".join(f"process {pid}" if pid else "a process" for pid in users)


def _details(found: "IndexPlaceUse") -> Iterator[str]:
    yield f"{found.name}  {size_text(found.bytes)}, last used {_age(found)}"
    for folder in found.folders:
        yield f"  {escaped_line(folder.tree)}: {_folder_text(folder)}"
    for build in found.builds:
        yield f"  {_build_line(build)}"


def _build_line(build: "IndexBuild") -> str:
    said = [f"{_short(str(build.path))}  {size_text(build.bytes)}, last used {_age(build)}"]
    said += ["used here"] if build.is_own else []
    said += [_users(build.users)] if build.users else []
    if build.differences:
        keys = ", ".join(build.differences[:_MAX_KEYS])
        rest = len(build.differences) - _MAX_KEYS
        said.append(f"differs in {keys}" + (f" and {rest} more" if rest > 0 else ""))
    return ", ".join(said)


def _short(path: str) -> str:
    """With `~` for the home folder, as people write it."""
    home = os.path.join(os.path.expanduser("~"), "")
    inside = home != os.sep and path.startswith(home)
    return escaped_line("~/" + path[len(home) :] if inside else path)


def _place_value(one: "IndexPlaceUse") -> dict[str, object]:
    return {
        "name": printable(one.name),
        "path": printable(str(one.path)),
        "bytes": one.bytes,
        "last_used": _moment(one.last_used),
        "gone": one.is_gone,
        "in_use_by": one.users,
        "folders": one.folders,
        "builds": [
            {
                "path": printable(str(build.path)),
                "bytes": build.bytes,
                "last_used": _moment(build.last_used),
                "used_here": build.is_own,
                "in_use_by": build.users,
                "differing_settings": build.differences,
            }
            for build in one.builds
        ],
    }


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
