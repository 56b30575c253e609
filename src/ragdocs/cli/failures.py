"""How a command fails: a message and an exit status; with --json, also as JSON on stdout."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

import click

from ragdocs.errors import (
    ConfigError,
    EmbeddingError,
    EvaluationError,
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    NotThere,
    QueryError,
    RagdocsError,
)
from ragdocs.text import advised, escaped, json_text

# Exit statuses of the commands; 0 is success, click itself uses 2.

NOTHING_FOUND = 1
WRONG_USE = 2
UNUSABLE = 3
"""The index cannot be used."""
INTERRUPTED = 130
"""After Ctrl-C, as shells report it."""


USAGE = "usage_error"
NO_SPACE = "no_space"
STOPPED = "interrupted"


class Failure(click.ClickException):
    """An expected error: its message is shown on stderr. `kind` and `advice` are for --json."""

    def __init__(
        self, message: str, exit_code: int = 1, kind: str = "ragdocs_error", advice: str = ""
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # pyright: ignore[reportAttributeAccessIssue]
        self.kind = kind
        self.advice = advice


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What --json prints instead of an answer; the names are part of the interface."""

    error: str
    kind: str
    exit_code: int
    advice: str


def failure(error: RagdocsError) -> Failure:
    """The failure of a command that raised this error."""
    message = escaped(str(error))  # a folder's name may contain terminal control sequences
    if isinstance(error, NotThere) and error.folder:
        message = f"{message}: {escaped(_advice(error))}"
    return Failure(message, _exit_code(error), kind_of(type(error)), escaped(_advice(error)))


def kind_of(error: type[RagdocsError]) -> str:
    """`index_missing` for IndexMissing."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).lower()


def wants_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line ask for JSON. They need not be a valid command."""
    options = list(takewhile(lambda word: word != "--", words))
    if {"--json", "--output=json", "-ojson"}.intersection(options):
        return True
    return any(one in ("-o", "--output") and two == "json" for one, two in pairwise(options))


def print_json(error: click.ClickException, command: str) -> None:
    """On stdout, where a program expects the answer. The message goes to stderr as always."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    words = context.command_path.split()[1:] if context else command.split()
    called = " ".join(("ragdocs", *words))
    kind, advice = USAGE, f"`{called} --help` shows what it accepts"
    if isinstance(error, Failure):
        kind, advice = error.kind, error.advice or advice * (error.exit_code == WRONG_USE)
    message = " ".join(_lines(error))
    click.echo(json_text(ErrorAnswer(message, kind, error.exit_code, advice)))


def _lines(error: click.ClickException) -> Iterator[str]:
    return (line.strip() for line in escaped(error.format_message()).splitlines())


def _exit_code(error: RagdocsError) -> int:
    if isinstance(error, NotThere):
        return NOTHING_FOUND
    if isinstance(error, (ConfigError, EvaluationError, QueryError)):
        return WRONG_USE
    return UNUSABLE if isinstance(error, IndexStoreError) else 1


_ADVICE = {
    ConfigError: ("check-config", "shows every problem of the configuration"),
    IndexMissing: ("update", "builds the index"),
    IndexFolderForeign: ("", "name another index folder with --index or indexing.index_path"),
    IndexLocked: ("", "try again when the other program has finished"),
    IndexCorrupt: ("doctor --fix", "rebuilds the index from the files"),
    IndexIncompatible: ("rebuild-index", "rebuilds the index with these settings"),
    IndexStoreError: ("doctor", "shows what can be done"),
    EmbeddingError: ("doctor", "shows which models are usable"),
}
"""What helps with errors of a kind, the narrowest first. Most messages give more exact advice."""


def _advice(error: RagdocsError) -> str:
    if isinstance(error, NotThere):
        if error.folder:
            import shlex

            return (
                f"{advised(f'{error.listed_by} {shlex.quote(error.folder)}')} lists its documents"
            )
        return f"{advised(error.listed_by)} lists what there is" if error.listed_by else ""
    for kind, (command, does) in _ADVICE.items():
        if isinstance(error, kind):
            return f"{advised(command)} {does}" if command else does
    return ""
