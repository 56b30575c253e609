"""`init`: a first configuration, short and commented, where the program will find it."""

import os
from pathlib import Path

import click

from ragdocs.cli.here import documents_here, here
from ragdocs.cli.place import existing_folders
from ragdocs.cli.status import short
from ragdocs.errors import ConfigError, FileKept, RagdocsError
from ragdocs.wording import advised


@click.command("init")
@click.option("--global", "is_global", is_flag=True, help="Your own file, for all projects.")
@click.option(
    "--docs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    callback=existing_folders,
    help="Where the documents are. Repeat it for several folders.",
)
@click.option("--force", is_flag=True, help="Even if there is a file; a copy of it is kept.")
def init(is_global: bool, docs: tuple[Path, ...], force: bool) -> None:
    """Write a commented configuration to begin with.

    For the project in this folder, or with --global for all of them. Nothing has to be configured:
    what is commented out shows the defaults.

    \b
    Examples:
      ragdocs init --docs docs
      ragdocs init --global --docs ~/notes
    """
    from ragdocs.cli.kept_file import read_kept

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
    _tell(path, copy)


def _projects(folder: Path, docs: tuple[Path, ...]) -> tuple[Path, str]:
    """Whichever of the two names is in use, for both at once are an error."""
    from ragdocs.cli.starter import project_starter
    from ragdocs.config.locations import project_files

    *others, usual = project_files(folder)
    path = next((other for other in others if os.path.lexists(other)), usual)
    return path, project_starter(folder, docs)


def _users(docs: tuple[Path, ...]) -> tuple[Path, str]:
    from ragdocs.cli.starter import user_starter
    from ragdocs.config.locations import user_file

    path = user_file(os.environ)
    if path is None:
        raise ConfigError("there is no home folder: set HOME or XDG_CONFIG_HOME")
    return path, user_starter(docs)


def _refuse_to_overwrite(path: Path, *, is_there: bool, force: bool) -> None:
    if is_there and not force:
        raise FileKept(
            f"{short(str(path))} is there already and was left as it is; --force writes a new one "
            "and keeps a copy of it"
        )


def _trust_own(path: Path) -> None:
    """The user has just said it all; folders outside of the project would need a word again."""
    from ragdocs.cli.trust import trust_file_of_user

    try:
        is_needed = trust_file_of_user(path)
    except RagdocsError as error:
        click.echo(f"But it is not trusted yet: {error}. {advised('trust')} does it.", err=True)
        return
    if is_needed:
        click.echo("It is trusted with the folders that you named outside of this one.")


def _tell(path: Path, copy: Path | None) -> None:
    from ragdocs.config.loading import problem_text, read_config

    click.echo(f"Written: {short(str(path))}")
    if copy:
        click.echo(f"What was there: {short(str(copy))}")
    reading = read_config()
    if reading.config is None:
        click.echo(
            f"But a configuration is not usable:\n{problem_text(reading.problems)}", err=True
        )
        return
    for tree in reading.config.trees:
        click.echo(f"Searched from here: {tree.name}, {short(str(tree.root))}")
    click.echo(f"Next: change what you like in it, then {advised('check-config')},")
    click.echo(
        f"{advised('query QUESTION')}, or {advised('install --client CLIENT')} for an MCP client."
    )
