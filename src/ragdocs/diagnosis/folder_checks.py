"""Checks of the index folder: the keyword engine's files, locks, leftovers and unused variants."""

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragdocs.config.choices import KeywordEngineName
from ragdocs.config.fingerprint import read_making
from ragdocs.diagnosis.case import Case, Finding, Level, Repair, at
from ragdocs.diagnosis.probes import (
    LOCKS,
    disk_use,
    engine_folder,
    kind_of,
    probe_keyword,
    probe_store,
    probe_watcher,
    probe_writer,
    read_engine_state,
    variants_of,
)
from ragdocs.diagnosis.status import VariantStatus, WatchStatus
from ragdocs.embedding.model_files import MEMORY_NAME, cache_folder
from ragdocs.errors import IndexLocked, IndexStoreError, OthersIndex, RagdocsError
from ragdocs.files import user_id
from ragdocs.indices.engine_folder import Damaged, DerivedFolder, State
from ragdocs.store.folder import is_foreign
from ragdocs.store.variants import (
    DAY_SECONDS,
    drop_all,
    drop_unused,
    folders_named,
    unused_variants,
    variants,
)
from ragdocs.store.writer import stored_settings
from ragdocs.text import advised, number_of, size_text

# The keyword engine's own folder, if it has one: every file against its hash.


def check_engine(case: Case) -> Iterator[Finding]:
    engine = case.app.config.search.keyword_engine
    generation = probe_store(case.directory, "").holdings.generation
    found = probe_keyword(case.directory, engine, generation)
    if engine is KeywordEngineName.FTS5:
        yield Finding(Level.OK, "fts5, inside the store")
        return
    folder = engine_folder(case.directory, engine)
    try:
        state = read_engine_state(folder)
        if state is not None:
            _verify(folder, state)
    except Damaged as error:
        yield Finding(
            Level.WARNING,
            f"the files of {engine.value} are damaged: {error}",
            "they are rebuilt from the store by the next query; nothing is lost",
            repair=folder_repair(folder),
        )
        return
    if found.problem:
        yield Finding(Level.ERROR, found.problem, f"pip install {engine.value}")
    else:
        yield Finding(Level.OK, f"{engine.value}: {found.state}")


def folder_repair(folder: Path) -> Repair:
    return Repair(f"delete {at(folder)}", partial(_delete_folder, folder))


def _delete_folder(folder: Path) -> str:
    """Takes the folder's lock, so that a writer is not disturbed."""
    with DerivedFolder(folder).lock() as is_ours:
        if not is_ours:
            raise IndexLocked(f"{at(folder)} is being written; try again")
        shutil.rmtree(folder)
    return f"deleted {at(folder)}, which is rebuilt from the store when it is needed"


def _verify(folder: Path, state: State) -> None:
    """Compares sizes first, so that a huge file need not be read."""
    for name, mark in state.files.items():
        try:
            size = os.lstat(folder / state.directory / name).st_size
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}") from error
        if size != mark.size:
            raise Damaged(f"{name} has changed since it was written")
    DerivedFolder(folder).verify(state)


# Leftovers: folders of engines that are not in use, and copies and half-written files of processes
# that were killed.
#
# Only what is certainly ours is deleted: by its path, name, owner and content, and because no
# process uses it.

OLD_SECONDS = 3600.0
"""Anything younger may still be in use."""
MAX_ENTRIES = 10_000
_MAX_MAPS_BYTES = 10_000_000
# The folders that `private_files` creates for tantivy, and the files in them.
_COPY = re.compile(r"ragdocs-[a-z0-9_]{8}")
_COPIED = re.compile(
    r"meta\.json|\.managed\.json|\.tantivy-\w+\.lock|[0-9a-f]{32}(\.\d+)?\.[a-z]+(\.\d+)?"
)
_HALF_WRITTEN = re.compile(rf"\.{re.escape(MEMORY_NAME)}\.[a-z0-9_]{{8}}")


