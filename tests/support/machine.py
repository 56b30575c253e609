"""The machine under the tests: waiting with a deadline, processor time, permissions, another home,
recorded calls, trust in project files, and floats as other processors round them.

As a program, `python -m tests.support.machine COMMAND...`, it runs the command with the kernels of
an old processor.
"""

import ctypes
import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ragdocs.config.loading import read_project_files
from ragdocs.config.locations import trust_file
from ragdocs.config.problems import Findings
from ragdocs.config.trust import change_grants
from ragdocs.memory import no_collection

T = TypeVar("T")
_PAUSE = 0.02
_PATIENCE = 60.0
"""Nothing that works takes this long on any machine."""


def until(condition: Callable[[], T], seconds: float = _PATIENCE) -> T:
    """Waits for the first true answer and returns it; at the deadline, fails with the last one."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s; at last it was {answer!r}"
        time.sleep(_PAUSE)


TRIES = 3


def takes_less_than(seconds: float, work: Callable[[], object]) -> bool:
    """Takes the best of a few tries, because other threads of this process use processor time too.
    Garbage collection is off: it would walk the objects of all other tests."""
    least = math.inf
    for _ in range(TRIES):
        with no_collection():
            started = time.process_time()
            work()
            least = min(least, time.process_time() - started)
        if least < seconds:
            return True
    print(f"{least:.2f} s at least, and not {seconds}")  # noqa: T201 pytest shows it
    return False


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
    """Inside the `with`, permissions bind even root; skips the test where that is impossible."""
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


def move_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Hides the real home and unsets our variables."""
    for name in [name for name in os.environ if name.startswith(("RAGDOCS_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


def record_calls(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> list[tuple[Any, ...]]:
    """The arguments of each call from now on; of a method, with the object first."""
    calls: list[tuple[Any, ...]] = []
    original = getattr(owner, name)

    def recorded(*given: object, **named: object) -> object:
        calls.append(given)
        return original(*given, **named)

    monkeypatch.setattr(owner, name, recorded)
    return calls


def trust_files(start: Path, environ: Mapping[str, str] | None = None) -> None:
    """Trusts every project file that applies in `start`, with everything it asks for."""
    environ = os.environ if environ is None else environ
    path = trust_file(environ)
    assert path is not None
    found = read_project_files(start, environ, Findings())
    asked = {os.fspath(one.request.file): one.request.grant() for one in found if one.request.asks}
    assert asked, "nothing asks for trust"
    change_grants(path, lambda known: {**known, **asked})


ROUNDING = 1e-5
"""A sum of a few hundred products of float32 differs by less, whichever kernel adds them up."""

DISABLED = "NPY_DISABLE_CPU_FEATURES"


def assert_best(hits: Sequence, scores: Mapping, limit: int) -> None:
    """The hits are the best of these scores, best first; nearly equal ones may swap places."""
    best = sorted(scores.values(), reverse=True)[:limit]
    assert len({hit.key for hit in hits}) == len(hits)
    assert [scores[hit.key] for hit in hits] == pytest.approx(best, abs=ROUNDING)
    assert [hit.score for hit in hits] == pytest.approx(best, abs=ROUNDING)


def assert_same_hits(found: Sequence, expected: Sequence) -> None:
    """The hits have the same keys and scores; nearly equal ones may swap places."""
    assert_best(found, {hit.key: hit.score for hit in (*found, *expected)}, len(expected))
    assert [hit.score for hit in found] == pytest.approx(
        [hit.score for hit in expected], abs=ROUNDING
    )


def narrow_environment() -> dict[str, str]:
    """Settings by which numpy, its OpenBLAS and FAISS use no instruction of this processor that
    an old one lacks. onnxruntime has no such setting, see specs/0059."""
    return {
        "OPENBLAS_CORETYPE": "Nehalem",
        "FAISS_OPT_LEVEL": "generic",
        # Once they are off, numpy no longer reports them.
        DISABLED: os.environ.get(DISABLED) or " ".join(_dispatched()),
    }


def _dispatched() -> list[str]:
    """The processor features that numpy uses beyond its baseline; it warns about other names."""
    for package in ("numpy._core", "numpy.core"):  # since numpy 2, and before
        try:
            built = importlib.import_module(f"{package}._multiarray_umath")
        except ModuleNotFoundError:
            continue
        return [name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name)]
    raise AssertionError("numpy no longer tells what it was built for")


if __name__ == "__main__":
    os.environ.update(narrow_environment())
    os.execvp(sys.argv[1], sys.argv[1:])
