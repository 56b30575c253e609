"""The folder that a command is run in, and whether it may be taken for that of the documents."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.errors import ConfigError

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config


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


def refuse_everything(config: "Config") -> None:
    """Clients start servers anywhere, and a terminal opens at home: nobody means to index a whole
    disk or home by that. Raises ConfigError.
    """
    from ragdocs.config.problems import OriginKind

    home = Path(os.path.expanduser("~"))  # unlike Path.home, where nobody says where it is
    for tree in config.trees:
        is_everything = tree.root in (home, Path(tree.root.anchor))
        if is_everything and config.tree_origin(tree).kind is OriginKind.DEFAULT:
            raise ConfigError(
                "no documents are configured, and a home folder or a whole disk is not indexed "
                "unless it is asked for: name a folder with --docs DIR"
            )
