"""`trust`: shows what a project file asks for, and records the user's decision."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.failures import NOTHING_FOUND
from ragdocs.cli.status import short
from ragdocs.errors import ConfigError, FileKept
from ragdocs.text import escaped, json_text, plain_value, toml_value

if TYPE_CHECKING:
    from ragdocs.config.loading import ProjectFile
    from ragdocs.config.trust import Ask, Grant, Grants, Standing


@click.command("trust")
@click.argument("place", type=click.Path(path_type=Path), default=".", metavar="[FILE|DIR]")
@click.option("--yes", is_flag=True, help="Trust without asking, for scripts.")
@click.option("--revoke", is_flag=True, help="Stop trusting the file.")
@click.option("--list", "is_list", is_flag=True, help="List everything that you trust.")
@click.option(
    "--json", "as_json", is_flag=True, help="Answer in JSON; without --yes nothing is changed."
)
@click.pass_context
def trust(
    context: click.Context, place: Path, yes: bool, revoke: bool, is_list: bool, as_json: bool
) -> None:
    """Show what a project file asks for, and trust it if you agree.

    A `.ragdocs.toml` may come from whoever wrote the project. Settings that choose code, models,
    addresses, or folders outside the project are ignored until you trust the file. Their values are
    recorded, with a hash of each folder of the project that is loaded: a change to one of these
    asks again, other edits do not. DIR means all project files that apply there.

    Exits with 0 when nothing needs trust, 1 when something still does, 2 when there is no terminal
    to ask on.

    \b
    Examples:
      ragdocs trust
      ragdocs trust notes/.ragdocs.toml --yes
      ragdocs trust --list
    """
    if sum((yes, revoke, is_list)) > 1:
        raise click.UsageError("use only one of --yes, --revoke and --list")
    if is_list:
        _list(as_json)
    elif revoke:
        context.exit(_revoke(place, as_json))
    else:
        context.exit(_trust(_project_files(place), yes=yes, as_json=as_json))


def _project_files(place: Path) -> "list[ProjectFile]":
    """The named file, or the files that apply in a folder. Raises ConfigError."""
    from ragdocs.config.loading import problem_text, read_project_files
    from ragdocs.config.problems import Findings

    given = Path(os.path.expanduser(place))
    is_folder = given.is_dir()
    file = None if is_folder else _key(given)
    findings = Findings()
    found = read_project_files(given if is_folder else _folder_of(given), os.environ, findings)
    if findings.problems:
        raise ConfigError(problem_text(findings.problems))
    named = [one for one in found if file is None or one.request.file == file]
    if not named and not is_folder:
        raise ConfigError(f"{short(os.path.abspath(given))} {_why_not(given)}")
    return named


def _why_not(file: Path) -> str:
    if not os.path.lexists(file):
        return "does not exist"
    return (
        "is not a project file (.ragdocs.toml or .mcp-markdown-ragdocs/config.toml). "
        "A file that you name with --config needs no trust"
    )


def _folder_of(file: Path) -> Path:
    from ragdocs.config.locations import folder_of

    return folder_of(file).resolve()


def _key(file: Path) -> Path:
    """The path under which the program finds the file: only its folder's links are resolved."""
    from ragdocs.config.locations import PROJECT_FOLDER

    whole = Path(os.path.abspath(file))
    inside = [PROJECT_FOLDER] if whole.parent.name == PROJECT_FOLDER else []
    return _folder_of(file).joinpath(*inside, whole.name)


def _trust(files: "list[ProjectFile]", *, yes: bool, as_json: bool) -> int:
    from ragdocs.config.trust import Standing

    waiting = [one for one in files if one.standing in (Standing.NOT_TRUSTED, Standing.CHANGED)]
    if as_json:
        trusted = {os.fspath(one.request.file): _grant(one) for one in waiting if yes}
        if trusted:
            _change(lambda known: {**known, **trusted})
        _show_json(_project_files_value(files, trusted))
        return 0 if len(trusted) == len(waiting) else NOTHING_FOUND
    if not files:
        click.echo("There is no project file here, nor in a folder above.")
    for one in files:
        if one not in waiting:
            click.echo(f"{short(str(one.request.file))} {one.standing.words}.")
    refused = [one for one in waiting if not _ask_for_trust(one, yes=yes)]
    if refused:
        click.echo("Settings that you did not trust stay ignored; the rest of the file applies.")
    return NOTHING_FOUND if refused else 0


def _ask_for_trust(file: "ProjectFile", *, yes: bool) -> bool:
    """Shows what the file asks for, asks the user, and records a yes."""
    name = os.fspath(file.request.file)
    grant = _grant(file)  # before asking: it must match what is shown
    _show(file)
    if not yes and not _confirm(file):
        return False
    _change(lambda known: {**known, name: grant})
    click.echo(f"Trusted: {short(name)}. Restart running servers to apply it.")
    return True


def trust_file_of_user(path: Path) -> bool:
    """For a project file just written for the user. Returns whether it needed trust.

    Raises ConfigError or FileKept.
    """
    from ragdocs.config.trust import Standing

    (file,) = _project_files(path)
    if file.standing not in (Standing.NOT_TRUSTED, Standing.CHANGED):
        return False
    grant = {os.fspath(file.request.file): _grant(file)}
    _change(lambda known: {**known, **grant})
    return True


def _grant(file: "ProjectFile") -> "Grant":
    try:
        return file.request.grant()
    except (OSError, ValueError) as error:
        where = short(str(file.request.file))
        raise FileKept(
            f"{where} cannot be trusted, because the files it loads cannot be recorded: {error}"
        ) from error


