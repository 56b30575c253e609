"""The indices on this machine: what each is of, how large, when last used, and by whom."""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.app import Assembly
from ragdocs.config.fingerprint import Making, differences, read_making
from ragdocs.config.locations import cache_folder
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.folder_checks import (
    EVALUATED_NAME,
    INDEX_NAME,
    is_missing,
    may_come_back,
)
from ragdocs.diagnosis.probes import disk_use
from ragdocs.errors import NotThere, QueryError, RagdocsError
from ragdocs.store.folder import FolderState, folder_state
from ragdocs.store.lock import watching, writing
from ragdocs.store.variants import (
    DAY_SECONDS,
    Drop,
    Variant,
    drop_variant,
    folders_named,
    place_of,
    remove_empty,
    variants,
)
from ragdocs.store.writer import recorded_settings
from ragdocs.text import advised

MAX_NAMED = 5
"""How many indices an error message names."""
_LEAST_PREFIX = 4
_TREE_KEY = "tree."


@dataclass(frozen=True, slots=True)
class IndexedFolder:
    """A folder of documents, as recorded in an index. A folder that is gone `may_return` if it may
    be on a drive that is not mounted."""

    tree: str
    path: str
    is_gone: bool
    may_return: bool


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """One index of some documents, with one set of index settings.

    `last_used` are seconds since 1970, None if unknown. `differences` are the keys of the index
    settings that differ from those in effect here; None if either is not known. `users` are the
    numbers of the processes that watch or write it now; 0 stands for one whose number is unknown.
    """

    path: Path
    bytes: int
    last_used: float | None
    is_own: bool
    differences: tuple[str, ...] | None
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexPlaceUse:
    """All indices of the same documents; their folder has the `name`."""

    name: str
    path: Path
    folders: tuple[IndexedFolder, ...]
    """Empty if no index records them."""
    builds: tuple[IndexBuild, ...]

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.builds)

    @property
    def last_used(self) -> float | None:
        return max((one.last_used for one in self.builds if one.last_used), default=None)

    @property
    def users(self) -> tuple[int, ...]:
        return tuple(sorted({pid for one in self.builds for pid in one.users}))

    @property
    def is_gone(self) -> bool:
        """Whether every folder of its documents was deleted, as far as one can tell."""
        return bool(self.folders) and all(
            one.is_gone and not one.may_return for one in self.folders
        )


@dataclass(frozen=True, slots=True)
class Pruned:
    """An index that was deleted, or would be; or why it was kept."""

    path: Path
    bytes: int
    result: Drop


def inventory(config: Config | None, environ: Mapping[str, str]) -> list[IndexPlaceUse]:
    """Those in the user's cache, and the one in the configured folder; the last used first.

    Without a usable configuration no settings are compared.
    """
    own = None
    with suppress(RagdocsError):
        own = Assembly(config) if config else None
    found = [_look(place, name, own) for place, name in _places(config, environ)]
    return sorted(
        (one for one in found if one.builds), key=lambda one: (-(one.last_used or 0), one.name)
    )


def find_index(found: Sequence[IndexPlaceUse], wanted: str) -> IndexPlaceUse:
    """By its name or the beginning of it, its folder, or a folder of its documents.

    Raises NotThere, or QueryError if several are meant.
    """
    matching = [one for one in found if one.name == wanted]
    if not matching and len(wanted) >= _LEAST_PREFIX:
        matching = [one for one in found if wanted in _beginnings(one.name, len(wanted))]
    path = os.path.abspath(os.path.expanduser(wanted))
    if not matching:
        matching = [
            one
            for one in found
            if path in (os.fspath(at) for at in (one.path, *(each.path for each in one.builds)))
        ]
    if not matching:
        of = [one for one in found if path in {folder.path for folder in one.folders}]
        alone = [one for one in of if {folder.path for folder in one.folders} == {path}]
        matching = alone or of
    if not matching:
        raise NotThere(
            f"there is no such index; {advised('index list')} shows those there are",
            listed_by="index list",
        )
    if len(matching) > 1:
        named = ", ".join(one.name for one in matching[:MAX_NAMED])
        raise QueryError(f"this could mean {named}: give one of these names")
    return matching[0]


