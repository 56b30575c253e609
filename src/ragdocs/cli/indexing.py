"""`update` and `rebuild-index`, and the update that other commands run before they answer."""

import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs.cli.main import CommandPlace, json_option, place_options, refuse_everything
from ragdocs.errors import (
    ConfigError,
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OtherSettings,
)
from ragdocs.text import advised, escaped, escaped_line, json_text, number_of

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.cli.index_run import Run
    from ragdocs.config.resolved import Config, Tree
    from ragdocs.shutdown import EndReason

# Before a query: builds the index if there is none, and updates it unless a server does that.

FRESHNESS_SECONDS = 2.0
"""How long a query waits for another writer, which brings the index up to date as well."""


def bring_up_to_date(
    config: "Config",
    *,
    quiet: bool = False,
    vectors: bool = True,
    most_vectors: int | None = None,
    check: "Callable[[App], None] | None" = None,
) -> int | None:
    """Without `vectors`, only the text is brought up to date, and no model is needed; with
    `most_vectors`, vectors are only computed if no more of them are missing. `check` is called
    before that.

    Returns the exit status when it was interrupted, otherwise None.

    Raises IndexStoreError when the index cannot be written, and what `check` raises.
    """
    from ragdocs.app import index_directory
    from ragdocs.cli.index_run import IndexingOptions, run
    from ragdocs.cli.progress import display
    from ragdocs.shutdown import Ending
    from ragdocs.store.lock import is_looked_after

    if is_looked_after(index_directory(config)):
        return None
    options = IndexingOptions(
        rebuild=False,
        vectors=vectors,
        most_vectors=most_vectors,
        check=check,
        wait=FRESHNESS_SECONDS,
    )
    with Ending(watch_parent=False) as ending:
        with closing(display(quiet=quiet)) as shown:
            ending.before_force(shown.close)
            try:
                done = run(config, options, ending, shown)
            except (IndexLocked, OtherSettings):
                return None  # the answer reports the state of the index
            except (IndexCorrupt, IndexFolderForeign, IndexIncompatible, IndexMissing):
                raise
            except IndexStoreError as error:
                click.echo(f"note: answering without updating the index: {error}", err=True)
                return None
        if ending.reason:
            click.echo("Stopped. What was indexed is kept; the next run continues.", err=True)
            return ending.exit_code
    _note_surprises(done)
    return None


def _note_surprises(done: "Run") -> None:
    if done.outcome.rebuilt:
        click.echo(f"note: the index was rebuilt: {escaped_line(done.outcome.rebuilt)}", err=True)
    for kept in done.outcome.kept:
        click.echo(
            f"note: {escaped(kept.tree)} {kept.reason}; showing its last indexed state", err=True
        )
    if done.vectors.lacking:
        click.echo(f"note: searching by keywords only: {done.vectors.lacking}", err=True)


# Before the first index of a folder that nobody named.

MAX_COUNTED_FILES = 10_000
MAX_COUNTING_SECONDS = 2.0
NOT_WANTED = 1
"""The exit status when the user did not want the folder to be indexed."""


