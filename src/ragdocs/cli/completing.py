"""Completes the names of documents, tags and trees in a shell, from the index as it is.

It must answer before a user notices: it reads names only, and imports no model, index or search.
"""

import os
import re
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ragdocs.errors import RagdocsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ragdocs.config.resolved import Config
    from ragdocs.store.snapshot import Snapshot

MAX_COMPLETIONS = 200
MAX_PATHS = 100_000


def documents(
    context: click.Context, _: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Paths that begin so; otherwise names of files that do."""
    with _opened(context) as (_config, snapshot):
        paths = snapshot.some_paths(MAX_PATHS) if snapshot else []
    found = _beginning(paths, incomplete)
    return _items(found or _beginning([path.rpartition("/")[2] for path in paths], incomplete))


def folders_and_documents(
    context: click.Context, _: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """For --path."""
    with _opened(context) as (_config, snapshot):
        paths = snapshot.some_paths(MAX_PATHS) if snapshot else []
    folders = {path[: at + 1] for path in paths for at, letter in enumerate(path) if letter == "/"}
    return _items(_beginning([*sorted(folders), *paths], incomplete))


def tags(context: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    with _opened(context) as (_config, snapshot):
        known = snapshot.tags() if snapshot else []
    return _items(_beginning(known, incomplete.removeprefix("#")))


def trees(context: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    with _opened(context) as (config, _snapshot):
        names = [tree.name for tree in config.trees] if config else []
    return _items(_beginning(names, incomplete))


@contextmanager
def _opened(context: click.Context) -> "Generator[tuple[Config | None, Snapshot | None]]":
    """The configuration by the options typed so far, and the index if it can be read. A shell shows
    no errors."""
    from ragdocs.app import index_directory
    from ragdocs.cli.main import CommandPlace
    from ragdocs.store.reader import Reader

    options = context.params
    place = CommandPlace(
        options.get("config_file"), options.get("docs") or (), options.get("index")
    )
    try:
        config = place.config(warn=False)
    except (RagdocsError, OSError):
        yield None, None
        return
    try:
        reader = Reader.open(index_directory(config))
    except (RagdocsError, OSError):
        yield config, None
        return
    with reader, reader.snapshot() as snapshot:
        yield config, snapshot


def _beginning(names: Sequence[str], incomplete: str) -> list[str]:
    """Without regard to case."""
    typed = incomplete.casefold()
    found = (name for name in names if name.casefold().startswith(typed))
    return list(dict.fromkeys(found))[:MAX_COMPLETIONS]


def _items(values: list[str]) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    shown = (_inserted(value) for value in values if value.isprintable())
    return [CompletionItem(value) for value in shown if value is not None]


# bash inserts what it gets as it is, and would run a command in a file's name; other shells quote
# it themselves. Escaped letters are harmless in every context, quoted or not.

_BASH = "bash_complete"
_UNSAFE = re.compile(r"[^\w@+:,./-]")
_UNSAFE_QUOTED = re.compile(r"[^\w@+:,./ -]")
_ESCAPED = r"\\\\\g<0>"
"""Two backslashes: the script's `read` takes one of each pair."""


def _inserted(value: str) -> str | None:
    """The word to insert; None if it cannot be inserted safely into an open quotation."""
    if not any(name.endswith("_COMPLETE") and os.environ[name] == _BASH for name in os.environ):
        return value
    if _is_quoted(os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")):
        return None if _UNSAFE_QUOTED.search(value) else value
    return _UNSAFE.sub(_ESCAPED, value)


def _is_quoted(line: str, word: str) -> bool:
    """Whether the word with this number has a quotation that is not closed."""
    words = shlex.shlex(line, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    before = 0
    try:
        for _ in words:
            before += 1
    except ValueError as error:  # it was "No closing quotation" or "No escaped character"
        return "quotation" in str(error) and str(before) == word
    return False
