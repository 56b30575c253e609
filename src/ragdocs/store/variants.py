"""The index folders of one set of documents, side by side: one for each set of index settings.

Each variant has its own store, locks and engines, so they never wait for each other. They share
vectors: before embedding a text, a variant looks for its vector in the other stores. A variant that
was not used for 30 days is deleted by another one. The folder that contains the variants may have a
store too: from before there were variants, or in a folder that the user configured.
"""

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

from ragdocs.config.choices import KeywordEngineName
from ragdocs.errors import IndexIncompatible, IndexStoreError
from ragdocs.files import open_own, write_at
from ragdocs.store.database import COPY, SIDE_FILES, Database, store_path
from ragdocs.store.embeddings import whole_vectors
from ragdocs.store.folder import MARK_FILE, SEAL_FILE, STORE_FILE, FolderState, folder_state
from ragdocs.store.lock import WATCH_LOCK, WRITE_LOCK, try_lock
from ragdocs.store.records import TextHash
from ragdocs.store.schema import schema_version

USED_FILE = "last-used.txt"
"""In an index folder: its mtime is when the index was last used."""
DAY_SECONDS = 86_400.0
UNUSED_SECONDS = 30 * DAY_SECONDS
BUSY_SECONDS = 0.2
"""The timeout for reading another variant: embedding takes longer, but a longer wait would not
help."""
ENGINE_PREFIX = "keyword-"
_VARIANT = re.compile(r"variant-[0-9a-f]{16}")
_DROPPED = re.compile(r"dropped-[0-9a-f]{16}")
_NOTE = b"The time of this file says when the index was last used; see `ragdocs status`.\n"
_STORE_FILES = (*(STORE_FILE + side for side in (*SIDE_FILES, COPY)), STORE_FILE, SEAL_FILE)
_LOCKS = (WRITE_LOCK, WATCH_LOCK)
_ENGINE_FILE = re.compile(r"lock|state\.json(\.[0-9a-f]{8})?")
_ENGINE_FOLDER = re.compile(r"[0-9]{8,}-[0-9a-f]{8}")
_LIBRARY_FILE = {
    f"{ENGINE_PREFIX}{KeywordEngineName.WHOOSH}": re.compile(
        r"_?MAIN_[0-9a-z]+(\.[0-9a-z_]+)*|MAIN_WRITELOCK"
    ),
    f"{ENGINE_PREFIX}{KeywordEngineName.TANTIVY}": re.compile(
        r"[0-9a-f]{32}(\.[0-9a-z]+)+|(\.managed|meta)\.json|\.tantivy-[a-z]+\.lock|\.tmp[0-9A-Za-z]+"
    ),
}
"""The folders of keyword engines, and the names of the files that each engine's library writes."""


@dataclass(frozen=True, slots=True)
class Variant:
    """An index folder, and when it was last used (seconds since 1970), or None if unknown."""

    path: Path
    last_used: float | None

    def is_unused(self, now: float) -> bool:
        """A time in the future only means that the clock was changed."""
        return self.last_used is not None and now - self.last_used >= UNUSED_SECONDS


def variant_name(made_by: str) -> str:
    """The name of a variant's folder, different for all settings that produce a different index."""
    return f"variant-{blake2b(made_by.encode(), digest_size=8).hexdigest()}"


def is_variant(directory: Path) -> bool:
    return _VARIANT.fullmatch(directory.name) is not None


def is_dropped(directory: Path) -> bool:
    """Whether it is the remainder of a variant whose deletion was interrupted."""
    return _DROPPED.fullmatch(directory.name) is not None


def place_of(directory: Path) -> Path:
    """The folder of all variants: the parent of a variant's folder, or the index folder itself."""
    return directory.parent if is_variant(directory) else directory


def variants(place: Path) -> list[Variant]:
    """All variants with a store, by name; the store in the folder itself first."""
    found = [place] if os.path.lexists(store_path(place)) else []
    found += [path for path in folders_named(place, _VARIANT) if os.path.lexists(store_path(path))]
    return [Variant(path, last_used(path)) for path in found]


def siblings(directory: Path) -> list[Variant]:
    """The other variants of the same documents, the most recently used first."""
    others = [one for one in variants(place_of(directory)) if one.path != directory]
    return sorted(others, key=lambda one: one.last_used or 0.0, reverse=True)


