"""Which documents and which index a command works on: the same three options everywhere."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs.cli.options import config_option
from ragdocs.cli.output import shown
from ragdocs.wording import remember_typed

if TYPE_CHECKING:
    from ragdocs.config.loading import Reading
    from ragdocs.config.resolved import Config, Tree

_MAX_NAME = 60
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Place:
    """What was said on the command line of where things are; the configuration says the rest."""

    config_file: Path | None = None
    docs: tuple[Path, ...] = ()
    index: Path | None = None

    def config(self, *, tell: bool = True) -> "Config":
        """The configuration in force; what is ignored of it is told, unless the command shows it
        itself. Raises ConfigError.
        """
        from ragdocs.config.loading import load_config

        config = load_config(self.config_file, flags=self._flags())
        if tell:
            tell_ignored(config)
        return config

    def reading(self) -> "Reading":
        """The same with all that is wrong with it, for those who look into that."""
        from ragdocs.config.loading import read_config

        return read_config(self.config_file, flags=self._flags())

    def typed(self, *, whole_paths: bool) -> Iterator[tuple[str, str]]:
        """The options by which another command works on the same. Paths below the working
        directory are relative to it, unless whoever reads them may stand elsewhere."""
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
            flags["tree"] = {name: {"path": str(at)} for name, at in named(self.docs).items()}
        return flags


def _relative(path: str) -> str:
    try:
        found = os.path.relpath(os.path.realpath(path))
    except (OSError, ValueError):  # no working directory any more; another drive
        return path
    return path if found.startswith("..") else found


def tell_ignored(config: "Config") -> None:
    """Settings that are not in force because their file is not trusted: once, on stderr."""
    from ragdocs.config.trust import in_words

    context = click.get_current_context(silent=True)
    told: dict[str, object] = context.find_root().meta if context else {}
    for line in in_words(config.ignored):
        if line not in told:
            told[line] = True
            click.echo(f"warning: {line}", err=True)


def named(folders: tuple[Path, ...]) -> Mapping[str, Path]:
    """A name for each folder, from its own; the same in whichever order they are given."""
    names: dict[str, Path] = {}
    for folder in sorted(folders):
        stem = re.sub(r"[^\w.-]+", "-", folder.name).strip("-._")[:_MAX_NAME] or "docs"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}-{number}"
        names[name] = folder
    return names


def place_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds --config, --docs and --index; the command is given them as its argument `place`."""
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
        help="The documents, in place of the configured ones. Repeat it for several folders.",
    )
    @click.option(
        "--index",
        type=click.Path(path_type=Path, readable=False),  # `doctor` can make it so
        metavar="DIR",
        callback=_index,
        help="Where the index is kept, in place of the configured folder.",
    )
    @wraps(command)
    def with_place(
        *arguments: object,
        config_file: Path | None,
        docs: tuple[Path, ...],
        index: Path | None,
        **options: object,
    ) -> _T:
        place = Place(config_file, docs, index)
        remember_typed(place.typed(whole_paths=click.get_current_context().info_name == "mcp"))
        return command(*arguments, place=place, **options)

    return with_place


def described(tree: "Tree") -> str:
    """A tree and its folder as a person reads them."""
    return f"{shown(tree.name)} ({shown(os.fspath(tree.root))})"


def existing_folders(
    _: click.Context, __: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    """For an option that names folders: whole paths, each once."""
    return tuple(dict.fromkeys(_folder(one, may_be_missing=False) for one in given))


def expected_folders(
    _: click.Context, __: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The same, where a folder that is not there now may come later."""
    return tuple(dict.fromkeys(_folder(one, may_be_missing=True) for one in given))


def _folder(given: Path, *, may_be_missing: bool) -> Path:
    path = Path(os.path.expanduser(given))  # no shell does it for --docs=~/notes
    try:
        folder = path.resolve(strict=not may_be_missing)
        # Also "not there": a dead mount, or a parent that may not be entered.
        if os.path.isdir(folder) or (may_be_missing and not os.path.exists(folder)):
            return folder
        problem = "is not a folder; give the folder that holds the documents"
    except (OSError, RuntimeError, ValueError) as error:
        problem = _reason(error)
    raise click.BadParameter(f"{shown(str(given))} {problem}")


def _index(_: click.Context, __: click.Parameter, given: Path | None) -> Path | None:
    if given is None:
        return None
    path = Path(os.path.expanduser(given))
    if os.path.exists(path) and not os.path.isdir(path):
        raise click.BadParameter(f"{shown(str(given))} is not a folder")
    return path


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be used: {getattr(error, 'strerror', None) or error}"
