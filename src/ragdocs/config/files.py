"""Configuration files: finding them from a folder upwards, and reading them."""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ragdocs.config.layers import Source, Table
from ragdocs.config.locations import PROJECT_FOLDER, SINGLE_FILE, folder_of, project_files
from ragdocs.config.notation import printable
from ragdocs.config.problems import Findings, Origin, OriginKind, Problem
from ragdocs.config.toml_lines import DEEP_KEY, MAX_KEY_PARTS
from ragdocs.files import open_file, user_id

MAX_CONFIG_BYTES = 1_000_000
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_AT_END = re.compile(r"\(at end of document\)$")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that was read: its source for messages, its path, and its tables.

    `project` is the folder in which it was found; None for one that the user named or owns.
    """

    source: Source
    path: Path
    table: Table
    project: Path | None = None


class _Unusable(Exception):
    """A file that cannot be read as a configuration, and the line where that shows."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read(path: Path, kind: OriginKind, findings: Findings) -> ConfigFile | None:
    """The file, or nothing and a problem."""
    try:
        text = _text(path)
        table = _parsed(text)
    except _Unusable as error:
        origin = Origin(kind, str(path), error.line)
        findings.problems.append(Problem(origin, "", str(error)))
        return None
    return ConfigFile(Source(kind, str(path), folder_of(path), text), path, table)


def project_chain(start: Path, findings: Findings, foreign: list[Path]) -> Iterator[ConfigFile]:
    """The files that speak for `start`, the nearest first, up to the one that says `root = true`.

    A file of another account is not read, and added to `foreign`: whoever may write into a folder
    above would otherwise decide for all below it. The owner of `start` may.
    """
    accounts = _accounts(start)
    for folder in (start, *start.parents):
        present = [path for path in project_files(folder) if _is_there(path, findings)]
        there = [path for path in present if _owners(path) <= accounts]
        foreign += [path for path in present if path not in there]
        if len(there) > 1:
            message = (
                f"this folder has two configurations, {PROJECT_FOLDER}/config.toml and "
                f"{SINGLE_FILE}: keep one"
            )
            origin = Origin(OriginKind.PROJECT, str(folder))
            findings.problems.append(Problem(origin, "", message))
        for path in there:
            file = read(path, OriginKind.PROJECT, findings)
            if file is not None:
                # Not `folder_of`: the folder itself may bear our folder's name.
                yield replace(file, project=folder, source=replace(file.source, base=folder))
            if file is not None and file.table.get("root") is True:
                return


def _accounts(start: Path) -> frozenset[int]:
    """Whose files count: the user's, the administrator's, and those of the folder's owner."""
    mine = {0, user_id() or 0}  # all are 0 where files have no owners
    try:
        return frozenset({*mine, os.stat(start).st_uid})
    except OSError:
        return frozenset(mine)


def _owners(path: Path) -> set[int]:
    """Of the file, of a link that leads to it, and of a folder that is there for it alone."""
    around = [path.parent] if path.parent.name == PROJECT_FOLDER else []
    try:
        found = {os.lstat(one).st_uid for one in (path, *around)}
        return found | {os.stat(one).st_uid for one in (path, *around)}
    except OSError:  # reading it will say why
        return set()


def _is_there(path: Path, findings: Findings) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # A folder above that may not be searched is no reason to fail, but worth saying.
        origin = Origin(OriginKind.PROJECT, str(path))
        message = f"cannot look for a configuration here: {error.strerror}"
        findings.notes.append(Problem(origin, "", message))
        return False
    return True


def user_config(path: Path | None, findings: Findings) -> ConfigFile | None:
    if path is None or not _is_there(path, findings):
        return None
    return read(path, OriginKind.USER, findings)


def _text(path: Path) -> str:
    try:
        data = _data(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _Unusable(f"cannot be read: {reason}") from error
    try:
        return data.decode("utf-8-sig")  # some editors begin a file with a mark that TOML forbids
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unusable("is not UTF-8 text", line) from error


def _data(path: Path) -> bytes:
    descriptor = open_file(path, os.O_RDONLY, follow=True)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _Unusable("is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_CONFIG_BYTES:
        raise _Unusable(f"is larger than {MAX_CONFIG_BYTES:,} bytes, which no configuration needs")
    return data


def _parsed(text: str) -> Table:
    if deep := DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise _Unusable(f"is not usable: a key has more than {MAX_KEY_PARTS} parts", line)
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _Unusable("is not usable: its values are nested too deeply") from error
    except ValueError as error:  # also a number of too many digits, which is no TOMLDecodeError
        raise _Unusable(f"is not TOML: {_reason(str(error))}", _line(str(error), text)) from error


def _reason(message: str) -> str:
    return printable(_AT_END.sub("", _AT_LINE.sub("", message)).strip())


def _line(message: str, text: str) -> int | None:
    if found := _AT_LINE.search(message):
        return int(found[1])
    return text.rstrip("\n").count("\n") + 1 if _AT_END.search(message) else None
