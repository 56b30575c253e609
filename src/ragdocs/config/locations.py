"""Where configurations and the default index are kept: the only place that knows the names."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

APPLICATION = "mcp-markdown-ragdocs"
PROJECT_FOLDER = f".{APPLICATION}"
FOLDER_FILE = "config.toml"
SINGLE_FILE = ".ragdocs.toml"


def project_files(folder: Path) -> tuple[Path, Path]:
    """The two names that a folder's configuration may have."""
    return folder / PROJECT_FOLDER / FOLDER_FILE, folder / SINGLE_FILE


def user_file(environ: Mapping[str, str]) -> Path | None:
    folder = base_folder(environ, "XDG_CONFIG_HOME", ".config")
    return folder / APPLICATION / FOLDER_FILE if folder else None


def folder_of(file: Path) -> Path:
    """The folder that a configuration speaks for, from which its relative paths are seen."""
    folder = Path(os.path.abspath(file)).parent
    return folder.parent if folder.name == PROJECT_FOLDER else folder


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    folder = base_folder(environ, "XDG_CACHE_HOME", ".cache")
    return folder / APPLICATION if folder else None


def default_index(cache: Path, roots: Iterable[tuple[str, Path]]) -> Path:
    """A folder for this set of trees: the same from wherever the program is started."""
    told_apart = "\0".join(f"{name}\0{root}" for name, root in sorted(roots))
    digest = hashlib.sha256(told_apart.encode("utf-8", "surrogateescape")).hexdigest()
    return cache / f"index-{digest[:16]}"


def base_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """By the XDG rules: a relative path in the variable is to be ignored."""
    given = environ.get(variable, "")
    if os.path.isabs(given):
        return Path(given)
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return Path(home) / below_home
    try:
        return Path.home() / below_home
    except RuntimeError:
        return None
