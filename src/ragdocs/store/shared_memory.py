"""SQLite's `-shm` file, which every process has mapped into its memory.

It says where in the log each page is. Made anew by SQLite from the log when its head is empty, so
emptying that is how to be rid of whatever damage it has.
"""

import os
from contextlib import suppress
from pathlib import Path

_HEAD_BYTES = 96
# Closing a file frees the locks that this process has on it, SQLite's own included: what was
# opened once stays open. It happens only after damage.
_opened: dict[tuple[int, int], int] = {}


class SharedMemory:
    """Remembers how long the file was.

    Once it is cut short, touching what was cut off ends the process (SIGBUS), and closing a
    connection touches it too.
    """

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
        reset(self._path)
        return True


def reset(path: Path) -> None:
    """Makes SQLite read the log again, whoever has it open, before the next statement."""
    with suppress(OSError):
        found = os.stat(path)
        identity = found.st_dev, found.st_ino
        if identity not in _opened:
            _opened[identity] = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        if found.st_size >= _HEAD_BYTES:
            os.pwrite(_opened[identity], bytes(_HEAD_BYTES), 0)
