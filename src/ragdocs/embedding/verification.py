"""Is this file the one we know? Hashed once per state of the file, and remembered.

Hashing 90 MB costs a tenth of a second or more at every start, so the cache folder keeps what was
found, keyed by everything that changes when a file does. A memory that is lost, damaged or cannot
be written costs time, never correctness.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from ragdocs.files import replace

MEMORY_NAME = "verified-files.json"
# A file changed this recently may change again without its times showing it.
SETTLED_SECONDS = 2.0
_REMEMBERED_FILES = 32


class FileVerifier:
    """Hashes files, and remembers the result for as long as the file stays as it is."""

    def __init__(self, cache_dir: Path, now: Callable[[], float] = time.time) -> None:
        self._memory = cache_dir / MEMORY_NAME
        self._now = now

    def sha256(self, path: Path) -> str:
        """The file's hash. Raises OSError when it cannot be read."""
        resolved = path.resolve(strict=True)
        state = _state(resolved)
        known = self._recall()
        entry = known.get(str(resolved), "")
        if entry.startswith(f"{state} "):
            return entry.rpartition(" ")[2]
        digest = _hash(resolved)
        if self._settled(resolved) and _state(resolved) == state:
            known.pop(str(resolved), None)
            known[str(resolved)] = f"{state} {digest}"
            self._remember(known)
        return digest

    def _settled(self, path: Path) -> bool:
        return self._now() - path.stat().st_ctime >= SETTLED_SECONDS

    def _recall(self) -> dict[str, str]:
        try:
            found: object = json.loads(self._memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        entries = cast(dict[object, object], found).items()
        return {k: v for k, v in entries if isinstance(k, str) and isinstance(v, str)}

    def _remember(self, known: dict[str, str]) -> None:
        newest = dict(list(known.items())[-_REMEMBERED_FILES:])
        with contextlib.suppress(OSError):
            write_private(self._memory, json.dumps(newest, indent=1).encode("utf-8"))


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, readable by its owner only (mkstemp makes it 0600)."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _state(path: Path) -> str:
    # ctime too: it cannot be set back, so it shows an edit that restored the modification time.
    info = path.stat()
    return f"{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}"


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
