"""What the index manager is made from: the settings that concern it, and who listens and stops."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from ragdocs.chunking.header_chunker import ChunkSizes
from ragdocs.config.resolved import Tree
from ragdocs.indexing.ingestion import Ingestion
from ragdocs.indexing.outcome import Progress
from ragdocs.models import TreeName
from ragdocs.store.stored_index import StoredIndex

MAX_FILE_BYTES = 10_000_000
LOCK_SECONDS = 60.0
"""How long others may keep us from writing: a deep check of a large store takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSetup:
    """One index: where it is, what it is made from, and how.

    `settings` are what the fingerprint is of. Without `owns_directory`, programs with other
    settings may keep their index there: it is then left to them.
    """

    directory: Path
    fingerprint: str
    settings: str = ""
    owns_directory: bool = True
    trees: tuple[Tree, ...]
    sizes: ChunkSizes
    tables: tuple[StoredIndex, ...] = ()
    max_file_bytes: int = MAX_FILE_BYTES
    respect_gitignore: bool = True
    has_communities: bool = True
    """Whether communities of linked documents are computed and stored."""

    def ingestions(self) -> dict[TreeName, Ingestion]:
        return {
            tree.name: Ingestion(tree.name, tree.root, self.max_file_bytes, self.sizes, tree.within)
            for tree in self.trees
        }


def _nobody(_: Progress) -> None:
    """The listener when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Who may end the work early, who hears how far it is, and what time it is."""

    stop: Event = field(default_factory=Event)
    on_progress: Callable[[Progress], None] = _nobody
    lock_seconds: float = LOCK_SECONDS
    clock_ns: Callable[[], int] = time.time_ns
