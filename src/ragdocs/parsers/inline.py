"""Finds links, tags and fields in inline Markdown, and the plain text of a heading.

Scans in CommonMark's precedence (escapes, code spans and HTML before brackets) with one regular
expression for each step, in linear time. Code blocks are not scanned.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from ragdocs.limits import MAX_PROPERTY_VALUES
from ragdocs.memory import BoundedCache
from ragdocs.models import LinkKind, LinkSyntax, WarningKind
from ragdocs.parsers.properties import FIELD_MARK, inline_fields

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RENDERED_BYTES = 1 << 20
# Searching for a set of characters is much faster than for the alternatives that begin with them.
_SPECIAL = re.compile(r"[\\`<%!\[\]#]")
_STEP = re.compile(
    r"""\\[\s\S]                                  # an escape takes the next character with it
      | (?P<ticks>`+)
      | (?P<comment><!--|%%)                      # HTML's, and Obsidian's
      | <[A-Za-z/!?][^<>]{0,2000}>                # HTML or an autolink: nothing inside counts
      | (?P<wiki>!?\[\[(?P<inner>[^\[\]\n]{1,1000})\]\])
      | (?P<open>!?\[)
      | (?P<close>\])
      | (?P<tag>(?<![^\s(>|])\#(?P<name>(?:[\w/\-]|[^\x00-\u00bf\u2000-\u206f\u3000-\u303f\s])+))
    """,
    re.VERBOSE,
)
# Every repetition is possessive: an unclosed destination fails without backtracking.
_DESTINATION = re.compile(
    r"""\(\s*+
        (?: <(?P<angle>[^<>\n]{0,2000}+)>
          | (?!<)(?P<bare>(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.){0,500}+\))++)
        )?+
        (?:\s++(?:"(?:\\.|[^"\\]){0,1000}+"|'(?:\\.|[^'\\]){0,1000}+'
              |\((?:\\.|[^()\\]){0,1000}+\)))?+
        \s*+\)""",
    re.VERBOSE,
)
MAX_LINKS = 10_000
"""How many links are followed; real pages have up to 170."""
MAX_TAGS = 5_000
MAX_TAG_CHARS = 200
"""A longer one is text after a `#`."""
_MAX_LABEL_CHARS = 999
_LABEL = re.compile(rf"\[((?:\\.|[^\[\]\\]){{0,{_MAX_LABEL_CHARS}}}+)\]")
_TICKS = re.compile("`+")
_COMMENT_ENDS = {"<!--": "-->", "%%": "%%"}
_MARKDOWN_FILE = re.compile(r"\.(?:md|markdown|mdx)$", re.IGNORECASE)
_MAX_LINK_TEXT = 300
_EXTERNAL = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]+:|//)")
_MEDIA = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|ico|avif|tiff?|mp[34]|m4[av]|wav|ogg|webm|mov|pdf|zip|canvas)$",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*_\[\]<>&!~$]")
_WIKI_TEXT = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
_MAX_HEADING_CHARS = 400
"""Inline parsing is superlinear for hostile nesting, so a longer heading is taken as it is."""


Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RawLink:
    """A link and its character range, not yet resolved."""

    kind: LinkKind
    syntax: LinkSyntax
    target: str
    anchor: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InlineFinds:
    """The links, tags and fields of one run of inline text."""

    links: list[RawLink]
    tags: dict[str, str]
    """In their first spelling, by their casefolded form."""
    fields: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Inline fields: keys and values as they are written."""
    left_out: Counter[WarningKind] = field(default_factory=Counter[WarningKind])
    """How many links, tags and fields exceed their limits."""


class InlineScanner:
    """Scans ranges of one text, collecting links, tags and fields in order."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        self.found = InlineFinds([], {})
        self._text = text
        self._references = references
        self._openers = array("q")
        self._dead_before = 0

    def scan(self, start: int, end: int) -> None:
        text = self._text
        self._openers = array("q")  # twice the offset of each; plus one for an image
        self._dead_before = start
        unclosed: set[str] = set()
        ticks = _TickRuns(text, end)
        skipped: list[Range] = []
        position = start
        while (special := _SPECIAL.search(text, position, end)) is not None:
            step = _STEP.match(text, special.start(), end)
            if step is None:
                position = special.end()
                continue
            position = step.end()
            kind = step.lastgroup
            if kind == "ticks":
                position = ticks.after_code(step)
                skipped.append((step.start(), position))
            elif kind == "comment":
                position = _skip_comment(text, step, end, unclosed)
                skipped.append((step.start(), position))
            elif kind == "open":
                self._openers.append(2 * step.start() + (step[0][0] == "!"))
            elif kind == "close":
                position = self._close(step.end(), end)
            elif kind:
                self._wikilink_or_tag(step)
        self._find_fields(start, end, skipped)

    def _find_fields(self, start: int, end: int, skipped: list[Range]) -> None:
        if self._text.find(FIELD_MARK, start, end) < 0:
            return
        for each in inline_fields(self._text, start, end, skipped):
            if len(self.found.fields) < MAX_PROPERTY_VALUES:
                self.found.fields.append(each)
            else:
                self.found.left_out[WarningKind.TOO_MANY_PROPERTIES] += 1

    def _wikilink_or_tag(self, step: re.Match[str]) -> None:
        if step["wiki"]:
            self._wikilink(step)
        elif (name := step["name"].rstrip("/-")) and not name.isdecimal():
            self._tag(name)

    def _tag(self, name: str) -> None:
        tags, key = self.found.tags, name.casefold()
        if len(name) > MAX_TAG_CHARS or key in tags:
            return
        if len(tags) < MAX_TAGS:
            tags[key] = name
        else:
            self.found.left_out[WarningKind.TOO_MANY_TAGS] += 1

    def _link(self, link: RawLink) -> None:
        if len(self.found.links) < MAX_LINKS:
            self.found.links.append(link)
        else:
            self.found.left_out[WarningKind.TOO_MANY_LINKS] += 1

    def _wikilink(self, step: re.Match[str]) -> None:
        destination, _, shown = step["inner"].replace("\\|", "|").partition("|")
        target, _, anchor = destination.partition("#")
        kind = LinkKind.EMBEDS if step["wiki"][0] == "!" else LinkKind.LINKS_TO
        target, anchor, text = target.strip(), anchor.strip(), _one_line(shown or destination)
        if (target or anchor) and not _EXTERNAL.match(target) and not _MEDIA.search(target):
            link = RawLink(kind, LinkSyntax.WIKI, target, anchor, text, step.start(), step.end())
            self._link(link)

    def _close(self, after: int, end: int) -> int:
        """Handles `]`: a link if there is an opener and a destination or known label follows."""
        if not self._openers:
            return after
        start, is_image = divmod(self._openers.pop(), 2)
        if not is_image and start < self._dead_before:
            return after
        inner = start + (2 if is_image else 1), after - 1
        href, stop = self._destination(inner, after, end)
        if href is None:
            return after
        if not is_image:
            # Links do not nest: an outer bracket around this one is text.
            self._dead_before = start
        self._markdown_link(href, inner, (start, stop), bool(is_image))
        return stop

    def _destination(self, inner: Range, after: int, end: int) -> tuple[str | None, int]:
        follows = self._text[after : after + 1] if after < end else ""
        if follows == "(" and (found := _DESTINATION.match(self._text, after, end)):
            return found["angle"] or found["bare"] or "", found.end()
        if not self._references:
            return None, after
        if follows == "[" and (label := _LABEL.match(self._text, after, end)):
            return self._look_up(label[1]) if label[1] else self._look_up_text(inner), label.end()
        return self._look_up_text(inner), after

    def _look_up_text(self, inner: Range) -> str | None:
        is_label = inner[1] - inner[0] <= _MAX_LABEL_CHARS
        return self._look_up(self._text[slice(*inner)]) if is_label else None

    def _look_up(self, label: str) -> str | None:
        """Uses markdown-it's normal form of a label."""
        return self._references.get(" ".join(label.split()).lower().upper())

    def _markdown_link(self, href: str, inner: Range, outer: Range, is_image: bool) -> None:
        href = _unescape(href.strip())
        if not href or _EXTERNAL.match(href):
            return
        path, _, anchor = href.partition("#")
        path = path.partition("?")[0]
        if is_image and not _MARKDOWN_FILE.search(path):
            return
        if (path or anchor) and not _MEDIA.search(path):
            kind = LinkKind.EMBEDS if is_image else LinkKind.LINKS_TO
            shown = self._text[inner[0] : min(inner[1], inner[0] + _MAX_LINK_TEXT)]
            self._link(RawLink(kind, LinkSyntax.MARKDOWN, path, anchor, _one_line(shown), *outer))