def _show(file: "ProjectFile") -> None:
    request = file.request
    click.echo(f"{short(str(request.file))} {file.standing.words}. It asks for:")
    for ask in request.asks:
        click.echo(f"  {_setting(ask)}")
        click.echo(f"      {ask.authority.meaning}")
    if request.chosen:
        click.echo("These patterns apply to those folders; if they change, you are asked again:")
    for key, value in request.chosen.items():
        click.echo(f"  {escaped(f'{key} = {toml_value(value)}')}")
    loaded = request.loaded()
    if loaded:
        click.echo("These are loaded from the project; if they change, you are asked again:")
    for path in loaded:
        click.echo(f"  {short(str(path))}")


def _setting(ask: "Ask") -> str:
    where = f"line {ask.origin.line}: " if ask.origin.line else ""
    return escaped(f"{where}{ask.key} = {toml_value(ask.value)}")


def _confirm(file: "ProjectFile") -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            f"{short(str(file.request.file))} was not trusted: there is no terminal to ask on. "
            "Read what it asks for, then repeat the command with --yes"
        )
    return click.confirm("Do you trust the project with these?", default=False)


def _revoke(place: Path, as_json: bool) -> int:
    from ragdocs.config.locations import project_files

    given = Path(os.path.expanduser(place))
    if given.is_dir():
        folder = given.resolve()
        names = {os.fspath(file) for at in (folder, *folder.parents) for file in project_files(at)}
    else:
        names = {os.fspath(_key(given))}
    gone: list[str] = []

    def without(known: "Mapping[str, Grant]") -> "Mapping[str, Grant]":
        gone.extend(sorted(names & known.keys()))
        return {name: grant for name, grant in known.items() if name not in names}

    _change(without)
    if as_json:
        _show_json({"revoked": gone})
    for name in () if as_json else gone:
        click.echo(f"No longer trusted: {short(name)}. Restart running servers to apply it.")
    if not gone and not as_json:
        click.echo(f"{short(os.path.abspath(given))}: nothing was trusted here.")
    return 0 if gone else NOTHING_FOUND


def _list(as_json: bool) -> None:
    from ragdocs.config.trust import read_grants

    grants = read_grants(_place())
    if as_json:
        files = [_grant_value(name, grant) for name, grant in sorted(grants.files.items())]
        _show_json({"files": files, "problem": grants.problem})
        return
    for name, grant in sorted(grants.files.items()):
        standing = _standing(name)
        now = "is no longer read" if standing is None else standing.words
        click.echo(f"{short(name)} {now}")
        for key, value in grant.settings.items():
            click.echo(f"  {escaped(f'{key} = {toml_value(value)}')}")
        for loaded in grant.loaded:
            click.echo(f"  loads {short(loaded)}")
    for line in _remarks(grants):
        click.echo(line)


def _remarks(grants: "Grants") -> Iterator[str]:
    if grants.problem:
        yield f"{short(str(_place()))} is not used: {grants.problem}. No project file is trusted."
    elif not grants.files:
        yield "No project file is trusted."


def _standing(name: str) -> "Standing | None":
    """The current standing of a trusted file; None if it is no longer found."""
    from ragdocs.config.loading import read_project_files
    from ragdocs.config.problems import Findings

    found = read_project_files(_folder_of(Path(name)), os.environ, Findings())
    return next((one.standing for one in found if os.fspath(one.request.file) == name), None)


def _grant_value(name: str, grant: "Grant") -> dict[str, object]:
    return {
        "file": name,
        "standing": _standing(name),
        "settings": dict(grant.settings),
        "loaded": dict(grant.loaded),
    }


def _project_files_value(
    files: "list[ProjectFile]", trusted: "dict[str, Grant]"
) -> dict[str, object]:
    from ragdocs.config.trust import Standing

    def value(one: "ProjectFile") -> dict[str, object]:
        name = os.fspath(one.request.file)
        asks = [
            {
                "key": ask.key,
                "value": plain_value(ask.value),
                "line": ask.origin.line,
                "meaning": ask.authority.meaning,
            }
            for ask in one.request.asks
        ]
        loaded = [os.fspath(path) for path in one.request.loaded()]
        standing = Standing.TRUSTED if name in trusted else one.standing
        chosen = {key: plain_value(given) for key, given in one.request.chosen.items()}
        return {
            "file": name,
            "standing": standing.value,
            "asks": asks,
            "patterns": chosen,
            "loaded": loaded,
        }

    return {"files": [value(one) for one in files], "trusted": sorted(trusted)}


def _show_json(value: object) -> None:
    click.echo(json_text(value))


def _place() -> Path:
    from ragdocs.config.locations import trust_file

    path = trust_file(os.environ)
    if path is None:
        raise ConfigError("there is no home folder: set HOME or XDG_DATA_HOME")
    return path


def _change(change: "Callable[[Mapping[str, Grant]], Mapping[str, Grant]]") -> None:
    """Raises FileKept."""
    from ragdocs.config.trust import change_grants
    from ragdocs.locks import LockHeld

    path = _place()
    try:
        problem = change_grants(path, change)
    except (OSError, LockHeld) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileKept(f"{short(str(path))} could not be written: {reason}") from error
    if problem:
        click.echo(
            f"warning: {short(str(path))} was not used: {problem}. Trust again what you "
            "trusted before.",
            err=True,
        )
