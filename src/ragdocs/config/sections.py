"""A whole configuration file: every setting, once, with its default, its range and one line that
says what it does. Each section has a module of its own beside this one.

A module is given its own section, never the whole configuration. The example file, the reference
page, the error messages and the checks are all made from what stands there.
"""

from pydantic import Field

from ragdocs.config.chunking_section import ChunkingConfig
from ragdocs.config.context_section import ContextConfig
from ragdocs.config.embedding_section import EmbeddingConfig
from ragdocs.config.indexing_section import IndexingConfig, TreeConfig
from ragdocs.config.search_section import SearchConfig
from ragdocs.config.values import MAX_TREES, Section, TreeKey, setting


class Settings(Section):
    """A whole file."""

    root: bool = setting(
        False, "Look for no further configuration in the folders above this file's."
    )
    indexing: IndexingConfig = Field(default_factory=IndexingConfig)
    tree: dict[TreeKey, TreeConfig] = Field(
        default_factory=dict[str, TreeConfig], max_length=MAX_TREES
    )
    context: ContextConfig = Field(default_factory=ContextConfig)
    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    embedding: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
