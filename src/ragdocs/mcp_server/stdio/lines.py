"""Bytes as they arrive → lines, none of them longer than what memory is given to."""

from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 16 * 2**20
"""The longest argument that any tool takes is far below it."""
HEAD_BYTES = 2**12
"""What is kept of a line that is too long: enough to tell which request it was."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: how it begins, and how long it was."""

    head: bytes
    size: int


class Lines:
    """Keeps the unfinished line. Of one that is too long only the beginning is kept."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, received: bytes) -> Iterator[bytes | Overlong]:
        """Every line that these bytes finish, without its end."""
        *finished, rest = received.split(b"\n")
        for piece in finished:
            self._keep(piece)
            if line := self._take():
                yield line
        self._keep(rest)

    def end(self) -> bytes | Overlong:
        """What stands after the last line end."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        is_over = self._size > self._limit
        self._size += len(piece)
        if self._size <= self._limit:
            self._pieces.append(piece)
        elif not is_over:
            self._pieces = [(b"".join(self._pieces) + piece)[:HEAD_BYTES]]

    def _take(self) -> bytes | Overlong:
        kept, size = b"".join(self._pieces), self._size
        self._pieces.clear()
        self._size = 0
        return kept.strip() if size <= self._limit else Overlong(kept, size)
