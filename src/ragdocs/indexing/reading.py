"""Opens and reads files below a root, never outside it, and parses and chunks one file for the
store.
"""

import errno
import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, Self

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.config.resolved import Tree
from ragdocs.errors import SourceError, SourceTooLarge, SourceUnreadable
from ragdocs.files import is_link, open_file, path_of
from ragdocs.indexing.changes import RootProblem
from ragdocs.models import CANVAS_SUFFIX, FileState, IndexedFile, TreeName
from ragdocs.parsers.canvas import parse_canvas
from ragdocs.parsers.ids import encode_path
from ragdocs.parsers.markdown import Origin, parse_document

# The only way from an untrusted path to an open directory below a root.
#
# A path is split into components, and each is opened relative to the one before without following
# links. So no spelling of a path, and no link created meanwhile, escapes the root. Where a system
# cannot open relative to a folder (Windows), each component is checked, and the location of the
# file is compared after it was opened (specs/0072).

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX: no other program can open a longer path, so we neither find nor read it."""

WINDOWS_NAMES = os.name == "nt"
_LEVELS_PER_RUNG = 32
_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_ENTRY: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BY_DESCRIPTOR = (
    bool(_NO_FOLLOW)
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
)
# On Windows these open something else: a drive, a stream of a file, a device, a shorter name.
_NEVER_ON_WINDOWS = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]\Z')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.I)


def relative_parts(path: str, *, windows: bool = WINDOWS_NAMES) -> tuple[str, ...]:
    """The components of a tree-relative path; SourceUnreadable if it is not one.

    Drops `./` and doubled slashes: `"/".join` of the result is the normalized path. The message
    does not repeat the refused path, because the sender may see it.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    problem = _problem_with(path, parts)
    if not problem and windows and not all(map(is_windows_name, parts)):
        problem = "Windows does not allow this file name"
    if problem:
        raise SourceUnreadable(f"{problem}: give the path of a file relative to its tree")
    return parts


def is_windows_name(name: str) -> bool:
    """Whether Windows opens a file of exactly this name in its folder, and nothing else."""
    return not _NEVER_ON_WINDOWS.search(name) and not _DEVICE.fullmatch(name)


def _problem_with(path: str, parts: tuple[str, ...]) -> str:
    if path.startswith("/"):
        return "an absolute path is not accepted"
    if not parts:
        return "the path is empty"
    if ".." in parts:
        return "a path with `..` is not accepted"
    if "\0" in path:
        return "a path cannot contain a NUL character"
    return "" if is_nameable(path) else "the path is too long or not valid"


def is_nameable(path: str) -> bool:
    """Whether the path can be encoded (only escaped bytes may be surrogates) and not too long."""
    if path.isascii():
        return len(path) <= MAX_PATH_BYTES
    try:
        return len(path.encode("utf-8", "surrogateescape")) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


class Folder(Protocol):
    """An open directory below a root: no link can redirect its operations."""

    def child(self, name: str) -> Self:
        """Opens a subdirectory; OSError if it is a link or not a directory."""
        ...

    def again(self) -> Self:
        """The same directory, with its own position for reading entries."""
        ...

    def copy(self) -> Self: ...

    def entries(self) -> list[os.DirEntry[str]]: ...

    def status(self, name: str) -> os.stat_result:
        """The `lstat` of an entry."""
        ...

    def status_of(self, entry: os.DirEntry[str]) -> os.stat_result: ...

    def open(self, name: str) -> int:
        """Opens an entry for reading and returns its descriptor; OSError if it is a link."""
        ...

    def close(self) -> None: ...


