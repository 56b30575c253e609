"""Copies of files that nobody else can reach, for a library that maps files into memory.

A mapped file that is cut short ends the process. tantivy maps what it opens, and one of its threads
opens it again shortly after, whatever it is told.
"""

import shutil
import tempfile
import weakref
from pathlib import Path


class PrivateFiles:
    """A folder of copies; it goes with the last reference to this object, or with the process."""

    def __init__(self, original: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ragdocs-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        for file in original.iterdir():
            if file.is_file():
                shutil.copyfile(file, self.path / file.name)

    def give_back(self, original: Path) -> None:
        """Makes the original folder as this one. What it had may be shared with older states by
        hard links, so that a changed file is put in its place and never written into.
        """
        mine = {file.name for file in self.path.iterdir()}
        for file in list(original.iterdir()):
            if file.name not in mine:
                file.unlink()
        for name in mine:
            target = original / name
            if not target.exists() or target.read_bytes() != (self.path / name).read_bytes():
                target.unlink(missing_ok=True)
                shutil.copyfile(self.path / name, target)
