"""Files that could not be indexed, or not as they are, and broken links."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.diagnosis.status import FileWarning
from ragdocs.diagnosis.store_look import BUSY_SECONDS, look_at_store
from ragdocs.errors import IndexStoreError
from ragdocs.store.reader import Reader
from ragdocs.store.records import ResolvedLink
from ragdocs.wording import number_of

SHOWN = 5
"""Of each kind; the rest is counted."""
MAX_TARGET_CHARS = 80


def check_failures(case: Case) -> Iterator[Finding]:
    look = look_at_store(case.directory, "")
    if look.error is not None:
        return
    number = look.holdings.files_failed
    if not number:
        yield Finding(Level.OK, "every file could be indexed")
        return
    shown = tuple(f"{one.tree}: {one.reason}" for one in look.failures[:SHOWN])
    yield Finding(
        Level.WARNING,
        f"{number_of(number, 'file')} could not be indexed",
        "put them right, or exclude them; they are read again when they change",
        details=_with_rest(shown, number),
    )


def check_warnings(case: Case) -> Iterator[Finding]:
    look = look_at_store(case.directory, "")
    if look.error is not None:
        return
    lossy = [one for one in look.warnings if one.is_loss]
    others = [one for one in look.warnings if not one.is_loss]
    if lossy:
        yield Finding(
            Level.WARNING,
            f"{number_of(look.holdings.files_with_loss, 'file')} indexed, but not all that they "
            "hold can be found",
            "save them as UTF-8, or split what is too large; they are read again when they change",
            details=_with_rest(_shown(lossy), len(lossy)),
        )
    if others:
        yield Finding(
            Level.NOTE,
            f"{number_of(len(others), 'remark')} on files that were indexed",
            details=_with_rest(_shown(others), len(others)),
        )
    if not look.warnings:
        yield Finding(Level.OK, "every indexed file was read as it is")


def _shown(warnings: Sequence[FileWarning]) -> tuple[str, ...]:
    return tuple(f"{one.tree}: {one.path}: {one.text}" for one in warnings[:SHOWN])


def check_links(case: Case) -> Iterator[Finding]:
    try:
        with (
            closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            links = snapshot.unresolved_links()
            number = snapshot.ledger.count("links")
    except IndexStoreError:  # that the store cannot be read is said elsewhere
        return
    if not links:
        yield Finding(Level.OK, f"all {number:,} links between documents lead somewhere")
        return
    yield Finding(
        Level.NOTE,
        f"{len(links):,} of {number:,} links lead to no document",
        "correct them, or let them be: they resolve as soon as such a document is there",
        details=_with_rest(tuple(map(_place, links[:SHOWN])), len(links)),
    )


def _place(found: ResolvedLink) -> str:
    link = found.link
    target = link.target + (f"#{link.anchor}" if link.anchor else "")
    return f"{found.source}:{link.span.line_start}: {target[:MAX_TARGET_CHARS]}"


def _with_rest(shown: tuple[str, ...], number: int) -> tuple[str, ...]:
    rest = number - len(shown)
    return (*shown, f"and {rest:,} more") if rest > 0 else shown
