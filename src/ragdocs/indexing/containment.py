"""The one way from a path that came from outside to an open directory below a root.

A path is taken apart into components, and each is opened relative to the one before without
following links. So no spelling of a path, and no link put in its way meanwhile, leads out.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragdocs.errors import SourceUnreadable

MAX_PATH_BYTES = 4096
"""Linux's PATH_MAX: nobody else could open a longer path, so it is neither found nor read."""

_LEVELS_PER_RUNG = 32
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def relative_parts(path: str) -> tuple[str, ...]:
    """The components of a tree-relative path; SourceUnreadable when it is not one.

    `./` and doubled slashes are dropped: `"/".join` of the result is the path's one spelling. The
    refused path is not repeated in the message, which may be shown to whoever sent it.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    problem = _problem_with(path, parts)
    if problem:
        raise SourceUnreadable(f"{problem}: give the path of a file relative to its tree")
    return parts


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
        return len(os.fsencode(path)) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


@contextmanager
def opened_root(root: Path) -> Generator[int, None, None]:
    """A descriptor of the root: here alone a link is followed, because the user named it."""
    descriptor = os.open(root, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_below(root: int, parts: Sequence[str]) -> Generator[int, None, None]:
    """A descriptor of the directory that `parts` lead to; OSError if a link is on the way.

    The parts are those of `relative_parts`, or names that a directory listed.
    """
    # "." gives a read position of its own, which a duplicate of the root's would not have.
    descriptor = os.open(".", _DIRECTORY, dir_fd=root)
    try:
        for part in parts:
            child = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


class Descent:
    """Opens one directory after another below a root, for a walk that goes deep first.

    It keeps an open ancestor every few levels: starting from the root each time would take the
    square of a deep tree's depth, keeping every level open more descriptors than there are.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._rungs: list[tuple[tuple[str, ...], int]] = []

    @contextmanager
    def opened(self, parts: tuple[str, ...]) -> Generator[int, None, None]:
        while self._rungs and self._rungs[-1][0] != parts[: len(self._rungs[-1][0])]:
            os.close(self._rungs.pop()[1])
        above, nearest = self._rungs[-1] if self._rungs else ((), self._root)
        with opened_below(nearest, parts[len(above) :]) as folder:
            if len(parts) - len(above) >= _LEVELS_PER_RUNG:
                self._rungs.append((parts, os.dup(folder)))
            yield folder

    def close(self) -> None:
        while self._rungs:
            os.close(self._rungs.pop()[1])