def check_leftovers(case: Case) -> Iterator[Finding]:
    found = [*_unused_engines(case), *_copies(case), *_half_written(case)]
    yield from found
    if not found:
        yield Finding(Level.OK, "no leftovers")


def _unused_engines(case: Case) -> Iterator[Finding]:
    if is_foreign(case.directory) or _is_others(case):
        return
    for engine in KeywordEngineName:
        folder = engine_folder(case.directory, engine)
        if engine is case.app.config.search.keyword_engine or not os.path.lexists(folder):
            continue
        size = _size_below(folder)
        yield Finding(
            Level.NOTE,
            f"{at(folder)} belongs to the keyword engine {engine.value}, which is not in use "
            f"({size_text(size)})",
            "it can be deleted",
            repair=folder_repair(folder),
        )


def _is_others(case: Case) -> bool:
    """Whether another program owns the index, and may use such an engine."""
    try:
        return bool(case.app.why_read_only())
    except OthersIndex:
        return True
    except RagdocsError:
        return False


def _copies(case: Case) -> Iterator[Finding]:
    candidates = [path for path in _list_folder(case.machine.temporary) if _is_old_copy(path)]
    used = _mapped_files(case.machine.proc) if candidates else None
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
            repair=Repair("delete old copies", partial(_delete_files, dead)),
        )


def _half_written(case: Case) -> Iterator[Finding]:
    folder = case.app.config.embedding.cache_folder or cache_folder()
    dead = [
        path
        for path in _list_folder(folder)
        if _HALF_WRITTEN.fullmatch(path.name) and _is_own_and_old(path, stat.S_ISREG)
    ]
    if dead:
        yield Finding(
            Level.NOTE,
            f"{number_of(len(dead), 'half-written file')} in {at(folder)}",
            "they can be deleted",
            details=tuple(map(at, dead[:5])),
            repair=Repair("delete half-written files", partial(_delete_files, dead)),
        )


def _is_old_copy(path: Path) -> bool:
    """Checks the contents too: a user's own folder may have such a name."""
    if not _COPY.fullmatch(path.name) or not _is_own_and_old(path, stat.S_ISDIR):
        return False
    names = [below.name for below in _list_folder(path)]
    return bool(names) and all(map(_COPIED.fullmatch, names))


