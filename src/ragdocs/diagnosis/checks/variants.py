"""Indices that this program does not use: of the same documents with other settings, and of other
documents that are gone. How large, how old."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragdocs.config.making import read_making
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.index_files import disk_use, variants_of
from ragdocs.diagnosis.status import VariantStatus
from ragdocs.errors import IndexStoreError
from ragdocs.store.opening import stored_settings
from ragdocs.store.variants import (
    DAY_SECONDS,
    drop_all,
    drop_unused,
    folders_named,
    unused,
    variants,
)
from ragdocs.wording import advised, number_of, size_text

MUCH_BYTES = 1_000_000_000
"""Of indices that this program does not use: then they are worth a word."""
_INDEX = re.compile(r"index-[0-9a-f]{16}")
_EVALUATED = re.compile(r".{1,60}-[0-9a-f]{16}", re.DOTALL)
_MOUNTS = tuple(map(Path, ("/media", "/mnt", "/run/media", "/Volumes", "/net", "/autofs")))
"""Where systems put drives: a folder that is missing there may come back with its drive."""


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
    if old := unused(case.directory):
        yield Finding(
            Level.NOTE,
            f"{message}; {len(old)} not used for 30 days",
            f"they are deleted by {advised('update')}, or by a server",
            details,
            Repair("delete indices that are not used", partial(_drop, case.directory)),
        )
    elif size >= MUCH_BYTES:
        advice = (
            "programs with the same index settings share one index; what is not used for 30 days "
            "is deleted by itself, and any of these folders may be deleted by hand"
        )
        yield Finding(Level.NOTE, message, advice, details)
    else:
        yield Finding(Level.OK, message, details=details)


def variant_line(one: VariantStatus) -> str:
    """One index in words."""
    when = f"last used {one.last_used[:10]}" if one.last_used else "never used"
    return f"{one.path}: {size_text(one.bytes)}, {when}" + (", in use here" if one.is_own else "")


def _drop(directory: Path) -> str:
    dropped = drop_unused(directory)
    return f"deleted {number_of(len(dropped), 'index', 'indices')} that nobody used"


@dataclass(frozen=True, slots=True)
class OldIndex:
    """The index folder of documents that are not there any more."""

    place: Path
    roots: tuple[Path, ...]
    bytes: int
    days: int
    """Since anyone last used it."""
    is_unused: bool
    may_come_back: bool
    """The documents may only be on a drive that is not mounted."""

    @property
    def line(self) -> str:
        why = (
            "which may be on a drive that is not mounted: kept"
            if self.may_come_back
            else "gone"
            if self.is_unused
            else "gone: kept until nobody has used it for 30 days"
        )
        of = ", ".join(map(at, self.roots))
        used = f"last used {number_of(self.days, 'day')} ago"
        return f"{at(self.place)}: {size_text(self.bytes)}, {used}, of {of} ({why})"


def check_gone(case: Case) -> Iterator[Finding]:
    """Only in the program's own cache: a folder that a user has named is the user's affair."""
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
        f"{advised('doctor --fix')} deletes those; a folder that is kept may be deleted by hand",
        details,
        Repair("delete indices of documents that are gone", partial(_drop_gone, deletable)),
    )


def old_indices(own: Path) -> list[OldIndex]:
    """Beside the own index folder. An index that does not say of what it is, is passed over."""
    cache = own.parent
    places = [*folders_named(cache, _INDEX), *folders_named(cache / "eval", _EVALUATED)]
    found = (_old_index(place) for place in places if place != own)
    return [one for one in found if one is not None]


def _old_index(place: Path) -> OldIndex | None:
    """None when any of its documents' folders is there, or nobody can tell."""
    inside = variants(place)
    roots = _roots([one.path for one in inside])
    if not roots or not all(map(_is_missing, roots)):
        return None
    now = time.time()
    last = max((one.last_used or now for one in inside), default=now)
    return OldIndex(
        place,
        roots,
        sum(disk_use(one.path).total for one in inside),
        max(0, int((now - last) / DAY_SECONDS)),
        all(one.is_unused(now) for one in inside),
        any(map(_may_come_back, roots)),
    )


def _roots(directories: Iterable[Path]) -> tuple[Path, ...]:
    """The documents' folders, as the stores say; empty where one does not."""
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
    """Not a path in which the store has an escape in place of what is no text."""
    has_escape = isinstance(root, str) and "\\" in root and os.sep != "\\"
    return isinstance(root, str) and os.path.isabs(root) and not has_escape


def _is_missing(root: Path) -> bool:
    """Surely: what may not be looked at, or does not answer, may be there."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _may_come_back(root: Path) -> bool:
    """Whether a missing folder may be on a drive that is not mounted now. The folder that it should
    be in, or the nearest that is there, is then where drives are put, or is empty, as a place for a
    drive is, or is the top of all."""
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
    """Each is looked at again: its documents may be back."""
    number = 0
    for place in places:
        again = _old_index(place)
        if again is not None and again.is_unused and not again.may_come_back:
            number += drop_all(place)
    return f"deleted {number_of(number, 'index', 'indices')} of documents that are gone"
