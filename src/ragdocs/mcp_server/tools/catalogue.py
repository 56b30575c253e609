"""The tools: what each is called, says of itself, takes and gives. Their order is the list's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mcp.types import Tool, ToolAnnotations

from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given
from ragdocs.mcp_server.tools.arguments import Arguments, input_schema
from ragdocs.mcp_server.tools.document_tool import DocumentAnswer, get_document
from ragdocs.mcp_server.tools.library_arguments import (
    DocumentArguments,
    ListArguments,
    RelatedArguments,
    StatusArguments,
)
from ragdocs.mcp_server.tools.list_tool import ListAnswer, list_documents
from ragdocs.mcp_server.tools.related_tool import RelatedAnswer, find_related
from ragdocs.mcp_server.tools.schemas import schema_of
from ragdocs.mcp_server.tools.search_answers import SearchAnswer
from ragdocs.mcp_server.tools.search_arguments import HypothesisArguments, QueryArguments
from ragdocs.mcp_server.tools.search_tools import search
from ragdocs.mcp_server.tools.status_tool import StatusAnswer, index_status

HYPOTHESIS = "search_with_hypothesis"
_HINTS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolKind:
    """One tool. A search stands in line with other searches; the rest are quick."""

    name: str
    description: str
    arguments: type[Arguments]
    answer: type[Any]
    give: Callable[[Backend, Any], Given]
    is_search: bool = False

    def listed(self) -> Tool:
        return Tool(
            name=self.name,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=schema_of(self.answer, "serialization"),
            annotations=_HINTS,
        )


_ALL = (
    ToolKind(
        name="query_documents",
        description=(
            "Search the user's Markdown notes and docs by meaning and words. Use it first for any "
            "question they may answer, above all when the exact wording is unknown (grep finds "
            "exact strings only). Gives the best passages: path:lines, heading, confidence, text; "
            "and says when nothing fits or the index is incomplete. "
            'E.g. {"query": "how do I rotate a token?", "top_n": 3}'
        ),
        arguments=QueryArguments,
        answer=SearchAnswer,
        give=search,
        is_search=True,
    ),
    ToolKind(
        name=HYPOTHESIS,
        description=(
            "Search by an imagined answer, when query_documents finds nothing sure. Gives the "
            'same. E.g. {"hypothesis": "Tokens are rotated with `auth rotate`; old ones expire."}'
        ),
        arguments=HypothesisArguments,
        answer=SearchAnswer,
        give=search,
        is_search=True,
    ),
    ToolKind(
        name="get_document",
        description=(
            "Read on from a result: a document, section or lines, word for word, in pages. Use "
            'outline first for long ones. E.g. {"document": "guide/auth.md#tokens"}'
        ),
        arguments=DocumentArguments,
        answer=DocumentAnswer,
        give=get_document,
    ),
    ToolKind(
        name="list_documents",
        description=(
            "What there is: documents, trees (root folders), headings or tags, in pages. Use it "
            'for an overview, not to find an answer. E.g. {"path": "guide", "kind": "outlines"}'
        ),
        arguments=ListArguments,
        answer=ListAnswer,
        give=list_documents,
    ),
    ToolKind(
        name="find_related",
        description=(
            "What goes with a document: links, backlinks, same community, similar text. Or, for "
            'code you work on, the documentation that matters. E.g. {"document": "guide/auth.md"} '
            'or {"files": [{"path": "src/auth.py"}]}'
        ),
        arguments=RelatedArguments,
        answer=RelatedAnswer,
        give=find_related,
        is_search=True,
    ),
    ToolKind(
        name="index_status",
        description=(
            "Whether the index is complete, what failed, which settings are in force. Use it when "
            "answers seem to miss something. E.g. {}"
        ),
        arguments=StatusArguments,
        answer=StatusAnswer,
        give=index_status,
    ),
)

TOOLS: Mapping[str, ToolKind] = MappingProxyType({tool.name: tool for tool in _ALL})
