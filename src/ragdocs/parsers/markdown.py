"""Turns the bytes of a file into a Document. Pure: it opens no file.

Blocks come from markdown-it-py, one token at a time; math blocks and plain text have their own
rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from ragdocs.dates import from_mtime
from ragdocs.limits import MAX_PROPERTIES, MAX_PROPERTY_CHARS, MAX_PROPERTY_VALUES
from ragdocs.models import (
    Block,
    BlockKind,
    CodeBlock,
    DateSource,
    Document,
    DocumentWarning,
    FrontMatter,
    Heading,
    Link,
    LinkKind,
    LinkSyntax,
    SourceText,
    Span,
    TreeName,
    WarningKind,
)
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.front_matter import FoundFrontMatter, read_front_matter
from ragdocs.parsers.ids import SlugCounter, document_id
from ragdocs.parsers.inline import MAX_LINKS, MAX_TAGS, InlineFinds, InlineScanner, heading_text
from ragdocs.parsers.properties import FIELD_MARK, PropertyCollector

# markdown-it's block parser as a stream: each token is passed on and not kept.
#
# A token takes half a kilobyte and a line may give eight, so the list for a 10 MB table would take
# gigabytes. markdown-it's rules complete a token before they push the next one; only a table gets
# its last line at its end.


class BlockStream(StateBlock):
    """Parses a text, which has only LF line ends and no NUL, block by block."""

    def __init__(
        self,
        text: str,
        parser: MarkdownIt,
        env: dict[str, Any],
        wanted: Container[str],
        visit: Callable[[Token], None],
    ) -> None:
        super().__init__(text, parser, env, [])
        self._wanted = wanted
        self._visit = visit
        self._pending: Token | None = None
        self._ignored = Token("", "", 0)

    def run(self) -> None:
        self.md.block.tokenize(self, self.line, self.lineMax)
        self._pass_on()

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if self._pending is not None:
            self._pass_on()
        if nesting < 0:
            self.level -= 1
        level = self.level
        if nesting > 0:
            self.level += 1
        if ttype not in self._wanted:
            return self._ignored
        token = self._pending = Token(ttype, tag, nesting, level=level, block=True)
        return token

    def _pass_on(self) -> None:
        if self._pending is not None:
            self._visit(self._pending)
            self._pending = None


# `$$ … $$` as a block, so that nothing inside it is a heading and it is not split.
#
# A rule for markdown-it's block parser. An unclosed formula is ordinary text, and a failed search
# for the end is not repeated: a page of `$$` takes linear time.

MATH_FENCE = "$$"
_UNCLOSED = "math_unclosed"


def enable_math_blocks(parser: MarkdownIt) -> None:
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", _math_block, {"alt": interrupts})


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith(MATH_FENCE, position) or state.is_code_block(start):
        return False
    last = _closing_line(state, start, end, position + len(MATH_FENCE))
    if last is None:
        return False
    if not silent:
        state.line = last + 1
        token = state.push("math_block", "math", 0)
        token.block = True
        token.map = [start, last + 1]
    return True


def _closing_line(state: StateBlock, start: int, end: int, content: int) -> int | None:
    if state.src[content : state.eMarks[start]].rstrip().endswith(MATH_FENCE):
        return start
    if start >= state.env.get(_UNCLOSED, end):
        return None
    for line in range(start + 1, end):
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(MATH_FENCE):
            return line
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return None
    state.env[_UNCLOSED] = start
    return None


# The block structure by a CommonMark parser: headings, code, and where text may be split.
#
# Only the block phase of markdown-it-py is run. Inline parsing costs several times as much;
# `inline.py` finds what we need of it (links, tags, a heading's plain text). No token is kept after
# the next one, and everything kept has a limit: a file full of headings must not exhaust the
# machine (specs/0068).

MAX_LINES = 250_000
"""How many lines are read as Markdown, 10 to 40 microseconds each; the rest is plain text. The
longest of 21,000 real pages has 2,000."""
MAX_HEADINGS = 10_000
"""Later headings are text; real pages have up to 170."""
MAX_CODE_BLOCKS = 10_000
"""Later code blocks are text; real pages have up to 120."""
MAX_REFERENCES = 10_000
"""How many link definitions are kept."""

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
    """The result of the block parser. Ranges are characters [start, end) of the source's text."""

    headings: list[RawHeading] = field(default_factory=list[RawHeading])
    blocks: list[Block] = field(default_factory=list[Block])
    code_blocks: list[CodeBlock] = field(default_factory=list[CodeBlock])
    inline_ranges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    references: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Counter[WarningKind] = field(default_factory=Counter[WarningKind])
    """How many lines, headings, code blocks and definitions exceed their limits."""


_ESM = re.compile(r"(?:import|export)(?=[\s{*])")


