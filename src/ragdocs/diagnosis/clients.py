"""MCP clients: where each keeps its list of servers, and which entries start this program."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

from ragdocs.config.locations import base_folder
from ragdocs.files import open_file

# The known MCP clients: where each keeps its list of servers, and what an entry looks like.
#
# `doctor` reads these files and `install` writes them; no other module knows them.


class Base(Enum):
    """The folder that a client's path is relative to."""

    HOME = "the home folder"
    CONFIG = "the folder of settings, ~/.config, on Windows %APPDATA%"
    SUPPORT = "the same, and on a Mac ~/Library/Application Support"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client. Without `file`, or with `command`, `install` only prints what to do."""

    key: str
    title: str
    base: Base = Base.HOME
    file: str = ""
    """Its settings for all projects, relative to `base`."""
    project_file: str = ""
    """Its settings for one project, relative to the project's folder."""
    servers: str = "mcpServers"
    """The key of the object with an entry for each server."""
    stdio_type: bool = False
    """Whether an entry has the field `type`, with the value `stdio`."""
    command: tuple[str, ...] = ()
    """The client's own command that adds a server; name and `--` follow."""
    from_terminal: bool = False
    """Whether it is started in a terminal, and so has the terminal's PATH."""


CLIENTS = (
    Client(
        key="claude-desktop",
        title="Claude Desktop",
        base=Base.SUPPORT,
        file="Claude/claude_desktop_config.json",
    ),
    Client(
        key="claude-code",
        title="Claude Code",
        file=".claude.json",
        project_file=".mcp.json",
        # It rewrites that file while it runs, so our entry could be lost.
        command=("claude", "mcp", "add", "--scope", "user"),
        from_terminal=True,
    ),
    Client(
        key="cursor",
        title="Cursor",
        file=".cursor/mcp.json",
        project_file=".cursor/mcp.json",
    ),
    Client(
        key="vscode",
        title="VS Code",
        base=Base.SUPPORT,
        file="Code/User/mcp.json",
        project_file=".vscode/mcp.json",
        servers="servers",
        stdio_type=True,
    ),
    Client(
        key="vscode-insiders",
        title="VS Code Insiders",
        base=Base.SUPPORT,
        file="Code - Insiders/User/mcp.json",
        servers="servers",
        stdio_type=True,
    ),
    Client(
        key="vscodium",
        title="VSCodium",
        base=Base.SUPPORT,
        file="VSCodium/User/mcp.json",
        servers="servers",
        stdio_type=True,
    ),
    Client(key="windsurf", title="Windsurf", file=".codeium/windsurf/mcp_config.json"),
    Client(
        key="zed",
        title="Zed",
        base=Base.CONFIG,
        file="zed/settings.json",
        servers="context_servers",
    ),
    Client(
        key="gemini",
        title="Gemini CLI",
        file=".gemini/settings.json",
        project_file=".gemini/settings.json",
        from_terminal=True,
    ),
    # Its settings are TOML, which we cannot change without losing the formatting.
    Client(key="codex", title="Codex", command=("codex", "mcp", "add"), from_terminal=True),
    Client(key="other", title="another client"),
)
SERVER_LISTS = tuple(dict.fromkeys(client.servers for client in CLIENTS))


def user_place(
    client: Client, home: Path, platform: str, environ: Mapping[str, str]
) -> Path | None:
    """The file for all projects; None for a client whose list is not JSON."""
    if not client.file:
        return None
    if client.base is Base.HOME:
        return home / client.file
    if client.base is Base.SUPPORT and platform == "darwin":
        return home / "Library" / "Application Support" / client.file
    if platform == "win32":  # the clients ignore XDG variables there
        environ = {name: value for name, value in environ.items() if name != "XDG_CONFIG_HOME"}
    there = {**environ, "HOME": os.fspath(home)}
    # These clients follow the XDG rules on a Mac too.
    system = "linux" if platform == "darwin" else platform
    base = base_folder(there, "XDG_CONFIG_HOME", ".config", system) or home / ".config"
    return base / client.file


def with_places(
    home: Path, platform: str, environ: Mapping[str, str]
) -> Iterator[tuple[Client, Path]]:
    """Every client with such a file, whether the file exists or not."""
    for client in CLIENTS:
        place = user_place(client, home, platform, environ)
        if place is not None:
            yield client, place


# Our entries in the files of MCP clients.
#
# From other programs' files only our own entries are read: name, command and folders; never another
# entry, a variable or a secret.

MAX_BYTES = 20_000_000
"""Claude Code keeps histories beside its servers."""
PROGRAMS = ("ragdocs", "mcp-markdown-ragdocs")
OPTIONS = ("--docs", "--config", "--index")
# Strings are matched first, so that a comment inside one stays. Every match is linear in the size
# of the file: an unclosed string or comment extends to the end.
_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_JSONC = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A settings file of a client; `project` is the folder it applies to, if any."""

    client: str
    path: Path
    project: Path | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """An entry that starts this program: its command and folders."""

    name: str
    command: str
    folders: tuple[tuple[str, str], ...]
    """Option and value, for the options that name a path."""
    project: Path | None


class Unreadable(Exception):
    """A file that exists but cannot be read."""


def client_files(
    home: Path, projects: Sequence[Path], platform: str, environ: Mapping[str, str]
) -> Iterator[ClientFile]:
    """All such files, whether they exist or not."""
    for client, place in with_places(home, platform, environ):
        yield ClientFile(client.title, place)
    for project in projects:
        for client in CLIENTS:
            if client.project_file:
                yield ClientFile(client.title, project / client.project_file, project)


def registrations(file: ClientFile) -> tuple[Registration, ...]:
    """Our entries in a file; empty if there is no file. Raises Unreadable."""
    text = _text(file.path)
    if text is None:
        return ()
    try:
        whole: object = _parse(text)
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


def _parse(text: str) -> object:
    """Parses JSON, or JSON with comments and trailing commas, as VS Code allows."""
    try:
        return json.loads(text)
    except ValueError:
        bare = _JSONC.sub(_keep_string, text)
        return json.loads(_LAST_COMMA.sub(_keep_string, bare))


def _keep_string(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def _entries(table: Mapping[str, object], project: Path | None) -> Iterator[Registration]:
    for key in SERVER_LISTS:
        for name, entry in _table(table.get(key)).items():
            about = _table(entry)
            if starts_this_program(about):
                command, arguments = str(about["command"]), _strings(about)
                yield Registration(name, command, tuple(_folders(arguments)), project)


def starts_this_program(entry: object) -> bool:
    """Whether an entry of a client's file is one of ours."""
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
    """By the command, or by what a launcher such as `uvx` or `python -m` runs."""
    named = (os.path.basename(one) for one in (command, *arguments[:4]))
    return any(re.split(r"[=<>@\[]", one)[0].removesuffix(".exe") in PROGRAMS for one in named)


def _folders(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    following = [*arguments[1:], ""]
    for argument, after in zip(arguments, following, strict=True):
        option, is_joined, value = argument.partition("=")
        if option in OPTIONS:
            yield option, value if is_joined else after
