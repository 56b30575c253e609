"""Where the benchmarks find texts: this clone, and sets that may lie beside it."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
OWN_SET = PROJECT / "tests" / "fixtures" / "benchmark"
SHARED = PROJECT.parent / "shared" / "eval"


def shared_set(name: str) -> Path | None:
    """A labelled set that is not part of the project; None in a clone on its own."""
    folder = SHARED / name
    return folder if folder.is_dir() else None
