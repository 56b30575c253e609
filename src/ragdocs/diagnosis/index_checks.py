"""Checks of the index: the store, its counts and vectors, failed files and links to no document."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial

from ragdocs.app import App
from ragdocs.diagnosis.case import Case, Finding, Level, Repair, at
from ragdocs.diagnosis.file_problems import FileWarning
from ragdocs.diagnosis.folder_checks import odd_file_repair
from ragdocs.diagnosis.probes import (
    BUSY_SECONDS,
    disk_use,
    probe_store,
    stored_schema,
    vectors_model,
)
from ragdocs.errors import (
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OthersIndex,
    RagdocsError,
)
from ragdocs.indices.consistency import find_inconsistencies
from ragdocs.store.database import store_path
from ragdocs.store.integrity import refusal
from ragdocs.store.reader import Reader
from ragdocs.store.records import ResolvedLink
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.writer import check_ours
from ragdocs.text import advised, number_of, size_text

# Files that could not be indexed, or only in part, and links to no document.

SHOWN = 5
"""How many of each kind are listed; the rest is counted."""
MAX_TARGET_CHARS = 80


def check_failures(case: Case) -> Iterator[Finding]:
    probe = probe_store(case.directory, "")
    if probe.error is not None:
        return
    number = probe.holdings.files_failed
    if not number:
        yield Finding(Level.OK, "all files are indexed")
        return
    shown = tuple(f"{one.tree}: {one.reason}" for one in probe.failures[:SHOWN])
    yield Finding(
        Level.WARNING,
        f"{number_of(number, 'file')} could not be indexed",
        "correct or exclude them; they are read again when they change",
        details=_with_rest(shown, number),
    )


def check_warnings(case: Case) -> Iterator[Finding]:
    probe = probe_store(case.directory, "")
    if probe.error is not None:
        return
    lossy = [one for one in probe.warnings if one.is_loss]
    others = [one for one in probe.warnings if not one.is_loss]
    if lossy:
        yield Finding(
            Level.WARNING,
            f"{number_of(probe.holdings.files_with_loss, 'file')} indexed, but parts cannot be "
            "found",
            "save them as UTF-8, or split those that are too large; they are read again when they "
            "change",
            details=_with_rest(_warning_lines(lossy), len(lossy)),
        )
    if others:
        yield Finding(
            Level.NOTE,
            f"{number_of(len(others), 'note')} on indexed files",
            details=_with_rest(_warning_lines(others), len(others)),
        )
    if not probe.warnings:
        yield Finding(Level.OK, "all indexed files were read in full")


def _warning_lines(warnings: Sequence[FileWarning]) -> tuple[str, ...]:
    return tuple(f"{one.tree}: {one.path}: {one.text}" for one in warnings[:SHOWN])


def check_links(case: Case) -> Iterator[Finding]:
    try:
        with (
            closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            links = snapshot.unresolved_links()
            number = snapshot.ledger.count("links")
    except IndexStoreError:  # another check reports it
        return
    if not links:
        yield Finding(Level.OK, f"all links lead to documents ({number:,})")
        return
    yield Finding(
        Level.NOTE,
        f"links to no document of the index: {len(links):,} of {number:,}",
        f"{advised('lint')} shows which of them are broken",
        details=_with_rest(tuple(map(_place, links[:SHOWN])), len(links)),
    )


def _place(found: ResolvedLink) -> str:
    link = found.link
    target = link.target + (f"#{link.anchor}" if link.anchor else "")
    return f"{found.source}:{link.span.line_start}: {target[:MAX_TARGET_CHARS]}"


def _with_rest(shown: tuple[str, ...], number: int) -> tuple[str, ...]:
    rest = number - len(shown)
    return (*shown, f"and {rest:,} more") if rest > 0 else shown


# The whole store: every page, and every row against its hash. Takes no lock.


def check_store(case: Case) -> Iterator[Finding]:
    try:
        yield _verify(case)
    except IndexStoreError as error:
        yield _explain(case, error)


def rebuild_repair(app: App) -> Repair:
    return Repair("rebuild the index", partial(_rebuild, app))


def _verify(case: Case) -> Finding:
    with (
        closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
        reader.snapshot() as snapshot,
    ):
        if snapshot.fingerprint != case.app.fingerprint:
            return _others_index(case, _why_refused(case, snapshot.settings))
        snapshot.verify(deep=True)
        documents = snapshot.ledger.count("documents")
        chunks = snapshot.ledger.count("chunks")
        state = snapshot.state
    size = size_text(disk_use(case.directory).total)
    held = f"{number_of(documents, 'document')}, {number_of(chunks, 'chunk')}, {size}"
    if not state.is_sound:
        return Finding(
            Level.NOTE,
            f"intact, but copied or changed by another program ({held})",
            f"{advised('update')} checks it and compares it with all files, and so does a server",
            repair=Repair(
                "check the index, and compare it with all files", partial(_check, case.app)
            ),
        )
    return Finding(Level.OK, f"intact: {held}")


def _explain(case: Case, error: IndexStoreError) -> Finding:
    match error:
        case IndexMissing():
            advice = f"{advised('update')} builds it, and so does a server when it starts"
            return Finding(Level.NOTE, "there is no index yet", advice)
        case IndexCorrupt():
            return Finding(
                Level.ERROR,
                str(error),
                "it is rebuilt from the files; intact vectors are kept if possible",
                repair=rebuild_repair(case.app),
            )
        case IndexIncompatible():
            return _other_schema(case, error)
        case IndexLocked():
            return Finding(Level.WARNING, str(error), "try again in a moment")
        case IndexFolderForeign():
            return Finding(
                Level.ERROR, "the index folder was not opened", "see `permissions` above"
            )
        case _:
            return _unusable(case, error)


def _other_schema(case: Case, error: IndexStoreError) -> Finding:
    if stored_schema(case.directory) is None:
        return Finding(
            Level.ERROR,
            f"{at(store_path(case.directory))} is a database, but not an index of this program",
            "move it elsewhere, or set another indexing.index_path",
        )
    return _others_index(case, error)


def _why_refused(case: Case, stored: str) -> IndexStoreError:
    """Why a store with other settings is not used, or is only read."""
    app = case.app
    try:
        reason = app.why_read_only()
    except IndexStoreError as error:
        return error
    return (
        IndexStoreError(reason)
        if reason
        else refusal(store_path(case.directory), stored, app.making.text)
    )


def _others_index(case: Case, error: IndexStoreError) -> Finding:
    """If the user named the folder, only the user decides which settings it is for."""
    app = case.app
    if not app.owns_directory:
        try:
            check_ours(case.directory, app.fingerprint, app.making.text)
        except OthersIndex:
            return Finding(Level.WARNING, str(error))
    return Finding(
        Level.WARNING,
        error.what if isinstance(error, OthersIndex) else str(error),
        f"it is rebuilt from the files by {advised('update')}, or by a server when it starts",
        repair=rebuild_repair(case.app),
    )


def _unusable(case: Case, error: IndexStoreError) -> Finding:
    path = store_path(case.directory)
    try:
        is_odd = not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        is_odd = path.is_symlink()
    repair = odd_file_repair(path) if is_odd else None
    advice = "make it readable and writable for you, or set another indexing.index_path"
    return Finding(
        Level.ERROR, str(error), "move it elsewhere" if is_odd else advice, repair=repair
    )


def _check(app: App) -> str:
    with app.manager() as manager:
        outcome = manager.update()
    found = f"rebuilt ({outcome.rebuilt})" if outcome.rebuilt else "intact"
    return f"the index was {found}, and is up to date: {number_of(outcome.documents, 'document')}"


def _rebuild(app: App) -> str:
    with app.manager() as manager:
        outcome = manager.update(rebuild=True)
    why = f" ({outcome.rebuilt})" if outcome.rebuilt else ""
    return (
        f"rebuilt the index{why}: {number_of(outcome.documents, 'document')}, "
        f"{number_of(outcome.chunks, 'chunk')}; "
        f"{advised('update')} or a server computes missing vectors"
    )


# Whether the indices contain what the store's rows require.


def check_counts(case: Case) -> Iterator[Finding]:
    try:
        with (
            closing(Reader(case.directory, case.app.fingerprint, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            wrong = list(find_inconsistencies(snapshot, case.app.tables))
    except IndexCorrupt as error:
        wrong = [str(error)]
    except IndexStoreError:  # another check reports it
        return
    if wrong:
        yield Finding(
            Level.ERROR,
            "parts of the index do not match each other",
            "rebuild it from the files",
            details=tuple(wrong),
            repair=rebuild_repair(case.app),
        )
    else:
        yield Finding(Level.OK, "tables, keyword, code and wording indices have the same passages")


# Whether every passage has its vector, and how many vectors are unused.


def check_vectors(case: Case) -> Iterator[Finding]:
    try:
        wanted = case.app.embedder.identity
    except RagdocsError:  # another check reports it
        return
    try:
        with (
            closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            yield _count_vectors(snapshot, vectors_model(snapshot.models(), wanted))
    except IndexStoreError:  # another check reports it
        return


def _count_vectors(snapshot: Snapshot, model: str) -> Finding:
    pending = snapshot.count_missing_embeddings(model)
    passages = snapshot.count_passages()
    unused = snapshot.ledger.count("embeddings") - snapshot.count_used_embeddings(model)
    beside = (
        f"; {unused:,} more are kept for words and for text that may come back" if unused else ""
    )
    if pending:
        return Finding(
            Level.NOTE,
            f"{passages - pending:,} of {passages:,} passages have vectors{beside}",
            f"{advised('update')} computes the rest, and so does a running server",
        )
    return Finding(Level.OK, f"all {passages:,} passages have vectors{beside}")
