"""Our chunker as a LlamaIndex node parser: Markdown in, passages with their places out."""
# The extra `llama-index` is not in the environment that is type-checked:
# pyright: basic, reportMissingImports=false

from collections.abc import Iterator, Sequence

from llama_index.core.bridge.pydantic import Field
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from ragdocs.chunking.embedding_text import heading_path
from ragdocs.chunking.header_chunker import ChunkSizes, chunk_document
from ragdocs.config.chunking_section import ChunkingConfig
from ragdocs.models import Chunk, TreeName
from ragdocs.parsers.markdown import Origin, parse_document

_TREE = TreeName("docs")
_PATH_KEYS = ("file_path", "path", "file_name")
"""Where LlamaIndex's readers leave a file's name."""


class RagdocsNodeParser(NodeParser):
    """Cuts at headings, then paragraphs, then sentences; never inside code where it fits.

    `chunking` has the sizes, as `[chunking]` in a configuration.
    """

    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)

    @classmethod
    def class_name(cls) -> str:
        return "RagdocsNodeParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: object
    ) -> list[BaseNode]:
        del show_progress  # it is over before a bar could be read
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