def _is_own_and_old(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    user = user_id()
    # On systems without file modes, other users cannot enter a user's folders.
    is_own = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return is_kind(status.st_mode) and is_own and time.time() - status.st_mtime > OLD_SECONDS


def _mapped_files(proc: Path) -> set[str] | None:
    """The files that running processes have mapped; None if that cannot be read."""
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


def _list_folder(folder: Path) -> list[Path]:
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
        for path in _list_folder(pending.pop()):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                pending.append(path)
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def _delete_files(paths: Iterable[Path]) -> str:
    number = 0
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        number += 1
    return f"deleted {number_of(number, 'leftover')}"


# Which processes hold the locks, and whether the lock files are usable.


def check_locks(case: Case) -> Iterator[Finding]:
    if is_foreign(case.directory):
        yield Finding(Level.NOTE, "not checked: the index folder is not an index of this program")
        return
    odd = [path for name in LOCKS if _is_odd(path := case.directory / name)]
    for path in odd:
        yield Finding(
            Level.ERROR,
            f"{at(path)} is {kind_of(os.lstat(path).st_mode)}, which cannot be locked",
            "move it elsewhere",
            repair=odd_file_repair(path),
        )
    if odd:
        return
    watcher = probe_watcher(case.directory)
    said = [*_who_writes(case.directory), *_who_watches(watcher)]
    yield Finding(Level.OK, "; ".join(said) or "no process is writing or watching")
    if watcher is not None:
        yield from _watch_problems(watcher)


def odd_file_repair(path: Path) -> Repair | None:
    """For something in the place of one of our files, unless it may have contents."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    is_empty = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISLNK(mode)
    if not is_empty and not stat.S_ISDIR(mode):
        return None
    return Repair(f"remove {at(path)}", partial(_remove, path))


def _remove(path: Path) -> str:
    """Removes a folder only if it is empty: its contents would not be ours."""
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
    if found := probe_writer(directory):
        yield f"{_process(found.pid)} is writing{_since(found.since)}"


def _who_watches(found: WatchStatus | None) -> Iterator[str]:
    if found is not None:
        why = f" ({found.reason})" if found.reason else ""
        yield f"{_process(found.pid)} keeps it up to date{_since(found.since)}{why}"


def _watch_problems(watcher: WatchStatus) -> Iterator[Finding]:
    """The trouble that the watching process reports, or that it does not respond."""
    who = _process(watcher.pid)
    if watcher.trouble:
        yield Finding(
            Level.WARNING,
            f"{who} reports: {watcher.trouble}",
            "correct that; it tries again every few seconds",
        )
    if not watcher.is_heard:
        yield Finding(
            Level.WARNING,
            f"{who} should keep the index up to date, but does not respond",
            f"is it suspended? Resume or end it; until then {advised('update')} finds changes",
        )


def _process(pid: int | None) -> str:
    return f"process {pid}" if pid else "a process"


def _since(moment: str | None) -> str:
    return f" since {moment}" if moment else ""


# Indices that this program does not use: of the same documents with other settings, and of
# documents that no longer exist; with their size and age.

MUCH_BYTES = 1_000_000_000
"""From this total size on, unused indices are reported as a note."""
INDEX_NAME = re.compile(r"index-[0-9a-f]{16}")
EVALUATED_NAME = re.compile(r".{1,60}-[0-9a-f]{16}", re.DOTALL)
_MOUNTS = tuple(map(Path, ("/media", "/mnt", "/run/media", "/Volumes", "/net", "/autofs")))
"""Mount points: a folder that is missing there may come back with its drive."""


def check_variants(case: Case) -> Iterator[Finding]:
    found = variants_of(case.directory)
    others = [one for one in found if not one.is_own]
    if not others:
        yield Finding(Level.OK, "no index of these documents with other settings")
        return
    size = sum(one.bytes for one in others)
    number = number_of(len(others), "index", "indices")
    message = f"{number} of these documents with other settings, {size_text(size)} in all"
    details = tuple(map(variant_line, found))
    if old := unused_variants(case.directory):
        yield Finding(
            Level.NOTE,
            f"{message}; {len(old)} not used for 30 days",
            f"they are deleted by {advised('update')}, or by a server",
            details,
            Repair("delete indices that are not used", partial(_drop, case.directory)),
        )
    elif size >= MUCH_BYTES:
        advice = (
            "programs with the same index settings share one index; one that is not used for 30 "
            "days is deleted, and you may delete any of these folders yourself"
        )
        yield Finding(Level.NOTE, message, advice, details)
    else:
        yield Finding(Level.OK, message, details=details)


def variant_line(one: VariantStatus) -> str:
    """One index, for people."""
    when = f"last used {one.last_used[:10]}" if one.last_used else "never used"
    return f"{one.path}: {size_text(one.bytes)}, {when}" + (", in use here" if one.is_own else "")


def _drop(directory: Path) -> str:
    dropped = drop_unused(directory)
    return f"deleted {number_of(len(dropped), 'index', 'indices')} that were not used"


@dataclass(frozen=True, slots=True)
class OldIndex:
    """The index folder of documents that no longer exist."""

    place: Path
    roots: tuple[Path, ...]
    bytes: int
    days: int
    """Since it was last used."""
    is_unused: bool
    may_come_back: bool
    """Whether the documents may be on a drive that is not mounted."""

    @property
    def line(self) -> str:
        why = (
            "which may be on a drive that is not mounted: kept"
            if self.may_come_back
            else "gone"
            if self.is_unused
            else "gone: kept until unused for 30 days"
        )
        of = ", ".join(map(at, self.roots))
        used = f"last used {number_of(self.days, 'day')} ago"
        return f"{at(self.place)}: {size_text(self.bytes)}, {used}, of {of} ({why})"


def check_gone(case: Case) -> Iterator[Finding]:
    """Checks only our own cache: a folder that the user named is up to the user."""
    found = old_indices(case.app.config.index_place.default)
    if not found:
        yield Finding(Level.OK, "no index of documents that are gone")
        return
    deletable = [one.place for one in found if one.is_unused and not one.may_come_back]
    number = number_of(len(found), "index", "indices")
    size = size_text(sum(one.bytes for one in found))
    message = f"{number} of documents that are gone, {size} in all"
    details = tuple(one.line for one in found)
    if not deletable:
        yield Finding(Level.OK, message, details=details)
        return
    yield Finding(
        Level.NOTE,
        f"{message}; {len(deletable)} not used for 30 days",
        f"{advised('doctor --fix')} deletes those; you may delete the others yourself",
        details,
        Repair("delete indices of documents that are gone", partial(_drop_gone, deletable)),
    )


def old_indices(own: Path) -> list[OldIndex]:
    """The old indices beside our own. An index that does not record its documents is skipped."""
    cache = own.parent
    places = [*folders_named(cache, INDEX_NAME), *folders_named(cache / "eval", EVALUATED_NAME)]
    found = (_old_index(place) for place in places if place != own)
    return [one for one in found if one is not None]


def _old_index(place: Path) -> OldIndex | None:
    """None if any folder of its documents exists, or if that is unknown."""
    inside = variants(place)
    roots = _roots([one.path for one in inside])
    if not roots or not all(map(is_missing, roots)):
        return None
    now = time.time()
    last = max((one.last_used or now for one in inside), default=now)
    return OldIndex(
        place,
        roots,
        sum(disk_use(one.path).total for one in inside),
        max(0, int((now - last) / DAY_SECONDS)),
        all(one.is_unused(now) for one in inside),
        any(map(may_come_back, roots)),
    )


def _roots(directories: Iterable[Path]) -> tuple[Path, ...]:
    """The documents' folders, as recorded in the stores; empty if one does not record them."""
    found: set[Path] = set()
    for directory in directories:
        try:
            making = read_making(stored_settings(directory))
        except IndexStoreError:
            return ()
        roots = list(making.roots.values()) if making else []
        if not roots or not all(map(_is_whole, roots)):
            return ()
        found |= {Path(str(root)) for root in roots}
    return tuple(sorted(found))


def _is_whole(root: object) -> bool:
    """Whether the store has the exact path, without escapes for invalid text."""
    has_escape = isinstance(root, str) and "\\" in root and os.sep != "\\"
    return isinstance(root, str) and os.path.isabs(root) and not has_escape


def is_missing(root: Path) -> bool:
    """Certainly missing: a folder that cannot be read or does not answer may exist."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def may_come_back(root: Path) -> bool:
    """Whether a missing folder may be on a drive that is not mounted: the nearest existing folder
    above it is then a mount point, or empty like one, or the root."""
    for above in root.parents:
        try:
            with os.scandir(above) as entries:
                is_empty = next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return True
        is_mount = any(above == mount or mount in above.parents for mount in _MOUNTS)
        return is_empty or is_mount or above == Path(above.anchor)
    return True


def _drop_gone(places: Iterable[Path]) -> str:
    """Checks each index again first: its documents may be back."""
    number = 0
    for place in places:
        again = _old_index(place)
        if again is not None and again.is_unused and not again.may_come_back:
            number += drop_all(place)
    return f"deleted {number_of(number, 'index', 'indices')} of documents that are gone"
