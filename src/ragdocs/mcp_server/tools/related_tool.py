"""`find_related`: what goes with a document, or which documentation goes with source files."""

from dataclasses import dataclass

from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given, fitted, plain
from ragdocs.mcp_server.tools.context_answers import ContextGiven, context_given, context_links
from ragdocs.mcp_server.tools.index_notes import BriefIndexNote, brief_note
from ragdocs.mcp_server.tools.library_arguments import RelatedArguments
from ragdocs.mcp_server.tools.related_text import context_text, related_text
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
    ask = _context if arguments.is_about_sources else _related
    return fitted(arguments.max_tokens, lambda room: ask(backend, arguments, room))


def _related(backend: Backend, arguments: RelatedArguments, room: int) -> Given:
    limit = min(arguments.limit, max(1, room // (TOKENS_EACH * KINDS)))
    related = backend.library.related(arguments.related_request(limit))
    index = brief_note(backend.index_state())
    text = f"{index.line()}\n{related_text(related)}"
    return Given(plain(RelatedAnswer(related=related, index=index)), text)


def _context(backend: Backend, arguments: RelatedArguments, room: int) -> Given:
    answer = backend.library.context(arguments.context_request(room))
    given = context_given(answer, backend.activity(), arguments.max_tokens)
    return Given(plain(RelatedAnswer(context=given)), context_text(given), context_links(given))
