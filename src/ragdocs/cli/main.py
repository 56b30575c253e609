"""The entry point of the command line: the group of commands, their common options and exit
statuses, and the two commands that need nothing else (`mcp`, `completion`).
"""

import errno
import os
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs import __version__
from ragdocs.cli.failures import (
    INTERRUPTED,
    NO_SPACE,
    STOPPED,
    Failure,
    failure,
    print_json,
    wants_json,
)
from ragdocs.errors import ConfigError, RagdocsError
from ragdocs.text import advised, escaped, escaped_line, remember_typed

if TYPE_CHECKING:
    from ragdocs.config.loading import ConfigReading
    from ragdocs.config.resolved import Config, Tree
    from ragdocs.mcp_server.host import Backend
    from ragdocs.mcp_server.instructions import SummaryFile
    from ragdocs.mcp_server.roots import ClientRoots

# `completion`: the script with which a shell completes commands and options.

NAMES = ("ragdocs", "mcp-markdown-ragdocs")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands and options.

    \b
    Examples:
      ragdocs completion bash >> ~/.bashrc
      ragdocs completion zsh >> ~/.zshrc
      ragdocs completion fish > ~/.config/fish/completions/ragdocs.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    name = Path(root.info_name or "").name
    name = name if name in NAMES else NAMES[0]
    variable = f"_{name}_complete".replace("-", "_").upper()
    script = kind(root.command, {}, name, variable)
    # Not `script.source()`: it starts bash to check its version.
    # bash must not read a name as a pattern of files.
    template = script.source_template.replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')
    click.echo(template % script.source_vars())


# The command line's front door: the group that every command joins.

_COMMANDS = {
    "mcp": "main:serve",
    "query": "query:query",
    "get": "documents:get",
    "ls": "documents:ls",
    "related": "documents:related",
    "context": "documents:context",
    "lint": "lint:lint",
    "update": "indexing:update",
    "rebuild-index": "indexing:rebuild_index",
    "index": "index:index",
    "status": "status:show_status",
    "doctor": "status:run_doctor",
    "init": "config:init",
    "config": "config:show_config",
    "check-config": "config:check_config",
    "trust": "trust:trust",
    "inspect": "inspect:inspect",
    "eval": "evaluate:evaluate",
    "install": "install:install",
    "agents": "install:agents",
    "plugin": "plugin:plugin",
    "models": "models:models",
    "completion": "main:completion",
}
"""The module and name of each command; only the command that is called is imported."""


_NEAR_NAMES = {
    "query": ("search", "find", "ask", "grep", "query-documents"),
    "get": ("show", "cat", "read", "open", "get-document"),
    "ls": ("list", "docs", "list-documents"),
    "related": ("similar", "backlinks", "find-related"),
    "lint": ("check", "broken-links"),
    "update": ("sync", "refresh", "reload"),
    "rebuild-index": ("rebuild", "reindex", "re-index"),
    "status": ("info", "stats", "index-status"),
    "init": ("setup", "new"),
    "config": ("settings", "show-config"),
    "check-config": ("validate", "validate-config"),
    "mcp": ("serve-mcp", "mcp-serve", "mcp-server", "server"),
    "eval": ("evaluate", "benchmark"),
    "completion": ("completions",),
}
"""Names that other programs, and our MCP tools, have for a command. They are understood."""
_MEANT = {name: command for command, names in _NEAR_NAMES.items() for name in names}
_WANTS_JSON = "ragdocs.json"


class _Commands(UserDict[str, click.Command]):
    """All commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(_COMMANDS, click.Command("not imported yet"))

    def __getitem__(self, key: str) -> click.Command:
        module, _, name = _COMMANDS[key].partition(":")
        return getattr(import_module(f"ragdocs.cli.{module}"), name)


def _what_is_meant(typed: str) -> str:
    """For an unknown command: a question without `query`, or a name with a mistake."""
    import shlex
    from difflib import get_close_matches

    shown = escaped_line(typed)
    if " " in typed.strip():
        return f"No such command. To ask a question: {advised(f'query {shlex.quote(shown)}')}"
    near = get_close_matches(typed, [*_COMMANDS, *_MEANT], cutoff=0.65)
    names = dict.fromkeys(_MEANT.get(name, name) for name in near)
    suggestion = f" Did you mean {' or '.join(map(repr, names))}?" if names else ""
    return f"No such command {shown!r}.{suggestion}"


_WHOLE_SUMMARY = 1_000


class _Program(click.Group):
    """Catches every expected error, so that none shows a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        is_json = wants_json(args)  # parsing empties the list
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[_WANTS_JSON] = is_json
        return context

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Understands near names, `help COMMAND`, and says how a question is asked."""
        typed, rest = args[0].lower().replace("_", "-"), args[1:]
        if typed == "help":
            if not rest:
                click.echo(ctx.get_help())
                ctx.exit()
            typed, rest = rest[0], ["--help"]
        typed = _MEANT.get(typed, typed)
        if typed in self.commands:
            return super().resolve_command(ctx, [typed, *rest])
        if not ctx.resilient_parsing and not typed.startswith("-"):
            raise click.UsageError(_what_is_meant(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """With whole summaries: click cuts them to one line."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(_WHOLE_SUMMARY))
            for name, command in found
            if command is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            if ctx.meta.get(_WANTS_JSON):
                print_json(error, ctx.invoked_subcommand or "")
            raise
        finally:
            remember_typed(())  # one process may call several commands, each with its own options

    def _invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RagdocsError as error:
            raise failure(error) from error
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            message = "the output could not be written: no space left"
            raise Failure(message, kind=NO_SPACE, advice="free space on the disk") from error
        except KeyboardInterrupt:
            if ctx.meta.get(_WANTS_JSON):
                print_json(Failure("interrupted", INTERRUPTED, STOPPED), "")
            ctx.exit(INTERRUPTED)


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
    # numpy and faiss read these when they are imported. Their threads busy-wait: two of them cost
    # 17 times the CPU time on a busy machine. The model has its own threads.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A character that the terminal cannot show becomes `?` instead of a traceback.
            stream.reconfigure(errors="replace")


