"""Index folders: we never touch a folder that is not ours.

The mark is a small file, written before anything else: a folder that is not empty and has no mark
is never opened or written. Writers call `claim_folder`, readers `check_folder`, and code that
deletes checks `folder_state`.

Indices from before there were marks are recognized by their store's header or their seal. They get
a mark with the next write.
"""

import errno
import os
import re
import stat
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from ragdocs.errors import IndexFolderForeign, IndexStoreError
from ragdocs.files import open_file, open_own, set_aside, user_id, write_at

MARK_FILE = "ragdocs-index.txt"
STORE_FILE = "store.db"
SEAL_FILE = "store.seal"
APPLICATION_ID = 0x52474458  # "RGDX", in the header of the store's file
MARK = b"""\
ragdocs index folder, format 1

mcp-markdown-ragdocs made this folder: a search index of Markdown files. You may delete the folder;
the index is then rebuilt from the files. Without this file the folder may be taken for another's.
"""
_SQLITE = b"SQLite format 3\0"
_ID_AT = slice(68, 72)
_HEADER_BYTES = 100
_SEAL_BYTES = 512
_SEAL = re.compile(rb"\d+ [0-9a-f]+ \S+.* *", re.DOTALL)
_ROOT = 0
"""May use any configured folder: in a container, it may belong to an account of the host."""
_WRITABLE = "make it writable for you, or set another indexing.index_path"


class FolderState(Enum):
    """Whether a folder is ours."""

    MISSING = auto()
    EMPTY = auto()
    OURS = auto()
    FOREIGN = auto()
    """It is not empty, and nothing marks it as an index of this program."""


def folder_state(directory: Path) -> FolderState:
    """Changes nothing. Follows a link to a folder.

    Raises OSError when the folder cannot be read.
    """
    if _is_marked(directory):
        return FolderState.OURS
    try:
        with os.scandir(directory) as entries:
            is_empty = next(entries, None) is None
    except FileNotFoundError:
        return FolderState.MISSING
    if is_empty:
        return FolderState.EMPTY
    # Again, because another process may have claimed the folder between the two checks.
    is_ours = _is_marked(directory) or _is_older_index(directory)
    return FolderState.OURS if is_ours else FolderState.FOREIGN


def is_foreign(directory: Path) -> bool:
    """Whether the folder must be left alone; False also if it cannot be read."""
    try:
        return folder_state(directory) is FolderState.FOREIGN
    except OSError:
        return False


def check_folder(directory: Path) -> None:
    """For readers. Passes a folder that cannot be read; the caller fails on it.

    Raises IndexFolderForeign.
    """
    if is_foreign(directory):
        raise IndexFolderForeign(_foreign(directory))


def claim_folder(directory: Path) -> None:
    """Creates the folder if it does not exist, and marks it as ours; it is private from then on.

    Raises:
        IndexFolderForeign: it is not empty and not an index of this program, or it belongs to
            another account. It was not changed.
        IndexStoreError: it cannot be written to.
        OSError: it cannot be created or read.
    """
    if not directory.is_dir():
        # Its parent contains the variants of an index, or is new and of no use to others.
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = os.stat(directory).st_uid
    if user_id() not in (None, owner, _ROOT):
        raise IndexFolderForeign(
            f"{directory} belongs to another account ({owner}): an index is for one account; "
            "set another indexing.index_path"
        )
    if _is_marked(directory):
        return
    state = folder_state(directory)
    if state is FolderState.FOREIGN:
        raise IndexFolderForeign(_foreign(directory))
    try:
        _write_mark(directory)
    except OSError as error:
        if state is FolderState.OURS:  # its store or its seal marks it as well
            return
        raise IndexStoreError(
            f"{directory} cannot be written to: {error.strerror}; {_WRITABLE}"
        ) from error
    if state is FolderState.EMPTY:
        _make_private(directory)


def is_own(owner: int) -> bool:
    """Whether this process runs as that account; True on systems without account numbers."""
    return user_id() in (None, owner)


def _is_marked(directory: Path) -> bool:
    """Also accepts a truncated mark, from a full disk for example."""
    found = _start(directory / MARK_FILE, len(MARK) + 1)
    return found is not None and MARK.startswith(found)


def _is_older_index(directory: Path) -> bool:
    """Checks the store's header. We read it ourselves, because SQLite creates files beside the
    store even when it only reads. The seal counts too, for when the header is still in the log."""
    header = _start(directory / STORE_FILE, _HEADER_BYTES) or b""
    if header.startswith(_SQLITE) and header[_ID_AT] == APPLICATION_ID.to_bytes(4, "big"):
        return True
    seal = _start(directory / SEAL_FILE, _SEAL_BYTES + 1) or b""
    return len(seal) == _SEAL_BYTES and _SEAL.fullmatch(seal) is not None


def _start(path: Path, size: int) -> bytes | None:
    """The first bytes of a regular file; None when there is none."""
    try:
        descriptor = open_file(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EINVAL):  # a link, a socket, a pipe
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def _write_mark(directory: Path) -> None:
    path = directory / MARK_FILE
    set_aside(path)
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
    try:
        with suppress(OSError):  # on a full disk, the name alone must suffice
            os.ftruncate(descriptor, 0)
            write_at(descriptor, MARK, 0)
    finally:
        os.close(descriptor)


def _make_private(directory: Path) -> None:
    """Skips a folder like /tmp, which everybody uses."""
    mode = os.stat(directory).st_mode
    if mode & 0o077 and not mode & stat.S_ISVTX:
        with suppress(OSError):
            os.chmod(directory, 0o700)


def _foreign(directory: Path) -> str:
    return (
        f"{directory} is not empty and is not an index of this program; nothing was changed. "
        "Set indexing.index_path (--index) to an empty folder or one that does not exist yet"
    )
