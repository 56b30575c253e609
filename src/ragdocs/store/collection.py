"""Python's garbage collector, and when it is of no use."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


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
