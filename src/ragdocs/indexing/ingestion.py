"""One file to what the store keeps of it: read, parse, chunk. Nothing is written here."""

from dataclasses import dataclass
from pathlib import Path

from ragdocs.chunking.header_chunker import ChunkSizes, chunk_document
from ragdocs.errors import SourceError
from ragdocs.indexing.reading import FileBytes, read_file
from ragdocs.models import IndexedFile, TreeName
from ragdocs.parsers.identity import encode_path
from ragdocs.parsers.markdown import Origin, parse_document


@dataclass(frozen=True, slots=True)
class Ingestion:
    """How the files of one tree are taken in."""

    tree: TreeName
    root: Path
    max_bytes: int
    sizes: ChunkSizes
    within: Path | None = None

    def take(self, path: str) -> IndexedFile:
        """The file at a tree-relative path, ready to be stored.

        Raises:
            SourceError: it cannot be indexed; the message names it and says what to do.
        """
        return self.parse(path, self.read(path))

    def read(self, path: str) -> FileBytes:
        """The bytes alone: enough to see that they are the known ones."""
        return read_file(self.root, path, self.max_bytes, self.within)

    def parse(self, path: str, found: FileBytes) -> IndexedFile:
        origin = Origin(self.tree, path, found.state.mtime_ns)
        try:
            document = parse_document(found.data, origin)
        except SourceError as error:
            raise type(error)(f"{encode_path(path)}: {error}") from error
        return IndexedFile(found.state, document, chunk_document(document, self.sizes))
