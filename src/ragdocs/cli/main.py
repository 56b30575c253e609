"""The command line's front door: the group that every command joins."""

import errno
import os
import sys
from io import TextIOWrapper

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
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise _Failure("the output could not be written: no space left") from error


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ragdocs")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Search your Markdown: offline, cited, with an honest confidence.

    The search itself is still being built; what is listed below works.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character gets a mark in its place, not a traceback.
            stream.reconfigure(errors="replace")


main.add_command(check_config)
main.add_command(show_config)
main.add_command(inspect)
