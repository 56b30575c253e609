"""Several runs of a model at once, each on a thread of its own."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def run_all(run: Callable[[list[int]], None], groups: Sequence[list[int]], threads: int) -> None:
    """Every group once; the first failure ends the work and is raised."""
    if threads == 1 or len(groups) <= 1:
        for group in groups:
            run(group)
        return
    pool = ThreadPoolExecutor(min(threads, len(groups)), thread_name_prefix="model")
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
