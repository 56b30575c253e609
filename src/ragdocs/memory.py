"""Memory of a process that runs for weeks: a cache bounded in bytes, and garbage collection."""

import gc
import sys
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

# A cache with a bound in bytes, because a server runs for weeks.
#
# `functools.lru_cache` counts entries, and one entry may be a letter or a book. This one counts
# bytes and keeps two generations: when the younger half is full, the older half is dropped, except
# entries that were used since. So a hit is one dict lookup, as cheap as with `lru_cache`.

ENTRY_BYTES = 130
"""The overhead of the dict: a slot at its average fill, and the allocator's rounding."""
_OBJECT_BYTES = 64
_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V], Generic[K, V]):
    """`cache[key]` is `make(key)`, computed once as long as there is room.

    Safe to use from several threads, which at worst compute the same value twice. `size` returns
    the bytes of a key and its value; the default measures every part of both.
    """

    def __init__(
        self,
        make: Callable[[K], V],
        most_bytes: int,
        size: Callable[[K, V], int] | None = None,
        *,
        largest: int = 0,
    ) -> None:
        """`largest`: an entry of up to this many bytes is kept even if it needs more than half of
        `most_bytes`, until others replace it."""
        super().__init__()
        self._make = make
        self._size = size or _bytes_of_both
        self._room = most_bytes // 2
        self._largest = max(self._room, largest)
        self._younger = self._older = 0
        self._old: dict[K, V] = {}
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """The approximate size of the cache."""
        return self._younger + self._older

    def __missing__(self, key: K) -> V:
        old = self._old
        value = old[key] if key in old else self._make(key)
        size = ENTRY_BYTES + self._size(key, value)
        if size <= self._largest:
            with self._lock:
                self._keep(key, value, size)
        return value

    def forget(self) -> None:
        with self._lock:
            self.clear()
            self._old = {}
            self._younger = self._older = 0

    def _keep(self, key: K, value: V, size: int) -> None:
        if self._younger + size > self._room:
            self._old, self._older = self.copy(), self._younger
            self.clear()
            self._younger = 0
        self[key] = value
        self._younger += size


def bytes_of(value: object) -> int:
    """The approximate memory of a value and everything in it: texts, numbers, tuples, sets, and
    objects with slots. Shared parts are counted each time.
    """
    kind = type(value)
    size = sys.getsizeof(value, _OBJECT_BYTES)
    if kind in _PLAIN:
        return size
    if isinstance(value, tuple | list | set | frozenset):
        return size + sum(map(bytes_of, cast("Collection[object]", value)))
    names: tuple[str, ...] = getattr(kind, "__slots__", ())
    return size + sum(bytes_of(getattr(value, name)) for name in names)


def _bytes_of_both(key: object, value: object) -> int:
    return bytes_of(key) + bytes_of(value)


# When Python's garbage collector should not run.

NEW_OBJECTS = 20_000
"""A search creates thousands of objects and drops them. With Python's smaller default the collector
runs while they are in use, takes them for long-lived ones, and after every few expensive requests
scans the whole process, for 0.1 s."""


def collect_seldom() -> None:
    """For a process that answers requests."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def no_collection() -> Generator[None]:
    """For work that creates many objects and keeps them all: the collector would scan them over and
    over, and sometimes all objects of the process.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Code that has disabled it in the meantime only loses some time by this.
        if was_enabled:
            gc.enable()
