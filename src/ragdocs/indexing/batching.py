"""How much goes into one transaction: little enough that nobody waits long for the lock."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from threading import Event
from typing import TypeVar

from ragdocs.indexing.manifest import SourceFile
from ragdocs.indexing.preparation import Prepared

FILES_PER_BATCH = 32
"""Some 350 chunks: half a second to store, with all tables; a tenth of one to remove."""
BYTES_PER_BATCH = 1_000_000
"""Storing text takes more than twice as long as parsing it: half a second for this much."""
ROWS_PER_BATCH = 25_000
"""Headings, links, code blocks and chunks: a note of 100 kB has a few hundred, one of nothing but
headings 25,000. Each takes a kilobyte until it is stored, and 20 microseconds to store."""
SECONDS_PER_BATCH = 0.5
"""Of reading and parsing; so what was edited is soon found, however slow the disk."""
TURN_SECONDS = 0.06
"""Whoever waits for the lock tries every 50 ms. Between files that are read there is time enough
for that; between removals it must be left to them."""

Read = tuple[SourceFile, Prepared | None]
_T = TypeVar("_T")


def batches(
    files: Iterable[SourceFile], prepare: Callable[[SourceFile], Prepared | None], stop: Event
) -> Iterator[list[Read]]:
    """Files with what was prepared of each; ends early, without the last batch, when stopped."""
    batch: list[Read] = []
    size, rows, began = 0, 0, time.monotonic()
    for file in files:
        if stop.is_set():
            return
        prepared = prepare(file)
        batch.append((file, prepared))
        size += file.found.size
        rows += prepared.rows if prepared else 0
        if _is_full(len(batch), size, rows, time.monotonic() - began):
            yield batch
            batch, size, rows, began = [], 0, 0, time.monotonic()
    if batch:
        yield batch


def _is_full(files: int, size: int, rows: int, seconds: float) -> bool:
    is_large = size >= BYTES_PER_BATCH or rows >= ROWS_PER_BATCH
    return files >= FILES_PER_BATCH or is_large or seconds >= SECONDS_PER_BATCH


def portions(items: Iterable[_T], stop: Event) -> Iterator[Sequence[_T]]:
    """As many at a time as files in a batch, with a pause in between; ends early when stopped."""
    iterator = iter(items)
    part = tuple(islice(iterator, FILES_PER_BATCH))
    while part and not stop.is_set():
        yield part
        part = tuple(islice(iterator, FILES_PER_BATCH))
        if part:
            stop.wait(TURN_SECONDS)