def _skip_comment(text: str, opening: re.Match[str], end: int, unclosed: set[str]) -> int:
    mark = opening[0]
    if mark in unclosed:
        return opening.end()
    closing = text.find(_COMMENT_ENDS[mark], opening.end(), end)
    if closing == -1:
        unclosed.add(mark)
        return opening.end()
    return closing + len(_COMMENT_ENDS[mark])


class _TickRuns:
    """Finds the ends of code spans. Keeps the last run of each length to recognise unclosed runs:
    searching each time would take quadratic time in the number of lengths."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text
        self._end = end
        self._last: dict[int, int] | None = None

    def after_code(self, opening: re.Match[str]) -> int:
        """The position after the code span that this run opens, or after an unclosed run."""
        text, end, fence = self._text, self._end, opening[0]
        length = len(fence)
        if self._last is not None and self._last.get(length, -1) < opening.end():
            return opening.end()
        position = text.find(fence, opening.end(), end)
        while position != -1:
            run = _TICKS.match(text, position, end)
            stop = run.end() if run else position + length
            if stop - position == length:
                return stop
            position = text.find(fence, stop, end)
        if self._last is None:
            runs = _TICKS.finditer(text, opening.end(), end)
            self._last = {run.end() - run.start(): run.start() for run in runs}
        return opening.end()


def _unescape(href: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", href) if "\\" in href else href


def _one_line(text: str) -> str:
    return " ".join(text.split())


def heading_text(content: str) -> str:
    """A heading's text without markup, as a reader sees it."""
    if len(content) > _MAX_HEADING_CHARS or not _MARKUP.search(content):
        return _one_line(content)
    return _rendered_texts[content]


@cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")


def _render(content: str) -> str:
    shown = _WIKI_TEXT.sub(lambda found: found[1].rpartition("|")[2], content)
    tokens = _inline_parser().parseInline(shown)
    return _one_line("".join(_texts(tokens)))


_rendered_texts = BoundedCache(_render, RENDERED_BYTES)


def _texts(tokens: "list[Token]") -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _texts(token.children)
        elif token.type in ("text", "code_inline", "text_special"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
