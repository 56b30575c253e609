"""Floats on other processors: what may differ, and the settings by which one plays another.

As a program, `python -m tests.kernels COMMAND...`, it runs the command with those settings.
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence

import pytest

ROUNDING = 1e-5
"""A sum of a few hundred products of float32 differs by less, whichever kernel adds them up."""

DISABLED = "NPY_DISABLE_CPU_FEATURES"


def assert_best(hits: Sequence, scores: Mapping, limit: int) -> None:
    """The best of these scores, best first; two that are as good as equal may change places."""
    best = sorted(scores.values(), reverse=True)[:limit]
    assert len({hit.key for hit in hits}) == len(hits)
    assert [scores[hit.key] for hit in hits] == pytest.approx(best, abs=ROUNDING)
    assert [hit.score for hit in hits] == pytest.approx(best, abs=ROUNDING)


def assert_same_hits(found: Sequence, expected: Sequence) -> None:
    """The same keys and scores; two that are as good as equal may change places."""
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
        # Where they are off already, numpy no longer tells them.
        DISABLED: os.environ.get(DISABLED) or " ".join(_dispatched()),
    }


def _dispatched() -> list[str]:
    """What numpy would use here beyond its least. It complains of any other name."""
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
