"""What a derived index remembers of itself: JSON with a hash of its own, never a pickle."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragdocs.store.records import Position

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
        position=_position(body["position"]),
        trail=tuple(map(_position, body["trail"])),
        written=float(body["written"]),
        directory=directory,
        files=files,
    )


def _position(found: tuple[int, str]) -> Position:
    generation, stamp = found
    return Position(int(generation), str(stamp))


def _hash(body: object) -> str:
    encoded = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(encoded.encode()).hexdigest()
