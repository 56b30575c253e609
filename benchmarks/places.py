"""Where the benchmarks find texts: this clone, and sets that may be beside it."""

import sys
import sysconfig
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
OWN_SET = PROJECT / "tests" / "fixtures" / "benchmark"
SHARED = PROJECT.parent / "shared" / "eval"


def shared_set(name: str) -> Path | None:
    """A labelled set outside the project; None if only the clone is there."""
    folder = SHARED / name
    return folder if folder.is_dir() else None


def placeless(text: str) -> str:
    """Without this machine's folders: the errors of a benchmark are kept and published."""
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
