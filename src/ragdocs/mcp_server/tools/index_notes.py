"""The state of the index, as every answer tells it."""

from dataclasses import dataclass

from ragdocs.mcp_server.tools.quoting import one_line, without_places
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.index_state import IndexState, Readiness


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefIndexNote:
    """The index that answered. Not complete: something that should be in it is not, yet.

    `notices` are for the user: settings of a project's file that are ignored until it is trusted.
    """

    state: str
    complete: bool
    summary: str
    notices: tuple[str, ...] = ()

    @property
    def _now(self) -> str:
        return ""

    @property
    def _lacking(self) -> str:
        if self.complete:
            return ""
        if self.state == Readiness.DEGRADED:
            return " (incomplete, and waiting does not help: tell the user)"
        return " (incomplete: ask again later for all of it)"

    def line(self) -> str:
        said = (f"\nNote for the user: {one_line(notice)}" for notice in self.notices)
        return f"Index {one_line(self.summary)}{self._now}{self._lacking}{''.join(said)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNote(BriefIndexNote):
    """The same, with its figures."""

    documents: int
    passages: int
    vectors_pending: int
    failed_files: int
    files_waiting: int | None = None
    activity: str | None = None

    @property
    def _now(self) -> str:
        """Nothing where the answer lacks nothing, as while the vocabulary gets its vectors."""
        return f"; now {self.activity}" if self.activity and not self.complete else ""


def brief_note(state: IndexState) -> BriefIndexNote:
    """For answers that are about one document: its own facts need the room."""
    return BriefIndexNote(
        state=state.state.value,
        complete=state.complete,
        summary=_summary(state),
        notices=_notices(state),
    )


def index_note(state: IndexState, activity: str = "") -> IndexNote:
    return IndexNote(
        state=state.state.value,
        complete=state.complete,
        summary=_summary(state),
        notices=_notices(state),
        documents=state.documents,
        passages=state.passages,
        vectors_pending=state.vectors_pending,
        failed_files=state.failed_files,
        files_waiting=state.files_waiting,
        activity=activity or None,
    )


def _notices(state: IndexState) -> tuple[str, ...]:
    return tuple(without_places(Cleaner().clean(notice)) for notice in state.notices)


def _summary(state: IndexState) -> str:
    return without_places(Cleaner().clean(state.in_words()))
