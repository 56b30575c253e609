"""Our search as a LlamaIndex retriever: passages with their citations, sync and async."""
# The extra `llama-index` is not in the environment that is type-checked:
# pyright: basic, reportMissingImports=false

import asyncio
from typing import TYPE_CHECKING, Any, Unpack

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from ragdocs.api import Index, SearchOptions

if TYPE_CHECKING:
    from ragdocs.search.responses import SearchResult

SHOWN_TO_MODELS = ("citation", "title", "heading_path")
"""Of the metadata, what is put before a passage that a language model reads."""


class RagdocsRetriever(BaseRetriever):
    """Asks an open index; the options are those of `Index.search`, filters among them."""

    def __init__(self, index: Index, **options: Unpack[SearchOptions]) -> None:
        super().__init__()
        self._index = index
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        response = self._index.search(query_bundle.query_str, **self._options)
        return [NodeWithScore(node=as_node(one), score=one.score) for one in response.results]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def as_node(result: "SearchResult") -> TextNode:
    """A passage under the id of what was found, which no other result has; `section_id` is the
    section that it is cited under. A language model is shown where it stands."""
    wider = result.within
    metadata: dict[str, Any] = {
        "citation": f"{result.path}:{result.line_start}-{result.line_end}",
        "path": result.path,
        "line_start": result.line_start,
        "line_end": result.line_end,
        "section_id": result.id,
        "text_line_start": result.text_lines[0],
        "text_line_end": result.text_lines[1],
        "within": None if wider is None else wider.id,
        "parent_chunk_id": result.parent_chunk_id,
        "title": result.title,
        "heading_path": " > ".join(result.heading_path),
        "confidence": result.confidence,
        "found_by": [strategy.value for strategy in result.found_by],
    }
    return TextNode(
        id_=result.matched.id,
        text=result.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[key for key in metadata if key not in SHOWN_TO_MODELS],
        excluded_embed_metadata_keys=[key for key in metadata if key != "heading_path"],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=result.doc_id)},
    )
