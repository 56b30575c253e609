"""Changes files that belong to the user or to other programs.

A file is replaced whole or not at all and keeps its mode; a JSON entry is inserted without changing
anything else in the text.
"""

import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ragdocs.errors import FileKept
from ragdocs.files import open_file, replace, set_mode
from ragdocs.text import escaped

# Adds an entry to JSON text without changing anything else, not even a space.
#
# Parsing and writing the whole file would lose its formatting: indentation, short lists, escapes.
# So the position is found, and the text is changed only there.

_BLANK = re.compile(r"[ \t\r\n]*")
_DEFAULT_INDENT = "  "
Entry = Mapping[str, object]


class NotPlain(Exception):
    """The text is not plain JSON, or does not have the expected form; with the reason."""


class Taken(Exception):
    """The entry of that name belongs to another program."""


def table(value: object) -> dict[str, object]:
    """A JSON object; an empty one in place of anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object: where its key starts, and where its value starts and ends."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    """Where an object starts and ends, including the braces, and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def one(self, key: str) -> _Member | None:
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise NotPlain(f'"{key}" occurs {len(found)} times')
        return found[0] if found else None


def with_entry(
    text: str, servers: str, name: str, entry: Entry, is_ours: Callable[[object], bool]
) -> str:
    """The text with `entry` under `name` in the object with the key `servers`.

    In an existing entry of ours only the fields that differ change. Raises NotPlain or Taken.
    """
    if not text.strip():
        return json.dumps({servers: {name: entry}}, ensure_ascii=False, indent=2) + "\n"
    layout = _Layout(text)
    root = _parse(text)
    listed = root.one(servers)
    if listed is None:
        return layout.add(root, servers, {name: entry})
    if text[listed.value] != "{":
        raise NotPlain(f'its "{servers}" is not an object')
    inside = _object_at(text, listed.value)
    there = inside.one(name)
    if there is None:
        return layout.add(inside, name, entry)
    old: object = json.loads(text[there.value : there.end])
    if not is_ours(old):
        raise Taken
    new = {**cast("dict[str, object]", old), **entry}
    return text if new == old else layout.replace_value(there, new)


def _parse(text: str) -> _Object:
    try:
        whole: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotPlain(f"line {error.lineno} is not plain JSON") from error
    except (ValueError, RecursionError) as error:
        raise NotPlain("it is not plain JSON") from error
    if not isinstance(whole, dict):
        raise NotPlain("it is JSON, but not an object")
    return _object_at(text, _after_blank(text, 0))


def _object_at(text: str, start: int) -> _Object:
    """`text` must be valid JSON."""
    decoder = json.JSONDecoder()
    members: list[_Member] = []
    at = _after_blank(text, start + 1)
    while text[at] != "}":
        key, key_end = cast("tuple[str, int]", decoder.raw_decode(text, at))
        value = _after_blank(text, _after_blank(text, key_end) + 1)
        end = decoder.raw_decode(text, value)[1]
        members.append(_Member(key, at, value, end))
        at = _after_blank(text, end)
        if text[at] == ",":
            at = _after_blank(text, at + 1)
    return _Object(start, at + 1, tuple(members))


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


