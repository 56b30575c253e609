"""What a reference may mean, read from its text alone: no file or index is looked at.

A file's name may hold `#`, `:` or `%`, so a reference has several readings; which one holds is
decided by what there is. The most literal reading comes first.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain

from ragdocs.errors import QueryError
from ragdocs.parsers.identity import decode_path, encode_path

MAX_SHOWN_CHARS = 120
_LINES = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# A byte of a name that is not UTF-8 arrives as one of U+DC80 to U+DCFF; no other is a name's.
_NEVER_IN_A_NAME = re.compile("[\x00\ud800-\udc7f\udd00-\udfff]")
HINT = "give an id, a path relative to its tree, `path#heading` or `path:10-40`"


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a reference: in one tree or any, with a heading, with lines, or neither."""

    path: str
    tree: str | None = None
    fragment: str | None = None
    lines: tuple[int, int] | None = None


def shown(text: str) -> str:
    """Fit for a message: on one line, valid, and not long."""
    safe = encode_path(_NEVER_IN_A_NAME.sub("\ufffd", text))
    return safe if len(safe) <= MAX_SHOWN_CHARS else f"{safe[: MAX_SHOWN_CHARS - 1]}…"


def readings(reference: str, trees: Collection[str]) -> list[Reading]:
    """Every reading that stays within the trees, the most literal first.

    Raises:
        QueryError: there is none.
    """
    refuse_outside(reference)
    found = dict.fromkeys(
        reading
        for tree, rest in _in_trees(reference, trees)
        for reading in _forms(rest, tree)
        if reading.path
    )
    if not found:
        raise QueryError(f"`{shown(reference)}` names no document: {HINT}")
    return list(found)


def refuse_outside(reference: str) -> None:
    """Raises QueryError for what cannot be a path within a tree."""
    if _NEVER_IN_A_NAME.search(reference):
        raise QueryError(f"the reference has characters that no file's name can have: {HINT}")
    if reference.startswith(("/", "~/")) or _DRIVE.match(reference):
        raise QueryError(f"an absolute path is not accepted: {HINT}")
    parts = chain(reference.split("/"), decode_path(reference).split("/"))
    if any(part.rpartition(":")[2] == ".." for part in parts):
        raise QueryError(f"a path with `..` is not accepted: {HINT}")


def _in_trees(reference: str, trees: Collection[str]) -> Iterator[tuple[str | None, str]]:
    tree, colon, rest = reference.partition(":")
    if colon and tree in trees:
        yield tree, rest
    yield None, reference


def _forms(text: str, tree: str | None) -> Iterator[Reading]:
    for path in _spellings(text):
        yield Reading(path, tree)
    if found := _LINES.fullmatch(text):
        first = int(found["first"])
        for path in _spellings(found["path"]):
            yield Reading(path, tree, lines=(first, int(found["last"] or first)))
    # In an id the first `#` ends the path; in a path as it is typed it may be the last one.
    for path_text, hash_sign, fragment in (text.partition("#"), text.rpartition("#")):
        if hash_sign and fragment:
            for path in _spellings(path_text):
                yield Reading(path, tree, fragment=fragment)


def _spellings(text: str) -> Iterator[str]:
    """As it is, and as an id would have it; without `./` and doubled slashes."""
    for path in (text, decode_path(text)):
        if not path.startswith("/") and "\0" not in path:
            yield "/".join(part for part in path.split("/") if part not in ("", "."))
