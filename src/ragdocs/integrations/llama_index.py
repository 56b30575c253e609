"""Our search as a LlamaIndex retriever, and our chunker as its node parser."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from llama_index.core.bridge.pydantic import Field
from llama_index.core.node_parser import NodeParser
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from ragdocs.api import Index, SearchOptions
from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import heading_path
from ragdocs.config.settings import ChunkingConfig
from ragdocs.models import Chunk, TreeName
from ragdocs.parsers.markdown import Origin, parse_document

if TYPE_CHECKING:
    from ragdocs.search.responses import SearchResult

# Our chunker as a LlamaIndex node parser: Markdown in, passages with their lines out.

# The extra `llama-index` is not in the environment that is type-checked:
# pyright: basic, reportMissingImports=false


_TREE = TreeName("docs")
_PATH_KEYS = ("file_path", "path", "file_name")
"""Where LlamaIndex's readers leave a file's name."""


class RagdocsNodeParser(NodeParser):
    """Splits at headings, then paragraphs, then sentences; not inside code that fits.

    `chunking` has the sizes, like `[chunking]` in a configuration.
    """

    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)

    @classmethod
    def class_name(cls) -> str:
        return "RagdocsNodeParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: object
    ) -> list[BaseNode]:
        del show_progress  # too fast for a progress bar
        return [passage for node in nodes for passage in self._passages(node)]

    def _passages(self, node: BaseNode) -> Iterator[BaseNode]:
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        names = (node.metadata.get(key) for key in _PATH_KEYS)
        path = str(next((name for name in names if name), node.node_id))
        document = parse_document(text.encode("utf-8", "replace"), Origin(_TREE, path, 0))
        sizes = ChunkSizes.from_settings(self.chunking)
        for number, chunk in enumerate(chunk_document(document, sizes)):
            if chunk.text is not None and chunk.text.strip():
                yield self._passage(node, chunk, number)

    def _passage(self, source: BaseNode, chunk: Chunk, number: int) -> BaseNode:
        metadata = {
            "heading_path": heading_path(chunk),
            "line_start": chunk.span.line_start,
            "line_end": chunk.span.line_end,
        }
        lines = ["line_start", "line_end"]
        return TextNode(
            id_=self.id_func(number, source),
            text=chunk.text or "",
            metadata=metadata,
            excluded_llm_metadata_keys=[*source.excluded_llm_metadata_keys, *lines],
            excluded_embed_metadata_keys=[*source.excluded_embed_metadata_keys, *lines],
            relationships={NodeRelationship.SOURCE: source.as_related_node_info()},
        )


# Our search as a LlamaIndex retriever: passages with their citations, sync and async.

# The extra `llama-index` is not in the environment that is type-checked:
# pyright: basic, reportMissingImports=false


SHOWN_TO_MODELS = ("citation", "title", "heading_path")
"""The metadata that a language model sees before a passage."""


class RagdocsRetriever(BaseRetriever):
    """Searches an open index; the options, filters included, are those of `Index.search`."""

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
    """A passage under the id of the matched chunk, which is unique among results; `section_id` is
    the section that it is cited under."""
    wider = result.within
    metadata: dict[str, Any] = {
        "citation": result.where,
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
