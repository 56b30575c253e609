"""Plain text: one document without headings, whose paragraphs are the blocks."""

import re

from ragdocs.models import Block, BlockKind, SourceText
from ragdocs.parsers.blocks import Structure

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*\n?")


def plain_structure(source: SourceText) -> Structure:
    found = Structure()
    for paragraph in _PARAGRAPH.finditer(source.text):
        found.blocks.append(Block(paragraph.start(), paragraph.end(), BlockKind.TEXT))
    return found
