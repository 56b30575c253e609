"""Waiting for what must come about, with a deadline: never a sleep of a guessed length."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE = 0.02
_PATIENCE = 60.0
"""Nothing well takes as long on any machine; what never comes about takes for ever."""


def until(condition: Callable[[], T], seconds: float = _PATIENCE) -> T:
    """The first true answer; fails with the last one when there was none in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s; at last it was {answer!r}"
        time.sleep(_PAUSE)
