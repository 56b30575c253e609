"""Short ways to parse and chunk in tests."""

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.models import Chunk, Document, TreeName
from ragdocs.parsers.markdown import Origin, parse_document

SEED_SIZES = ChunkSizes(leaf=Limits(250, 1000), small_document=1200, overlap=100)


def parse(
    text: str | bytes, path: str = "note.md", mtime_ns: int = 0, tree: str = "docs"
) -> Document:
    data = text.encode() if isinstance(text, str) else text
    return parse_document(data, Origin(TreeName(tree), path, mtime_ns))


def chunk(text: str | bytes, sizes: ChunkSizes = SEED_SIZES, path: str = "note.md") -> list[Chunk]:
    return list(chunk_document(parse(text, path), sizes))


def leaves(chunks: list[Chunk]) -> list[Chunk]:
    return [node for node in chunks if node.text is not None]
