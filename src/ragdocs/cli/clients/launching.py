"""How a client is to start the server: this installation's program, and folders by whole paths."""

import os
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from subprocess import list2cmdline
from typing import TYPE_CHECKING

from ragdocs.cli.here import documents_here
from ragdocs.cli.place import Place
from ragdocs.errors import ConfigError

if TYPE_CHECKING:
    from ragdocs.config.loading import Reading
    from ragdocs.config.resolved import Config

PROGRAM = "ragdocs"
DISTRIBUTION = "mcp-markdown-ragdocs"


@dataclass(frozen=True, slots=True)
class Launch:
    """A command and its arguments."""

    command: str
    arguments: tuple[str, ...]

    @property
    def line(self) -> str:
        """As it is typed in a shell."""
        words = (self.command, *self.arguments)
        return list2cmdline(words) if os.name == "nt" else shlex.join(words)


def program(*, by_name: bool) -> Launch:
    """This installation; by its name alone where that is wanted and means this installation."""
    there = _executable()
    if there is None:
        # Without -P, modules of the folder it is started in would be imported.
        return Launch(sys.executable, ("-P", "-m", "ragdocs"))
    found = shutil.which(there.name)
    if found and os.path.realpath(found) == os.path.realpath(there):
        # What PATH leads to stays when an installation is renewed; what it points to may not.
        return Launch(there.name if by_name else os.path.abspath(found), ())
    return Launch(os.fspath(there), ())


def fetched_program(*, by_name: bool) -> Launch:
    """The published one, which uv fetches and runs."""
    found = None if by_name else shutil.which("uvx")
    return Launch(os.path.abspath(found) if found else "uvx", (DISTRIBUTION,))


def server(program: Launch, place: Place) -> Launch:
    return Launch(program.command, (*program.arguments, "mcp", *_place_arguments(place)))


def _executable() -> Path | None:
    """The script that an installation has; none where the sources are run."""
    ending: str = sysconfig.get_config_var("EXE") or ""
    candidates = [Path(sysconfig.get_path("scripts")) / f"{PROGRAM}{ending}"]
    if Path(sys.argv[0]).name.removesuffix(ending) in (PROGRAM, DISTRIBUTION):
        candidates.insert(0, Path(os.path.abspath(sys.argv[0])))
    return next((one for one in candidates if one.is_file() and os.access(one, os.X_OK)), None)


def _place_arguments(place: Place) -> list[str]:
    """What was given; without any of it, what is in force here, for a client starts elsewhere."""
    from ragdocs.config.loading import problem_text

    reading = place.reading()
    if reading.config is None:
        raise ConfigError(problem_text(reading.problems))
    config_file, docs = place.config_file, place.docs
    if config_file is None and not docs:
        config_file = _project(reading)
        docs = () if config_file or _has_own_trees(reading.config) else (documents_here(),)
    given = [("--docs", folder) for folder in docs]
    given += [("--config", config_file)] if config_file else []
    given += [("--index", place.index)] if place.index else []
    return [part for option, path in given for part in (option, _whole(path))]


def _project(reading: "Reading") -> Path | None:
    """The folder of the nearest project file. Named as a file it would be the user's own word,
    whatever the project puts into it later."""
    from ragdocs.config.locations import folder_of, user_file

    users = user_file(os.environ)
    return next((folder_of(file) for file in reading.files if file != users), None)


def _has_own_trees(config: "Config") -> bool:
    """Whether the user's file alone says which documents: then nothing has to be given."""
    from ragdocs.config.resolved import TreeScope

    return any(tree.scope is TreeScope.GLOBAL for tree in config.trees)


def _whole(path: Path) -> str:
    text = os.path.abspath(os.path.expanduser(path))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!a} is not UTF-8, and cannot be written there") from error
    return text
