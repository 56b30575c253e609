"""Several runs of a model at once, each on a thread of its own."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

NICENESS = 10
"""Bulk work may take every core, as long as nobody asks a question."""


def run_all(
    run: Callable[[list[int]], None], groups: Sequence[list[int]], threads: int, nice: bool = False
) -> None:
    """Every group once, `nice` behind all other work; the first failure ends it and is raised."""
    if not nice and (threads == 1 or len(groups) <= 1):
        for group in groups:
            run(group)
        return
    if not groups:
        return
    workers = min(threads, len(groups))
    begin = _be_nice if nice else None
    pool = ThreadPoolExecutor(workers, thread_name_prefix="model", initializer=begin)
    try:
        for _ in pool.map(run, groups):
            pass
    finally:
        # After a failure or an interrupt nothing more is started: at most one run is waited for.
        pool.shutdown(wait=True, cancel_futures=True)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _be_nice() -> None:
    """Lowers this thread alone; only Linux can do that."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
