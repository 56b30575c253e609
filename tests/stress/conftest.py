"""What the long forms share: a seed of their own, and a table of what was measured at the end."""

import os
import random
from collections.abc import Callable

import pytest

from tests.support.storms.seeds import storm_seed

_ROWS = pytest.StashKey[list[tuple[str, dict[str, object]]]]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("STORM_SEED", str(random.SystemRandom().randrange(10**6)))
    config.stash[_ROWS] = []


def pytest_report_header() -> str:
    return f"STORM_SEED={os.environ['STORM_SEED']}, {_machine()}"


@pytest.fixture
def seed() -> int:
    return storm_seed()


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`measured("what was done", kills=50, recovery_seconds=3.2)`: before anything is asserted."""

    def note(what: str, **figures: object) -> None:
        request.config.stash[_ROWS].append((what, figures))

    return note


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash[_ROWS]
    if not rows:
        return
    terminalreporter.section("what was measured")
    terminalreporter.write_line(_machine())
    width = max(len(what) for what, _ in rows)
    for what, figures in rows:
        said = ", ".join(f"{name.replace('_', ' ')} {_shown(n)}" for name, n in figures.items())
        terminalreporter.write_line(f"{what:{width}}  {said}")


def _machine() -> str:
    """Times are worth something only where others leave the cores alone."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def _shown(figure: object) -> str:
    return f"{figure:.1f}" if isinstance(figure, float) else str(figure)
