"""The indices of the same documents that were built with other settings: how large, how old."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.index_files import variants_of
from ragdocs.diagnosis.status import VariantStatus
from ragdocs.store.variants import drop_unused, unused
from ragdocs.wording import advised, number_of, size_text

MUCH_BYTES = 1_000_000_000
"""Of indices that this program does not use: then they are worth a word."""


def check_variants(case: Case) -> Iterator[Finding]:
    found = variants_of(case.directory)
    others = [one for one in found if not one.is_own]
    if not others:
        yield Finding(Level.OK, "no index of these documents with other settings")
        return
    size = sum(one.bytes for one in others)
    number = number_of(len(others), "index", "indices")
    message = f"{number} of these documents with other settings, {size_text(size)} in all"
    details = tuple(map(variant_line, found))
    if old := unused(case.directory):
        yield Finding(
            Level.NOTE,
            f"{message}; {len(old)} not used for 30 days",
            f"they are deleted by {advised('update')}, or by a server",
            details,
            Repair("delete indices that are not used", partial(_drop, case.directory)),
        )
    elif size >= MUCH_BYTES:
        advice = (
            "programs with the same index settings share one index; what is not used for 30 days "
            "is deleted by itself, and any of these folders may be deleted by hand"
        )
        yield Finding(Level.NOTE, message, advice, details)
    else:
        yield Finding(Level.OK, message, details=details)


def variant_line(one: VariantStatus) -> str:
    """One index in words."""
    when = f"last used {one.last_used[:10]}" if one.last_used else "never used"
    return f"{one.path}: {size_text(one.bytes)}, {when}" + (", in use here" if one.is_own else "")


def _drop(directory: Path) -> str:
    dropped = drop_unused(directory)
    return f"deleted {number_of(len(dropped), 'index', 'indices')} that nobody used"
