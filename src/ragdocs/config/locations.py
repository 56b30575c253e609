"""Where configurations and the default index are kept; no other module knows these names."""

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

APPLICATION = "mcp-markdown-ragdocs"
PROJECT_FOLDER = f".{APPLICATION}"
FOLDER_FILE = "config.toml"
SINGLE_FILE = ".ragdocs.toml"
TRUST_FILE = "trust.json"
FORMER_NAME = "docs"
"""The name of the tree of `documents_path` until 0.2. It still decides where the default index is,
so that an index with the new names finds the vectors of the old one (specs/0118)."""


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The folder of all indices of one set of documents: the one that the user `named`, or the
    `default`, with a subfolder for each set of index settings."""

    default: Path
    named: Path | None = None

    @property
    def folder(self) -> Path:
        return self.named or self.default


def project_files(folder: Path) -> tuple[Path, Path]:
    """The two possible paths of a folder's configuration."""
    return folder / PROJECT_FOLDER / FOLDER_FILE, folder / SINGLE_FILE


def user_file(environ: Mapping[str, str]) -> Path | None:
    folder = base_folder(environ, "XDG_CONFIG_HOME", ".config")
    return folder / APPLICATION / FOLDER_FILE if folder else None


def trust_file(environ: Mapping[str, str]) -> Path | None:
    """The record of the project files that the user trusts."""
    folder = base_folder(environ, "XDG_DATA_HOME", ".local/share")
    return folder / APPLICATION / TRUST_FILE if folder else None


def plugin_folder(environ: Mapping[str, str], client: str) -> Path | None:
    """Where `install --plugin` builds the plugin for a client."""
    folder = base_folder(environ, "XDG_DATA_HOME", ".local/share")
    return folder / APPLICATION / "plugin" / client if folder else None


def folder_of(file: Path) -> Path:
    """The folder that a configuration applies to, and to which its paths are relative."""
    folder = Path(os.path.abspath(file)).parent
    return folder.parent if folder.name == PROJECT_FOLDER else folder


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    folder = base_folder(environ, "XDG_CACHE_HOME", ".cache")
    return folder / APPLICATION if folder else None


def default_index(cache: Path, roots: Iterable[tuple[str, Path]]) -> Path:
    """A folder for this set of trees, independent of the working directory."""
    joined = "\0".join(f"{name}\0{root}" for name, root in sorted(roots))
    digest = hashlib.sha256(joined.encode("utf-8", "surrogateescape")).hexdigest()
    return cache / f"index-{digest[:16]}"


def base_folder(
    environ: Mapping[str, str], variable: str, below_home: str, platform: str = sys.platform
) -> Path | None:
    """Follows the XDG rules, by which a relative path in the variable is ignored. Without the
    variable, uses the usual folder of macOS or Windows; on a Mac, an existing folder of ours at
    the XDG path stays in use.
    """
    given = environ.get(variable, "")
    if os.path.isabs(given):
        return Path(given)
    place = _PLACES[variable]
    if platform == "win32" and os.path.isabs(own := environ.get(place.windows, "")):
        return Path(own)
    home = _home(environ)
    if home is None:
        return None
    if platform == "win32":
        return home / place.below_profile
    if platform == "darwin" and not (home / below_home / APPLICATION).is_dir():
        return home / place.mac
    return home / below_home


class _Place(NamedTuple):
    """The counterpart of an XDG folder: on a Mac, in a Windows variable, and without that."""

    mac: str
    windows: str
    below_profile: str


_PLACES = {
    "XDG_CONFIG_HOME": _Place("Library/Application Support", "APPDATA", "AppData/Roaming"),
    "XDG_DATA_HOME": _Place("Library/Application Support", "APPDATA", "AppData/Roaming"),
    "XDG_CACHE_HOME": _Place("Library/Caches", "LOCALAPPDATA", "AppData/Local"),
}


def _home(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError:
        return None