# The working directory, and whether it may serve as the documents' folder.


def here() -> Path:
    """The working directory. Raises ConfigError when it is gone."""
    try:
        return Path.cwd().resolve()
    except OSError as error:
        raise ConfigError(
            f"the working directory cannot be used: {error.strerror}; change to another folder"
        ) from error


def documents_here() -> Path:
    """The working directory as the documents' folder. Raises ConfigError for the home folder or the
    root of a disk: nobody asks for those by leaving out --docs.
    """
    folder = here()
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if folder in (home, Path(folder.anchor)):
        raise ConfigError(
            f"{folder} holds more than your documents: name their folder with --docs DIR"
        )
    return folder


def refuse_everything(config: "Config") -> None:
    """Raises ConfigError when a home folder or a whole disk would be indexed only by default.

    Clients start servers anywhere, and a terminal opens in the home folder.
    """
    from ragdocs.config.problems import OriginKind

    home = Path(os.path.expanduser("~"))  # Path.home raises when there is no home folder
    for tree in config.trees:
        is_everything = tree.root in (home, Path(tree.root.anchor))
        if is_everything and config.tree_origin(tree).kind is OriginKind.DEFAULT:
            raise ConfigError(
                "no documents are configured, and a home folder or a whole disk is indexed only "
                "on request: name a folder with --docs DIR"
            )


# Options that several commands share.


def _remember(_: click.Context, __: click.Parameter, given: Path | None) -> Path | None:
    if given is not None:
        remember_typed([("--config", str(given))])
    return given


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    callback=_remember,
    help="Use only this configuration file; with a folder, look for the project's file from there "
    "upwards.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


# Which documents and which index a command uses: the same three options everywhere.

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """The places given on the command line; the rest comes from the configuration."""

    config_file: Path | None = None
    docs: tuple[Path, ...] = ()
    index: Path | None = None

    def config(self, *, warn: bool = True) -> "Config":
        """The effective configuration. Warns about ignored settings, unless the command shows them
        itself. Raises ConfigError.
        """
        from ragdocs.config.loading import load_config

        config = load_config(self.config_file, flags=self._flags())
        if warn:
            warn_of_ignored(config)
        return config

    def reading(self) -> "ConfigReading":
        """The same configuration with all its problems, for commands that report them."""
        from ragdocs.config.loading import read_config

        return read_config(self.config_file, flags=self._flags())

    def as_options(self, *, whole_paths: bool) -> Iterator[tuple[str, str]]:
        """The options with which another command uses the same places. Paths below the working
        directory are relative to it, unless they may be read from another directory."""
        given = [("--config", self.config_file), *(("--docs", one) for one in self.docs)]
        for option, path in (*given, ("--index", self.index)):
            if path is not None:
                whole = os.path.abspath(os.path.expanduser(path))
                short = whole if whole_paths else _relative(whole)
                yield option, short

    def _flags(self) -> dict[str, object]:
        indexing: dict[str, object] = {}
        flags: dict[str, object] = {"indexing": indexing}
        if self.index is not None:
            indexing["index_path"] = str(self.index)
        if len(self.docs) == 1:
            indexing["documents_path"] = str(self.docs[0])
        elif self.docs:
            flags["tree"] = {
                name: {"path": str(at)} for name, at in name_folders(self.docs).items()
            }
        return flags


def _relative(path: str) -> str:
    try:
        found = os.path.relpath(os.path.realpath(path))
    except (OSError, ValueError):  # no working directory any more; another drive
        return path
    return path if found.startswith("..") else found


def warn_of_ignored(config: "Config") -> None:
    """Reports settings that are ignored because their file is not trusted: once, on stderr."""
    from ragdocs.config.trust import in_words

    context = click.get_current_context(silent=True)
    shown: dict[str, object] = context.find_root().meta if context else {}
    for line in in_words(config.ignored):
        if line not in shown:
            shown[line] = True
            click.echo(f"warning: {line}", err=True)


