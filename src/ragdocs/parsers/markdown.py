"""Bytes of a Markdown file to a Document. Pure: no file is opened here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from ragdocs.models import (
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
from ragdocs.parsers.blocks import (
    MAX_CODE_BLOCKS,
    MAX_HEADINGS,
    MAX_LINES,
    MAX_REFERENCES,
    RawHeading,
    Structure,
    parse_blocks,
)
from ragdocs.parsers.dates import from_mtime
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.front_matter import FoundFrontMatter, read_front_matter
from ragdocs.parsers.identity import SlugCounter, document_id
from ragdocs.parsers.inline import (
    MAX_LINKS,
    MAX_TAGS,
    InlineFinds,
    InlineScanner,
    heading_text,
)
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
            *_odd_metadata(front),
            *_left_out(structure.left_out + inline.left_out),
        ),
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


def _odd_metadata(front: FoundFrontMatter) -> Iterable[DocumentWarning]:
    return (DocumentWarning(WarningKind.FRONT_MATTER, 1, text) for text in front.warnings)


_KEPT = {
    WarningKind.TOO_MANY_LINES: f"read as plain text after the first {MAX_LINES:,} lines",
    WarningKind.TOO_MANY_HEADINGS: f"only the first {MAX_HEADINGS:,} headings are sections",
    WarningKind.TOO_MANY_LINKS: f"only the first {MAX_LINKS:,} links are followed",
    WarningKind.TOO_MANY_REFERENCES: f"only the first {MAX_REFERENCES:,} link definitions count",
    WarningKind.TOO_MANY_TAGS: f"only the first {MAX_TAGS:,} tags count",
    WarningKind.TOO_MANY_CODE_BLOCKS: f"only the first {MAX_CODE_BLOCKS:,} code blocks are "
    "found as code",
}


def _left_out(counts: Mapping[WarningKind, int]) -> Iterable[DocumentWarning]:
    """What is beyond a limit: it can still be found as text."""
    return (
        DocumentWarning(kind, count, f"{_KEPT[kind]}; it has {count:,} more")
        for kind, count in counts.items()
        if count
    )


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


def _tags(listed: Iterable[str], written: Mapping[str, str]) -> tuple[str, ...]:
    """Tags differ by more than their case; the first spelling is kept."""
    seen: dict[str, str] = {}
    for tag in listed:
        seen.setdefault(tag.casefold(), tag)
    for key, tag in written.items():
        seen.setdefault(key, tag)
    return tuple(seen.values())
