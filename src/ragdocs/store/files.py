"""The store's files: made private, and deleted together."""

import os
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.files import open_file, set_aside
from ragdocs.store.connection import SIDE_FILES
from ragdocs.store.folder import claim_folder


def make_way(path: Path) -> str | None:
    """Claims the index directory. What has the name of a file of the store and is none is set
    aside; says so when something was."""
    try:
        claim_folder(path.parent)
        moved = [name for name in _names(path) if set_aside(path.with_name(name))]
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be made: {error.strerror}") from error
    return f"{path.with_name(moved[0])} was not a file" if moved else None


def create_file(path: Path) -> bool:
    """By ourselves and not by SQLite, for the mode, which its side files take over."""
    try:
        os.close(open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be created: {error.strerror}") from error
    return True


def is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def delete_files(path: Path) -> None:
    """The log goes first: it must never meet a file that is not its own."""
    for name in _names(path):
        try:
            path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{name} cannot be deleted: {error.strerror}") from error


def _names(path: Path) -> tuple[str, ...]:
    return (*(path.name + side for side in SIDE_FILES), path.name)
