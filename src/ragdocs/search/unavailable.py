"""The answer when there is nothing to search: never an empty list without a word."""

from ragdocs.errors import IndexStoreError
from ragdocs.search.index_state import IndexState, Readiness
from ragdocs.search.responses import SearchResponse
from ragdocs.search.stages import CompressionStats
from ragdocs.search.upkeep import Upkeep


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
