"""The model's own folders: what may be deleted at any time (cache) and what may not (data)."""

import os
from pathlib import Path

from ragdocs.config.locations import APPLICATION, PROJECT_FOLDER, base_folder


def cache_folder() -> Path:
    return _own("XDG_CACHE_HOME", ".cache")


def data_folder() -> Path:
    return _own("XDG_DATA_HOME", ".local/share")


def _own(variable: str, below_home: str) -> Path:
    """Without a home there is still one place that is the user's: the working directory."""
    base = base_folder(os.environ, variable, below_home)
    return base / APPLICATION if base else Path.cwd() / PROJECT_FOLDER
