"""Turns a canvas (JSON Canvas, as Obsidian writes it) into a Document. Pure.

The document's text is the decoded text of its cards, one after the other; `CanvasText` maps its
characters to the JSON strings in the file, between their quotes. A JSON string never spans lines.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath

from ragdocs.dates import from_mtime
from ragdocs.errors import SourceBinary
from ragdocs.models import (
    JSON_STRINGS,
    Block,
    Card,
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
    WarningKind,
)
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.ids import SlugCounter, document_id
from ragdocs.parsers.inline import InlineScanner
from ragdocs.parsers.markdown import Origin, limit_warnings, parse_blocks

MAX_CARDS = 10_000
"""Later cards are not read; real canvases have up to a few hundred."""
SEPARATOR = "\n\n"
"""Between two cards in the text."""
_MAX_ID_CHARS = 100
_MAX_TITLE_CHARS = 80
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)
_ESCAPE = re.compile(
    r"\\r\\n|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
_PLAIN = {"\\n": "\n", "\\r": "\n", "\\r\\n": "\n", "\\t": "\t", "\\b": " ", "\\f": " "}
_UNSHOWABLE = re.compile("[\x00\ud800-\udfff]")
_MARKUP = re.compile(r"^[#>\-*+\s]+|[*_`]+")


@dataclass(frozen=True, slots=True)
class JsonString:
    """A string in a JSON text: its characters, and its place between the quotes. After each escape,
    `characters` and `places` have the next character and its place."""

    text: str
    start: int
    end: int
    characters: Sequence[int] = ()
    places: Sequence[int] = ()

    def place(self, offset: int) -> int:
        """The place in the JSON text of a character."""
        at = bisect_right(self.characters, offset) - 1
        known, place = (self.characters[at], self.places[at]) if at >= 0 else (0, self.start)
        return min(place + offset - known, self.end)


@dataclass(frozen=True, slots=True)
class CanvasText(SourceText):
    """The text of all cards, with the mapping to the bytes and lines of the JSON file."""

    file: SourceText
    strings: tuple[JsonString, ...]
    starts: tuple[int, ...]
    """Where the text of each string begins."""

    def line_of(self, offset: int) -> int:
        return self.file.line_of(self._place(offset))

    def byte_of(self, offset: int) -> int:
        return self.file.byte_of(self._place(offset))

    def _place(self, offset: int) -> int:
        at = bisect_right(self.starts, offset) - 1
        return self.strings[at].place(offset - self.starts[at]) if at >= 0 else 0


@dataclass(frozen=True, slots=True)
class _Node:
    """A node or an edge of the canvas with something to read."""

    id: str
    shown: JsonString
    target: str = ""
    anchor: str = ""

    @property
    def title(self) -> str:
        if self.target:
            return PurePosixPath(self.target).stem or self.target
        lines = (_MARKUP.sub("", line).strip() for line in self.shown.text.splitlines())
        title = next((line for line in lines if line), "")
        is_long = len(title) > _MAX_TITLE_CHARS
        return title[: _MAX_TITLE_CHARS - 1] + "…" if is_long else title


def parse_canvas(data: bytes, origin: Origin) -> Document:
    """Raises SourceBinary for what is not a canvas."""
    decoded = decode(data)
    file = decoded.source
    nodes = list(islice(_nodes(file.text), MAX_CARDS + 1))
    warnings = list(decoded.warnings)
    if len(nodes) > MAX_CARDS:
        nodes = nodes[:MAX_CARDS]
        text = f"only the first {MAX_CARDS:,} cards are read"
        warnings.append(DocumentWarning(WarningKind.TOO_MANY_CARDS, 1, text))
    source = _join(file, [node.shown for node in nodes])
    reader = _CardReader(source)
    for node, start in zip(nodes, source.starts, strict=True):
        reader.read(node, start)
    return Document(
        id=document_id(origin.tree, origin.path),
        tree=origin.tree,
        path=origin.path,
        title=PurePosixPath(origin.path).stem.encode("utf-8", "replace").decode("utf-8"),
        front_matter=FrontMatter(),
        tags=tuple(reader.tags.values()),
        date=from_mtime(origin.mtime_ns),
        date_source=DateSource.MTIME,
        source=source,
        body_start=0,
        headings=tuple(card.heading for card in reader.cards),
        links=tuple(reader.links),
        code_blocks=tuple(reader.code_blocks),
        blocks=tuple(reader.blocks),
        warnings=(*warnings, *limit_warnings(reader.left_out)),
        cards=tuple(reader.cards),
    )


class _CardReader:
    """Reads the cards one by one, each as Markdown of its own: an open fence ends with its card."""

    def __init__(self, source: CanvasText) -> None:
        self.cards: list[Card] = []
        self.links: list[Link] = []
        self.tags: dict[str, str] = {}
        self.code_blocks: list[CodeBlock] = []
        self.blocks: list[Block] = []
        self.left_out: Counter[WarningKind] = Counter()
        self._source = source
        self._slugs = SlugCounter()

    def read(self, node: _Node, start: int) -> None:
        end = start + len(node.shown.text)
        span = self._source.span(start, end)
        heading = Heading(1, node.title, self._slugs.unique(node.id), span)
        self.cards.append(Card(heading, start, end))
        if node.target:
            kind, syntax = LinkKind.LINKS_TO, LinkSyntax.WIKI
            self.links.append(Link(kind, syntax, node.target, node.anchor, node.target, span))
        else:
            self._read_markdown(node.shown.text, start)

    def _read_markdown(self, text: str, base: int) -> None:
        own = decode(text.encode("utf-8")).source
        structure = parse_blocks(own, 0)
        for one in structure.blocks:
            self.blocks.append(Block(one.start + base, one.end + base, one.kind))
        scanner = InlineScanner(own.text, structure.references)
        for start, end in structure.inline_ranges:
            scanner.scan(start, end)
        for raw in scanner.found.links:
            span = self._source.span(raw.start + base, raw.end + base)
            self.links.append(Link(raw.kind, raw.syntax, raw.target, raw.anchor, raw.text, span))
        for key, tag in scanner.found.tags.items():
            self.tags.setdefault(key, tag)
        for code in structure.code_blocks:  # whole lines
            first, last = own.line_starts[code.span.line_start - 1], code.span.line_end
            end = own.line_starts[last] if last < len(own.line_starts) else len(own.text)
            self.code_blocks.append(replace(code, span=self._source.span(first + base, end + base)))
        self.left_out += structure.left_out + scanner.found.left_out


def _join(file: SourceText, strings: Sequence[JsonString]) -> CanvasText:
    starts: list[int] = []
    at = 0
    for one in strings:
        starts.append(at)
        at += len(one.text) + len(SEPARATOR)
    text = SEPARATOR.join(one.text for one in strings)
    return CanvasText(
        text=text,
        exact=text,
        encoding=JSON_STRINGS,
        errors="strict",
        line_starts=file.line_starts,
        marks=file.marks,
        mark_bytes=file.mark_bytes,
        size=file.size,
        file=file,
        strings=tuple(strings),
        starts=tuple(starts),
    )


# From the JSON text to the nodes. The text is checked by the standard library first; the tokens
# then only tell where the strings are. Nothing here is recursive.

_ROOT, _LIST, _OBJECT = 1, 2, 3
"""How deep the file, its lists of nodes and edges, and their objects are."""


def _nodes(text: str) -> Iterator[_Node]:
    if not text.strip():  # a canvas that was just created
        return
    _check(text)
    for number, (name, fields) in enumerate(_objects(text)):
        node = _edge(fields, number) if name == "edges" else _node(fields, number)
        if node is not None:
            yield node


def _check(text: str) -> None:
    try:
        root: object = json.loads(
            text, parse_int=_no_number, parse_float=_no_number, parse_constant=_refuse
        )
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        what = "its JSON is nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise SourceBinary(f"not a canvas: {what}{where}; exclude it or repair it") from error
    if not isinstance(root, dict):
        raise SourceBinary("not a canvas: its JSON is not an object; exclude it")


def _no_number(_: str) -> int:
    """A number may have a million digits, and none is used."""
    return 0


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _objects(text: str) -> Iterator[tuple[str, dict[str, JsonString]]]:  # noqa: C901 - one scanner
    """The objects in `nodes` and `edges`, with their fields that are strings."""
    depth, within, key = 0, "", ""
    last: re.Match[str] | None = None
    fields: dict[str, JsonString] = {}
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            within = key if depth == _ROOT else within
            depth += 1
            key = ""
            if depth == _OBJECT:
                fields = {}
        elif mark in "]}":
            if depth == _OBJECT and mark == "}" and within in ("nodes", "edges"):
                yield within, fields
            depth -= 1
            key = ""
        elif mark == ":":
            key = _read_string(text, last).text if last and depth in (_ROOT, _OBJECT) else ""
        elif mark == ",":
            key = ""
        elif key and depth == _OBJECT:
            fields[key] = _read_string(text, token)
        last = token


def _read_string(text: str, token: re.Match[str]) -> JsonString:
    start, end = token.start() + 1, token.end() - 1
    raw = text[start:end]
    if "\\" not in raw:
        return JsonString(_UNSHOWABLE.sub("\ufffd", raw), start, end)
    pieces: list[str] = []
    characters, places = array("q"), array("q")
    at = length = 0
    for escape in _ESCAPE.finditer(raw):
        pieces += (raw[at : escape.start()], _unescape(escape[0]))
        at = escape.end()
        length += escape.start() - (places[-1] - start if places else 0) + 1
        characters.append(length)
        places.append(start + at)
    pieces.append(raw[at:])
    shown = _UNSHOWABLE.sub("\ufffd", "".join(pieces))
    return JsonString(shown, start, end, characters, places)


def _unescape(escape: str) -> str:
    """One character."""
    if escape[1] != "u":
        return _PLAIN.get(escape, escape[1])
    high = int(escape[2:6], 16)
    if len(escape) == len("\\u0000"):
        return "\n" if high == ord("\r") else chr(high)
    return chr(0x10000 + ((high - 0xD800) << 10) + int(escape[8:12], 16) - 0xDC00)


def _node(fields: dict[str, JsonString], number: int) -> _Node | None:
    own = _id(fields, f"card-{number + 1}")
    match fields["type"].text if "type" in fields else "":
        case "text" if "text" in fields:
            node = _Node(own, fields["text"])
        case "group" if "label" in fields:
            node = _Node(own, fields["label"])
        case "file" if "file" in fields:
            subpath = fields["subpath"].text if "subpath" in fields else ""
            target = fields["file"].text.strip()
            node = _Node(own, fields["file"], target, subpath.removeprefix("#"))
        case _:
            return None
    return node if node.shown.text.strip() else None


def _edge(fields: dict[str, JsonString], number: int) -> _Node | None:
    if "label" not in fields or not fields["label"].text.strip():
        return None
    return _Node(_id(fields, f"edge-{number + 1}"), fields["label"])


def _id(fields: dict[str, JsonString], otherwise: str) -> str:
    found = fields["id"].text if "id" in fields else ""
    return found.strip()[:_MAX_ID_CHARS] or otherwise
