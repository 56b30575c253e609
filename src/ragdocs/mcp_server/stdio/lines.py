"""Bytes as they arrive → lines, none of them longer than what memory is given to."""

from collections.abc import Iterator

MAX_LINE_BYTES = 16 * 2**20
"""The longest argument that any tool takes is far below it."""


class Lines:
    """Keeps the unfinished line. One that is too long is dropped whole and counted."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_dropping = False
        self.dropped = 0

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Every line that these bytes finish, without its end."""
        *finished, rest = received.split(b"\n")
        for piece in finished:
            self._keep(piece)
            if line := self._take():
                yield line
        self._keep(rest)

    def end(self) -> bytes:
        """What stands after the last line end."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._pieces.clear()
            self._is_dropping = True
        elif piece:
            self._pieces.append(piece)

    def _take(self) -> bytes:
        line = b"".join(self._pieces).strip()
        self.dropped += self._is_dropping
        self._pieces.clear()
        self._size, self._is_dropping = 0, False
        return line
