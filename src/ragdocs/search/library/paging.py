"""Where a page ends: as many lines as there is room for; a line longer than that is cut."""

from ragdocs.search.budget import BYTES_PER_TOKEN


def page_end(text: str, start: int, end: int, max_tokens: int) -> int:
    """The end of the page of text[start:end] that begins at `start`; some way on, unless all is
    given. A page is at most `max_tokens` long, and ends with a line or within a longer one.
    """
    room = max_tokens * BYTES_PER_TOKEN
    piece = text[start : min(end, start + room)]
    data = piece.encode("utf-8", "replace")
    if len(data) <= room and start + len(piece) == end:
        return end
    fitting = data[:room].decode("utf-8", "ignore")
    lines = fitting.rfind("\n") + 1
    return start + (lines or len(fitting))
