"""The command line's front door: the group that every command joins."""

import errno
import os
import sys
from collections import UserDict
from importlib import import_module
from io import TextIOWrapper

import click

from ragdocs import __version__
from ragdocs.cli.exits import NOTHING_FOUND, UNUSABLE, WRONG_USE
from ragdocs.cli.output import shown_lines
from ragdocs.errors import (
    ConfigError,
    EvaluationError,
    IndexStoreError,
    NotThere,
    QueryError,
    RagdocsError,
)
from ragdocs.wording import remember_typed

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


_COMMANDS = {
    "mcp": "serve:serve",
    "query": "query:query",
    "get": "get:get",
    "ls": "ls:ls",
    "related": "related:related",
    "context": "context:context",
    "update": "indexing:update",
    "rebuild-index": "indexing:rebuild_index",
    "status": "status:show_status",
    "doctor": "doctor:run_doctor",
    "init": "init:init",
    "config": "configuration:show_config",
    "check-config": "configuration:check_config",
    "trust": "trust:trust",
    "inspect": "inspect:inspect",
    "eval": "evaluate:evaluate",
    "install": "install:install",
    "agents": "agents:agents",
    "models": "models:models",
    "completion": "completion:completion",
}
"""Where each command is: only the one that is called is imported."""


class _Commands(UserDict[str, click.Command]):
    """All commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(_COMMANDS, click.Command("not imported yet"))

    def __getitem__(self, key: str) -> click.Command:
        module, _, name = _COMMANDS[key].partition(":")
        return getattr(import_module(f"ragdocs.cli.{module}"), name)


class _Program(click.Group):
    """The edge at which every expected error is caught, so that none shows a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

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
        finally:
            remember_typed(())  # a program may call several commands, each with its own options


class _NothingFound(_Failure):
    """What was named is not there."""

    exit_code = NOTHING_FOUND


def _failure(error: RagdocsError) -> _Failure:
    said = shown_lines(str(error))  # a folder's name may speak to the terminal
    if isinstance(error, NotThere):
        return _NothingFound(said)
    if isinstance(error, (ConfigError, EvaluationError, QueryError)):
        return _WrongUse(said)
    if isinstance(error, IndexStoreError):
        return _Unusable(said)
    return _Failure(said)


@click.group(
    cls=_Program, commands=_Commands(), context_settings={"help_option_names": ["-h", "--help"]}
)
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
