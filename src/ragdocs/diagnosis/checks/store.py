"""The store, read from end to end: every page, every row against its hash. Takes no lock."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from ragdocs.app import App
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.checks.locks import odd_file_repair
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.index_files import disk_use
from ragdocs.diagnosis.store_look import BUSY_SECONDS, stored_schema
from ragdocs.errors import (
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OthersIndex,
)
from ragdocs.store.connection import store_path
from ragdocs.store.opening import check_ours
from ragdocs.store.reader import Reader
from ragdocs.store.verification import refusal
from ragdocs.wording import advised, number_of, size_text


def check_store(case: Case) -> Iterator[Finding]:
    try:
        yield _verified(case)
    except IndexStoreError as error:
        yield _explained(case, error)


def rebuild_repair(app: App) -> Repair:
    return Repair("rebuild the index", partial(_rebuild, app))


def _verified(case: Case) -> Finding:
    with (
        closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
        reader.snapshot() as snapshot,
    ):
        if snapshot.fingerprint != case.app.fingerprint:
            return _of_others(case, _refused(case, snapshot.settings))
        snapshot.verify(deep=True)
        documents = snapshot.ledger.count("documents")
        chunks = snapshot.ledger.count("chunks")
    size = size_text(disk_use(case.directory).total)
    held = f"{number_of(documents, 'document')}, {number_of(chunks, 'chunk')}, {size}"
    if reader.doubts:
        return Finding(
            Level.NOTE,
            f"whole, but not as it was left: copied, or changed by another program ({held})",
            f"{advised('update')} checks it and compares it with all files, and so does a server",
            repair=Repair(
                "check the index, and compare it with all files", partial(_check, case.app)
            ),
        )
    return Finding(Level.OK, f"whole: {held}")


def _explained(case: Case, error: IndexStoreError) -> Finding:
    match error:
        case IndexMissing():
            advice = f"{advised('update')} makes it, and so does a server when it starts"
            return Finding(Level.NOTE, "there is no index yet", advice)
        case IndexCorrupt():
            return Finding(
                Level.ERROR,
                str(error),
                "it is rebuilt from the files; vectors that are whole are kept if possible",
                repair=rebuild_repair(case.app),
            )
        case IndexIncompatible():
            return _of_other_schema(case, error)
        case IndexLocked():
            return Finding(Level.WARNING, str(error), "try again in a moment")
        case IndexFolderForeign():
            return Finding(
                Level.ERROR, "the index folder was not opened", "see `permissions` above"
            )
        case _:
            return _unusable(case, error)


def _of_other_schema(case: Case, error: IndexStoreError) -> Finding:
    if stored_schema(case.directory) is None:
        return Finding(
            Level.ERROR,
            f"{at(store_path(case.directory))} is a database, but not an index of this program",
            "move it away, or set another indexing.index_path",
        )
    return _of_others(case, error)


def _refused(case: Case, stored: str) -> IndexStoreError:
    """Why a store of other settings is not simply used; where it can be read, how."""
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


def _of_others(case: Case, error: IndexStoreError) -> Finding:
    """In a folder that the user has named, only they decide which settings it is for."""
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
    return Finding(Level.ERROR, str(error), "move it away" if is_odd else advice, repair=repair)


def _check(app: App) -> str:
    with app.manager() as manager:
        outcome = manager.update()
    found = f"made anew ({outcome.rebuilt})" if outcome.rebuilt else "whole"
    return f"the index was {found}, and is in step with {number_of(outcome.documents, 'document')}"


def _rebuild(app: App) -> str:
    with app.manager() as manager:
        outcome = manager.update(rebuild=True)
    why = f" ({outcome.rebuilt})" if outcome.rebuilt else ""
    return (
        f"rebuilt the index{why}: {outcome.documents:,} documents, {outcome.chunks:,} chunks; "
        f"vectors that are missing come with {advised('update')}, or with a server"
    )
