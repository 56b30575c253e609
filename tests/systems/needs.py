"""What some tests need of the system they run on, and why they are skipped elsewhere.

Nothing is skipped on Linux, but in the processes that tests/integration/test_other_systems.py takes
the calls away from.
"""

import os
import sys

import pytest


def _needs(is_there: bool, why: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_there, reason=why)


fork = _needs(hasattr(os, "fork"), "this system has no fork")
modes = _needs(hasattr(os, "geteuid"), "files have no modes and owners on this system")
posix = _needs(os.name == "posix", "signals, pipes with names and links as POSIX has them")
linux = _needs(sys.platform.startswith("linux"), "asks /proc, or a tool of Linux")
