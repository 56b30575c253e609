"""Memory of a process that runs for weeks: a cache with a bound in bytes, and when garbage is
collected.
"""

import gc
import sys
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

# What was computed once is kept, up to a bound in bytes: a server lives for weeks.
#
# `functools.lru_cache` counts entries, and one entry may be a letter or a book. This one counts
# bytes and keeps two generations: when the younger half of the room is full, the older half goes,
# except what was asked for since. So a hit is one look into a dict, as cheap as with `lru_cache`.

ENTRY_BYTES = 130
"""Of the dict itself: a slot at its average fill, and what the allocator rounds up."""
_OBJECT_BYTES = 64
_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V], Generic[K, V]):
    """`cache[key]` is `make(key)`, made once as long as there is room.

    Safe to use from several threads, which at worst make the same value twice. `size` tells the
    bytes of a key with its value; without it every part of both is looked at.
    """

    def __init__(
        self,
        make: Callable[[K], V],
        most_bytes: int,
        size: Callable[[K, V], int] | None = None,
        *,
        largest: int = 0,
    ) -> None:
        """`largest`: an entry that needs more than half the room is kept too, up to so many bytes,
        until others have taken its place."""
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
        """How much is kept, about."""
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
    """About how much memory a value takes with all it holds: texts, numbers, tuples, sets, and
    objects with slots. What several hold is counted for each.
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


# Python's garbage collector, and when it is of no use.

NEW_OBJECTS = 20_000
"""A search makes thousands of objects and drops them. By Python's own, smaller figure
the collector runs while they are in use, takes them for long-lived ones, and after every few dear
requests goes through the whole process, for 0.1 s."""


def collect_seldom() -> None:
    """For a process that answers requests."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def no_collection() -> Generator[None]:
    """For work that makes one object after the other and keeps them all: the collector would go
    through them again and again, and now and then through all that the process has.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Whoever else has disabled it meanwhile loses some time by this, and nothing else.
        if was_enabled:
            gc.enable()