def name_folders(folders: tuple[Path, ...]) -> Mapping[str, Path]:
    """A name for each folder, made from its own; the order they are given in does not matter."""
    from ragdocs.config.resolved import name_tree

    names: dict[str, Path] = {}
    for folder in sorted(folders):
        names[name_tree(folder, names)] = folder
    return names


def place_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds --config, --docs and --index; the command receives them as its argument `place`."""
    return _with_place(command, existing_folders)


def tolerant_place_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """The same for a server and for diagnosis: a folder in --docs may be missing for now."""
    return _with_place(command, expected_folders)


def _with_place(
    command: Callable[..., _T],
    folders: Callable[[click.Context, click.Parameter, tuple[Path, ...]], tuple[Path, ...]],
) -> Callable[..., _T]:
    @config_option
    @click.option(
        "--docs",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="DIR",
        callback=folders,
        help="Use the documents in this folder instead of the configured ones; repeatable.",
    )
    @click.option(
        "--index",
        type=click.Path(path_type=Path, readable=False),  # `doctor` can make it readable
        metavar="DIR",
        callback=_index,
        help="Use this index folder instead of the configured one.",
    )
    @wraps(command)
    def with_place(
        *arguments: object,
        config_file: Path | None,
        docs: tuple[Path, ...],
        index: Path | None,
        **options: object,
    ) -> _T:
        place = CommandPlace(config_file, docs, index)
        remember_typed(place.as_options(whole_paths=click.get_current_context().info_name == "mcp"))
        return command(*arguments, place=place, **options)

    return with_place


def describe_tree(tree: "Tree") -> str:
    """A tree and its folder, for people."""
    return f"{escaped(tree.name)} ({escaped(os.fspath(tree.root))})"


def existing_folders(
    _: click.Context, __: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    """For an option that names folders: absolute paths, each once."""
    return tuple(dict.fromkeys(_folder(one, may_be_missing=False) for one in given))


def expected_folders(
    _: click.Context, __: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The same, but a folder may be missing for now."""
    return tuple(dict.fromkeys(_folder(one, may_be_missing=True) for one in given))


def _folder(given: Path, *, may_be_missing: bool) -> Path:
    path = Path(os.path.expanduser(given))  # no shell expands --docs=~/notes
    try:
        folder = path.resolve(strict=not may_be_missing)
        # Also missing: a dead mount, or a parent without permission to enter.
        if os.path.isdir(folder) or (may_be_missing and not os.path.exists(folder)):
            return folder
        problem = "is not a folder; give the folder that contains the documents"
    except (OSError, RuntimeError, ValueError) as error:
        problem = _reason(error)
    raise click.BadParameter(f"{escaped(str(given))} {problem}")


def _index(_: click.Context, __: click.Parameter, given: Path | None) -> Path | None:
    if given is None:
        return None
    path = Path(os.path.expanduser(given))
    if os.path.exists(path) and not os.path.isdir(path):
        raise click.BadParameter(f"{escaped(str(given))} is not a folder")
    return path


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be used: {getattr(error, 'strerror', None) or error}"


# `mcp`: the server that an MCP client starts.


@click.command("mcp")
@tolerant_place_options
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="What is logged on stderr. Only debug shows text of queries or documents.",
)
def serve(place: CommandPlace, log_level: str) -> None:
    """Serve the documents to an MCP client, over standard input and output.

    The index is built and kept up to date in the background.

    \b
    Example:
      ragdocs mcp --docs ~/notes
    """
    from ragdocs.config.locations import cache_folder
    from ragdocs.mcp_server.instructions import SummaryFile
    from ragdocs.mcp_server.roots import ClientRoots
    from ragdocs.mcp_server.server import run

    roots = ClientRoots()
    cache = cache_folder(os.environ)
    given = (place.config_file, place.index, *place.docs)
    summary = SummaryFile.of(cache, given, os.environ) if cache else None
    run(lambda: _open(place, roots, summary), log_level, roots, summary)


ROOTS_OF_THE_CLIENT = "the roots of the client"


def _open(place: CommandPlace, roots: "ClientRoots", summary: "SummaryFile | None") -> "Backend":
    from ragdocs.app import App
    from ragdocs.mcp_server.host import FIRST_SECONDS, ServedApp
    from ragdocs.places import clients_folder

    config = place.config()
    trees_from, folder = "", clients_folder()
    if _names_no_documents(config):
        trees_from = "the working directory; the client offers no roots"
        if folders := roots.folders():
            # Another start in this directory may get other roots, so nothing is kept for it.
            trees_from, summary, folder = ROOTS_OF_THE_CLIENT, None, folders[0]
            config = replace(place, docs=folders).config()
    refuse_everything(config)
    app = App(config)
    app.places = app.places.based_on(folder)
    app.service.start()
    return ServedApp(app, FIRST_SECONDS, trees_from, summary)


def _names_no_documents(config: "Config") -> bool:
    """No flag, variable or file says which they are, and no project's file was found."""
    from ragdocs.config.locations import user_file
    from ragdocs.config.problems import OriginKind

    origins = (config.tree_origin(tree).kind for tree in config.trees)
    own = user_file(os.environ)
    return set(origins) == {OriginKind.DEFAULT} and all(file == own for file in config.files)