def prunable(
    found: Iterable[IndexPlaceUse], unused_seconds: float | None, *, gone: bool
) -> list[IndexBuild]:
    """The indices that were not used for so long, and those of documents that are gone."""
    limit = None if unused_seconds is None else time.time() - unused_seconds
    return [
        build
        for one in found
        for build in one.builds
        if (gone and one.is_gone)
        or (limit is not None and build.last_used is not None and build.last_used <= limit)
    ]


def remove_builds(builds: Iterable[IndexBuild], *, dry_run: bool) -> list[Pruned]:
    """Deletes indices, except those in use, those used since they were listed, and what is not
    ours."""
    return [Pruned(one.path, one.bytes, _remove(one, dry_run=dry_run)) for one in builds]


def _remove(build: IndexBuild, *, dry_run: bool) -> Drop:
    if build.users:
        return Drop.IN_USE
    if dry_run:
        return Drop.DONE if _is_ours(build.path) else Drop.NOT_OURS
    result = drop_variant(build.path, lambda now: now.last_used == build.last_used)
    if result is Drop.DONE:
        remove_empty(place_of(build.path))
    return result


def _places(config: Config | None, environ: Mapping[str, str]) -> Iterable[tuple[Path, str]]:
    cache = config.index_place.default.parent if config else cache_folder(environ)
    if cache is not None:
        for place in folders_named(cache, INDEX_NAME):
            yield place, place.name
        for place in folders_named(cache / "eval", EVALUATED_NAME):
            yield place, f"eval/{place.name}"
    if config and config.index_place.named:
        yield config.index_place.named, os.fspath(config.index_place.named)


def _look(place: Path, name: str, own: Assembly | None) -> IndexPlaceUse:
    builds: list[IndexBuild] = []
    folders: dict[tuple[str, str], IndexedFolder] = {}
    for variant in variants(place):
        if not _is_ours(variant.path):
            continue
        making = read_making(recorded_settings(variant.path))
        for folder in _folders(making):
            folders[folder.tree, folder.path] = folder
        builds.append(_build(variant, making, own))
    newest = sorted(builds, key=lambda one: -(one.last_used or 0))
    return IndexPlaceUse(name, place, tuple(folders.values()), tuple(newest))


def _is_ours(directory: Path) -> bool:
    try:
        return folder_state(directory) is FolderState.OURS
    except OSError:
        return False


def _build(variant: Variant, making: Making | None, own: Assembly | None) -> IndexBuild:
    differing = None
    if making is not None and own is not None:
        keys = (one.key for one in differences(making, own.making))
        format_key = () if making.schema == own.making.schema else ("format",)
        differing = (*format_key, *(key for key in keys if not key.startswith(_TREE_KEY)))
    holders = (watching(variant.path), writing(variant.path))
    return IndexBuild(
        path=variant.path,
        bytes=disk_use(variant.path).total,
        last_used=variant.last_used,
        is_own=own is not None and own.directory == variant.path,
        differences=differing,
        users=tuple(sorted({one.pid or 0 for one in holders if one})),
    )


def _folders(making: Making | None) -> Iterable[IndexedFolder]:
    for tree, root in sorted((making.roots if making else {}).items()):
        if isinstance(root, str) and os.path.isabs(root):
            gone = is_missing(Path(root))
            yield IndexedFolder(tree, root, gone, gone and may_come_back(Path(root)))


def _beginnings(name: str, length: int) -> set[str]:
    """Of the whole name, and of its number."""
    return {name[:length], re.sub(r"^.*-", "", name)[:length]}


def age_text(last_used: float | None) -> str:
    """`today`, `12 days ago`; for people."""
    if last_used is None:
        return "unknown"
    days = int((time.time() - last_used) / DAY_SECONDS)
    return "today" if days < 1 else "yesterday" if days == 1 else f"{days:,} days ago"
