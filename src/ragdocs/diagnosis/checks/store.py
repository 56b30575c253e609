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
from ragdocs.diagnosis.watch_look import look_at_watcher
from ragdocs.errors import (
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
)
from ragdocs.store.connection import store_path
from ragdocs.store.reader import Reader
from ragdocs.store.schema import SCHEMA_VERSION
from ragdocs.wording import number_of, size_text


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
            return _of_other_settings(case, "the index was built with other settings")
        snapshot.verify(deep=True)
        documents = snapshot.ledger.count("documents")
        chunks = snapshot.ledger.count("chunks")
    size = size_text(disk_use(case.directory).total)
    held = f"{number_of(documents, 'document')}, {number_of(chunks, 'chunk')}, {size}"
    if reader.doubts:
        return Finding(
            Level.NOTE,
            f"whole, but not as it was left: copied, or changed by another program ({held})",
            "`ragdocs update` checks it and compares it with all files, and so does a server",
            repair=Repair(
                "check the index, and compare it with all files", partial(_check, case.app)
            ),
        )
    return Finding(Level.OK, f"whole: {held}")


def _explained(case: Case, error: IndexStoreError) -> Finding:
    match error:
        case IndexMissing():
            advice = "`ragdocs update` makes it, and so does a server when it starts"
            return Finding(Level.NOTE, "there is no index yet", advice)
        case IndexCorrupt():
            return Finding(
                Level.ERROR,
                str(error),
                "it is made anew from the files; vectors that are whole are kept if possible",
                repair=rebuild_repair(case.app),
            )
        case IndexIncompatible():
            return _of_other_schema(case)
        case IndexLocked():
            return Finding(Level.WARNING, str(error), "try again in a moment")
        case IndexFolderForeign():
            return Finding(Level.ERROR, str(error), "see `permissions` above")
        case _:
            return _unusable(case, error)


def _of_other_schema(case: Case) -> Finding:
    found = stored_schema(case.directory)
    if found is None:
        return Finding(
            Level.ERROR,
            f"{at(store_path(case.directory))} is a database, but not an index of this program",
            "move it away, or set another indexing.index_path",
        )
    message = f"the index has format {found}, and this program has {SCHEMA_VERSION}"
    return _of_other_settings(case, message)


def _of_other_settings(case: Case, message: str) -> Finding:
    """What someone works with is not taken away."""
    watcher = look_at_watcher(case.directory)
    if watcher is not None:
        return Finding(
            Level.WARNING,
            f"{message}, by which process {watcher.pid} keeps it in step",
            "use the same settings, or another indexing.index_path, or end that process",
        )
    return Finding(
        Level.WARNING,
        message,
        "it is made anew from the files by `ragdocs update`, or by a server when it starts",
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
        f"made the index anew{why}: {outcome.documents:,} documents, {outcome.chunks:,} chunks; "
        "vectors that are missing come with `ragdocs update`, or with a server"
    )
