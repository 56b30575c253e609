"""A keyword engine outside the store: its files, their checksums, and how it catches up."""

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

# Files of a derived index: opened without following links, linked, hashed.

Identity = tuple[int, int, int]
"""Inode, size and time of modification, which show quickly that a file was changed. Hard links
share it."""


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
    """Makes a hard link, or a copy where the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except (OSError, NotImplementedError, AttributeError):
        shutil.copyfile(source, target)


def discard(path: Path) -> None:
    """Removes a file, link or folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def replace_file(target: Path, temporary: Path, data: bytes) -> None:
    """Replaces a file atomically: readers see the old content or the new."""
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
    """Makes a private folder in place of anything else at its path."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user_id() is not None and path.stat().st_mode & 0o077:
        path.chmod(0o700)


@contextmanager
def try_to_lock(path: Path) -> Generator[bool]:
    """Takes a lock without waiting; yields whether it did. The kernel releases it at exit."""
    with translate_errors(path.parent):
        if path.is_symlink() or is_obstacle(path):
            discard(path)
        held = try_lock(path)
    try:
        yield held is not None
    finally:
        if held is not None:
            held.close()


@contextmanager
def translate_errors(folder: Path) -> Generator[None]:
    """Turns an OSError, such as a full disk, into an IndexStoreError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise IndexStoreError(
            f"{folder} cannot be written ({reason}): free space or make it writable, or set "
            'keyword_engine = "fts5"'
        ) from error


# The state of a derived index, stored as JSON with its own hash, never as a pickle.

_FORMAT = 1
TRAIL = 16
"""How many of the previous commits are stored; see `DerivedIndex._take`."""
_DIRECTORY = re.compile(r"\d{8,}-[0-9a-f]{8}")
_FILE = re.compile(r"[\w.][\w.\-]*")
_LOCKS = (".lock", "_WRITELOCK")


class Damaged(Exception):
    """The folder is not as it was written; it is rebuilt from the store."""


@dataclass(frozen=True, slots=True)
class FileMark:
    """The size and hash that a file must have."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The files of the index, its version, and the commit that it has applied.

    `trail` has the previous commits, oldest first, and `written` the wall clock.
    """

    version: str
    position: Position
    trail: tuple[Position, ...]
    written: float
    directory: str
    files: Mapping[str, FileMark]


def is_bookkeeping(name: str) -> bool:
    """Whether a file is not part of the index, but an empty one that a library locks."""
    return name.endswith(_LOCKS)