def _esm_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`import` and `export` lines of MDX, down to the next blank line: they are code."""
    first = state.bMarks[start]
    if state.level or state.sCount[start] or not _ESM.match(state.src, first, state.eMarks[start]):
        return False
    last = start + 1
    while last < end and not state.isEmpty(last):
        last += 1
    if not silent:
        state.line = last
        token = state.push("fence", "code", 0)
        token.info, token.map = "jsx", [start, last]
        token.content = state.getLines(start, last, 0, True)
    return True


def _tag_line(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: ARG001
    """A line of MDX that is only tags: a heading may follow it at once, and indented."""
    first = state.bMarks[start] + state.tShift[start]
    line = state.src[first : state.eMarks[start]].rstrip()
    if not (line.startswith("<") and line.endswith(">")):
        return False
    if not silent:
        state.line = start + 1
        for kind in ("paragraph_open", "inline"):
            token = state.push(kind, "p" if kind == "paragraph_open" else "", 0)
            token.map, token.content = [start, start + 1], line
    return True


@cache
def _block_parser(*, has_math: bool, has_footnotes: bool, is_mdx: bool) -> MarkdownIt:
    """Each of our rules is tried at every line, so it is enabled only for texts with its mark.

    MDX has neither HTML blocks nor indented code: Markdown between tags is Markdown, however far
    it is indented.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    if is_mdx:
        parser.disable(["code", "html_block"])
        parser.block.ruler.before("fence", "esm_block", _esm_block, {"alt": []})
        parser.block.ruler.before("paragraph", "tag_line", _tag_line, {"alt": ["paragraph"]})
    if has_footnotes:
        parser.block.ruler.at("reference", _no_footnote, {"alt": []})
    if has_math:
        enable_math_blocks(parser)
    return parser


def _no_footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`[^1]: see [[Note]]` is the text of a footnote, with its own links, not a definition."""
    from markdown_it.rules_block import reference

    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]):
        return False
    return reference(state, start, end, silent)


def _language(info: str) -> str:
    """The language in a fence's info, such as `Python title=x`, `{.js}` or `language-sh`."""
    words = info.split(maxsplit=1)
    if not words or "=" in words[0]:
        return ""
    name = words[0].strip("{}.").lower().removeprefix("language-")
    found = _LANGUAGE.match(name)
    return found[0] if found else ""


def parse_blocks(source: SourceText, body_start: int, *, is_mdx: bool = False) -> Structure:
    first = source.line_of(body_start)
    end = len(source.text)
    left = len(source.line_starts) - first - MAX_LINES
    if left > 0:
        end = source.line_starts[first + MAX_LINES]
    body = source.text[body_start:end]
    has_math, has_footnotes = MATH_FENCE in body, "[^" in body
    parser = _block_parser(has_math=has_math, has_footnotes=has_footnotes, is_mdx=is_mdx)
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
    """Link definitions as markdown-it stores them; keeps only the targets of the first ones."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: dict[str, str] = {}
        self.left_out = 0

    def __contains__(self, label: object) -> bool:
        """Always False: otherwise markdown-it would keep a list of duplicates."""
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
    """Visits tokens in order, with a method for each type that matters."""

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
        if self._table is None and ("[" in content or "#" in content or FIELD_MARK in content):
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
        """The table's last line is known only at its end."""
        if self._table is not None:
            self._whole(self._table)
        self._table = None

    def _row(self, token: Token) -> None:
        # A cell's inline token has its row's lines: scan the row once, not once per cell.
        self.found.inline_ranges.append(self._range(token))


# Plain text: a document without headings, whose paragraphs are blocks.

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*\n?")


def plain_structure(source: SourceText) -> Structure:
    """At most MAX_LINES blocks: text after the last block is text too."""
    found = Structure()
    for paragraph in islice(_PARAGRAPH.finditer(source.text), MAX_LINES):
        found.blocks.append(Block(paragraph.start(), paragraph.end(), BlockKind.TEXT))
    return found


# From the bytes of a file to a Document.

MAX_TITLE_CHARS = 200
"""Every answer from a document has its title, so a heading of 100,000 characters is cut."""
MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".mdown", ".mkd", ".qmd", ".rmd"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file's bytes came from."""

    tree: TreeName
    path: str
    mtime_ns: int


