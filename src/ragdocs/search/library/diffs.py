"""A unified diff as the files it changes: their names, what was changed, and what stands around."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OCTALS = re.compile(r"(?:\\[0-7]{3})+")
_NOTHING = "/dev/null"


@dataclass(slots=True)
class ChangedFile:
    """Lines that were added or removed, those between them, and the headings of the hunks."""

    name: str
    changed: list[str] = field(default_factory=list[str])
    around: list[str] = field(default_factory=list[str])
    headings: list[str] = field(default_factory=list[str])


def changed_files(diff: str) -> list[ChangedFile]:
    """None for a text that is no unified diff."""
    return list(_DiffReader().read(diff))


class _DiffReader:
    """Goes through the lines; a hunk's own counts say where it ends, whatever is in its lines."""

    def __init__(self) -> None:
        self._old_name = ""
        self._file: ChangedFile | None = None
        self._old_left = 0
        self._new_left = 0

    def read(self, diff: str) -> Iterator[ChangedFile]:
        for line in diff.split("\n"):
            if self._old_left > 0 or self._new_left > 0:
                self._take(line)
            elif line.startswith("--- "):
                self._old_name = _name(line[4:])
            elif line.startswith(("+++ ", "rename to ")):
                self._file = ChangedFile(self._named(line.partition(" ")[2]))
                yield self._file
            elif self._file is not None and (found := _HUNK.match(line)):
                self._old_left = int((found[1] or "1")[:9])
                self._new_left = int((found[2] or "1")[:9])
                self._file.headings += [found[3]] if found[3] else []

    def _named(self, text: str) -> str:
        name = _name(text.removeprefix("to "))
        return self._old_name if name == _NOTHING else name

    def _take(self, line: str) -> None:
        sign, rest = line[:1], line[1:]
        if self._file is None or sign == "\\":
            return
        self._old_left -= sign != "+"
        self._new_left -= sign != "-"
        (self._file.changed if sign in ("+", "-") else self._file.around).append(rest)


def _name(text: str) -> str:
    """Without git's `a/` and `b/`, its quoting, and the time that others write behind it."""
    quoted = _QUOTED.match(text)
    name = _unquoted(quoted[1]) if quoted else text.partition("\t")[0].rstrip("\r")
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquoted(text: str) -> str:
    plain = _OCTALS.sub(
        lambda found: bytes(int(part, 8) & 255 for part in found[0].split("\\")[1:]).decode(
            "utf-8", "replace"
        ),
        text,
    )
    return re.sub(r"\\(.)", r"\1", plain)
