"""The commands and examples that the README and the pages under docs show."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(sh|console|toml|json|text|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """One command line of a page, without its comment."""

    page: str
    line: str

    @property
    def words(self) -> list[str]:
        """Of our command, wherever it stands; a shell's part is left out."""
        line = re.split(r" >>? ", self.line)[0]
        if " | " in line:
            line = line.rpartition(" | ")[2]
        return shlex.split(line.rpartition(" -- ")[2])

    def __str__(self) -> str:
        return f"{self.page}: {self.line}"


def blocks(page: Path, kind: str) -> list[str]:
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language == kind]


def examples() -> list[Example]:
    """Each line once, by the page that has it first."""
    found: dict[str, Example] = {}
    for page in PAGES:
        for line in _lines(page):
            found.setdefault(line, Example(page.name, line))
    return list(found.values())


def mentions() -> list[Example]:
    """Commands in running text, as `ragdocs status`."""
    return [
        Example(page.name, line)
        for page in PAGES
        for line in re.findall(r"`(ragdocs [a-z][^`\n]*)`", page.read_text(encoding="utf-8"))
    ]


def session(page: Path, begins: str) -> tuple[str, str]:
    """A command and what the page says that it prints."""
    [text] = [text for text in blocks(page, "console") if text.startswith(f"$ {begins}")]
    command, _, output = text.partition("\n")
    return command.removeprefix("$ "), output


def _lines(page: Path) -> Iterator[str]:
    for text in blocks(page, "sh"):
        yield from (re.split(r"\s+# ", line)[0].strip() for line in text.splitlines() if line)
    for text in blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)$", text, re.MULTILINE)
