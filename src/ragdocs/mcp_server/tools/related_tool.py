"""`find_related`: what goes with a document, or which documentation goes with source files."""

from dataclasses import dataclass, replace

from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given, fitted, plain
from ragdocs.mcp_server.tools.context_answers import ContextGiven, context_given
from ragdocs.mcp_server.tools.index_notes import BriefIndexNote, brief_note
from ragdocs.mcp_server.tools.library_arguments import RelatedArguments
from ragdocs.mcp_server.tools.related_text import context_text, related_text
from ragdocs.mcp_server.tools.search_answers import links_to
from ragdocs.search.library.context_answers import ContextAnswer
from ragdocs.search.library.relations import Related

TOKENS_EACH = 60
"""What an entry costs, about: so few are asked for that they fit."""
KINDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedAnswer:
    """`related` for a document or section, with the index that knows it; `context` for source
    files."""

    related: Related | None = None
    index: BriefIndexNote | None = None
    context: ContextGiven | None = None


def find_related(backend: Backend, arguments: RelatedArguments) -> Given:
    if arguments.is_about_sources:
        return fitted(arguments.max_tokens, _Context(backend, arguments).given)
    return fitted(arguments.max_tokens, lambda room: _related(backend, arguments, room))


def _related(backend: Backend, arguments: RelatedArguments, room: int) -> Given:
    limit = min(arguments.limit, max(1, room // (TOKENS_EACH * KINDS)))
    related = backend.library.related(arguments.related_request(limit))
    index = brief_note(backend.index_state())
    text = f"{index.line()}\n{related_text(related)}"
    return Given(plain(RelatedAnswer(related=related, index=index)), text)


class _Context:
    """One answer for source files, within any budget."""

    def __init__(self, backend: Backend, arguments: RelatedArguments) -> None:
        self._backend = backend
        self._arguments = arguments
        self._found: ContextAnswer | None = None

    def given(self, room: int) -> Given:
        answer = self._within(room)
        given = context_given(answer, self._backend.activity(), self._arguments.max_tokens)
        structured = plain(RelatedAnswer(context=given))
        return Given(structured, context_text(given), links_to(answer.results))

    def _within(self, room: int) -> ContextAnswer:
        if self._found is None or self._found.within is None:
            self._found = self._backend.library.context(self._arguments.context_request(room))
            return self._found
        shown = self._found.within(room)
        return replace(self._found, results=shown.results, left_out=shown.left_out)
