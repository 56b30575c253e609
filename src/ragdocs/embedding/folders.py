"""The user's folders: what may be deleted at any time (cache) and what may not (data)."""

import os
from pathlib import Path

FOLDER_NAME = "mcp-markdown-ragdocs"


def cache_folder() -> Path:
    return _base("XDG_CACHE_HOME", ".cache") / FOLDER_NAME


def data_folder() -> Path:
    return _base("XDG_DATA_HOME", ".local/share") / FOLDER_NAME


def _base(variable: str, fallback: str) -> Path:
    # The XDG specification: a relative path in these variables is to be ignored.
    configured = Path(os.environ.get(variable, ""))
    return configured if configured.is_absolute() else Path.home() / fallback
