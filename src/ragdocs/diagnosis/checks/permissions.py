"""The index is its user's alone: 0700 and 0600, owned and writable.

What lies in the directory and is not the program's is left alone, and so is then the directory.
"""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.index_files import Entry, Part, entries, kind_of
from ragdocs.files import has_other_names, open_file, set_mode, user_id
from ragdocs.store.folder import is_foreign

FOLDER_MODE, FILE_MODE = 0o700, 0o600
SHOWN = 5


def check_permissions(case: Case) -> Iterator[Finding]:
    directory = case.directory
    try:
        status = os.stat(directory)
    except FileNotFoundError:
        yield _absent(directory)
        return
    except OSError as error:
        yield Finding(
            Level.ERROR, f"{at(directory)} cannot be reached: {error.strerror}", "see its folder"
        )
        return
    if not stat.S_ISDIR(status.st_mode):
        yield Finding(
            Level.ERROR,
            f"the index directory {at(directory)} is {kind_of(status.st_mode)}",
            "move it away, or set another indexing.index_path",
        )
        return
    if is_foreign(directory):
        yield Finding(
            Level.ERROR,
            f"{at(directory)} is not empty, and is not an index of this program",
            "nothing in it is touched: set indexing.index_path (--index) to an empty folder, or "
            "to one that does not exist yet",
        )
        return
    yield from _of_directory(directory, status)


def _absent(directory: Path) -> Finding:
    """It will be made; if its nearest folder allows that."""
    nearest = next((one for one in directory.parents if one.exists()), Path("/"))
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Finding(Level.OK, f"{at(directory)} is not there yet")
    return Finding(
        Level.ERROR,
        f"{at(directory)} cannot be made, because {at(nearest)} must not be written to",
        "make that folder writable, or set another indexing.index_path",
    )


def _of_directory(directory: Path, status: os.stat_result) -> Iterator[Finding]:
    user = user_id()
    if user is None:
        yield Finding(
            Level.OK, f"{at(directory)} has the permissions of the folder it is in (no modes here)"
        )
        return
    if status.st_uid != user:
        yield Finding(
            Level.ERROR,
            f"{at(directory)} belongs to another user ({status.st_uid})",
            "set another indexing.index_path; an index is for one user",
        )
        return
    try:
        found = list(entries(directory))
    except OSError as error:
        found = []
        yield Finding(
            Level.ERROR,
            f"{at(directory)} cannot be listed: {error.strerror}",
            "make it readable",
            repair=_repair(directory, [(directory, FOLDER_MODE)]),
        )
    else:
        yield from _of_entries(directory, status, found)


def _of_entries(directory: Path, status: os.stat_result, found: list[Entry]) -> Iterator[Finding]:
    ours = [entry for entry in found if entry.part is not Part.FOREIGN]
    others = [entry for entry in ours if entry.status.st_uid != user_id()]
    wrong = [change for entry in ours if (change := _wrong_mode(entry))]
    is_shared = len(ours) < len(found)
    if stat.S_IMODE(status.st_mode) != FOLDER_MODE and not is_shared:
        wrong.append((directory, FOLDER_MODE))
    if others:
        names = tuple(at(entry.path) for entry in others[:SHOWN])
        yield Finding(
            Level.ERROR,
            f"{len(others)} files of the index belong to another user",
            "delete the index directory as that user, or set another indexing.index_path",
            details=names,
        )
    elif wrong:
        yield _too_open(directory, wrong)
    elif is_shared and status.st_mode & 0o077:
        is_writable = status.st_mode & 0o022
        yield Finding(
            Level.WARNING if is_writable else Level.NOTE,
            f"{at(directory)} is open to others ({stat.S_IMODE(status.st_mode):04o}), "
            + ("who can change the index, " if is_writable else "")
            + "and holds more than the index",
            "give the index a folder of its own: indexing.index_path",
        )
    else:
        yield Finding(Level.OK, f"{at(directory)} is yours alone")


def _too_open(directory: Path, wrong: list[tuple[Path, int]]) -> Finding:
    details = tuple(
        f"{at(path)}: {stat.S_IMODE(os.lstat(path).st_mode):04o}, not {mode:04o}"
        for path, mode in wrong[:SHOWN]
        if os.path.lexists(path)
    )
    return Finding(
        Level.WARNING,
        "some permissions of the index are not as they should be",
        "make folders 0700 and files 0600; the index holds the text of your documents",
        details=details,
        repair=_repair(directory, wrong),
    )


def _wrong_mode(entry: Entry) -> tuple[Path, int] | None:
    if not (entry.is_file or entry.is_folder) or has_other_names(entry.status):
        return None
    mode = FOLDER_MODE if entry.is_folder else FILE_MODE
    is_right = stat.S_IMODE(entry.status.st_mode) == mode
    return None if is_right or entry.status.st_uid != user_id() else (entry.path, mode)


def _repair(directory: Path, wrong: list[tuple[Path, int]]) -> Repair:
    return Repair(f"set permissions in {at(directory)}", partial(_set_modes, wrong))


def _set_modes(wrong: list[tuple[Path, int]]) -> str:
    for path, mode in wrong:
        _set_mode(path, mode)
    number = len(wrong)
    return f"set the permissions of {number} {'file' if number == 1 else 'files'}"


def _set_mode(path: Path, mode: int) -> None:
    """Through a descriptor that follows no link: the name may mean something else by now."""
    try:
        kind = getattr(os, "O_DIRECTORY", 0) if mode == FOLDER_MODE else 0
        descriptor = open_file(path, os.O_RDONLY | kind)
    except PermissionError:  # not readable even for its owner, who may change that
        os.chmod(path, mode)
        return
    try:
        set_mode(descriptor, mode)
    finally:
        os.close(descriptor)
