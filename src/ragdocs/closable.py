"""What is used in a `with`, and closed at its end."""

from abc import ABC, abstractmethod
from typing import Self


class Closable(ABC):
    """Open until it is closed, or until its `with` ends."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
