"""Room on the disk, against what the index takes now and would take while it is rebuilt."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.diagnosis.index_files import disk_use
from ragdocs.wording import size_text

FULL_BYTES = 50_000_000
"""With less than this, not even a small index can be written for long."""
LEAST_BYTES = 500_000_000


def check_space(case: Case) -> Iterator[Finding]:
    directory = case.directory
    nearest = next((one for one in (directory, *directory.parents) if one.exists()), Path("/"))
    free = shutil.disk_usage(nearest).free
    used = disk_use(directory).total
    said = f"{size_text(free)} free, the index takes {size_text(used)}"
    if free < FULL_BYTES:
        yield Finding(Level.ERROR, f"the disk of {at(nearest)} is full: {said}", "make room on it")
    elif free < max(LEAST_BYTES, used):
        yield Finding(
            Level.WARNING,
            f"there is little room on the disk of {at(nearest)}: {said}",
            "make room: an index takes as much again while it is rebuilt",
        )
    else:
        yield Finding(Level.OK, said)
