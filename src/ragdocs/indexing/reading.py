"""Opens and reads files below a root, never outside it, and turns one file into what is stored of
it.
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
from ragdocs.models import FileState, IndexedFile, TreeName
from ragdocs.parsers.ids import encode_path
from ragdocs.parsers.markdown import Origin, parse_document

# The one way from a path that came from outside to an open directory below a root.
#
# A path is taken apart into components, and each is opened relative to the one before without
# following links. So no spelling of a path, and no link put in its way meanwhile, leads out. Where
# a system opens nothing relative to a folder (Windows), each component is looked at, and where the
# file lies is compared after it was opened (specs/0072).

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX: nobody else could open a longer path, so it is neither found nor read."""

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
# Windows opens other things by these: a drive, a stream of a file, a device, a shorter name.
_NEVER_ON_WINDOWS = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]\Z')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.I)


def relative_parts(path: str, *, windows: bool = WINDOWS_NAMES) -> tuple[str, ...]:
    """The components of a tree-relative path; SourceUnreadable when it is not one.

    `./` and doubled slashes are dropped: `"/".join` of the result is the path's one spelling. The
    refused path is not repeated in the message, which may be shown to whoever sent it.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    problem = _problem_with(path, parts)
    if not problem and windows and not all(map(is_windows_name, parts)):
        problem = "no file can have this name here"
    if problem:
        raise SourceUnreadable(f"{problem}: give the path of a file relative to its tree")
    return parts


def is_windows_name(name: str) -> bool:
    """Whether it means a file of this name in its folder, on Windows, and nothing else."""
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
    return "" if is_nameable(path) else "the path is too long or no file could have it"


def is_nameable(path: str) -> bool:
    """Whether the path has a form in bytes (only escaped bytes may be surrogates), and fits."""
    if path.isascii():
        return len(path) <= MAX_PATH_BYTES
    try:
        return len(path.encode("utf-8", "surrogateescape")) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


class Folder(Protocol):
    """A directory below a root, open: what is asked of it cannot be led elsewhere by a link."""

    def child(self, name: str) -> Self:
        """A directory in it; OSError if it is a link, or none."""
        ...

    def again(self) -> Self:
        """The same directory, with a place of its own in reading its entries."""
        ...

    def copy(self) -> Self: ...

    def entries(self) -> list[os.DirEntry[str]]: ...

    def status(self, name: str) -> os.stat_result:
        """What `lstat` says of an entry."""
        ...

    def status_of(self, entry: os.DirEntry[str]) -> os.stat_result: ...

    def open(self, name: str) -> int:
        """A descriptor of an entry, to read it; OSError if it is a link."""
        ...

    def close(self) -> None: ...


class DescriptorFolder:
    """Where files are opened relative to a descriptor of their folder."""

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
    """Where there are only paths: a folder is known by what `lstat` said of it, and a file counts
    only if it lies where it should once it is open."""

    __slots__ = ("_path", "_status")

    def __init__(self, path: str) -> None:
        """`path` has no link in it but perhaps its last component."""
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
        """Not as it was listed: of an open file, Windows lists what was."""
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
    # Before and after the look: whoever swaps folders would have to meet each of the three.
    return (
        _is_same_path(os.path.realpath(path), path)
        and os.path.samestat(os.lstat(path), os.fstat(descriptor))
        and _is_same_path(os.path.realpath(path), path)
    )


def _is_same_path(one: str, other: str) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)


FolderKind = DescriptorFolder if _BY_DESCRIPTOR else PathFolder


@contextmanager
def opened_root(root: Path, within: Path | None = None) -> Generator[Folder, None, None]:
    """The root, open: here alone a link is followed, because the user named it.

    Where a project's file named it, `within` is the project: from there on no link is followed.
    """
    if within is not None:
        parts = root.relative_to(within).parts
        with opened_root(within) as top, opened_below(top, parts) as below:
            yield below
        return
    folder = FolderKind.root(root)
    try:
        yield folder
    finally:
        folder.close()


def is_behind_link(path: Path) -> bool:
    """Whether `path`, from which links were once taken out, has one again."""
    return not _is_same_path(os.path.realpath(path), os.fspath(path))


@contextmanager
def opened_below(root: Folder, parts: Sequence[str]) -> Generator[Folder, None, None]:
    """The directory that `parts` lead to, open; OSError if a link is on the way.

    The parts are those of `relative_parts`, or names that a directory listed.
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
    """Opens one directory after another below a root, for a walk that goes deep first.

    It keeps an open ancestor every few levels: starting from the root each time would take the
    square of a deep tree's depth, keeping every level open more descriptors than there are.
    """

    def __init__(self, root: Folder) -> None:
        self._root = root
        self._rungs: list[tuple[tuple[str, ...], Folder]] = []

    @contextmanager
    def opened(self, parts: tuple[str, ...]) -> Generator[Folder, None, None]:
        while self._rungs and self._rungs[-1][0] != parts[: len(self._rungs[-1][0])]:
            self._rungs.pop()[1].close()
        above, nearest = self._rungs[-1] if self._rungs else ((), self._root)
        with opened_below(nearest, parts[len(above) :]) as folder:
            if len(parts) - len(above) >= _LEVELS_PER_RUNG:
                self._rungs.append((parts, folder.copy()))
            yield folder

    def close(self) -> None:
        while self._rungs:
            self._rungs.pop()[1].close()


# Reading one file of a tree: only a regular file, only inside the root, only up to a size.

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


# One file to what the store keeps of it: read, parse, chunk. Nothing is written here.


@dataclass(frozen=True, slots=True)
class Ingestion:
    """How the files of one tree are taken in."""

    tree: TreeName
    root: Path
    max_bytes: int
    sizes: ChunkSizes
    within: Path | None = None

    def take(self, path: str) -> IndexedFile:
        """The file at a tree-relative path, ready to be stored.

        Raises:
            SourceError: it cannot be indexed; the message names it and says what to do.
        """
        return self.parse(path, self.read(path))

    def read(self, path: str) -> FileBytes:
        """The bytes alone: enough to see that they are the known ones."""
        return read_file(self.root, path, self.max_bytes, self.within)

    def parse(self, path: str, found: FileBytes) -> IndexedFile:
        origin = Origin(self.tree, path, found.state.mtime_ns)
        try:
            document = parse_document(found.data, origin)
        except SourceError as error:
            raise type(error)(f"{encode_path(path)}: {error}") from error
        return IndexedFile(found.state, document, chunk_document(document, self.sizes))


# What this process cannot do at the moment: that says nothing of the files, and passes.

_LIMITS = {errno.EMFILE, errno.ENFILE}


def is_our_limit(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _LIMITS


def too_many_open() -> SourceUnreadable:
    return SourceUnreadable(
        "files cannot be opened, because too many are open already: it is tried again; "
        "allow more of them (ulimit -n), or end what holds them"
    )


# Folders of documents that cannot be looked at: which, why, and in which words.


def root_problem(tree: Tree) -> str:
    """Why a tree cannot be looked at; empty when it can."""
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
    """In words; empty when all can be looked at."""
    found = [(tree.name, root_problem(tree)) for tree in trees]
    return in_words((name, problem) for name, problem in found if problem)


def in_words(unseen: Iterable[tuple[str, str]]) -> str:
    """Of trees and what is the matter with each."""
    said = [f"the folder of {tree} {problem}" for tree, problem in unseen]
    if not said:
        return ""
    which = "it" if len(said) == 1 else "them"
    return f"{'; '.join(said)}: what is indexed of {which} may be out of date"
