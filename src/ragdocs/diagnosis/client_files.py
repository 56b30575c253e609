"""The files in which MCP clients keep their servers, and which entries there are this program's.

Of other programs' files nothing is kept but our own entries: their names, their commands, and the
folders they are given. No other entry, no variable, no secret is ever taken out of them.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ragdocs.diagnosis.client_table import CLIENTS, SERVER_LISTS, with_places
from ragdocs.files import open_file

MAX_BYTES = 20_000_000
"""Claude Code keeps histories beside its servers."""
PROGRAMS = ("ragdocs", "mcp-markdown-ragdocs")
OPTIONS = ("--docs", "--config", "--index")
# Strings are matched first, so that what looks like a comment in them stays.
# Nothing is looked at twice, whatever the file holds: what is not closed goes to the end.
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_JSONC = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A place where a client looks; `project` is the folder it speaks for, if any."""

    client: str
    path: Path
    project: Path | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """An entry that starts this program: what it runs, and with which folders."""

    name: str
    command: str
    folders: tuple[tuple[str, str], ...]
    """Option and value, of those that name a place."""
    project: Path | None


class Unreadable(Exception):
    """A file that is there and cannot be understood."""


def client_files(
    home: Path, projects: Sequence[Path], platform: str, environ: Mapping[str, str]
) -> Iterator[ClientFile]:
    """Every place, whether there is a file or not."""
    for client, place in with_places(home, platform, environ):
        yield ClientFile(client.title, place)
    for project in projects:
        for client in CLIENTS:
            if client.project_file:
                yield ClientFile(client.title, project / client.project_file, project)


def registrations(file: ClientFile) -> tuple[Registration, ...]:
    """Our entries in a file; none when there is no file. Raises Unreadable."""
    text = _text(file.path)
    if text is None:
        return ()
    try:
        whole: object = _parsed(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is not JSON") from error
    found = list(_entries(_table(whole), file.project))
    projects = _table(_table(whole).get("projects"))  # Claude Code's own list of folders
    for folder, inside in projects.items():
        found += _entries(_table(inside), Path(folder))
    return tuple(found)


def _text(path: Path) -> str | None:
    try:
        descriptor = open_file(path, os.O_RDONLY, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(error.strerror or "it cannot be opened") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise Unreadable(f"it has more than {MAX_BYTES:,} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable("it is not UTF-8 text") from error
    finally:
        os.close(descriptor)


def _parsed(text: str) -> object:
    """JSON; or what VS Code allows besides, comments and a comma at the end of a list."""
    try:
        return json.loads(text)
    except ValueError:
        bare = _JSONC.sub(_kept_string, text)
        return json.loads(_LAST_COMMA.sub(_kept_string, bare))


def _kept_string(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def _entries(table: Mapping[str, object], project: Path | None) -> Iterator[Registration]:
    for key in SERVER_LISTS:
        for name, entry in _table(table.get(key)).items():
            about = _table(entry)
            if starts_this_program(about):
                command, arguments = str(about["command"]), _strings(about)
                yield Registration(name, command, tuple(_folders(arguments)), project)


def starts_this_program(entry: object) -> bool:
    """Whether an entry, as a client's file has it, is one of ours."""
    about = _table(entry)
    command = about.get("command")
    return isinstance(command, str) and _is_ours(command, _strings(about))


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _strings(about: Mapping[str, object]) -> list[str]:
    arguments = about.get("args")
    given = cast("list[object]", arguments) if isinstance(arguments, list) else []
    return [one for one in given if isinstance(one, str)]


def _is_ours(command: str, arguments: Sequence[str]) -> bool:
    """By the command, or by what a launcher such as `uvx` or `python -m` is told to run."""
    named = (os.path.basename(one) for one in (command, *arguments[:4]))
    return any(re.split(r"[=<>@\[]", one)[0].removesuffix(".exe") in PROGRAMS for one in named)


def _folders(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    following = [*arguments[1:], ""]
    for argument, after in zip(arguments, following, strict=True):
        option, is_joined, value = argument.partition("=")
        if option in OPTIONS:
            yield option, value if is_joined else after
