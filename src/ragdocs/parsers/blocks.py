"""Block structure by a real CommonMark parser: headings, code, and where text may be split.

Only the block phase of markdown-it-py is run. Inline parsing costs several times as much, and
what we need of it (links, tags, a heading's plain text) is found by `inline.py`. No token outlives
the next one, and what is kept has a limit: a file of nothing but headings must not take the
machine (specs/0068).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from ragdocs.models import Block, BlockKind, CodeBlock, SourceText, WarningKind
from ragdocs.parsers.math_block import MATH_FENCE, enable_math_blocks

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

MAX_LINES = 250_000
"""Read as Markdown, 10 to 40 microseconds each; the text after them is plain. The longest of
21,000 real pages has 2,000."""
MAX_HEADINGS = 10_000
"""The rest is text; real pages have up to 170."""
MAX_CODE_BLOCKS = 10_000
"""Found as code; the others as text. Real pages have up to 120."""
MAX_REFERENCES = 10_000
"""Link definitions that are remembered."""

_LANGUAGE = re.compile(r"[\w+#.\-]+")


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
    references: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Counter[WarningKind] = field(default_factory=Counter[WarningKind])
    """How many lines, headings, code blocks and definitions are beyond their limits."""


@cache
def _block_parser(*, has_math: bool, has_footnotes: bool) -> MarkdownIt:
    """Each rule of our own is asked at every line, so a text without its mark does without it."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    if has_footnotes:
        parser.block.ruler.at("reference", _no_footnote, {"alt": []})
    if has_math:
        enable_math_blocks(parser)
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
    from ragdocs.parsers.block_stream import BlockStream

    first = source.line_of(body_start)
    end = len(source.text)
    left = len(source.line_starts) - first - MAX_LINES
    if left > 0:
        end = source.line_starts[first + MAX_LINES]
    body = source.text[body_start:end]
    parser = _block_parser(has_math=MATH_FENCE in body, has_footnotes="[^" in body)
    references = References()
    walk = _Walk(source, first, end)
    stream = BlockStream(body, parser, {"references": references}, _VISITED, walk.visit)
    stream.run()
    found = walk.found
    found.references = references.targets
    found.left_out[WarningKind.TOO_MANY_REFERENCES] += references.left_out
    if left > 0 and not source.text[end:].isspace():
        found.left_out[WarningKind.TOO_MANY_LINES] += left
    return found


class References(dict[str, dict[str, Any]]):
    """Link definitions as markdown-it notes them, of which only targets are kept, and the first
    ones."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[str, str] = {}
        self.left_out = 0

    def __contains__(self, label: object) -> bool:
        """Always new: markdown-it would keep a list of those that are defined twice."""
        return False

    def __setitem__(self, label: str, found: dict[str, Any]) -> None:
        if len(self.targets) < MAX_REFERENCES:
            self.targets.setdefault(label, found["href"])
        elif label not in self.targets:
            self.left_out += 1


_VISITED = frozenset(
    {
        *("paragraph_open", "heading_open", "inline", "fence", "code_block", "html_block"),
        *("table_open", "table_close", "tr_open", "math_block", "hr"),
    }
)


class _Walk:
    """Visits tokens as they come, each type of interest with its own small method."""

    def __init__(self, source: SourceText, first_line: int, end: int) -> None:
        self.found = Structure()
        self._source = source
        self._starts = source.line_starts
        self._first_line = first_line
        self._end = end
        self._table: Token | None = None
        self._heading_at: tuple[int, int, int] | None = None
        self._visitors: dict[str, Callable[[Token], None]] = {
            "paragraph_open": self._text,
            "heading_open": self._heading,
            "inline": self._inline,
            "fence": self._code,
            "code_block": self._code,
            "table_open": self._table_begin,
            "table_close": self._table_end,
            "tr_open": self._row,
            "html_block": self._whole,
            "math_block": self._whole,
            "hr": self._text,
        }

    def visit(self, token: Token) -> None:
        self._visitors[token.type](token)

    def _range(self, token: Token) -> tuple[int, int]:
        first, end = cast(list[int], token.map)
        starts, base = self._starts, self._first_line
        end += base
        stop = min(starts[end], self._end) if end < len(starts) else self._end
        return starts[first + base], stop

    def _text(self, token: Token) -> None:
        self.found.blocks.append(Block(*self._range(token), BlockKind.TEXT))

    def _whole(self, token: Token) -> None:
        self.found.blocks.append(Block(*self._range(token), BlockKind.WHOLE))

    def _heading(self, token: Token) -> None:
        start, end = self._range(token)
        self.found.blocks.append(Block(start, end, BlockKind.HEADING))
        if token.level > 0:
            return
        if len(self.found.headings) < MAX_HEADINGS:
            self._heading_at = int(token.tag[1]), start, end
        else:
            self.found.left_out[WarningKind.TOO_MANY_HEADINGS] += 1

    def _inline(self, token: Token) -> None:
        content = token.content
        if self._heading_at is not None:
            level, start, end = self._heading_at
            self.found.headings.append(RawHeading(level, content, start, end))
            self._heading_at = None
        if self._table is None and ("[" in content or "#" in content):
            self.found.inline_ranges.append(self._range(token))

    def _code(self, token: Token) -> None:
        start, end = self._range(token)
        self.found.blocks.append(Block(start, end, BlockKind.WHOLE))
        if len(self.found.code_blocks) >= MAX_CODE_BLOCKS:
            self.found.left_out[WarningKind.TOO_MANY_CODE_BLOCKS] += 1
            return
        span = self._source.span(start, end)
        self.found.code_blocks.append(CodeBlock(_language(token.info), token.content, span))

    def _table_begin(self, token: Token) -> None:
        self._table = token

    def _table_end(self, _token: Token) -> None:
        """Only now does the table know its last line."""
        if self._table is not None:
            self._whole(self._table)
        self._table = None

    def _row(self, token: Token) -> None:
        # A cell's inline token has its row's lines: the row is scanned once, not once per cell.
        self.found.inline_ranges.append(self._range(token))
