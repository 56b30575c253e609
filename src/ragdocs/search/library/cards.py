"""How documents and their parts are named in answers: always writable, never at any length."""

from ragdocs.chunking.header_chunker import MAX_TITLE_CHARS
from ragdocs.parsers.identity import encode_path
from ragdocs.store.records import StoredDocument

MAX_TAGS_SHOWN = 50


def shown_path(document: StoredDocument) -> str:
    """The path as it is; a name that is not UTF-8 as it stands in the id, which can be written."""
    path = document.path
    if path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path):
        return path
    return encode_path(path)


def shown_tags(document: StoredDocument) -> tuple[str, ...]:
    """Thousands may stand in one front matter."""
    return tuple(map(short, document.tags[:MAX_TAGS_SHOWN]))


def short(text: str) -> str:
    """A title, or the text of a link, no longer than a chunk's title may be."""
    return text if len(text) <= MAX_TITLE_CHARS else text[: MAX_TITLE_CHARS - 1] + "…"
