"""Block structure by a real CommonMark parser: headings, code, and where text may be split.

Only the block phase of markdown-it-py is run. Inline parsing costs several times as much, and
what we need of it (links, tags, a heading's plain text) is found by `inline.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from ragdocs.models import Block, BlockKind, CodeBlock, SourceText
from ragdocs.parsers.math_block import MATH_FENCE, enable_math_blocks

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_LANGUAGE = re.compile(r"[\w+#.\-]+")
_REFERENCES = "references"


@dataclass(frozen=True, slots=True)
class RawHeading:
    """A heading outside lists and quotes: its inline source and its character range."""

    level: int
    content: str
    start: int
    end: int


@dataclass(slots=True)
class Structure:
    """What the block parser found. Ranges are characters [start, end) of the source's text."""

    headings: list[RawHeading] = field(default_factory=list[RawHeading])
    blocks: list[Block] = field(default_factory=list[Block])
    code_blocks: list[CodeBlock] = field(default_factory=list[CodeBlock])
    inline_ranges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    references: dict[str, str] = field(default_factory=dict[str, str])


@cache
def _block_parser(*, has_math: bool, has_footnotes: bool) -> MarkdownIt:
    """Each rule of our own is asked at every line, so a text without its mark does without it."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    if has_footnotes:
        parser.block.ruler.at("reference", _no_footnote, {"alt": []})
    if has_math:
        enable_math_blocks(parser)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _no_footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`[^1]: see [[Note]]` is a footnote's text, with links of its own, and no definition."""
    from markdown_it.rules_block import reference

    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]):
        return False
    return reference(state, start, end, silent)


def _language(info: str) -> str:
    """The first word of a fence's info: `Python title=x`, `{.js}` and `language-sh` name one."""
    words = info.split(maxsplit=1)
    if not words or "=" in words[0]:
        return ""
    name = words[0].strip("{}.").lower().removeprefix("language-")
    found = _LANGUAGE.match(name)
    return found[0] if found else ""


def parse_blocks(source: SourceText, body_start: int) -> Structure:
    env: dict[str, Any] = {}
    body = source.text[body_start:] if body_start else source.text
    parser = _block_parser(has_math=MATH_FENCE in body, has_footnotes="[^" in body)
    tokens = parser.parse(body, env)
    walk = _Walk(source, source.line_of(body_start))
    walk.run(tokens)
    references: dict[str, dict[str, str]] = env.get(_REFERENCES, {})
    walk.found.references = {label: found["href"] for label, found in references.items()}
    return walk.found


class _Walk:
    """One pass over the tokens, each type of interest with its own small method."""

    def __init__(self, source: SourceText, first_line: int) -> None:
        self.found = Structure()
        self._source = source
        self._starts = source.line_starts
        self._first_line = first_line
        self._in_table = False
        self._visitors: dict[str, Callable[[Token], None]] = {
            "paragraph_open": self._text,
            "heading_open": self._heading,
            "inline": self._inline,
            "fence": self._code,
            "code_block": self._code,
            "table_open": self._table,
            "table_close": self._table_end,
            "tr_open": self._row,
            "html_block": self._whole,
            "math_block": self._whole,
            "hr": self._text,
        }

    def run(self, tokens: Sequence[Token]) -> None:
        visitors = self._visitors
        self._tokens = tokens
        for index, token in enumerate(tokens):
            visit = visitors.get(token.type)
            if visit is not None:
                self._index = index
                visit(token)

    def _range(self, token: Token) -> tuple[int, int]:
        first, end = cast(list[int], token.map)
        starts, base = self._starts, self._first_line
        end += base
        stop = starts[end] if end < len(starts) else len(self._source.text)
        return starts[first + base], stop

    def _text(self, token: Token) -> None:
        self.found.blocks.append(Block(*self._range(token), BlockKind.TEXT))

    def _whole(self, token: Token) -> None:
        self.found.blocks.append(Block(*self._range(token), BlockKind.WHOLE))

    def _heading(self, token: Token) -> None:
        start, end = self._range(token)
        self.found.blocks.append(Block(start, end, BlockKind.HEADING))
        if token.level == 0:
            content = self._tokens[self._index + 1].content
            self.found.headings.append(RawHeading(int(token.tag[1]), content, start, end))

    def _inline(self, token: Token) -> None:
        if not self._in_table and ("[" in token.content or "#" in token.content):
            self.found.inline_ranges.append(self._range(token))

    def _code(self, token: Token) -> None:
        start, end = self._range(token)
        self.found.blocks.append(Block(start, end, BlockKind.WHOLE))
        span = self._source.span(start, end)
        self.found.code_blocks.append(CodeBlock(_language(token.info), token.content, span))

    def _table(self, token: Token) -> None:
        self._in_table = True
        self._whole(token)

    def _table_end(self, _token: Token) -> None:
        self._in_table = False

    def _row(self, token: Token) -> None:
        # A cell's inline token has its row's lines: the row is scanned once, not once per cell.
        self.found.inline_ranges.append(self._range(token))