class DescriptorFolder:
    """For systems that open files relative to a folder's descriptor."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def root(cls, path: Path) -> Self:
        return cls(os.open(path, _DIRECTORY))

    def child(self, name: str) -> Self:
        return type(self)(os.open(name, _DIRECTORY | _NO_FOLLOW, dir_fd=self._descriptor))

    def again(self) -> Self:
        return type(self)(os.open(".", _DIRECTORY, dir_fd=self._descriptor))

    def copy(self) -> Self:
        return type(self)(os.dup(self._descriptor))

    def entries(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._descriptor) as listing:
            return list(listing)

    def status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def status_of(self, entry: os.DirEntry[str]) -> os.stat_result:
        return entry.stat(follow_symlinks=False)

    def open(self, name: str) -> int:
        return os.open(name, _ENTRY | _NO_FOLLOW, dir_fd=self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class PathFolder:
    """For systems that only have paths: identifies a folder by its `lstat`, and accepts a file only
    if, once open, it is where it should be."""

    __slots__ = ("_path", "_status")

    def __init__(self, path: str) -> None:
        """Only the last component of `path` may be a link."""
        self._path = path
        self._status = os.lstat(path)
        if is_link(self._status):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISDIR(self._status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    @classmethod
    def root(cls, path: Path) -> Self:
        return cls(os.path.realpath(path, strict=True))

    def child(self, name: str) -> Self:
        return type(self)(os.path.join(self._path, name))

    def again(self) -> Self:
        return self

    copy = again

    def entries(self) -> list[os.DirEntry[str]]:
        with os.scandir(self._path) as listing:
            found = list(listing)
        is_same = os.path.samestat(os.lstat(self._path), self._status)
        if not is_same or not _is_same_path(os.path.realpath(self._path), self._path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found

    def status(self, name: str) -> os.stat_result:
        return os.lstat(os.path.join(self._path, name))

    def status_of(self, entry: os.DirEntry[str]) -> os.stat_result:
        """Not the listed one: for an open file, Windows lists an outdated state."""
        return os.lstat(entry.path)

    def open(self, name: str) -> int:
        path = os.path.join(self._path, name)
        descriptor = open_file(path, os.O_RDONLY)
        try:
            if not _lies_at(descriptor, path):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        """Nothing is open."""


def _lies_at(descriptor: int, path: str) -> bool:
    """Whether the open file is the one at the path, with no link on the way to it."""
    there = path_of(descriptor)
    if there is not None:
        return _is_same_path(there, path)
    # Before and after the comparison: an attacker who swaps folders would have to hit all three.
    return (
        _is_same_path(os.path.realpath(path), path)
        and os.path.samestat(os.lstat(path), os.fstat(descriptor))
        and _is_same_path(os.path.realpath(path), path)
    )


def _is_same_path(one: str, other: str) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)


FolderKind = DescriptorFolder if _BY_DESCRIPTOR else PathFolder


@contextmanager
def open_root(root: Path, within: Path | None = None) -> Generator[Folder, None, None]:
    """Opens the root. Only here is a link followed, because the user configured it.

    If a project's file configured it, `within` is the project, and no link below it is followed.
    """
    if within is not None:
        parts = root.relative_to(within).parts
        with open_root(within) as top, open_below(top, parts) as below:
            yield below
        return
    folder = FolderKind.root(root)
    try:
        yield folder
    finally:
        folder.close()


def is_behind_link(path: Path) -> bool:
    """Whether `path`, which was resolved once, contains a link again."""
    return not _is_same_path(os.path.realpath(path), os.fspath(path))


@contextmanager
def open_below(root: Folder, parts: Sequence[str]) -> Generator[Folder, None, None]:
    """Opens the directory at `parts`; OSError if a link is on the way.

    The parts come from `relative_parts` or from a directory listing.
    """
    folder = root.again()
    try:
        for part in parts:
            child = folder.child(part)
            folder.close()
            folder = child
        yield folder
    finally:
        folder.close()


class Descent:
    """Opens one directory after another below a root, for a depth-first walk.

    It keeps an ancestor open every few levels: starting from the root each time would take time
    quadratic in the depth, and keeping every level open could exhaust the descriptors.
    """

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._rungs: list[tuple[tuple[str, ...], Folder]] = []

    @contextmanager
    def open(self, parts: tuple[str, ...]) -> Generator[Folder, None, None]:
        while self._rungs and self._rungs[-1][0] != parts[: len(self._rungs[-1][0])]:
            self._rungs.pop()[1].close()
        above, nearest = self._rungs[-1] if self._rungs else ((), self._root)
        with open_below(nearest, parts[len(above) :]) as folder:
            if len(parts) - len(above) >= _LEVELS_PER_RUNG:
                self._rungs.append((parts, folder.copy()))
            yield folder

    def close(self) -> None:
        while self._rungs:
            self._rungs.pop()[1].close()


# Reading one file of a tree: only a regular file, only inside the root, only up to a size.

_ATTEMPTS = 2
_LINK = "it is a link or behind one, and links are not followed"
_WHY = {
    errno.ENOENT: "no such file, or it was deleted",
    errno.ELOOP: _LINK,
    errno.ENOTDIR: _LINK,
    errno.EACCES: "permission denied; make it readable or exclude it",
    errno.EPERM: "permission denied; make it readable or exclude it",
}


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file's bytes, and the file's state when they were read."""

    data: bytes
    state: FileState


