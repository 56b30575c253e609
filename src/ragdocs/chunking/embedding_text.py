"""What a leaf gives the embedder: its heading path, a blank line, and its words."""

from ragdocs.models import Chunk

PATH_SEPARATOR = " > "


def heading_path(chunk: Chunk) -> str:
    return PATH_SEPARATOR.join(chunk.breadcrumb)


def embedding_text(chunk: Chunk) -> str:
    """Empty for a node without text of its own, and for one that holds only blanks."""
    content = f"{chunk.overlap}{chunk.text or ''}".strip()
    return f"{heading_path(chunk)}\n\n{content}" if content else ""
