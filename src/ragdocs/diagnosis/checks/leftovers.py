"""What nobody needs any more: folders of engines not in use, copies and half-written files that
processes left when they were killed.

Deleted is only what surely was the program's own: by its place, its name, its owner, its content,
and because no process has it in use.
"""

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from ragdocs.config.choices import KeywordEngine
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.checks.engine import folder_repair
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.keyword_look import engine_folder
from ragdocs.embedding.folders import cache_folder
from ragdocs.embedding.verification import MEMORY_NAME
from ragdocs.errors import OthersIndex, RagdocsError
from ragdocs.files import user_id
from ragdocs.store.folder import is_foreign
from ragdocs.wording import number_of, size_text

OLD_SECONDS = 3600.0
"""Whatever is younger may still be in the making."""
MAX_ENTRIES = 10_000
_MAX_MAPS_BYTES = 10_000_000
# As `private_files` makes them for tantivy, and what tantivy puts there.
_COPY = re.compile(r"ragdocs-[a-z0-9_]{8}")
_COPIED = re.compile(
    r"meta\.json|\.managed\.json|\.tantivy-\w+\.lock|[0-9a-f]{32}(\.\d+)?\.[a-z]+(\.\d+)?"
)
_HALF_WRITTEN = re.compile(rf"\.{re.escape(MEMORY_NAME)}\.[a-z0-9_]{{8}}")


def check_leftovers(case: Case) -> Iterator[Finding]:
    found = [*_unused_engines(case), *_copies(case), *_half_written(case)]
    yield from found
    if not found:
        yield Finding(Level.OK, "nothing is left over")


def _unused_engines(case: Case) -> Iterator[Finding]:
    if is_foreign(case.directory) or _is_others(case):
        return
    for engine in KeywordEngine:
        folder = engine_folder(case.directory, engine)
        if engine is case.app.config.search.keyword_engine or not os.path.lexists(folder):
            continue
        size = _size_below(folder)
        yield Finding(
            Level.NOTE,
            f"{at(folder)} is of the keyword engine {engine.value}, which is not in use "
            f"({size_text(size)})",
            "it can be deleted",
            repair=folder_repair(folder),
        )


def _is_others(case: Case) -> bool:
    """Whether another program keeps the index, and perhaps such an engine."""
    try:
        return bool(case.app.why_read_only())
    except OthersIndex:
        return True
    except RagdocsError:
        return False


def _copies(case: Case) -> Iterator[Finding]:
    candidates = [path for path in _listed(case.machine.temporary) if _is_old_copy(path)]
    used = _mapped(case.machine.proc) if candidates else None
    if used is None:
        return
    dead = [path for path in candidates if not any(name.startswith(f"{path}/") for name in used)]
    if dead:
        size = size_text(sum(map(_size_below, dead)))
        yield Finding(
            Level.NOTE,
            f"{number_of(len(dead), 'copy', 'copies')} of index files, left by processes that were "
            f"killed ({size})",
            "they can be deleted",
            details=tuple(map(at, dead[:5])),
            repair=Repair("delete old copies", partial(_delete, dead)),
        )


def _half_written(case: Case) -> Iterator[Finding]:
    folder = case.app.config.embedding.cache_folder or cache_folder()
    dead = [
        path
        for path in _listed(folder)
        if _HALF_WRITTEN.fullmatch(path.name) and _is_own_and_old(path, stat.S_ISREG)
    ]
    if dead:
        yield Finding(
            Level.NOTE,
            f"{number_of(len(dead), 'half-written file')} in {at(folder)}",
            "they can be deleted",
            details=tuple(map(at, dead[:5])),
            repair=Repair("delete half-written files", partial(_delete, dead)),
        )


def _is_old_copy(path: Path) -> bool:
    """Not only by its name: a user's own folder may be called so."""
    if not _COPY.fullmatch(path.name) or not _is_own_and_old(path, stat.S_ISDIR):
        return False
    names = [below.name for below in _listed(path)]
    return bool(names) and all(map(_COPIED.fullmatch, names))


def _is_own_and_old(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    user = user_id()
    # Where files have no modes, a user's own folders are closed to others.
    is_own = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return is_kind(status.st_mode) and is_own and time.time() - status.st_mtime > OLD_SECONDS


def _mapped(proc: Path) -> set[str] | None:
    """The files that running processes have in memory; None where that cannot be told."""
    found: set[str] = set()
    own = proc / "self" / "maps"
    if not own.is_file():
        return None
    for maps in proc.glob("[0-9]*/maps"):
        try:
            with open(maps, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read(_MAX_MAPS_BYTES).splitlines()
        except OSError:
            continue
        found.update(line.split(maxsplit=5)[5] for line in lines if "/ragdocs-" in line)
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry, _ in zip(entries, range(MAX_ENTRIES), strict=False)]
    except OSError:
        return []


def _size_below(folder: Path) -> int:
    total = 0
    pending = [folder]
    for _ in range(MAX_ENTRIES):
        if not pending:
            break
        for path in _listed(pending.pop()):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                pending.append(path)
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def _delete(paths: Iterable[Path]) -> str:
    number = 0
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        number += 1
    return f"deleted {number_of(number, 'leftover')}"
