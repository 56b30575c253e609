"""The command line's front door: the group that every command joins."""

import errno
import os
import sys
from io import TextIOWrapper

import click

from ragdocs import __version__
from ragdocs.cli.agents import agents
from ragdocs.cli.completion import completion
from ragdocs.cli.configuration import check_config, show_config
from ragdocs.cli.context import context
from ragdocs.cli.doctor import run_doctor
from ragdocs.cli.exits import UNUSABLE, WRONG_USE
from ragdocs.cli.get import get
from ragdocs.cli.indexing import rebuild_index, update
from ragdocs.cli.init import init
from ragdocs.cli.inspect import inspect
from ragdocs.cli.install import install
from ragdocs.cli.ls import ls
from ragdocs.cli.models import models
from ragdocs.cli.query import query
from ragdocs.cli.related import related
from ragdocs.cli.serve import serve
from ragdocs.cli.status import show_status
from ragdocs.errors import ConfigError, IndexStoreError, QueryError, RagdocsError

INTERRUPTED = 130
"""The exit status after Ctrl-C, as a shell gives it."""


class _Failure(click.ClickException):
    """An expected error: its message alone, on stderr."""


class _WrongUse(_Failure):
    """An error that the user's own words or files cause."""

    exit_code = WRONG_USE


class _Unusable(_Failure):
    """There is no index that could be worked with."""

    exit_code = UNUSABLE


class _Program(click.Group):
    """The edge at which every expected error is caught, so that none shows a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RagdocsError as error:
            raise _failure(error) from error
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise _Failure("the output could not be written: no space left") from error
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _failure(error: RagdocsError) -> _Failure:
    if isinstance(error, (ConfigError, QueryError)):
        return _WrongUse(str(error))
    if isinstance(error, IndexStoreError):
        return _Unusable(str(error))
    return _Failure(str(error))


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ragdocs")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Search your Markdown: offline, cited, with an honest confidence.

    \b
    Example:
      ragdocs query how do I sign in --docs notes
    """
    # Read by numpy and faiss when they are imported. Their threads wait by spinning: two of them
    # cost 17 times the processor time on a busy machine. The model's threads are its own.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character gets a mark in its place, not a traceback.
            stream.reconfigure(errors="replace")


main.add_command(check_config)
main.add_command(show_config)
main.add_command(inspect)
main.add_command(rebuild_index)
main.add_command(update)
main.add_command(serve)
main.add_command(query)
main.add_command(show_status)
main.add_command(run_doctor)
main.add_command(get)
main.add_command(ls)
main.add_command(related)
main.add_command(context)
main.add_command(init)
main.add_command(install)
main.add_command(agents)
main.add_command(models)
main.add_command(completion)
