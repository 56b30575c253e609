"""What lies in an index directory: looked at from outside, never opened, and never followed.

Only names that the program gives count as its own: a user may have put the index into a folder
that holds other things.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from ragdocs.config.choices import KeywordEngine
from ragdocs.config.notation import printable
from ragdocs.diagnosis.status import DiskUse, VariantStatus
from ragdocs.files import user_id
from ragdocs.indexing.lock import WATCH_LOCK, WRITE_LOCK
from ragdocs.store.connection import SIDE_FILES
from ragdocs.store.folder import (
    MARK_FILE,
    SEAL_FILE,
    STORE_FILE,
    FolderState,
    folder_state,
    is_own,
)
from ragdocs.store.variants import (
    ENGINE_PREFIX,
    USED_FILE,
    is_dropped,
    is_variant,
    place_of,
    variants,
)
from ragdocs.wording import advised

MAX_ENTRIES = 20_000
"""No index has so many files; whatever has is not ours to walk through."""
LOCKS = (WRITE_LOCK, WATCH_LOCK)
_ENGINES = frozenset(f"{ENGINE_PREFIX}{engine.value}" for engine in KeywordEngine)
_LOGS = frozenset(STORE_FILE + side for side in SIDE_FILES)
_SHARED_MEMORY = "-shm"
_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class Part(StrEnum):
    """What a file in the index directory belongs to."""

    STORE = "store"
    LOG = "log"
    LOCK = "lock"
    SEAL = "seal"
    MARK = "mark"
    USE = "use"
    """When it was last used."""
    VARIANT = "variant"
    """An index of other settings, or what is left of one."""
    ENGINE = "engine"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the directory, or below one of the engines' folders."""

    path: Path
    part: Part
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def kind(self) -> str:
        """What it is, with its article."""
        return kind_of(self.status.st_mode)


def kind_of(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def entries(directory: Path) -> Iterator[Entry]:
    """All that is the program's, and what else lies directly beside it. Raises OSError."""
    seen = 0
    pending: list[tuple[Path, Part | None]] = [(directory, None)]
    while pending and seen < MAX_ENTRIES:
        folder, within = pending.pop()
        for entry in _listed(folder, within):
            seen += 1
            yield entry
            if entry.part is Part.ENGINE and entry.is_folder:
                pending.append((entry.path, Part.ENGINE))


def disk_use(directory: Path) -> DiskUse:
    """What can be seen of it: nothing where there is no folder."""
    sizes = dict.fromkeys(Part, 0)
    try:
        for entry in entries(directory):
            # Readers share memory through a file, which holds nothing by itself.
            is_content = entry.is_file and not entry.path.name.endswith(_SHARED_MEMORY)
            sizes[entry.part] += entry.status.st_size if is_content else 0
    except OSError:
        pass
    return DiskUse(
        store=sizes[Part.STORE],
        log=sizes[Part.LOG],
        engines=sizes[Part.ENGINE],
        other=sizes[Part.FOREIGN],
        total=sizes[Part.STORE] + sizes[Part.LOG] + sizes[Part.ENGINE],
    )


def exposure_of(directory: Path) -> str:
    """Why others can read or change the index, in words; empty when they cannot, or when there is
    none. A folder that is not ours has a message of its own."""
    try:
        status = os.stat(directory)
        is_index = folder_state(directory) is FolderState.OURS
    except OSError:
        return ""
    if not is_index or user_id() is None:
        return ""
    if not is_own(status.st_uid):
        why = advised("doctor")
        return f"the index folder belongs to another account ({status.st_uid}): see {why}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022:
        return (
            f"the index folder is open to other accounts ({mode:04o}), which can change the index: "
            f"{advised('doctor --fix')} makes it yours alone"
        )
    if mode & 0o077:
        return (
            f"the index folder is open to other accounts ({mode:04o}): "
            f"{advised('doctor --fix')} makes it yours alone"
        )
    return ""


def variants_of(directory: Path) -> tuple[VariantStatus, ...]:
    """All indices of the same documents, the own one included."""
    return tuple(
        VariantStatus(
            path=printable(str(one.path)),
            is_own=one.path == directory,
            bytes=disk_use(one.path).total,
            last_used=_moment(one.last_used),
        )
        for one in variants(place_of(directory))
    )


def _moment(seconds: float | None) -> str:
    """In UTC; empty where it is not known."""
    try:
        return datetime.fromtimestamp(seconds or 0, UTC).isoformat(timespec="seconds") * bool(
            seconds
        )
    except (ValueError, OverflowError, OSError):
        return ""


def _listed(folder: Path, within: Part | None) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as listing:
            found = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        if within is None:
            raise
        return
    for entry in found:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # gone meanwhile
            continue
        yield Entry(Path(entry.path), within or _part_of(entry.name), status)


def _part_of(name: str) -> Part:
    if name == STORE_FILE:
        return Part.STORE
    if name in _LOGS:
        return Part.LOG
    if name in LOCKS:
        return Part.LOCK
    if name == SEAL_FILE:
        return Part.SEAL
    if name == MARK_FILE:
        return Part.MARK
    if name == USED_FILE:
        return Part.USE
    if is_variant(Path(name)) or is_dropped(Path(name)):
        return Part.VARIANT
    return Part.ENGINE if name in _ENGINES else Part.FOREIGN
