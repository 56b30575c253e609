"""SQLite's `-shm` file, which every process has mapped into its memory.

Once it is cut short, touching what was cut off ends the process (SIGBUS), and closing a connection
touches it too. Made as long as it was, it is merely empty: SQLite sees that, and makes it anew from
the log. It must not be opened for that: closing it again would free SQLite's own locks.
"""

import os
from contextlib import suppress
from pathlib import Path


class SharedMemory:
    """Remembers how long the file was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0

    def restored(self) -> bool:
        """Whether it had been cut short; it is as long as before now."""
        try:
            size = os.stat(self._path).st_size
        except OSError:
            return False
        if size >= self._size:
            self._size = size
            return False
        with suppress(OSError):
            os.truncate(self._path, self._size)
        return True
