"""The folder of a keyword engine outside the store: its files, their checksums and how it catches
up.
"""

import errno
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.files import is_obstacle, open_file, replace, user_id
from ragdocs.indices.analysis import Analyzer, Streams
from ragdocs.indices.applied_commit import IN_FLIGHT_SECONDS, AppliedCommit
from ragdocs.indices.keyword import FIELDS, field_texts
from ragdocs.locks import try_lock
from ragdocs.models import DocId
from ragdocs.store.folder import claim_folder
from ragdocs.store.records import ChangeKind, ChunkKey, Position
from ragdocs.store.snapshot import Snapshot

# The files of a derived index, one by one: opened without following links, linked, hashed.

Identity = tuple[int, int, int]
"""Inode, size and time of change: what tells quickly that a file was touched. Links share it."""


def identity(path: Path | str) -> Identity:
    found = os.lstat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def content(path: Path) -> bytes:
    with os.fdopen(_open(path), "rb") as file:
        return file.read()


def sha256(path: Path) -> str:
    with os.fdopen(_open(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(path: Path) -> int:
    descriptor = open_file(path, os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def link(source: Path, target: Path) -> None:
    """Not every file system has links; a copy does as well."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        shutil.copyfile(source, target)


def discard(path: Path) -> None:
    """Removes what stands in the way, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def replace_file(target: Path, temporary: Path, data: bytes) -> None:
    """Readers see the old content or the new, never a part."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(open_file(temporary, flags), "wb") as file:
            file.write(data)
        if target.is_dir():
            discard(target)
        replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Private; whatever else has its name makes way."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user_id() is not None and path.stat().st_mode & 0o077:
        path.chmod(0o700)


@contextmanager
def locked(path: Path) -> Generator[bool]:
    """Whether the lock could be had, without waiting. The kernel frees it with the process."""
    with translated(path.parent):
        if path.is_symlink() or is_obstacle(path):
            discard(path)
        held = try_lock(path)
    try:
        yield held is not None
    finally:
        if held is not None:
            held.close()


@contextmanager
def translated(folder: Path) -> Generator[None]:
    """A full disk or a folder that must not be written, in our own words."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise IndexStoreError(
            f"{folder} cannot be written ({reason}): make room or make it writable, or set "
            'keyword_engine = "fts5"'
        ) from error


# What a derived index remembers of itself: JSON with a hash of its own, never a pickle.

_FORMAT = 1
TRAIL = 16
"""How many of the commits before are remembered; see `derived_index`."""
_DIRECTORY = re.compile(r"\d{8,}-[0-9a-f]{8}")
_FILE = re.compile(r"[\w.][\w.\-]*")
_LOCKS = (".lock", "_WRITELOCK")


class Damaged(Exception):
    """The folder is not what was written there; it is made anew from the store."""


@dataclass(frozen=True, slots=True)
class FileMark:
    """What a file must be."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Which files are the index, which version of it, and which commit it has applied.

    `trail` has the commits it applied before, oldest first, and `written` the wall clock.
    """

    version: str
    position: Position
    trail: tuple[Position, ...]
    written: float
    directory: str
    files: Mapping[str, FileMark]


def is_bookkeeping(name: str) -> bool:
    """Whether a library's file says nothing of the index: an empty file that it locks."""
    return name.endswith(_LOCKS)


def written_state(state: State) -> bytes:
    body = {
        "format": _FORMAT,
        "version": state.version,
        "position": [state.position.generation, state.position.stamp],
        "trail": [[passed.generation, passed.stamp] for passed in state.trail[-TRAIL:]],
        "written": state.written,
        "directory": state.directory,
        "files": {name: [mark.size, mark.sha256] for name, mark in sorted(state.files.items())},
    }
    return json.dumps({"sha256": _hash(body), "body": body}, indent=1).encode()


def read_state(data: bytes) -> State:
    """Raises Damaged for anything that `written_state` did not write."""
    try:
        found = json.loads(data)
        body = found["body"]
        if found["sha256"] != _hash(body) or body["format"] != _FORMAT:
            raise Damaged("state.json is not as it was written")
        return _state(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged("state.json cannot be read") from error


def _state(body: Mapping[str, Any]) -> State:
    files = {
        str(name): FileMark(int(size), str(sha)) for name, (size, sha) in body["files"].items()
    }
    directory = str(body["directory"])
    if not _DIRECTORY.fullmatch(directory) or not all(map(_FILE.fullmatch, files)):
        raise Damaged("state.json names files elsewhere")
    return State(
        version=str(body["version"]),
        position=_position(*body["position"]),
        trail=tuple(_position(*each) for each in body["trail"]),
        written=float(body["written"]),
        directory=directory,
        files=files,
    )


def _position(generation: int, stamp: str) -> Position:
    return Position(int(generation), str(stamp))


def _hash(body: object) -> str:
    encoded = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(encoded.encode()).hexdigest()


# The folder of a derived index: which files are the index now, and that they are whole.
#
#     lock                  held by whoever writes, and freed by the kernel when that process dies
#     state.json            which directory counts, up to which commit, with a hash of every file
#     00000012-1f2e3d4c/    the files as the engine's library made them
#
# A directory is never changed once `state.json` names it: the next state is made beside it, out of
# links to the files that stay, and replacing `state.json` is the one commit point. Readers that
# have the old files open keep them. Nothing is synced to the disk: what a power cut takes is
# noticed by its hash, and made anew.

STATE_FILE = "state.json"
LOCK_FILE = "lock"
_TEMPORARY = re.compile(r"state\.json\.[0-9a-f]{8}")

Look = tuple[Identity, ...]
"""How the files of a state lie there, that of the state first."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A directory in which the next state is being made, out of the files of an older one."""

    directory: Path
    base: State | None


class DerivedFolder:
    """One engine's folder. Reading changes nothing; `draft` and `publish` need the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._verified: dict[Identity, str] = {}

    def state(self) -> State | None:
        """What the folder says it holds; None when there is nothing yet."""
        try:
            data = content(self.path / STATE_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Damaged(f"{STATE_FILE} cannot be read: {error.strerror}") from error
        return read_state(data)

    def verify(self, state: State) -> None:
        """Raises Damaged unless every file is there and has the size and hash that it had."""
        known: dict[Identity, str] = {}
        for name, mark in state.files.items():
            path = self.path / state.directory / name
            try:
                seen = identity(path)
                # A file that was read before, and not touched since, need not be read again.
                found = self._verified.get(seen) or sha256(path)
            except OSError as error:
                raise Damaged(f"{name} cannot be read: {error.strerror}") from error
            if (seen[1], found) != (mark.size, mark.sha256):
                raise Damaged(f"{name} is not as it was written")
            known[seen] = found
        self._verified = known

    def look(self, state: State) -> Look | None:
        """None when a file is missing. Cheap, because it is done before each query."""
        directory = f"{self.path}/{state.directory}/"
        try:
            return (
                identity(f"{self.path}/{STATE_FILE}"),
                *[identity(directory + name) for name in state.files],
            )
        except OSError:
            return None

    @contextmanager
    def lock(self) -> Generator[bool]:
        """Whether the lock could be had; without waiting."""
        with translated(self.path):
            claim_folder(self.path.parent)
            make_folder(self.path)
        with locked(self.path / LOCK_FILE) as is_ours:
            yield is_ours

    @contextmanager
    def draft(self, position: Position, base: State | None) -> Generator[Draft]:
        """A directory for the next state; gone again when the block fails."""
        directory = self.path / f"{position.generation:08d}-{secrets.token_hex(4)}"
        with translated(self.path):
            directory.mkdir(mode=0o700)
            try:
                if base is not None:
                    for name in base.files:
                        link(self.path / base.directory / name, directory / name)
                yield Draft(directory, base)
            except BaseException:
                shutil.rmtree(directory, ignore_errors=True)
                raise

    def publish(
        self, draft: Draft, version: str, position: Position, trail: tuple[Position, ...]
    ) -> State:
        """Makes a draft what the folder holds; older directories go."""
        with translated(self.path):
            state = State(
                version=version,
                position=position,
                trail=trail,
                written=time.time(),
                directory=draft.directory.name,
                files=dict(self._marks(draft)),
            )
            temporary = self.path / f"{STATE_FILE}.{secrets.token_hex(4)}"
            replace_file(self.path / STATE_FILE, temporary, written_state(state))
            self._clean(state.directory)
        return state

    def _marks(self, draft: Draft) -> Iterator[tuple[str, FileMark]]:
        kept: Mapping[str, FileMark] = draft.base.files if draft.base else {}
        for path in sorted(draft.directory.iterdir()):
            seen = identity(path)
            found = self._verified.get(seen) if path.name in kept else None
            if found is None:
                path.chmod(0o600)
            if is_bookkeeping(path.name):
                continue
            if found is None:
                found = self._verified[seen] = sha256(path)
            yield path.name, FileMark(seen[1], found)

    def _clean(self, current: str) -> None:
        """What a killed writer left, and what no state names any more."""
        for path in self.path.iterdir():
            is_old = _DIRECTORY.fullmatch(path.name) and path.name != current
            if is_old or _TEMPORARY.fullmatch(path.name):
                discard(path)


# What the engines index: one entry for each chunk, the terms of its fields with their positions.
#
# The terms of a field are at consecutive positions, so that phrases match. The wholes come after
# them with a gap around each, so that no phrase matches them or continues into the next field.


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk, ready to be indexed: the terms of each of its fields, in the order of FIELDS."""

    key: ChunkKey
    doc_id: DocId
    fields: tuple[Streams, ...]


def read_entries(
    snapshot: Snapshot, analyzer: Analyzer, doc_ids: Collection[DocId] | None = None
) -> Iterator[Entry]:
    """The entries of the documents with these ids, or of all: the same chunks as in `Fts5Index`."""
    if doc_ids is None:
        documents = snapshot.documents()
    else:
        documents = filter(None, map(snapshot.document, sorted(doc_ids)))
    for document in documents:
        chunks = snapshot.chunks(document.id)
        leaves = [stored for stored in chunks if stored.chunk.text is not None] or chunks[:1]
        # The document's own fields are the same in each of its chunks.
        known: dict[str, Streams] = {}
        for stored in leaves:
            texts = field_texts(document, stored.chunk)
            for text in texts.values():
                if text not in known:
                    known[text] = analyzer.streams(text)
            fields = tuple(known[texts[field]] for field in FIELDS)
            yield Entry(stored.key, document.id, fields)


def positions(streams: Streams) -> Iterator[tuple[int, str]]:
    """The terms of a field with their positions, in order."""
    yield from enumerate(streams.plain)
    first = len(streams.plain) + 1
    for number, term in enumerate(streams.wholes):
        yield first + 2 * number, term


def extent(streams: Streams) -> int:
    """The first position that is not adjacent to any term of the field."""
    return len(streams.plain) + 1 + 2 * len(streams.wholes)


# A keyword index that lives in a folder beside the store and follows it by the change log.
#
# Any thread, and any process, may bring it up to date; one does it at a time, and the others adopt
# what they find. The state that was opened goes on answering until the next one is whole.

WAIT_SECONDS = 5.0
"""How long another process may be writing before a query is told to come again."""
_POLL_SECONDS = 0.02
_ATTEMPTS = 5
"""A state can be replaced while its files are being checked: then the new one is looked at."""
UNSAVED_GENERATIONS = 500
"""Commits that change no text move no file, until the change log might forget where we stand."""
SMALL = 100
"""So few chunks are made anew in a tenth of a second."""
WORN_SHARE = 0.2
"""What was removed still counts in tantivy's mean length: few long ones shift every score."""
_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})

_log = logging.getLogger(__name__)


class OpenIndex(Protocol):
    """Files that were opened for searching; they do not change any more."""

    @property
    def live(self) -> int:
        """How many chunks it has."""
        ...

    @property
    def dead(self) -> int:
        """How many more it carries along that were removed."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written: all entries of some documents go, and these come."""

    is_new: bool
    removed: frozenset[DocId]
    entries: Iterator[Entry]


O_co = TypeVar("O_co", bound=OpenIndex, covariant=True)
O = TypeVar("O", bound=OpenIndex)  # noqa: E741


class EngineLibrary(Protocol[O_co]):
    """What an engine does with files. `version`: all that decides what is in them."""

    @property
    def version(self) -> str: ...

    def open(self, directory: Path) -> O_co:
        """Files that have been verified. Raises Damaged when the library refuses them."""
        ...

    def write(self, directory: Path, changes: Changes) -> None: ...


@dataclass(frozen=True, slots=True)
class _Adopted(Generic[O]):
    """A state of the folder that was verified and opened."""

    state: State
    look: Look
    index: O


class DerivedIndex(Generic[O]):
    """The newest whole state of the folder; safe to use from several threads."""

    def __init__(self, path: Path, library: EngineLibrary[O], analyzer: Analyzer) -> None:
        self._folder = DerivedFolder(path)
        self._library = library
        self._analyzer = analyzer
        self._progress = AppliedCommit()
        self._adopted: _Adopted[O] | None = None
        self._damage = ""
        self._catching_up = threading.Lock()

    @property
    def position(self) -> Position | None:
        """The commit that has been applied; None before the first catch-up."""
        return self._progress.position

    def opened(self, snapshot: Snapshot) -> O:
        """What can be searched now."""
        while (adopted := self._adopted) is None:
            self.catch_up(snapshot)
        return adopted.index

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the files to the snapshot: adopts what another process made of them, or redoes
        what was touched, or all of it.

        Raises IndexLocked when another thread or process takes too long, and IndexStoreError when
        the folder cannot be written; what was opened before stays.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        if not self._catching_up.acquire(timeout=WAIT_SECONDS):
            raise self._busy()
        try:
            while self._is_behind(snapshot):
                with self._folder.lock() as is_ours:
                    if is_ours:
                        if self._is_behind(snapshot):
                            self._follow(snapshot)
                        return
                if time.monotonic() > deadline:
                    raise self._busy()
                time.sleep(_POLL_SECONDS)
        finally:
            self._catching_up.release()

    def forget(self) -> None:
        """The next catch-up starts over: commits that were applied are gone from the store."""
        with self._catching_up:
            self._progress.forget()

    def _busy(self) -> IndexLocked:
        return IndexLocked(f"{self._folder.path} is still being written: try again")

    def _is_behind(self, snapshot: Snapshot) -> bool:
        """Whether something must be written; what others have written is adopted first."""
        self._adopt()
        if self._adopted is None:
            return True
        if not self._progress.is_behind(snapshot):
            return False
        touched = self._progress.touched(snapshot, _KINDS)
        passed = snapshot.position.generation - self._adopted.state.position.generation
        if touched or touched is None or passed > UNSAVED_GENERATIONS:
            return True
        self._progress.reach(snapshot.position)
        return False

    def _adopt(self) -> None:
        """Opens what the folder holds, unless that is what we have."""
        adopted = self._adopted
        if adopted is not None and self._folder.look(adopted.state) == adopted.look:
            return
        try:
            found = self._open()
        except Damaged as damage:
            found, self._damage = None, str(damage)
        if found is None:
            self._adopted = None
            self._progress.forget()
        else:
            self._take(found)

    def _open(self) -> _Adopted[O] | None:
        for attempt in range(_ATTEMPTS):
            state = self._folder.state()
            if state is None or state.version != self._library.version:
                return None
            try:
                self._folder.verify(state)
                return self._opened(state)
            except Damaged:
                if attempt + 1 == _ATTEMPTS or self._folder.state() == state:
                    raise
        return None

    def _opened(self, state: State) -> _Adopted[O]:
        look = self._folder.look(state)
        if look is None:
            raise Damaged("a file is missing")
        return _Adopted(state, look, self._library.open(self._folder.path / state.directory))

    def _take(self, found: _Adopted[O]) -> None:
        """A request may come with a snapshot from just before the commit that another process has
        brought the folder to: the commits passed on the way tell it from one of another history.
        """
        is_recent = 0 <= time.time() - found.state.written < IN_FLIGHT_SECONDS
        if self._progress.position is None and is_recent:
            for position in found.state.trail:
                self._progress.reach(position)
        self._progress.reach(found.state.position)
        self._adopted = found

    def _follow(self, snapshot: Snapshot) -> None:
        """Under the lock: writes the next state, and opens it."""
        if self._damage:
            _log.warning("%s is damaged (%s): made anew", self._folder.path, self._damage)
        touched = self._progress.touched(snapshot, _KINDS)
        base = self._adopted
        trail = (*base.state.trail, base.state.position) if base and touched is not None else ()
        written = None
        if base is not None and touched is not None and not _is_most(len(touched), snapshot):
            changes = Changes(False, touched, read_entries(snapshot, self._analyzer, touched))
            written = self._write(snapshot, changes, base.state, trail)
        if written is None or _is_worn(written.index):
            changes = Changes(True, frozenset(), read_entries(snapshot, self._analyzer))
            written = self._write(snapshot, changes, None, trail)
        self._damage = ""
        self._take(written)

    def _write(
        self,
        snapshot: Snapshot,
        changes: Changes,
        base: State | None,
        trail: tuple[Position, ...],
    ) -> _Adopted[O]:
        with self._folder.draft(snapshot.position, base) as draft:
            self._library.write(draft.directory, changes)
            state = self._folder.publish(draft, self._library.version, snapshot.position, trail)
        return self._opened(state)


def _is_most(touched: int, snapshot: Snapshot) -> bool:
    """Whether making all of it anew costs little more."""
    return touched * 2 > snapshot.ledger.count("documents")


def _is_worn(index: OpenIndex) -> bool:
    """Whether so much that was removed is left behind that it shows."""
    return index.dead > (0 if index.live <= SMALL else index.live * WORN_SHARE)
