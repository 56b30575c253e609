"""Whether anyone but this program has changed the store's files while they are in use.

SQLite would not see it: it reads a page when it needs it, and believes it. Our processes change the
files under the write lock only, and with a commit. So when the last commit is still the last one,
the files must be as it left them; unless a process was killed in the middle of the next one.
"""

from collections.abc import Callable
from pathlib import Path

from ragdocs.indexing.lock import try_write_lock
from ragdocs.store.connection import FileLook, look_at, store_path
from ragdocs.store.records import Position

Look = tuple[FileLook, ...]


class Footprint:
    """How the files were left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        store = store_path(directory)
        self._files = (store, store.with_name(f"{store.name}-wal"))
        self._left: tuple[Position, Look] | None = None

    def leave(self, position: Position) -> None:
        """After a commit, while the write lock is still held."""
        self._left = position, self._look()

    def forget(self) -> None:
        self._left = None

    def is_trodden(self, position: Callable[[], Position]) -> bool:
        """Whether the files have changed without a commit. `position`: of the last one."""
        if self._left and self._left[1] == self._look():
            return False
        lock = try_write_lock(self._directory)
        if lock is None:  # someone writes: it is asked again
            return False
        with lock:
            now = position()
            if self.differs_at(now):
                return True
            self.leave(now)
            return False

    def differs_at(self, position: Position) -> bool:
        """The same, for whoever has the write lock already."""
        left = self._left
        return left is not None and left[0] == position and left[1] != self._look()

    def _look(self) -> Look:
        return tuple(map(look_at, self._files))
