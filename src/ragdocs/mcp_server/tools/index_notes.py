"""The state of the index, as every answer tells it."""

from dataclasses import dataclass

from ragdocs.mcp_server.tools.quoting import one_line, without_places
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.index_state import IndexState


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
        lacking = "" if self.complete else " (incomplete: ask again later for all of it)"
        return f"Index {one_line(self.summary)}{doing}{lacking}"


def index_note(state: IndexState, activity: str = "") -> IndexNote:
    return IndexNote(
        state=state.readiness.value,
        complete=state.complete,
        summary=without_places(Cleaner().clean(state.in_words())),
        documents=state.documents,
        passages=state.passages,
        vectors_pending=state.vectors_pending,
        failed_files=state.failed_files,
        files_waiting=state.files_waiting,
        activity=activity or None,
    )
