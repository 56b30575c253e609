"""The documentation for source files, as a client gets it."""

from dataclasses import dataclass

from ragdocs.mcp_server.tools.index_notes import IndexNote, index_note
from ragdocs.mcp_server.tools.search_answers import FoundPassage, found_passages, left_out
from ragdocs.mcp_server.visible import Cleaner
from ragdocs.search.budget import LeftOut
from ragdocs.search.library.context_answers import ContextAnswer, ContextFile, IncludedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextGiven:
    """Passages, best first; documents that the project's rules name for such files."""

    files: tuple[ContextFile, ...]
    included: tuple[IncludedDocument, ...]
    results: tuple[FoundPassage, ...]
    left_out: tuple[LeftOut, ...]
    left_out_total: int
    notes: tuple[str, ...]
    index: IndexNote | None = None


def context_given(answer: ContextAnswer, activity: str, limit: int) -> ContextGiven:
    return ContextGiven(
        files=answer.files,
        included=answer.included,
        results=found_passages(answer.results),
        left_out=left_out(answer.left_out, limit),
        left_out_total=len(answer.left_out),
        notes=tuple(map(Cleaner().clean, answer.notes)),
        index=index_note(answer.index, activity) if answer.index else None,
    )
