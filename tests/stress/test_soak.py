"""Half an hour of edits and distinct requests through the real server: its memory ends flat."""

from collections.abc import Callable
from pathlib import Path

from tests.support.storms.soaking import Soak

Measured = Callable[..., None]
SECONDS = 1800
FLAT_BYTES = 1 << 20
"""A thousand requests, over the last two thirds. Caches that count entries grew by 5.6 MB."""


def test_half_an_hour_of_edits_and_distinct_requests(tmp_path: Path, seed: int, measured: Measured):
    figures = Soak(tmp_path, seed, notes=600).run(seconds=SECONDS)
    first, last = figures.samples[0][1], figures.samples[-1][1]
    measured(
        "30 minutes of edits and distinct requests",
        requests=figures.requests,
        edits=figures.edits,
        first_megabytes=first / 1e6,
        last_megabytes=last / 1e6,
        growth_a_thousand_in_megabytes=figures.growth() / 1e6,
        in_the_last_third=figures.growth(1 / 3) / 1e6,
        errors=len(figures.errors),
    )
    assert figures.errors == []
    assert figures.growth() < FLAT_BYTES