class _Layout:
    """The formatting of a text, so that an added entry looks like the rest."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._is_one_line = "\n" not in text.strip()
        first = re.search(r"\{[ \t\r]*\n([ \t]+)", text)
        self._indent = first[1] if first else _DEFAULT_INDENT

    def add(self, place: _Object, key: str, value: object) -> str:
        """The text with one more member at the end of the object."""
        name = json.dumps(key, ensure_ascii=False)
        if place.members:
            last = place.members[-1]
            margin = self._margin(last.start)
            comma = ", " if margin is None else f",{self._newline}{margin}"
            return self._splice(
                last.end, last.end, f"{comma}{name}: {self._write_value(value, margin)}"
            )
        if self._is_one_line:
            inside = f"{name}: {self._write_value(value, None)}"
        else:
            outer = self._line_margin(place.start)
            margin = outer + self._indent
            written = f"{name}: {self._write_value(value, margin)}"
            inside = f"{self._newline}{margin}{written}{self._newline}{outer}"
        return self._splice(place.start + 1, place.end - 1, inside)

    def replace_value(self, member: _Member, value: object) -> str:
        is_short = "\n" not in self._text[member.value : member.end]
        margin = None if is_short else self._line_margin(member.start)
        return self._splice(member.value, member.end, self._write_value(value, margin))

    def _splice(self, start: int, end: int, middle: str) -> str:
        return self._text[:start] + middle + self._text[end:]

    def _write_value(self, value: object, margin: str | None) -> str:
        """On one line if there is no margin; otherwise each further line starts with it."""
        if margin is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._indent).split("\n")
        return f"{self._newline}{margin}".join(lines)

    def _margin(self, at: int) -> str | None:
        """The whitespace before `at`, if nothing else precedes it on its line."""
        margin = self._line_margin(at)
        return (
            margin if self._line_start(at) + len(margin) == at and not self._is_one_line else None
        )

    def _line_margin(self, at: int) -> str:
        start = self._line_start(at)
        return self._text[start : start + _leading(self._text[start:at])]

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1


def _leading(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))


# Files that people or other programs own too: replaced whole or not at all, with their mode.
#
# A backup is made on request, and a file that has changed since it was read is not replaced.

MAX_BYTES = 20_000_000
_MAX_BACKUPS = 1000


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file as it was read: its path with all links resolved; `data` is None if there is no file.

    Every method raises FileKept on failure.
    """

    path: Path
    data: bytes | None
    status: os.stat_result | None = None

    def text(self) -> str:
        """Without a byte order mark; empty if there is no file."""
        try:
            return (self.data or b"").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileKept(f"{_at(self.path)} is not UTF-8 text: it was left as it is") from error

    def put_aside(self) -> Path:
        """Makes a backup beside the file and returns its path; reuses an equal earlier one."""
        assert self.data is not None
        for number in range(1, _MAX_BACKUPS):
            ending = ".bak" if number == 1 else f".bak{number}"
            copy = self.path.with_name(self.path.name + ending)
            try:
                if _create(copy, self.data, self.status) or copy.read_bytes() == self.data:
                    return copy
            except OSError as error:
                raise _failure(copy, error) from error
        raise FileKept(f"{_at(self.path)} already has {_MAX_BACKUPS} backups: delete some")

    def replace(self, text: str) -> None:
        mark = b"\xef\xbb\xbf" if (self.data or b"").startswith(b"\xef\xbb\xbf") else b""
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                _create(new, mark + text.encode("utf-8"), self.status)
                if read_kept(self.path).data != self.data:
                    raise FileKept(f"{_at(self.path)} changed at this moment; try again")
                replace(new, self.path)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            raise _failure(self.path, error) from error
        except UnicodeEncodeError as error:
            raise FileKept(f"{_at(self.path)} must be UTF-8, but a name to write is not") from error


def read_kept(path: Path, within: Path | None = None) -> KeptFile:
    """`within`: a folder that may be a stranger's; a link to outside it is refused.

    Raises FileKept for anything but a readable regular file.
    """
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise FileKept(
            f"{_at(path)} is a link to {_at(real)}, which was left as it is: whoever made the link "
            "would choose which of your files is written. Delete the link, or change that file "
            "itself"
        )
    try:
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileKept(f"{_at(path)} is not a regular file: it was left as it is")
        if status.st_size > MAX_BYTES:
            raise FileKept(f"{_at(path)} has more than {MAX_BYTES:,} bytes: it was left as it is")
        return KeptFile(real, real.read_bytes(), status)
    except FileNotFoundError:
        return KeptFile(real, None)
    except OSError as error:
        raise _failure(path, error) from error


def _create(path: Path, data: bytes, like: os.stat_result | None) -> bool:
    """Returns whether the file was created; False if it exists already."""
    try:
        # A copy may contain secrets: nobody else may read it before it has its mode.
        mode = 0o600 if like else 0o666
        descriptor = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        if like:
            with suppress(PermissionError, AttributeError):  # Windows has no numeric owners
                os.fchown(descriptor, like.st_uid, like.st_gid)
            set_mode(descriptor, stat.S_IMODE(like.st_mode))
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    return True


def _failure(path: Path, error: OSError) -> FileKept:
    return FileKept(f"{_at(path)} could not be read or written: {error.strerror or error}")


def _at(path: Path) -> str:
    return escaped(os.fspath(path))
