"""Names like one that does not exist: what a wrong reference may have meant."""

from collections.abc import Iterable

from ragdocs.parsers.identity import encode_path
from ragdocs.store.holdings import some_paths
from ragdocs.store.snapshot import Snapshot

MAX_COMPARED = 5_000
"""Paths, in a large index: an error must come at once."""
MAX_CHARS = 200
"""Of a name that is compared."""
MIN_LIKENESS = 55.0
"""Of 100: under this, names are called alike that nobody would confuse."""


def nearest_paths(snapshot: Snapshot, path: str, count: int) -> list[str]:
    """By the whole path or by the file's name, whichever is more alike."""
    return nearest(path, some_paths(snapshot, MAX_COMPARED), count)


def nearest(wanted: str, names: Iterable[str], count: int) -> list[str]:
    """The most alike, best first."""
    from rapidfuzz.fuzz import ratio

    typed = _comparable(wanted)
    last = typed.rpartition("/")[2]

    def likeness(name: str) -> float:
        known = _comparable(name)
        return max(ratio(typed, known), ratio(last, known.rpartition("/")[2]))

    judged = sorted((-likeness(name), name) for name in dict.fromkeys(names))
    return [name for worth, name in judged[:count] if -worth >= MIN_LIKENESS]


def _comparable(name: str) -> str:
    return encode_path(name)[-MAX_CHARS:].casefold()
