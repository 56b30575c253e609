"""The command line's front door: the group that every command joins."""

import click

from ragdocs import __version__
from ragdocs.cli.configuration import check_config, show_config
from ragdocs.cli.inspect import inspect
from ragdocs.errors import ConfigError, RagdocsError


class _Failure(click.ClickException):
    """An expected error: its message alone, on stderr."""


class _WrongUse(_Failure):
    """An error that the user's own words or files cause."""

    exit_code = 2


class _Program(click.Group):
    """The edge at which every expected error is caught, so that none shows a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RagdocsError as error:
            kind = _WrongUse if isinstance(error, ConfigError) else _Failure
            raise kind(str(error)) from error


@click.group(cls=_Program)
@click.version_option(__version__, prog_name="ragdocs")
def main() -> None:
    """Search your Markdown: offline, cited, with an honest confidence."""


main.add_command(check_config)
main.add_command(show_config)
main.add_command(inspect)
