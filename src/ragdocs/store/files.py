"""The store's files: made private, and deleted together."""

import os
import shutil
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.files import open_file, replace, set_aside
from ragdocs.store.connection import COPY, SIDE_FILES, side_paths
from ragdocs.store.folder import claim_folder


def make_way(path: Path) -> str | None:
    """Claims the index directory. What has the name of a file of the store and is none is set
    aside; says so when something was."""
    try:
        claim_folder(path.parent)
        moved = [name for name in _names(path) if set_aside(path.with_name(name))]
        _copy_of(path).unlink(missing_ok=True)  # left by a process that was killed
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be made: {error.strerror}") from error
    return f"{path.with_name(moved[0])} was not a file" if moved else None


def take_copies(path: Path) -> None:
    """The store gets files of its own in place of those with other names (hard links), a backup's
    or somebody else's, which keep every byte. Whoever has these open sees that they were replaced.

    Without the log's memory, which SQLite makes from the log. A link is only removed.
    """
    log, memory = side_paths(path)
    try:
        memory.unlink(missing_ok=True)
        for file in (log, path):
            if file.is_symlink():
                file.unlink()
            elif file.exists():
                _take_copy(path, file)
    except OSError as error:
        raise IndexStoreError(f"{path} cannot be copied: {error.strerror}") from error


def _take_copy(path: Path, file: Path) -> None:
    copy = _copy_of(path)
    try:
        with open(file, "rb") as source, os.fdopen(_created(copy), "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        replace(copy, file)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + COPY)


def _created(path: Path) -> int:
    return open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def create_file(path: Path) -> bool:
    """By ourselves and not by SQLite, for the mode, which its side files take over."""
    try:
        os.close(_created(path))
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
