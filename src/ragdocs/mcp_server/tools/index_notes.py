"""The state of the index, as every answer tells it."""

from dataclasses import dataclass

from ragdocs.mcp_server.tools.quoting import one_line, without_places
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.index_state import IndexState


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefIndexNote:
    """The index that answered. Not complete: something that should be in it is not, yet."""

    state: str
    complete: bool
    summary: str

    def line(self) -> str:
        return f"Index {one_line(self.summary)}{_lacking(self.complete)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNote:
    """The index that answered. Not complete: something that should be in it is not, yet."""

    state: str
    complete: bool
    summary: str
    documents: int
    passages: int
    vectors_pending: int
    failed_files: int
    files_waiting: int | None = None
    activity: str | None = None

    def line(self) -> str:
        doing = f"; now {self.activity}" if self.activity else ""
        return f"Index {one_line(self.summary)}{doing}{_lacking(self.complete)}"


def brief_note(state: IndexState) -> BriefIndexNote:
    """For answers that are about one document: its own facts need the room."""
    return BriefIndexNote(
        state=state.readiness.value, complete=state.complete, summary=_summary(state)
    )


def index_note(state: IndexState, activity: str = "") -> IndexNote:
    return IndexNote(
        state=state.readiness.value,
        complete=state.complete,
        summary=_summary(state),
        documents=state.documents,
        passages=state.passages,
        vectors_pending=state.vectors_pending,
        failed_files=state.failed_files,
        files_waiting=state.files_waiting,
        activity=activity or None,
    )


def _summary(state: IndexState) -> str:
    return without_places(Cleaner().clean(state.in_words()))


def _lacking(is_complete: bool) -> str:
    return "" if is_complete else " (incomplete: ask again later for all of it)"
