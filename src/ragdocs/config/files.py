"""Configuration files: finding them from the working directory upwards, and reading them."""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragdocs.config.layers import Source, Table
from ragdocs.config.locations import PROJECT_FOLDER, SINGLE_FILE, folder_of, project_files
from ragdocs.config.notation import printable
from ragdocs.config.problems import Findings, Origin, OriginKind, Problem
from ragdocs.files import open_file

MAX_CONFIG_BYTES = 1_000_000
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_AT_END = re.compile(r"\(at end of document\)$")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that was read: its source for messages, its path, and its tables."""

    source: Source
    path: Path
    table: Table


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


def project_chain(cwd: Path, findings: Findings) -> Iterator[ConfigFile]:
    """The files that speak for `cwd`, the nearest first, up to the one that says `root = true`."""
    for folder in (cwd, *cwd.parents):
        there = [path for path in project_files(folder) if _is_there(path, findings)]
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
                yield file
            if file is not None and file.table.get("root") is True:
                return


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
