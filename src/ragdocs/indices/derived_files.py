"""The files of a derived index, one by one: opened without following links, linked, hashed."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragdocs.errors import IndexStoreError
from ragdocs.files import is_obstacle, open_file, replace, user_id
from ragdocs.locks import try_lock

Identity = tuple[int, int, int]
"""Inode, size and time of change: what tells quickly that a file was touched. Links share it."""


def identity(path: Path | str) -> Identity:
    found = os.lstat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def content(path: Path) -> bytes:
    with os.fdopen(_open(path), "rb") as file:
        return file.read()


def sha256(path: Path) -> str:
    with os.fdopen(_open(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(path: Path) -> int:
    descriptor = open_file(path, os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def link(source: Path, target: Path) -> None:
    """Not every file system has links; a copy does as well."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        shutil.copyfile(source, target)


def discard(path: Path) -> None:
    """Removes what stands in the way, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def replace_file(target: Path, temporary: Path, data: bytes) -> None:
    """Readers see the old content or the new, never a part."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_file(temporary, flags), "wb") as file:
            file.write(data)
        if target.is_dir():
            discard(target)
        replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Private; whatever else has its name makes way."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user_id() is not None and path.stat().st_mode & 0o077:
        path.chmod(0o700)


@contextmanager
def locked(path: Path) -> Generator[bool]:
    """Whether the lock could be had, without waiting. The kernel frees it with the process."""
    with translated(path.parent):
        if path.is_symlink() or is_obstacle(path):
            discard(path)
        held = try_lock(path)
    try:
        yield held is not None
    finally:
        if held is not None:
            held.close()


@contextmanager
def translated(folder: Path) -> Generator[None]:
    """A full disk or a folder that must not be written, in our own words."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise IndexStoreError(
            f"{folder} cannot be written ({reason}): make room or make it writable, or set "
            'keyword_engine = "fts5"'
        ) from error
