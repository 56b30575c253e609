"""What the store says of itself, or why it says nothing: read-only, short, and without a model.

Counts come from the ledger where it has them; the others are counted along an index, which takes
some ten milliseconds at 100,000 chunks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragdocs.diagnosis.status import FailedFile, FileWarning, Holdings, WarningCount
from ragdocs.errors import IndexStoreError
from ragdocs.parsers.identity import encode_path
from ragdocs.store.connection import Database, store_path
from ragdocs.store.file_rows import SELECT_FAILURES, read_failure
from ragdocs.store.reader import Reader
from ragdocs.store.schema import SCHEMA_VERSION, schema_version
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.variants import siblings

BUSY_SECONDS = 1.0
MAX_FAILURES = MAX_WARNINGS = 100
_PRECISION = re.compile(r";precision=[^;]*")


@dataclass(frozen=True, slots=True)
class StoreLook:
    """Facts of one commit; or the error that keeps us from them, with what else can be told."""

    holdings: Holdings = field(default_factory=Holdings)
    by_tree: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Documents and chunks by the tree's name."""
    failures: tuple[FailedFile, ...] = ()
    warnings: tuple[FileWarning, ...] = ()
    fingerprint: str | None = None
    settings: str = ""
    """What the fingerprint is of."""
    schema: int | None = None
    error: IndexStoreError | None = None
    is_as_left: bool = True
    """Whether the store is as the last commit left it."""


def look_at_store(directory: Path, model: str) -> StoreLook:
    """`model`: the identity whose vectors count; empty when there is no model."""
    try:
        with (
            closing(Reader(directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            return replace(_look(snapshot, model), is_as_left=not reader.doubts)
    except IndexStoreError as error:
        return StoreLook(error=error, schema=stored_schema(directory))


def stored_schema(directory: Path) -> int | None:
    """None when there is no store, or nothing that could be one of ours."""
    try:
        with closing(Database(store_path(directory), write=False, timeout=BUSY_SECONDS)) as found:
            return schema_version(found)
    except IndexStoreError:
        return None


def is_upgraded(directory: Path) -> bool:
    """Whether another version of this program has an index of the same documents beside it."""
    found = (stored_schema(one.path) for one in siblings(directory))
    return any(schema not in (None, SCHEMA_VERSION) for schema in found)


def vectors_model(stored: Mapping[str, int], wanted: str) -> str:
    """The identity under which the wanted model's vectors are stored.

    A precision that the machine cannot run is replaced when the model is loaded, and only then
    does the identity say so.
    """
    if wanted in stored:
        return wanted
    bare = _PRECISION.sub("", wanted)
    return next((one for one in stored if _PRECISION.sub("", one) == bare), wanted)


def _look(snapshot: Snapshot, model: str) -> StoreLook:
    warnings = file_warnings(snapshot)
    lossy = {(one.tree, one.path) for one in warnings if one.is_loss}
    return StoreLook(
        holdings=replace(_holdings(snapshot, model), files_with_loss=len(lossy)),
        by_tree=_by_tree(snapshot),
        failures=_failures(snapshot),
        warnings=warnings,
        fingerprint=snapshot.fingerprint,
        settings=snapshot.settings,
        schema=SCHEMA_VERSION,
    )


def _by_tree(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """With one tree, as is usual, nothing needs counting: its name begins every id."""
    ends = snapshot.select(
        """SELECT DISTINCT tree FROM documents WHERE id IN
        ((SELECT min(id) FROM documents), (SELECT max(id) FROM documents))"""
    )
    count = snapshot.ledger.count
    if len(ends) == 1:
        return {ends[0][0]: (count("documents"), count("chunks"))}
    rows = snapshot.select("SELECT tree, count(*), sum(chunks) FROM documents GROUP BY tree")
    return {tree: (documents, chunks) for tree, documents, chunks in rows}


def _holdings(snapshot: Snapshot, model: str) -> Holdings:
    count = snapshot.ledger.count
    passages = snapshot.count_passages()
    pending = passages
    origin = snapshot.communities_origin
    if model and count("embeddings"):
        stored = snapshot.models()
        pending = snapshot.count_missing_embeddings(vectors_model(stored, model))
    return Holdings(
        documents=count("documents"),
        chunks=count("chunks"),
        passages=passages,
        vectors=passages - pending,
        vectors_pending=pending,
        files_waiting=snapshot.waiting,
        files_failed=count("failures"),
        links_unresolved=snapshot.count_unresolved_links(),
        unused_vector_bytes=snapshot.unused_vector_bytes,
        generation=snapshot.position.generation,
        communities=snapshot.count_communities(),
        communities_generation=origin.position.generation if origin else None,
        communities_current=snapshot.has_current_communities(),
    )


def _failures(snapshot: Snapshot) -> tuple[FailedFile, ...]:
    rows = snapshot.select(f"{SELECT_FAILURES} ORDER BY f.doc_id LIMIT ?", (MAX_FAILURES,))
    return tuple(
        FailedFile(
            tree=found.tree, path=encode_path(found.path), kind=found.kind, reason=found.reason
        )
        for found in map(read_failure, rows)
    )


def file_warnings(snapshot: Snapshot) -> tuple[FileWarning, ...]:
    """All of them, those of loss first."""
    found = [
        FileWarning(
            tree=document.tree,
            path=encode_path(document.path),
            kind=one.kind.value,
            count=one.count,
            is_loss=one.is_loss,
            text=one.text,
        )
        for document in snapshot.warned()
        for one in document.warnings
    ]
    return tuple(sorted(found, key=lambda one: not one.is_loss))


def warning_counts(warnings: Iterable[FileWarning]) -> tuple[WarningCount, ...]:
    """By kind, in the order in which they come."""
    files: dict[str, set[tuple[str, str]]] = {}
    counts: Counter[str] = Counter()
    for one in warnings:
        files.setdefault(one.kind, set()).add((one.tree, one.path))
        counts[one.kind] += one.count
    return tuple(
        WarningCount(kind=kind, files=len(having), count=counts[kind])
        for kind, having in files.items()
    )
