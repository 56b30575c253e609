"""Plain text: one document without headings, whose paragraphs are the blocks."""

import re
from itertools import islice

from ragdocs.models import Block, BlockKind, SourceText
from ragdocs.parsers.blocks import MAX_LINES, Structure

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*\n?")


def plain_structure(source: SourceText) -> Structure:
    """Text after the last block is text too: so many blocks are enough."""
    found = Structure()
    for paragraph in islice(_PARAGRAPH.finditer(source.text), MAX_LINES):
        found.blocks.append(Block(paragraph.start(), paragraph.end(), BlockKind.TEXT))
    return found