def parse_document(data: bytes, origin: Origin) -> Document:
    """Parses by suffix: Markdown with its structure, anything else as plain text.

    Raises:
        SourceBinary: the bytes are not text.
    """
    decoded = decode(data)
    source = decoded.source
    suffix = PurePosixPath(origin.path).suffix.lower()
    if suffix in MARKDOWN_SUFFIXES:
        front = read_front_matter(source.text)
        structure = parse_blocks(source, front.body_start, is_mdx=suffix == ".mdx")
    else:
        front = FoundFrontMatter(FrontMatter(), 0, (), PropertyCollector())
        structure = plain_structure(source)
    inline = _scan_inline(source.text, structure)
    properties = front.properties
    for key, value in inline.fields:
        properties.add(key, value)
    inline.left_out[WarningKind.TOO_MANY_PROPERTIES] += properties.left_out
    headings = _headings(source, structure.headings)
    date, date_source = _date(front.metadata, origin.mtime_ns)
    return Document(
        id=document_id(origin.tree, origin.path),
        tree=origin.tree,
        path=origin.path,
        title=_title(front.metadata, headings, origin.path),
        front_matter=front.metadata,
        tags=_tags(front.metadata.tags, inline.tags),
        date=date,
        date_source=date_source,
        source=source,
        body_start=front.body_start,
        headings=headings,
        links=(*_related(front, source), *_links(source, inline)),
        code_blocks=tuple(structure.code_blocks),
        blocks=tuple(structure.blocks),
        warnings=(
            *decoded.warnings,
            *_metadata_warnings(front),
            *limit_warnings(structure.left_out + inline.left_out),
        ),
        properties=properties.found(),
    )


def _scan_inline(text: str, structure: Structure) -> InlineFinds:
    scanner = InlineScanner(text, structure.references)
    for start, end in structure.inline_ranges:
        scanner.scan(start, end)
    return scanner.found


def _headings(source: SourceText, raw: Iterable[RawHeading]) -> tuple[Heading, ...]:
    slugs = SlugCounter()
    headings: list[Heading] = []
    for found in raw:
        text = heading_text(found.content)
        span = source.span(found.start, found.end)
        headings.append(Heading(found.level, text, slugs.unique(text), span))
    return tuple(headings)


def _title(metadata: FrontMatter, headings: Iterable[Heading], path: str) -> str:
    first = next((h.text for h in headings if h.level == 1 and h.text), "")
    name = PurePosixPath(path).stem.encode("utf-8", "replace").decode("utf-8")
    title = metadata.title or first or name
    return title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"


def _date(metadata: FrontMatter, mtime_ns: int) -> tuple[datetime, DateSource]:
    for source in (DateSource.MODIFIED, DateSource.DATE, DateSource.CREATED):
        if source in metadata.dates:
            return metadata.dates[source], source
    return from_mtime(mtime_ns), DateSource.MTIME


def _metadata_warnings(front: FoundFrontMatter) -> Iterable[DocumentWarning]:
    return (DocumentWarning(WarningKind.FRONT_MATTER, 1, text) for text in front.warnings)


_KEPT = {
    WarningKind.TOO_MANY_LINES: f"read as plain text after the first {MAX_LINES:,} lines",
    WarningKind.TOO_MANY_HEADINGS: f"only the first {MAX_HEADINGS:,} headings are sections",
    WarningKind.TOO_MANY_LINKS: f"only the first {MAX_LINKS:,} links are followed",
    WarningKind.TOO_MANY_REFERENCES: f"only the first {MAX_REFERENCES:,} link definitions count",
    WarningKind.TOO_MANY_TAGS: f"only the first {MAX_TAGS:,} tags count",
    WarningKind.TOO_MANY_CODE_BLOCKS: f"only the first {MAX_CODE_BLOCKS:,} code blocks are "
    "found as code",
    WarningKind.TOO_MANY_PROPERTIES: f"only {MAX_PROPERTIES:,} properties, "
    f"{MAX_PROPERTY_VALUES:,} values and {MAX_PROPERTY_CHARS:,} characters of a value are kept",
}


def limit_warnings(counts: Mapping[WarningKind, int]) -> Iterable[DocumentWarning]:
    """Warnings about what exceeds a limit and is only found as text."""
    return (
        DocumentWarning(kind, count, f"{_KEPT[kind]}; it has {count:,} more")
        for kind, count in counts.items()
        if count
    )


def _related(front: FoundFrontMatter, source: SourceText) -> Iterable[Link]:
    """Links of the `related` entries; their place is that of the front matter."""
    if not front.metadata.related:
        return ()
    span: Span = source.span(0, front.body_start)
    return tuple(
        Link(LinkKind.RELATED, LinkSyntax.FRONT_MATTER, target, anchor, entry, span)
        for entry in front.metadata.related
        for target, _, anchor in [entry.partition("#")]
    )


def _links(source: SourceText, inline: InlineFinds) -> tuple[Link, ...]:
    return tuple(
        Link(
            raw.kind, raw.syntax, raw.target, raw.anchor, raw.text, source.span(raw.start, raw.end)
        )
        for raw in inline.links
    )


def _tags(listed: Iterable[str], written: Mapping[str, str]) -> tuple[str, ...]:
    """Tags that differ only in case are one; the first spelling is kept."""
    seen: dict[str, str] = {}
    for tag in listed:
        seen.setdefault(tag.casefold(), tag)
    for key, tag in written.items():
        seen.setdefault(key, tag)
    return tuple(seen.values())
