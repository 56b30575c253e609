"""Whether the index is kept up to date, and by whom; the same rule for answers, `status` and the
server.
"""

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

# How the index is kept in step with its files, as far as anyone says; and what that makes of its
# state. One rule for all: the answers of a server, those of a command, and `status`.

_COMPARING = "the files are being compared with the index"

BEING_CHECKED = f"{CHANGED_BY_OTHERS}: it is checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What is known against an index besides what is in it; without a word, nothing is."""

    error: str = ""
    """Why it is not kept in step: whoever does that fails, or has stood down."""
    trouble: str = ""
    """Why vectors do not come."""
    kept: str = ""
    """Folders of which it cannot be seen whether their files are as they were."""
    doubt: str = ""
    """Why it is looked at again: what it answers meanwhile may not be right."""
    is_compared: bool = True
    """Whether all files were compared with it since someone began to keep it in step."""
    is_at_work: bool = False
    """Whether someone is there to make it, where there is none yet."""

    def comes_by_waiting(self, error: IndexStoreError) -> bool:
        """Whether an index that cannot be read is only just being made."""
        return isinstance(error, IndexMissing) and self.is_at_work and not self.error


def unchecked() -> str:
    """The doubt about a store that nobody checks at present."""
    return f"{CHANGED_BY_OTHERS}: {advised('update')} checks it, and so does a server"


def judged(state: IndexState, upkeep: Upkeep) -> IndexState:
    """What waiting does not mend comes first."""
    if upkeep.error:
        return state.behind(upkeep.error)
    if upkeep.trouble and state.vectors_pending:
        return state.behind(upkeep.trouble)
    if upkeep.kept:
        return state.behind(upkeep.kept)
    if upkeep.doubt:
        return state.unsure(upkeep.doubt)
    return state if upkeep.is_compared else state.unsure(_COMPARING)


# Who keeps an index in step with its files, and what they say of it: this process's own indexing
# thread, or whichever process holds the watch lock.


def upkeep_of(directory: Path, trees: Iterable[Tree], service: "ServiceState | None") -> Upkeep:
    """As the own thread says, if there is one, or whoever watches. When nobody does, only what is
    to be seen of the folders."""
    if service is not None:
        return _said(service.facts(), is_at_work=service.is_alive)
    holder = watching(directory)
    if holder is not None and holder.is_heard_within(SILENT_SECONDS):
        return _said(holder.says, is_at_work=True)
    is_at_work = writing(directory) is not None
    return Upkeep(kept=unseen_trees(trees), is_at_work=is_at_work)


def _said(facts: Mapping[str, str], *, is_at_work: bool) -> Upkeep:
    """What an indexing thread says of itself, here or in another process."""
    return Upkeep(
        error=facts.get("error", ""),
        trouble=facts.get("trouble", ""),
        kept=facts.get("kept", ""),
        doubt=facts.get("doubt", ""),
        is_compared=bool(facts.get("last_scan")),
        is_at_work=is_at_work,
    )


# The answer when there is nothing to search: never an empty list without a word.


def no_index(error: IndexStoreError, upkeep: Upkeep) -> IndexState:
    is_begun = upkeep.comes_by_waiting(error)
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


def no_answer(error: IndexStoreError, upkeep: Upkeep) -> SearchResponse:
    """No result, and why."""
    return SearchResponse(
        results=(),
        query_types=(),
        index=no_index(error, upkeep),
        stats=CompressionStats.from_counts(0, ()),
        stages=(),
        seconds={},
        notes=(f"nothing could be searched: {error}",),
    )