def ask_before_the_first_index(config: "Config", *, is_asking: bool) -> None:
    """Says what would be indexed, and asks on a terminal, if the folder is only the working
    directory and has no index yet.

    Raises ConfigError where nobody can be asked, click's Exit when the answer is no.
    """
    from ragdocs.app import index_directory
    from ragdocs.config.problems import OriginKind
    from ragdocs.store.lock import is_looked_after
    from ragdocs.store.variants import place_of, variants

    guessed = [t for t in config.trees if config.tree_origin(t).kind is OriginKind.DEFAULT]
    if guessed and any(file.parent == guessed[0].root for file in config.files):
        return  # a configuration in the folder itself is a wish to search it
    directory = index_directory(config)
    if not guessed or variants(place_of(directory)) or is_looked_after(directory):
        return
    found = _describe_files(guessed[0], config)
    folder = escaped(str(guessed[0].root))
    said = f"no documents are configured, and {folder} has no index yet: it has {found}"
    advice = f"name the folder with --docs DIR, or write a configuration with {advised('init')}"
    if not (is_asking and sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(f"{said}. To index it, {advice}")
    click.echo(f"{said[0].upper()}{said[1:]}.", err=True)
    if not click.confirm("Index this folder?", default=True, err=True):
        click.echo(f"Nothing was indexed. For another folder, {advice}.", err=True)
        raise click.exceptions.Exit(NOT_WANTED)


def _describe_files(tree: "Tree", config: "Config") -> str:
    from ragdocs.indexing.discovery import count_files

    count, is_all = count_files(
        tree,
        respect_gitignore=config.indexing.respect_gitignore,
        most=MAX_COUNTED_FILES,
        seconds=MAX_COUNTING_SECONDS,
    )
    files = number_of(count, "file") + " to index"
    return files if is_all else f"at least {files} (not all of its folders were counted)"


# The options of commands that read the index: its place, whether to update it, and JSON.

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """The options of every command that reads the index."""

    place: CommandPlace
    as_json: bool
    no_update: bool

    @contextmanager
    def app(
        self,
        *,
        vectors: bool = True,
        most_vectors: int | None = None,
        check: "Callable[[App], None] | None" = None,
    ) -> "Generator[App]":
        """Builds the index if there is none, and updates it unless a server does that; `vectors`,
        `most_vectors` and `check` are those of `bring_up_to_date`.

        Raises click's Exit when that was interrupted, or the user did not want an index here.
        """
        from ragdocs.app import App
        from ragdocs.places import working_directory

        config = self.place.config()
        if not self.no_update:
            refuse_everything(config)
            ask_before_the_first_index(config, is_asking=not self.as_json)
            interrupted = bring_up_to_date(
                config, vectors=vectors, most_vectors=most_vectors, check=check
            )
            if interrupted is not None:
                raise click.exceptions.Exit(interrupted)
        with App(config) as app:
            app.places = app.places.based_on(working_directory())
            yield app


def reading_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds these options; the command receives them as its argument `reading`."""

    @json_option
    @click.option("--no-update", is_flag=True, help="Do not update the index first.")
    @place_options
    @wraps(command)
    def with_reading(
        *arguments: object, place: CommandPlace, as_json: bool, no_update: bool, **options: object
    ) -> _T:
        return command(*arguments, reading=OpenedIndex(place, as_json, no_update), **options)

    return with_reading


# `rebuild-index` and `update`: update the index to match the files, now.

INCOMPLETE = 1
"""The exit status when something that should be in the index is not."""
WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """The options of both commands, besides the place."""

    no_vectors: bool
    wait: float
    quiet: bool
    as_json: bool


def _run_options(command: Callable[..., _T]) -> Callable[..., _T]:
    @place_options
    @click.option(
        "--no-vectors",
        is_flag=True,
        help="Index only the text, for keyword search; a server computes the vectors later.",
    )
    @click.option(
        "--wait",
        type=click.FloatRange(0, 86_400),
        default=WAIT_SECONDS,
        show_default=f"{WAIT_SECONDS:g}",
        metavar="SECONDS",
        help="How long to wait while another program writes the index.",
    )
    @click.option("--quiet", "-q", is_flag=True, help="Print only problems.")
    @json_option
    @click.pass_context
    @wraps(command)
    def with_options(
        *arguments: object,
        no_vectors: bool,
        wait: float,
        quiet: bool,
        as_json: bool,
        place: CommandPlace,
    ) -> _T:
        return command(*arguments, place, _RunOptions(no_vectors, wait, quiet, as_json))

    return with_options


@click.command("update")
@_run_options
def update(context: click.Context, place: CommandPlace, chosen: _RunOptions) -> None:
    """Update the index to match the files; only changed files are read.

    Exits with 0 when all files are indexed, 1 when some could not be, 2 for wrong usage, 3 when the
    index cannot be written, 130 or 143 when it was stopped.

    \b
    Example:
      ragdocs update --docs notes
    """
    context.exit(_run(place, chosen, rebuild=False))


@click.command("rebuild-index")
@_run_options
def rebuild_index(context: click.Context, place: CommandPlace, chosen: _RunOptions) -> None:
    """Check the whole index, then read every file again.

    Use it when you do not trust the index; after edits `update` is enough. Unchanged text keeps its
    vectors, and search keeps working meanwhile. An index in a folder of your choice (--index,
    index_path) that was built with other settings is rebuilt with these. Exits as `update` does.

    \b
    Example:
      ragdocs rebuild-index --docs notes --docs handbook
    """
    context.exit(_run(place, chosen, rebuild=True))


def _run(place: CommandPlace, chosen: _RunOptions, *, rebuild: bool) -> int:
    from ragdocs.app import index_directory
    from ragdocs.cli.index_run import KEPT, IndexingOptions, opening, run, takeover_notes
    from ragdocs.cli.progress import display
    from ragdocs.shutdown import Ending
    from ragdocs.store.lock import watching

    config = place.config()
    refuse_everything(config)
    watcher = watching(index_directory(config))
    options = IndexingOptions(
        rebuild=rebuild,
        vectors=not chosen.no_vectors,
        wait=chosen.wait,
        advice="Try again later, or wait longer with --wait.",
        drop_unused=True,
    )
    if not chosen.quiet:
        _print_notes(*opening(config))
    # A long command that runs in the background should continue when its terminal is closed.
    with Ending(watch_parent=False) as ending:
        with closing(display(quiet=chosen.quiet)) as shown:
            ending.before_force(shown.close)
            ending.before_force(lambda: _print_notes(f"Stopped at once. {KEPT}"))
            done = run(config, options, ending, shown)
        _report(done, config, ending.reason, chosen)
        _print_notes(*takeover_notes(done, watcher))
    if ending.reason:
        return ending.exit_code
    return 0 if done.is_well else INCOMPLETE


def _report(run: "Run", config: "Config", reason: "EndReason | None", chosen: _RunOptions) -> None:
    from ragdocs.cli.index_run import as_json, notes, problems, summary

    if chosen.as_json:
        click.echo(json_text(as_json(run, config, reason)))
        return
    if not chosen.quiet:
        for line in summary(run, reason):
            click.echo(line)
        _print_notes(*notes(run))
    _print_notes(*problems(run))


def _print_notes(*lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)
