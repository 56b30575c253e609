"""Python's garbage collector, and when it is of no use."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

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