def serialise_state(state: State) -> bytes:
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
    """Raises Damaged for anything that `serialise_state` did not write."""
    try:
        found = json.loads(data)
        body = found["body"]
        if found["sha256"] != _hash(body) or body["format"] != _FORMAT:
            raise Damaged("state.json has changed since it was written")
        return _state(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged("state.json cannot be read") from error


def _state(body: Mapping[str, Any]) -> State:
    files = {
        str(name): FileMark(int(size), str(sha)) for name, (size, sha) in body["files"].items()
    }
    directory = str(body["directory"])
    if not _DIRECTORY.fullmatch(directory) or not all(map(_FILE.fullmatch, files)):
        raise Damaged("state.json lists files outside its folder")
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


# The folder of a derived index: its current files, and whether they are complete.
#
#     lock                  held by the writer; the kernel releases it when that process dies
#     state.json            the current directory and its commit, with a hash of every file
#     00000012-1f2e3d4c/    the files as the engine's library wrote them
#
# A directory is never changed once `state.json` names it: the next state is made beside it, with
# links to the files that stay, and replacing `state.json` is the only commit point. Readers keep
# the old files that they have open. Nothing is synced to disk: a file that a power cut damaged is
# recognised by its hash, and the index is rebuilt.

STATE_FILE = "state.json"
LOCK_FILE = "lock"
_TEMPORARY = re.compile(r"state\.json\.[0-9a-f]{8}")

Look = tuple[Identity, ...]
"""The identities of all files of a state, `state.json` first."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A directory for the next state, with links to the files of the previous one."""

    directory: Path
    base: State | None


class DerivedFolder:
    """One engine's folder. Reading changes nothing; `draft` and `publish` need the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._verified: dict[Identity, str] = {}

    def state(self) -> State | None:
        """The state that the folder has according to `state.json`; None if there is none yet."""
        try:
            data = content(self.path / STATE_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Damaged(f"{STATE_FILE} cannot be read: {error.strerror}") from error
        return read_state(data)

    def verify(self, state: State) -> None:
        """Raises Damaged unless every file exists with its size and hash."""
        known: dict[Identity, str] = {}
        for name, mark in state.files.items():
            path = self.path / state.directory / name
            try:
                seen = identity(path)
                # A file that was read before and has not changed since is not read again.
                found = self._verified.get(seen) or sha256(path)
            except OSError as error:
                raise Damaged(f"{name} cannot be read: {error.strerror}") from error
            if (seen[1], found) != (mark.size, mark.sha256):
                raise Damaged(f"{name} has changed since it was written")
            known[seen] = found
        self._verified = known

    def look(self, state: State) -> Look | None:
        """The identities of a state's files; None if one is missing. Cheap: done for each query."""
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
        """Takes the lock without waiting; yields whether it did."""
        with translate_errors(self.path):
            claim_folder(self.path.parent)
            make_folder(self.path)
        with try_to_lock(self.path / LOCK_FILE) as is_ours:
            yield is_ours

    @contextmanager
    def draft(self, position: Position, base: State | None) -> Generator[Draft]:
        """Makes a directory for the next state, and removes it if the block fails."""
        directory = self.path / f"{position.generation:08d}-{secrets.token_hex(4)}"
        with translate_errors(self.path):
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
        """Makes a draft the current state, and removes older directories."""
        with translate_errors(self.path):
            state = State(
                version=version,
                position=position,
                trail=trail,
                written=time.time(),
                directory=draft.directory.name,
                files=dict(self._marks(draft)),
            )
            temporary = self.path / f"{STATE_FILE}.{secrets.token_hex(4)}"
            replace_file(self.path / STATE_FILE, temporary, serialise_state(state))
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
        """Removes what a killed writer left, and directories that are no longer current."""
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
    """A chunk to be indexed: the terms of each of its fields, in the order of FIELDS."""

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


# A keyword index in a folder beside the store, which follows the change log.
#
# Any thread of any process may bring it up to date. One does it at a time, and the others adopt the
# result. The opened state goes on answering until the next one is complete.

WAIT_SECONDS = 5.0
"""How long a query waits for another process that is writing."""
_POLL_SECONDS = 0.02
_ATTEMPTS = 5
"""A state can be replaced while its files are being checked: then the new one is checked."""
UNSAVED_GENERATIONS = 500
"""Commits that change no text are not saved, until the change log might no longer reach back."""
SMALL = 100
"""So few chunks are rebuilt in a tenth of a second."""
WORN_SHARE = 0.2
"""Removed chunks still count in tantivy's mean length: a few long ones shift every score."""
_KINDS = frozenset({ChangeKind.UPSERT, ChangeKind.DELETE})

_log = logging.getLogger(__name__)


class OpenIndex(Protocol):
    """Files that were opened for searching; they no longer change."""

    @property
    def live(self) -> int:
        """How many chunks it has."""
        ...

    @property
    def dead(self) -> int:
        """How many removed chunks its files still contain."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to write: all entries of some documents are removed, and these are added."""

    is_new: bool
    removed: frozenset[DocId]
    entries: Iterator[Entry]


O_co = TypeVar("O_co", bound=OpenIndex, covariant=True)
O = TypeVar("O", bound=OpenIndex)  # noqa: E741


class EngineLibrary(Protocol[O_co]):
    """How an engine reads and writes files. `version` identifies everything that decides their
    content."""

    @property
    def version(self) -> str: ...

    def open(self, directory: Path) -> O_co:
        """Opens verified files. Raises Damaged if the library refuses them."""
        ...

    def write(self, directory: Path, changes: Changes) -> None: ...


@dataclass(frozen=True, slots=True)
class _Adopted(Generic[O]):
    """A verified and opened state of the folder."""

    state: State
    look: Look
    index: O


class DerivedIndex(Generic[O]):
    """The newest complete state of the folder; safe to use from several threads."""

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

    def current(self, snapshot: Snapshot) -> O:
        """The opened index that can be searched now."""
        while (adopted := self._adopted) is None:
            self.catch_up(snapshot)
        return adopted.index

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the files up to date with the snapshot: adopts another process's state, or indexes
        the changed documents, or all.

        Raises IndexLocked if another thread or process takes too long, and IndexStoreError if the
        folder cannot be written; the previously opened state stays.
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
        """Makes the next catch-up start over: the store has lost commits that were applied."""
        with self._catching_up:
            self._progress.forget()

    def _busy(self) -> IndexLocked:
        return IndexLocked(f"{self._folder.path} is still being written: try again")

    def _is_behind(self, snapshot: Snapshot) -> bool:
        """Whether something must be written; adopts what others have written first."""
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
        """Opens the folder's current state, unless it is open already."""
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
                return self._open_state(state)
            except Damaged:
                if attempt + 1 == _ATTEMPTS or self._folder.state() == state:
                    raise
        return None

    def _open_state(self, state: State) -> _Adopted[O]:
        look = self._folder.look(state)
        if look is None:
            raise Damaged("a file is missing")
        return _Adopted(state, look, self._library.open(self._folder.path / state.directory))

    def _take(self, found: _Adopted[O]) -> None:
        """A request may have a snapshot from just before the commit that another process has
        applied: the trail shows that the snapshot belongs to the same history.
        """
        is_recent = 0 <= time.time() - found.state.written < IN_FLIGHT_SECONDS
        if self._progress.position is None and is_recent:
            for position in found.state.trail:
                self._progress.reach(position)
        self._progress.reach(found.state.position)
        self._adopted = found

    def _follow(self, snapshot: Snapshot) -> None:
        """Writes and opens the next state; needs the lock."""
        if self._damage:
            _log.warning("%s is damaged (%s): rebuilding it", self._folder.path, self._damage)
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
        return self._open_state(state)


def _is_most(touched: int, snapshot: Snapshot) -> bool:
    """Whether rebuilding everything costs little more."""
    return touched * 2 > snapshot.ledger.count("documents")


def _is_worn(index: OpenIndex) -> bool:
    """Whether the files contain so many removed chunks that scores shift."""
    return index.dead > (0 if index.live <= SMALL else index.live * WORN_SHARE)
