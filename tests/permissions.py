"""Permissions that bind whoever runs the tests, the administrator too.

Two of its rights make root read and write everything. Without them, in this thread and in the
threads and processes that it starts, modes mean to root what they mean to everyone.
"""

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2
_PR_GET_SECUREBITS, _PR_SET_SECUREBITS = 27, 28
_NO_ROOT, _NO_SETUID_FIXUP = 1, 4
"""Otherwise a program that root starts would get them back, and `os.access` would not know."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Rights(ctypes.Structure):
    _fields_ = tuple((kind, ctypes.c_uint32) for kind in ("effective", "permitted", "inheritable"))


@contextmanager
def bound_by_permissions() -> Generator[None]:
    """For as long as it lasts; skips the test where it cannot be had."""
    if os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("the administrator may do anything here")
    with _without_rights():
        yield


@contextmanager
def _without_rights() -> Generator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    header, rights = _Header(_VERSION, 0), (_Rights * 2)()
    libc.capget(ctypes.byref(header), rights)
    before, bits = rights[0].effective, libc.prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0)
    rights[0].effective = before & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    if libc.prctl(_PR_SET_SECUREBITS, bits | _NO_ROOT | _NO_SETUID_FIXUP, 0, 0, 0):
        pytest.skip("this administrator may not give up what it may do")
    try:
        assert libc.capset(ctypes.byref(header), rights) == 0
        yield
    finally:
        rights[0].effective = before
        assert libc.capset(ctypes.byref(header), rights) == 0
        libc.prctl(_PR_SET_SECUREBITS, bits, 0, 0, 0)
