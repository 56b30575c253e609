"""The folder that a command is run in, and whether it may be taken for that of the documents."""

import os
from pathlib import Path

from ragdocs.errors import ConfigError


def here() -> Path:
    """Raises ConfigError when it is gone."""
    try:
        return Path.cwd().resolve()
    except OSError as error:
        raise ConfigError(
            f"the working directory cannot be used: {error.strerror}; change to another folder"
        ) from error


def documents_here() -> Path:
    """Nobody means a whole home or disk by saying nothing. Raises ConfigError."""
    folder = here()
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if folder in (home, Path(folder.anchor)):
        raise ConfigError(
            f"{folder} is more than your documents: name their folder with --docs DIR"
        )
    return folder
