"""The folder of a derived index: which files are the index now, and that they are whole.

    lock                  held by whoever writes, and freed by the kernel when that process dies
    state.json            which directory counts, up to which commit, with a hash of every file
    00000012-1f2e3d4c/    the files as the engine's library made them

A directory is never changed once `state.json` names it: the next state is made beside it, out of
links to the files that stay, and replacing `state.json` is the one commit point. Readers that have
the old files open keep them. Nothing is synced to the disk: what a power cut takes is noticed by
its hash, and made anew.
"""

import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragdocs.indices.derived_files import (
    Identity,
    content,
    discard,
    identity,
    link,
    locked,
    make_folder,
    replace_file,
    sha256,
    translated,
)
from ragdocs.indices.derived_state import (
    Damaged,
    FileMark,
    State,
    is_bookkeeping,
    read_state,
    written_state,
)
from ragdocs.store.folder import claim_folder
from ragdocs.store.records import Position

STATE_FILE = "state.json"
LOCK_FILE = "lock"
_DIRECTORY = re.compile(r"\d{8,}-[0-9a-f]{8}")
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
