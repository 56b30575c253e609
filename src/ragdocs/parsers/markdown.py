"""Bytes of a Markdown file to a Document. Pure: no file is opened here."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from ragdocs.models import (
    DateSource,
    Document,
    FrontMatter,
    Heading,
    Link,
    LinkKind,
    LinkSyntax,
    SourceText,
    Span,
    TreeName,
)
from ragdocs.parsers.blocks import RawHeading, Structure, parse_blocks
from ragdocs.parsers.dates import from_mtime
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.front_matter import FoundFrontMatter, read_front_matter
from ragdocs.parsers.identity import SlugCounter, document_id
from ragdocs.parsers.inline import InlineFinds, InlineScanner, heading_text
from ragdocs.parsers.plain_text import plain_structure

MAX_TITLE_CHARS = 200
"""A title goes with every answer from its document; a 100,000-character heading must not."""
MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".mdown", ".mkd", ".qmd", ".rmd"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file's bytes came from."""

    tree: TreeName
    path: str
    mtime_ns: int


def parse_document(data: bytes, origin: Origin) -> Document:
    """Parse by suffix: Markdown with all its structure, anything else as plain text.

    Raises:
        SourceBinary: the bytes are not text.
    """
    decoded = decode(data)
    source = decoded.source
    if PurePosixPath(origin.path).suffix.lower() in MARKDOWN_SUFFIXES:
        front = read_front_matter(source.text)
        structure = parse_blocks(source, front.body_start)
    else:
        front = FoundFrontMatter(FrontMatter(), 0, ())
        structure = plain_structure(source)
    inline = _scan_inline(source.text, structure)
    headings = _headings(source, structure.headings)
    date, date_source = _date(front.metadata, origin.mtime_ns)
    return Document(
        id=document_id(origin.tree, origin.path),
        tree=origin.tree,
        path=origin.path,
        title=_title(front.metadata, headings, origin.path),
        front_matter=front.metadata,
        tags=_unique((*front.metadata.tags, *inline.tags)),
        date=date,
        date_source=date_source,
        source=source,
        body_start=front.body_start,
        headings=headings,
        links=(*_related(front, source), *_links(source, inline)),
        code_blocks=tuple(structure.code_blocks),
        blocks=tuple(structure.blocks),
        warnings=decoded.notes + front.warnings,
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


def _related(front: FoundFrontMatter, source: SourceText) -> Iterable[Link]:
    """`related` entries have no place of their own: they stand where the front matter stands."""
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


def _unique(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags differ by more than their case; the first spelling is kept."""
    seen: dict[str, str] = {}
    for tag in tags:
        seen.setdefault(tag.casefold(), tag)
    return tuple(seen.values())
