"""Another home than the real one, for programs that look there."""

import os
from pathlib import Path

import pytest


def move_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Nothing of the real one stays in sight, and none of our variables."""
    for name in [name for name in os.environ if name.startswith(("RAGDOCS_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
