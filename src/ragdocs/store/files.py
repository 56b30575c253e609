"""The store's files: made private, and deleted together."""

import os
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.store.connection import SIDE_FILES


def make_way(path: Path) -> str | None:
    """Makes the index directory. A directory in the file's place goes if it is empty: what is in
    it would not be ours. Says so when one did."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.is_dir():
            return None
        path.rmdir()
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be made: {error.strerror}") from error
    return f"{path} was a directory"


def create_file(path: Path) -> bool:
    """By ourselves and not by SQLite, for the mode, which its side files take over."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be created: {error.strerror}") from error
    return True


def delete_files(path: Path) -> None:
    """The log goes first: it must never meet a file that is not its own."""
    for name in (*(path.name + side for side in SIDE_FILES), path.name):
        try:
            path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{name} cannot be deleted: {error.strerror}") from error
