"""What has the name of a file of ours and is none: a directory, a pipe, a link to nowhere."""

import secrets
import stat
from pathlib import Path


def is_obstacle(path: Path) -> bool:
    """Whether something is there that can never be opened as a file."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return path.is_symlink()


def set_aside(path: Path) -> bool:
    """Frees the name; False when nothing was in the way.

    A directory may hold someone's files: it gets another name, unless it is empty.
    """
    if not is_obstacle(path):
        return False
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return True
    try:
        path.rmdir()
    except OSError:
        path.rename(path.with_name(f"{path.name}.moved-{secrets.token_hex(4)}"))
    return True
