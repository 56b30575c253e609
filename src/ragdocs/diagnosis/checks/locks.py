"""Who holds the locks; and that they are locks at all."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.index_files import LOCKS, kind_of
from ragdocs.diagnosis.status import WatchStatus
from ragdocs.diagnosis.watch_look import look_at_watcher, look_at_writer
from ragdocs.store.folder import is_foreign
from ragdocs.wording import advised


def check_locks(case: Case) -> Iterator[Finding]:
    if is_foreign(case.directory):
        yield Finding(Level.NOTE, "not checked: the index folder is not an index of this program")
        return
    odd = [path for name in LOCKS if _is_odd(path := case.directory / name)]
    for path in odd:
        yield Finding(
            Level.ERROR,
            f"{at(path)} is {kind_of(os.lstat(path).st_mode)}, and nobody can lock it",
            "move it away",
            repair=odd_file_repair(path),
        )
    if odd:
        return
    watcher = look_at_watcher(case.directory)
    said = [*_who_writes(case.directory), *_who_watches(watcher)]
    yield Finding(Level.OK, "; ".join(said) or "nobody writes, nobody watches")
    if watcher is not None:
        yield from _what_ails(watcher)


def odd_file_repair(path: Path) -> Repair | None:
    """For what stands where a file of ours should, unless something may be in it."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    is_empty = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISLNK(mode)
    if not is_empty and not stat.S_ISDIR(mode):
        return None
    return Repair(f"remove {at(path)}", partial(_remove, path))


def _remove(path: Path) -> str:
    """A folder only when it is empty: what is in it would not be ours."""
    kind = kind_of(os.lstat(path).st_mode)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    return f"removed {at(path)}, which was {kind}"


def _is_odd(path: Path) -> bool:
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _who_writes(directory: Path) -> Iterator[str]:
    if found := look_at_writer(directory):
        yield f"{_process(found.pid)} writes since {found.since or 'some time'}"


def _who_watches(found: WatchStatus | None) -> Iterator[str]:
    if found is not None:
        why = f" ({found.reason})" if found.reason else ""
        yield f"{_process(found.pid)} keeps it in step since {found.since or 'some time'}{why}"


def _what_ails(watcher: WatchStatus) -> Iterator[Finding]:
    """What whoever watches says itself, or that it says nothing."""
    who = _process(watcher.pid)
    if watcher.trouble:
        yield Finding(
            Level.WARNING,
            f"{who} says: {watcher.trouble}",
            "put that right: it tries again by itself, every few seconds",
        )
    if not watcher.is_heard:
        yield Finding(
            Level.WARNING,
            f"{who} should keep the index in step, and is not heard of",
            f"is it stopped? Let it go on, or end it; until then {advised('update')} finds changes",
        )


def _process(pid: int | None) -> str:
    return f"process {pid}" if pid else "a process"
