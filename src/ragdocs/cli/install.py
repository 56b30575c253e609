"""`install`: the entry by which an MCP client starts the server, put into the client's settings."""

import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs.cli.here import here
from ragdocs.cli.output import shown
from ragdocs.cli.place import Place, place_options
from ragdocs.cli.status import short
from ragdocs.diagnosis.client_table import CLIENTS, Client, user_place
from ragdocs.wording import advised

if TYPE_CHECKING:
    from ragdocs.cli.clients.entries import Planned
    from ragdocs.cli.clients.launching import Launch

_BY_KEY = {client.key: client for client in CLIENTS}
_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for besides the documents."""

    client: Client
    name: str
    in_project: bool
    uvx: bool
    dry_run: bool


def _checked_name(_: click.Context, __: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("up to 64 letters, digits, - and _")
    return name


def _wish_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds them; the command is given them as its argument `wish`."""

    @click.option(
        "--client", "key", type=click.Choice(list(_BY_KEY)), required=True, help="Whose settings."
    )
    @click.option(
        "--name",
        default="ragdocs",
        show_default=True,
        callback=_checked_name,
        help="What the server is called there.",
    )
    @click.option("--project", "in_project", is_flag=True, help="In this folder's settings only.")
    @click.option("--uvx", is_flag=True, help="Have uv fetch and run the published program.")
    @click.option("--dry-run", is_flag=True, help="Show what would be changed; change nothing.")
    @wraps(command)
    def with_wish(
        *arguments: object,
        key: str,
        name: str,
        in_project: bool,
        uvx: bool,
        dry_run: bool,
        **options: object,
    ) -> _T:
        wish = _Wish(_BY_KEY[key], name, in_project, uvx, dry_run)
        return command(*arguments, wish=wish, **options)

    return with_wish


@click.command("install")
@_wish_options
@place_options
def install(wish: _Wish, place: Place) -> None:
    """Have an MCP client start the server: put its entry into the client's settings.

    Nothing else in the file is touched, and a copy of it is kept. A file that is not plain JSON is
    left alone, and the entry printed. For Claude Code (without --project) and Codex, the command is
    printed by which they add it themselves.

    Without --docs and --config, the entry names what is in force in this folder.

    \b
    Examples:
      ragdocs install --client claude-desktop --docs ~/notes
      ragdocs install --client cursor --project --dry-run
    """
    from ragdocs.cli.clients.launching import fetched_program, program, server

    by_name = wish.in_project or wish.client.from_terminal
    started = fetched_program(by_name=by_name) if wish.uvx else program(by_name=by_name)
    launch = server(started, place)
    path = _file(wish)
    if path is None:
        _say_what_to_do(wish, launch)
    else:
        _put_into(path, wish, launch)


def _file(wish: _Wish) -> Path | None:
    """The file to change; None when that is for the client or the user to do."""
    client = wish.client
    if wish.in_project:
        if not client.project_file:
            raise click.UsageError(f"{client.title} has no file for a project: leave out --project")
        return here() / client.project_file
    if client.command:
        return None
    return user_place(client, Path(os.path.expanduser("~")), sys.platform, os.environ)


def _say_what_to_do(wish: _Wish, launch: "Launch") -> None:
    """The explanation on stderr, so that the rest can be passed on."""
    from ragdocs.cli.clients.entries import entry_text

    client = wish.client
    if not client.command:
        click.echo("Most clients take this, in their JSON settings:", err=True)
        click.echo(entry_text(client, wish.name, launch))
        return
    click.echo(f"{client.title} adds it itself; run:", err=True)
    click.echo(shlex.join((*client.command, wish.name, "--")) + " " + launch.line)


def _put_into(path: Path, wish: _Wish, launch: "Launch") -> None:
    from ragdocs.cli.clients.entries import entry_text, plan
    from ragdocs.errors import FileKept

    try:
        project = here() if wish.in_project else None
        planned = plan(wish.client, path, wish.name, launch, project)
        if planned.is_there_already:
            click.echo(f'{short(str(path))} has "{wish.name}" already, just so.')
        elif wish.dry_run:
            _show_difference(planned, wish, launch)
        else:
            _carry_out(planned, path, wish, launch)
    except FileKept:
        click.echo(entry_text(wish.client, wish.name, launch))
        raise


def _show_difference(planned: "Planned", wish: _Wish, launch: "Launch") -> None:
    from ragdocs.cli.clients.entries import entry_text

    if planned.is_one_line:
        click.echo(f"into {short(str(planned.file.path))}:")
        click.echo(entry_text(wish.client, wish.name, launch))
    else:
        click.echo(planned.difference())
    click.echo("Nothing was changed (--dry-run).", err=True)


def _carry_out(planned: "Planned", path: Path, wish: _Wish, launch: "Launch") -> None:
    copy = planned.carry_out()
    click.echo(f'{wish.client.title}: {short(str(path))} now has "{wish.name}".')
    click.echo(f"It runs: {shown(launch.line)}")
    if copy:
        click.echo(f"The file as it was: {short(str(copy))}")
    click.echo(f"Start {wish.client.title} again to use it; {advised('doctor')} checks it.")
