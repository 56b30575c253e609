"""The MCP clients we know: where each keeps its list of servers, and what an entry looks like.

The only place that knows it: `doctor` reads these files, `install` writes into them.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ragdocs.config.locations import base_folder


class Base(Enum):
    """What a client's place is seen from."""

    HOME = "the home folder"
    CONFIG = "the folder of settings, ~/.config, on Windows %APPDATA%"
    SUPPORT = "the same, and on a Mac ~/Library/Application Support"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client. Without `file`, or with `command`, `install` says what to do and does nothing."""

    key: str
    title: str
    base: Base = Base.HOME
    file: str = ""
    """Where it looks in every project, below `base`."""
    project_file: str = ""
    """Where it looks in one project, below the project's folder."""
    servers: str = "mcpServers"
    """The object in these files that has an entry for each server."""
    stdio_type: bool = False
    """Whether an entry says that it is spoken to by standard input and output."""
    command: tuple[str, ...] = ()
    """The client's own command that adds a server; name and `--` follow."""
    from_terminal: bool = False
    """Whether it is started in a terminal and so finds what a terminal finds."""


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
        # It writes that file all the time while it runs, so that an entry of ours could be lost.
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
    # Its settings are TOML, which cannot be changed without losing how they are written.
    Client(key="codex", title="Codex", command=("codex", "mcp", "add"), from_terminal=True),
    Client(key="other", title="another client"),
)
SERVER_LISTS = tuple(dict.fromkeys(client.servers for client in CLIENTS))


def user_place(
    client: Client, home: Path, platform: str, environ: Mapping[str, str]
) -> Path | None:
    """The file of all projects; None for a client whose list is not kept in JSON."""
    if not client.file:
        return None
    if client.base is Base.HOME:
        return home / client.file
    if client.base is Base.SUPPORT and platform == "darwin":
        return home / "Library" / "Application Support" / client.file
    if platform == "win32":  # they do not know the XDG variables there
        environ = {name: value for name, value in environ.items() if name != "XDG_CONFIG_HOME"}
    there = {**environ, "HOME": os.fspath(home)}
    # These clients follow the XDG rules on a Mac, too.
    system = "linux" if platform == "darwin" else platform
    base = base_folder(there, "XDG_CONFIG_HOME", ".config", system) or home / ".config"
    return base / client.file


def with_places(
    home: Path, platform: str, environ: Mapping[str, str]
) -> Iterator[tuple[Client, Path]]:
    """Every client that has such a file, whether it is there or not."""
    for client in CLIENTS:
        place = user_place(client, home, platform, environ)
        if place is not None:
            yield client, place
