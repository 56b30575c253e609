"""A folder of files that nobody would write, and what is to become of each."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.support.storms.words import Words


class Fate(StrEnum):
    """What becomes of a file."""

    FOUND = "its word finds it, and nothing else"
    SILENT = "it is known, and there is nothing in it to be found"
    REFUSED = "it is known, and the reason why it is not indexed is told"
    ABSENT = "it is no document"


@dataclass(frozen=True)
class Case:
    """One file. `kind` is the error of a refused one; `warning` part of what is said of it."""

    path: str
    fate: Fate
    word: str = ""
    kind: str = ""
    warning: str = ""


class HostileTree:
    """Makes the files, and tells what is expected of each."""

    def __init__(self, root: Path, words: Words) -> None:
        self.root = root
        self.cases: dict[str, Case] = {}
        self.words = words

    def text(self, path: str, text: str, warning: str = "") -> Case:
        """`{word}` in the text becomes a word of its own."""
        return self.found(path, lambda word: text.replace("{word}", word).encode(), warning)

    def found(self, path: str, data_of: Callable[[str], bytes], warning: str = "") -> Case:
        word = self.words.new()
        self.put(path, data_of(word))
        return self.expect(Case(path, Fate.FOUND, word, warning=warning))

    def silent(self, path: str, data: bytes) -> None:
        self.put(path, data)
        self.expect(Case(path, Fate.SILENT))

    def refused(self, path: str, kind: str, data: bytes = b"") -> Path:
        self.expect(Case(path, Fate.REFUSED, kind=kind))
        return self.put(path, data)

    def absent(self, path: str, text: str = "# {word}\n") -> None:
        word = self.words.new()
        self.put(path, text.replace("{word}", word).encode())
        self.expect(Case(path, Fate.ABSENT, word))

    def not_a_file(self, path: str, make: Callable[[Path], object]) -> None:
        """What the system does not let us make is left out."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            make(self.root / path)
            self.expect(Case(path, Fate.ABSENT))

    def put(self, path: str, data: bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def expect(self, case: Case) -> Case:
        self.cases[case.path] = case
        return case
