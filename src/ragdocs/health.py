"""Whether the index is kept up to date, and by whom: one `Health`, for answers and for `status`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.resolved import Tree
from ragdocs.errors import IndexMissing, IndexStoreError
from ragdocs.indexing.reading import unseen_trees
from ragdocs.search.responses import IndexState, Readiness, SearchResponse
from ragdocs.search.stages import CompressionStats
from ragdocs.store.integrity import CHANGED_BY_OTHERS
from ragdocs.store.lock import SILENT_SECONDS, watching, writing
from ragdocs.text import advised

if TYPE_CHECKING:
    from ragdocs.indexing.service import ServiceState

# One rule for the answers of a server, those of a command, and `status`: what is known about the
# index apart from its content, and how that changes its state.

_COMPARING = "the files are being compared with the index"

BEING_CHECKED = f"{CHANGED_BY_OTHERS}: it is being checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is known about an index apart from its content. An empty text means no problem."""

    error: str = ""
    """Why the index is not kept up to date: the responsible process fails, or has stopped."""
    trouble: str = ""
    """Why passages get no vectors."""
    kept: str = ""
    """Which folders cannot be read, so that changes in them are missed."""
    doubt: str = ""
    """Why the index is being checked; until then, an answer may be wrong."""
    is_compared: bool = True
    """Whether all files were compared with the index since watching began."""
    is_at_work: bool = False
    """Whether a process is working on the index; if there is none yet, it is being built."""

    def comes_by_waiting(self, error: IndexStoreError) -> bool:
        """Whether an index that cannot be read is being built."""
        return isinstance(error, IndexMissing) and self.is_at_work and not self.error


def unchecked() -> str:
    """The doubt about a store that no process is checking."""
    return f"{CHANGED_BY_OTHERS}: {advised('update')} checks it, and so does a running server"


def with_health(state: IndexState, health: Health) -> IndexState:
    """The state of an index of this health. Problems that waiting does not solve come first."""
    if health.error:
        return state.behind(health.error)
    if health.trouble and state.vectors_pending:
        return state.behind(health.trouble)
    if health.kept:
        return state.behind(health.kept)
    if health.doubt:
        return state.unsure(health.doubt)
    return state if health.is_compared else state.unsure(_COMPARING)


# Who keeps the index up to date: this process's own indexing thread, or the process that holds the
# watch lock.


def health_of(directory: Path, trees: Iterable[Tree], service: "ServiceState | None") -> Health:
    """From this process's indexing thread, if it has one, else from the process that watches. When
    no process does, only the folders are checked.
    """
    if service is not None:
        return _read_facts(service.facts(), is_at_work=service.is_alive)
    holder = watching(directory)
    if holder is not None and holder.is_heard_within(SILENT_SECONDS):
        return _read_facts(holder.says, is_at_work=True)
    is_at_work = writing(directory) is not None
    return Health(kept=unseen_trees(trees), is_at_work=is_at_work)


def _read_facts(facts: Mapping[str, str], *, is_at_work: bool) -> Health:
    """From the report of an indexing thread, of this process or another."""
    return Health(
        error=facts.get("error", ""),
        trouble=facts.get("trouble", ""),
        kept=facts.get("kept", ""),
        doubt=facts.get("doubt", ""),
        is_compared=bool(facts.get("last_scan")),
        is_at_work=is_at_work,
    )


# The answer when there is nothing to search: never an empty list without a reason.


def no_index(error: IndexStoreError, health: Health) -> IndexState:
    is_begun = health.comes_by_waiting(error)
    return IndexState(
        state=Readiness.BUILDING if is_begun else Readiness.UNAVAILABLE,
        complete=False,
        generation=0,
        documents=0,
        passages=0,
        vectors_pending=0,
        failed_files=0,
        files_waiting=None,
        reason=str(error),
    )


def no_answer(error: IndexStoreError, health: Health) -> SearchResponse:
    """No result, and why."""
    return SearchResponse(
        results=(),
        query_types=(),
        index=no_index(error, health),
        stats=CompressionStats.from_counts(0, ()),
        stages=(),
        seconds={},
        notes=(f"nothing could be searched: {error}",),
    )