def content_hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def read_file(
    root: Path, relative_path: str, max_bytes: int, within: Path | None = None
) -> FileBytes:
    """The whole file as it was at one moment; otherwise SourceTooLarge or SourceUnreadable.

    `root` and `within` are those of `open_root`.
    """
    *folders, name = parts = relative_parts(relative_path)
    shown = encode_path("/".join(parts))
    try:
        with open_root(root, within) as top, open_below(top, folders) as folder:
            return read_entry(folder, name, max_bytes)
    except OSError as error:
        raise SourceUnreadable(f"{shown}: {_why(error)}") from error
    except SourceError as error:
        raise type(error)(f"{shown}: {error}") from None


def read_entry(folder: Folder, name: str, max_bytes: int) -> FileBytes:
    """Reads a file in an open directory; SourceError or OSError, without its path."""
    for _ in range(_ATTEMPTS):
        found = _read_once(folder, name, max_bytes)
        if found is not None:
            return found
    raise SourceUnreadable("it kept changing while it was read; the next update tries again")


def _why(error: OSError) -> str:
    return _WHY.get(error.errno or 0) or error.strerror or "it cannot be read"


def _read_once(folder: Folder, name: str, max_bytes: int) -> FileBytes | None:
    """None when the file changed meanwhile."""
    # Checked before opening, because merely opening a FIFO or a device can have side effects;
    # checked again once it is open, because it may have been swapped in between.
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
        # One byte more than expected: this detects a growing file without reading on.
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


# One file → what the store keeps of it: read, parse, chunk. Nothing is written here.


@dataclass(frozen=True, slots=True)
class Ingestion:
    """How the files of one tree are read and parsed."""

    tree: TreeName
    root: Path
    max_bytes: int
    sizes: ChunkSizes
    within: Path | None = None

    def take(self, path: str) -> IndexedFile:
        """Prepares the file at a tree-relative path for the store.

        Raises:
            SourceError: it cannot be indexed; the message names the file and says what to do.
        """
        return self.parse(path, self.read(path))

    def read(self, path: str) -> FileBytes:
        """Only the bytes: enough to see whether they changed."""
        return read_file(self.root, path, self.max_bytes, self.within)

    def parse(self, path: str, found: FileBytes) -> IndexedFile:
        origin = Origin(self.tree, path, found.state.mtime_ns)
        try:
            is_canvas = path.lower().endswith(CANVAS_SUFFIX)
            parse = parse_canvas if is_canvas else parse_document
            document = parse(found.data, origin)
        except SourceError as error:
            raise type(error)(f"{encode_path(path)}: {error}") from error
        return IndexedFile(found.state, document, chunk_document(document, self.sizes))


# Temporary limits of this process, which say nothing about the files.

_LIMITS = {errno.EMFILE, errno.ENFILE}


def is_our_limit(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _LIMITS


def too_many_open() -> SourceUnreadable:
    return SourceUnreadable(
        "files cannot be opened, because too many are open already; trying again. "
        "Raise the limit (ulimit -n), or close programs that hold files open"
    )


# Document folders that cannot be read: which, why, and the message for users.


def root_problem(tree: Tree) -> str:
    """Why a tree cannot be read; empty when it can."""
    if tree.within and is_behind_link(tree.root):
        return RootProblem.LINKED.value
    try:
        with os.scandir(tree.root):
            return ""
    except FileNotFoundError:
        return RootProblem.MISSING.value
    except NotADirectoryError:
        return RootProblem.NOT_A_DIRECTORY.value
    except (OSError, ValueError):
        return RootProblem.UNREADABLE.value


def unseen_trees(trees: Iterable[Tree]) -> str:
    """A message about trees that cannot be read; empty when all can."""
    found = [(tree.name, root_problem(tree)) for tree in trees]
    return in_words((name, problem) for name, problem in found if problem)


def in_words(unseen: Iterable[tuple[str, str]]) -> str:
    """A message about trees and the problem of each."""
    said = [f"the folder of {tree} {problem}" for tree, problem in unseen]
    if not said:
        return ""
    whose = "its" if len(said) == 1 else "their"
    return f"{'; '.join(said)}: {whose} indexed documents may be out of date"
