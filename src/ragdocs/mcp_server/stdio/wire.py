"""The protocol's two ends, moved to where nothing else can reach them.

Afterwards what any library prints goes to stderr, and what reads standard input gets nothing.
"""

import fcntl
import os
from dataclasses import dataclass

_FIRST_PRIVATE = 3


@dataclass(frozen=True, slots=True)
class Wire:
    """The descriptors that carry the protocol."""

    reading: int
    writing: int


def claim() -> Wire:
    """Takes standard input and output for the protocol alone, for as long as the process lives."""
    wire = Wire(_private(0, os.O_RDONLY), _private(1, os.O_WRONLY))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without stderr
        os.dup2(nothing, 1)
    if nothing >= _FIRST_PRIVATE:
        os.close(nothing)
    return wire


def _private(descriptor: int, flags: int) -> int:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    except OSError:  # it was closed: nobody speaks or listens there
        opened = os.open(os.devnull, flags)
        return fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
