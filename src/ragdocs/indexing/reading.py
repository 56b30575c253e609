"""Reading one file of a tree: only a regular file, only inside the root, only up to a size."""

import errno
import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ragdocs.errors import SourceError, SourceTooLarge, SourceUnreadable
from ragdocs.indexing.containment import Folder, opened_below, opened_root, relative_parts
from ragdocs.models import FileState
from ragdocs.parsers.identity import encode_path

_ATTEMPTS = 2
_LINK = "it is a link or lies behind one, and links are not followed"
_WHY = {
    errno.ENOENT: "no such file, or not any more",
    errno.ELOOP: _LINK,
    errno.ENOTDIR: _LINK,
    errno.EACCES: "permission denied; make it readable or exclude it",
    errno.EPERM: "permission denied; make it readable or exclude it",
}


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file's bytes and the state they were read in."""

    data: bytes
    state: FileState


def content_hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def read_file(
    root: Path, relative_path: str, max_bytes: int, within: Path | None = None
) -> FileBytes:
    """The whole file as it was at one moment; SourceTooLarge or SourceUnreadable otherwise.

    `root` and `within` as `opened_root` has them.
    """
    *folders, name = parts = relative_parts(relative_path)
    shown = encode_path("/".join(parts))
    try:
        with opened_root(root, within) as top, opened_below(top, folders) as folder:
            return read_entry(folder, name, max_bytes)
    except OSError as error:
        raise SourceUnreadable(f"{shown}: {_why(error)}") from error
    except SourceError as error:
        raise type(error)(f"{shown}: {error}") from None


def read_entry(folder: Folder, name: str, max_bytes: int) -> FileBytes:
    """The file of that name in an open directory; SourceError or OSError, without its path."""
    for _ in range(_ATTEMPTS):
        found = _read_once(folder, name, max_bytes)
        if found is not None:
            return found
    raise SourceUnreadable("it kept changing while it was read; the next update tries again")


def _why(error: OSError) -> str:
    return _WHY.get(error.errno or 0) or error.strerror or "it cannot be read"


def _read_once(folder: Folder, name: str, max_bytes: int) -> FileBytes | None:
    """None when the file changed meanwhile."""
    # Looked at first, because merely opening a FIFO or a device can already do something; looked
    # at again once it is open, because it may have been swapped in between.
    _require_regular(folder.status(name), max_bytes)
    descriptor = folder.open(name)
    try:
        return _read_open(descriptor, max_bytes)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, max_bytes: int) -> FileBytes | None:
    before = os.fstat(descriptor)
    _require_regular(before, max_bytes)
    with open(descriptor, "rb", closefd=False) as file:
        # One byte more than there should be: a file that grows is noticed, and never read on.
        data = file.read(before.st_size + 1)
    after = os.fstat(descriptor)
    if len(data) != before.st_size or _version(before) != _version(after):
        return None
    return FileBytes(data, FileState(len(data), before.st_mtime_ns, content_hash(data)))


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _require_regular(status: os.stat_result, max_bytes: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise SourceUnreadable(_LINK)
    if not stat.S_ISREG(status.st_mode):
        raise SourceUnreadable("it is not a regular file")
    if status.st_size > max_bytes:
        raise SourceTooLarge(
            f"{status.st_size} bytes, over max_file_bytes ({max_bytes}); "
            "it was not read: raise the setting or exclude the file"
        )
