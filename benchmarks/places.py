"""Where the benchmarks find texts: this clone, and sets that may lie beside it."""

import sys
import sysconfig
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
OWN_SET = PROJECT / "tests" / "fixtures" / "benchmark"
SHARED = PROJECT.parent / "shared" / "eval"


def shared_set(name: str) -> Path | None:
    """A labelled set that is not part of the project; None in a clone on its own."""
    folder = SHARED / name
    return folder if folder.is_dir() else None


def placeless(text: str) -> str:
    """Without the folders of this machine: what a benchmark fails with is kept and published."""
    names = {
        str(PROJECT): ".",
        sysconfig.get_path("purelib"): "PACKAGES",
        sysconfig.get_path("stdlib"): "PYTHON",
        sys.prefix: "VENV",
        sys.base_prefix: "PYTHON",
        str(PROJECT.parent): "..",
        tempfile.gettempdir(): "TMP",
        str(Path.home()): "~",
    }
    for folder in sorted(names, key=len, reverse=True):  # the longest says the most
        text = text.replace(folder, names[folder])
    return text