def last_used(directory: Path) -> float | None:
    """From the mark; for a store without one, when it was last written."""
    times: list[float] = []
    for names in ((USED_FILE,), (STORE_FILE, SEAL_FILE)):
        for name in names:
            with suppress(OSError):
                times.append(os.lstat(directory / name).st_mtime)
        if times:
            return max(times)
    return None


def note_use(directory: Path, now: float | None = None) -> None:
    """Records the use, at most once a day. If it cannot be written, only this record is lost."""
    now = time.time() if now is None else now
    path = directory / USED_FILE
    with suppress(OSError):
        with suppress(FileNotFoundError):
            if 0 <= now - os.lstat(path).st_mtime < DAY_SECONDS:
                return
        descriptor = open_own(path, os.O_WRONLY | os.O_CREAT)
        try:
            write_at(descriptor, _NOTE, 0)
            os.utime(descriptor if os.utime in os.supports_fd else path, (now, now))
        finally:
            os.close(descriptor)


class SiblingVectors:
    """Vectors from other variants. Read-only; the hash of each vector is checked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.taken = 0
        """Vectors that were found."""
        self.skipped = 0
        """Failed attempts to read another variant: it was busy, damaged or of another format."""

    def find(self, model: str, texts: Collection[TextHash]) -> dict[TextHash, bytes]:
        """The vectors (little-endian float32) of these texts that another variant has."""
        found: dict[TextHash, bytes] = {}
        for sibling in siblings(self._directory):
            missing = [text for text in texts if text not in found]
            if not missing:
                break
            try:
                found.update(_vectors(sibling.path, model, missing))
            except IndexStoreError:
                self.skipped += 1
        self.taken += len(found)
        return found


def unused_variants(directory: Path, now: float | None = None) -> list[Variant]:
    """Other variants of the same documents that were not used for 30 days."""
    now = time.time() if now is None else now
    return [one for one in siblings(directory) if one.is_unused(now)]


def drop_unused(directory: Path, now: float | None = None) -> tuple[Path, ...]:
    """Deletes other variants of the same documents that were not used for 30 days, and finishes
    interrupted deletions. For the process that keeps `directory` up to date; returns what it
    deleted.

    If this variant itself looks unused, or used in the future, the clock was changed or no process
    ran here: the others get another day.
    """
    moment = now = time.time() if now is None else now
    before = _mark_time(directory)
    note_use(directory, now)
    place = place_of(directory)
    for leftover in folders_named(place, _DROPPED):
        _delete(leftover)
    if before is not None and not 0 <= now - before < UNUSED_SECONDS:
        return ()
    dropped: list[Path] = []
    for sibling in siblings(directory):
        if sibling.last_used is not None and sibling.last_used > now + DAY_SECONDS:
            note_use(sibling.path, now)  # the 30 days start now, by the current clock
        elif sibling.is_unused(now):
            with suppress(OSError, IndexStoreError):
                is_done = _drop(sibling.path, lambda one: one.is_unused(moment)) is Drop.DONE
                dropped += [sibling.path] if is_done else []
    return tuple(dropped)


def drop_all(place: Path, now: float | None = None) -> bool:
    """Deletes every index in the folder, and then the folder, if none was used for 30 days. For
    documents that are gone. Keeps anything that is in use or not ours, and then returns False."""
    moment = time.time() if now is None else now
    found = variants(place)
    if not all(one.is_unused(moment) for one in found):
        return False
    try:
        dropped = [_drop(one.path, lambda again: again.is_unused(moment)) for one in found]
    except (OSError, IndexStoreError):
        return False
    remove_empty(place)
    return all(one is Drop.DONE for one in dropped)


class Drop(StrEnum):
    """The result of deleting one variant; all but the first say why it was kept."""

    DONE = "deleted"
    IN_USE = "a process uses it"
    OTHER_FILES = "its folder has files that are not ours"
    NOT_OURS = "its folder is not an index of this program"
    USED_SINCE = "it has been used meanwhile"
    FAILED = "it cannot be deleted"


def drop_variant(directory: Path, is_due: Callable[[Variant], bool]) -> Drop:
    """Deletes an index, unless it is in use or not ours. `is_due` is asked under its locks."""
    try:
        return _drop(directory, is_due)
    except (OSError, IndexStoreError):
        return Drop.FAILED


def remove_empty(place: Path) -> bool:
    """Finishes interrupted deletions, then deletes the folder of variants if it has nothing but our
    own small files left; returns whether it is gone."""
    for leftover in folders_named(place, _DROPPED):
        _delete(leftover)
    with suppress(OSError):  # keep files that are not ours
        if set(os.listdir(place)) <= {*_LOCKS, USED_FILE, MARK_FILE}:
            for name in (*_LOCKS, USED_FILE, MARK_FILE):
                (place / name).unlink(missing_ok=True)
            place.rmdir()
    return not os.path.lexists(place)


def _vectors(
    sibling: Path, model: str, texts: Collection[TextHash]
) -> Iterator[tuple[TextHash, bytes]]:
    with closing(Database(store_path(sibling), write=False, timeout=BUSY_SECONDS)) as database:
        if schema_version(database) is None:
            raise IndexIncompatible(f"{database.path} is not an index of this program")
        yield from whole_vectors(database, model, texts)


def _mark_time(directory: Path) -> float | None:
    try:
        return os.lstat(directory / USED_FILE).st_mtime
    except OSError:
        return None


def folders_named(place: Path, name: re.Pattern[str]) -> list[Path]:
    """The folders whose names match, sorted; not links."""
    try:
        with os.scandir(place) as entries:
            return sorted(
                Path(entry.path)
                for entry in entries
                if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []


def _drop(path: Path, is_due: Callable[[Variant], bool]) -> Drop:
    """Renames before deleting, so that a kill in the middle leaves a recognizable name."""
    if folder_state(path) is not FolderState.OURS:
        return Drop.NOT_OURS
    if not _has_only_ours(path):
        return Drop.OTHER_FILES
    away = place_of(path) / f"dropped-{secrets.token_hex(8)}"
    with ExitStack() as held:
        for name in _LOCKS:
            lock = try_lock(path / name)
            if lock is None:
                return Drop.IN_USE
            held.enter_context(lock)
        if not is_due(Variant(path, last_used(path))):
            return Drop.USED_SINCE
        if not (is_variant(path) and _rename(path, away)):
            _move_store(path, away)
    _delete(away)
    return Drop.DONE


def _rename(path: Path, away: Path) -> bool:
    """False if not permitted: Windows cannot rename a folder with open files, such as our locks."""
    try:
        path.rename(away)
    except PermissionError:
        return False
    return True


def _move_store(path: Path, away: Path) -> None:
    """Moves only the store; its folder, locks and mark stay. Moves the log first: SQLite must never
    apply it to another file."""
    away.mkdir(mode=0o700)
    names = (*_STORE_FILES, USED_FILE, *_engines(path))
    for name in names:
        with suppress(FileNotFoundError):
            (path / name).rename(away / name)


def _has_only_ours(path: Path) -> bool:
    """Whether a variant's folder contains only our files. A folder of variants may contain other
    files beside the store, which are not touched."""
    if not is_variant(path):
        return True
    try:
        return set(os.listdir(path)) <= _known_names(path)
    except OSError:
        return False


def _known_names(path: Path) -> set[str]:
    return {*_STORE_FILES, *_LOCKS, USED_FILE, MARK_FILE, *_engines(path)}


def _engines(path: Path) -> list[str]:
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [name for name in names if name in _LIBRARY_FILE and _is_engine(path / name)]


def _is_engine(folder: Path) -> bool:
    """Whether it has nothing but what `indices/engine_folder.py` and the libraries write."""
    written = _LIBRARY_FILE[folder.name]
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        with os.scandir(folder) as found:
            entries = list(found)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not (_ENGINE_FOLDER.fullmatch(entry.name) and _has_files(entry.path, written)):
                    return False
            elif not _is_file(entry, _ENGINE_FILE):
                return False
    except OSError:
        return False
    return True


def _has_files(folder: str, name: re.Pattern[str]) -> bool:
    """Whether all in it are files whose names match."""
    with os.scandir(folder) as entries:
        return all(_is_file(entry, name) for entry in entries)


def _is_file(entry: "os.DirEntry[str]", name: re.Pattern[str]) -> bool:
    return name.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False)


def _delete(away: Path) -> None:
    """Keeps what cannot be deleted now or contains other files; a later call tries again."""
    with suppress(OSError):  # another process may be deleting it too
        if set(os.listdir(away)) <= _known_names(away):
            shutil.rmtree(away, ignore_errors=True)
