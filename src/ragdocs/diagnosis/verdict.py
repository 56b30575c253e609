"""From what was looked at to one state, and to words that say what to do next. Pure."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragdocs.diagnosis.keyword_look import EngineState
from ragdocs.diagnosis.status import (
    Agreement,
    Holdings,
    KeywordStatus,
    ModelStatus,
    TreeStatus,
    WatchStatus,
    WriterStatus,
)
from ragdocs.errors import (
    IndexCorrupt,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
)
from ragdocs.search.index_state import IndexState, Readiness

_WORDS_ONLY = "passages are found by their words only, because there is no usable model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that counts for the state."""

    holdings: Holdings
    error: IndexStoreError | None
    agreement: Agreement
    trees: Sequence[TreeStatus]
    model: ModelStatus
    reranker: ModelStatus
    keyword: KeywordStatus
    writer: WriterStatus | None
    watcher: WatchStatus | None

    @property
    def worker(self) -> str:
        """Who works on the index now; empty when nobody does."""
        at_work = self.watcher or self.writer
        if at_work is None:
            return ""
        if at_work.pid == os.getpid():
            return "this process"
        return f"process {at_work.pid}" if at_work.pid else "another process"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state, one line about it, and what else should be known."""

    state: Readiness
    summary: str
    notes: tuple[str, ...]


def judge(evidence: Evidence) -> Verdict:
    if problem := _why_unusable(evidence):
        is_begun = isinstance(evidence.error, IndexMissing) and bool(evidence.worker)
        state = Readiness.BUILDING if is_begun else Readiness.UNAVAILABLE
        return Verdict(state, f"{state.value}: {problem}", tuple(_notes(evidence, state)))
    reason = _degraded(evidence)
    state = _state(evidence.holdings, reason)
    return Verdict(state, _summary(evidence, state, reason), tuple(_notes(evidence, state)))


def _why_unusable(evidence: Evidence) -> str:
    """What happened, and what makes it good; empty when the store can be read."""
    error = evidence.error
    if error is None:
        other = f"the index was built with other settings{_rebuilt_by(evidence)}"
        return "" if evidence.agreement.same_settings else other
    if isinstance(error, IndexMissing):
        return _why_missing(evidence)
    if isinstance(error, IndexIncompatible):
        return _why_incompatible(evidence)
    if isinstance(error, IndexCorrupt):
        return "the index is damaged; `ragdocs doctor --fix` makes it anew from the files"
    return "the index is busy; try again" if isinstance(error, IndexLocked) else str(error)


def _why_missing(evidence: Evidence) -> str:
    if evidence.worker:
        return f"{evidence.worker} has begun to make the index"
    return "there is no index yet; `ragdocs update` makes it, and so does a server"


def _why_incompatible(evidence: Evidence) -> str:
    agreement = evidence.agreement
    if agreement.stored_schema is None:
        return "store.db is not an index of this program: move it away"
    formats = f"format {agreement.stored_schema}, and this program has {agreement.schema}"
    return f"the index has {formats}{_rebuilt_by(evidence)}"


def _rebuilt_by(evidence: Evidence) -> str:
    if evidence.watcher and not evidence.watcher.is_ours and evidence.worker:
        return f"; {evidence.worker} keeps it so: use its settings, or another index folder"
    return "; `ragdocs update` makes it anew, and so does a server"


def _degraded(evidence: Evidence) -> str:
    """Why something cannot be found that waiting does not bring; empty when all can."""
    if evidence.keyword.state == EngineState.NOT_INSTALLED:
        return evidence.keyword.problem
    if evidence.model.problem:
        return _WORDS_ONLY
    away = [tree.name for tree in evidence.trees if tree.problem and not tree.documents]
    return f"nothing is known of {', '.join(away)}: its folder cannot be read" if away else ""


def _state(holdings: Holdings, reason: str) -> Readiness:
    if holdings.files_waiting != 0:
        return Readiness.BUILDING
    if reason:
        return Readiness.DEGRADED
    return Readiness.BUILDING if holdings.vectors_pending else Readiness.READY


def _summary(evidence: Evidence, state: Readiness, reason: str) -> str:
    """In the words that answers use, too."""
    holdings = evidence.holdings
    return IndexState(
        readiness=state,
        complete=state is Readiness.READY and not holdings.files_failed,
        generation=holdings.generation,
        documents=holdings.documents,
        passages=holdings.passages,
        vectors_pending=holdings.vectors_pending,
        failed_files=holdings.files_failed,
        files_waiting=holdings.files_waiting,
        reason=reason,
    ).in_words()


def _notes(evidence: Evidence, state: Readiness) -> Iterator[str]:
    if state is Readiness.BUILDING and evidence.error is None:
        yield _who_goes_on(evidence)
    if isinstance(evidence.error, IndexCorrupt):
        yield str(evidence.error)
    if evidence.model.problem:
        yield evidence.model.problem
    yield from evidence.model.notes
    if evidence.reranker.problem:
        yield f"re-ranking does nothing: {evidence.reranker.name} {evidence.reranker.problem}"
    for tree in evidence.trees:
        if tree.problem and tree.documents:
            kept = f"{tree.documents:,} documents stay as they were last seen"
            yield f"the folder of {tree.name} {tree.problem}: its {kept}"
    if evidence.watcher and evidence.watcher.trouble:
        yield f"{evidence.worker} says: {evidence.watcher.trouble}"


def _who_goes_on(evidence: Evidence) -> str:
    if not evidence.worker:
        return "nobody works on it now: `ragdocs update` goes on, and so does a server"
    activity = evidence.watcher.activity if evidence.watcher else ""
    return f"{evidence.worker} is at it" + (f": {activity}" if activity else "")
