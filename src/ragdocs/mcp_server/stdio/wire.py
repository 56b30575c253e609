"""The protocol's two ends, moved to where nothing else can reach them.

Afterwards what any library prints goes to stderr, and what reads standard input gets nothing.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
        os.fstat(descriptor)
    except OSError:  # it was closed: nobody speaks or listens there
        return _above(os.open(os.devnull, flags))
    with suppress(ImportError):  # Windows would change line ends, and take ^Z for the end
        system: Any = import_module("msvcrt")
        system.setmode(descriptor, getattr(os, "O_BINARY", 0))
    return _above(descriptor)


def _above(descriptor: int) -> int:
    """A duplicate beyond the three that programs share; no child inherits it."""
    lower: list[int] = []
    try:
        while (found := os.dup(descriptor)) < _FIRST_PRIVATE:
            lower.append(found)
        return found
    finally:
        for each in lower:
            os.close(each)
