"""Whether every passage has its vector, and which vectors nothing uses."""

from collections.abc import Iterator
from contextlib import closing

from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.diagnosis.store_look import BUSY_SECONDS, vectors_model
from ragdocs.errors import IndexStoreError, RagdocsError
from ragdocs.store.reader import Reader
from ragdocs.store.snapshot import Snapshot
from ragdocs.wording import advised


def check_vectors(case: Case) -> Iterator[Finding]:
    try:
        wanted = case.app.embedder.identity
    except RagdocsError:  # that there is no model is said elsewhere
        return
    try:
        with (
            closing(Reader(case.directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            yield _examined(snapshot, vectors_model(snapshot.models(), wanted))
    except IndexStoreError:  # that the store cannot be read is said elsewhere
        return


def _examined(snapshot: Snapshot, model: str) -> Finding:
    pending = snapshot.count_missing_embeddings(model)
    passages = snapshot.count_passages()
    unused = snapshot.ledger.count("embeddings") - _used(snapshot, model)
    beside = f"; {unused:,} more are kept for words, and texts that may come back" if unused else ""
    if pending:
        return Finding(
            Level.NOTE,
            f"{passages - pending:,} of {passages:,} passages have vectors{beside}",
            f"{advised('update')} makes the rest, and so does a server while it runs",
        )
    return Finding(Level.OK, f"all {passages:,} passages have theirs{beside}")


def _used(snapshot: Snapshot, model: str) -> int:
    ((used,),) = snapshot.select(
        """SELECT count(*) FROM embeddings e JOIN models m ON m.key = e.model WHERE m.identity = ?
        AND e.text_hash IN (SELECT text_hash FROM chunks WHERE text_hash IS NOT NULL)""",
        (model,),
    )
    return used
