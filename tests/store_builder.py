"""Documents and chunk trees made by hand, so that the store is tested without parser or chunker."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from ragdocs.indices.graph import detect, pair_weights
from ragdocs.models import (
    Chunk,
    ChunkId,
    CodeBlock,
    DateSource,
    Document,
    DocumentWarning,
    FileState,
    FrontMatter,
    Heading,
    IndexedFile,
    Link,
    LinkKind,
    LinkSyntax,
    NodeKind,
    Slug,
    SourceText,
    Span,
    TreeName,
    WarningKind,
)
from ragdocs.parsers.ids import PREAMBLE, SlugCounter, document_id
from ragdocs.store.integrity import seal
from ragdocs.store.reader import Reader
from ragdocs.store.tables import CommunityOrigin
from ragdocs.store.writer import Writer

FINGERPRINT = "settings-1"
MODEL = "tiny@1 dimension=3"
READ_NS = 1_700_000_100_000_000_000
DATE = datetime(2024, 5, 6, 7, 8, 9, 1000, tzinfo=UTC)


@dataclass(frozen=True)
class Section:
    heading: str
    text: str = "Some words.\n"
    level: int = 1


def source_text(text):
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    raw = text.encode()
    return SourceText(
        text=text,
        exact=text,
        encoding="utf-8",
        errors="strict",
        line_starts=starts,
        marks=[0],
        mark_bytes=[0],
        size=len(raw),
    )


def wiki(target, anchor="", kind=LinkKind.LINKS_TO):
    return Link(kind, LinkSyntax.WIKI, target, anchor, target, Span(0, 1, 1, 1))


def markdown(target, anchor=""):
    return Link(LinkKind.LINKS_TO, LinkSyntax.MARKDOWN, target, anchor, "text", Span(0, 1, 1, 1))


def related(target):
    return Link(LinkKind.RELATED, LinkSyntax.FRONT_MATTER, target, "", target, Span(0, 1, 1, 1))


DEFAULTS = {"tree": "docs", "title": None, "aliases": (), "code": (), "intro": "Intro.\n"}


def file(path, sections=(), links=(), **given):
    """An IndexedFile with a document node, a preamble and one leaf for each section.

    Besides DEFAULTS, `given` may hold `mtime_ns` and any field of the front matter.
    """
    options = {name: given.pop(name, value) for name, value in DEFAULTS.items()}
    mtime_ns = given.pop("mtime_ns", 1_700_000_000_000_000_000)
    tree = TreeName(options["tree"])
    name = path.rpartition("/")[2].rsplit(".", 1)[0]
    title = name if options["title"] is None else options["title"]
    text, headings, spans = _body(options["intro"], sections)
    doc_id = document_id(tree, path)
    document = Document(
        id=doc_id,
        tree=tree,
        path=path,
        title=title,
        front_matter=FrontMatter(title=title, aliases=tuple(options["aliases"]), **given),
        tags=("one", "two"),
        date=DATE,
        date_source=DateSource.MODIFIED,
        source=source_text(text),
        body_start=0,
        headings=headings,
        links=tuple(links),
        code_blocks=tuple(
            CodeBlock("python", block, Span(start, start + 1, 1, 1))
            for start, block in options["code"]
        ),
        blocks=(),
        warnings=(DocumentWarning(WarningKind.FRONT_MATTER, 1, "a warning"),),
    )
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    state = FileState(len(text.encode()), mtime_ns, digest)
    return IndexedFile(state, document, _chunks(document, text, spans))


def _body(intro, sections):
    slugs = SlugCounter()
    text, byte, line = [intro], len(intro.encode()), 1 + intro.count("\n")
    headings, spans = [], [Span(0, byte, 1, max(1, line - 1))]
    for section in sections:
        part = f"{'#' * section.level} {section.heading}\n{section.text}"
        end, last = byte + len(part.encode()), line + part.count("\n")
        span = Span(byte, end, line, max(line, last - 1))
        headings.append(
            Heading(section.level, section.heading, slugs.unique(section.heading), span)
        )
        spans.append(span)
        text.append(part)
        byte, line = end, last
    return "".join(text), tuple(headings), spans


def _chunks(document, text, spans):
    raw = text.encode()
    whole = Span(0, len(raw), 1, max(1, text.count("\n")))
    root = ChunkId(f"{document.id}")
    parents = {0: root}

    def leaf(number, parent, heading):
        kind, slug, title, depth = NodeKind.PREAMBLE, PREAMBLE, document.title, 0
        if heading:
            kind, slug, title, depth = NodeKind.SECTION, heading.slug, heading.text, heading.level
        own = raw[spans[number].byte_start : spans[number].byte_end].decode()
        trail = (document.title, heading.text) if heading else (document.title,)
        name = ChunkId(f"{document.id}#{slug}")
        return Chunk(
            name, document.id, parent, kind, depth, number + 1, title, slug, trail,
            spans[number], own, "overlap " if number else "",
        )  # fmt: skip

    chunks = [
        Chunk(root, document.id, None, NodeKind.DOCUMENT, 0, 0, document.title, Slug(""), (), whole)
    ]
    chunks.append(leaf(0, root, None))
    for number, heading in enumerate(document.headings, 1):
        parent = parents[max(level for level in parents if level < heading.level)]
        chunks.append(leaf(number, parent, heading))
        parents = {level: node for level, node in parents.items() if level < heading.level}
        parents[heading.level] = chunks[-1].id
    return tuple(chunks)


@contextmanager
def temporary_store() -> Iterator[tuple[Writer, Reader]]:
    """An empty store for one example of a property."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Writer.open(Path(directory), FINGERPRINT) as writer,
        Reader.open(Path(directory)) as reader,
    ):
        yield writer, reader


def log_into_store(writer):
    """As a commit does it when the log has become long."""
    writer._database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    seal(writer._directory, writer.position)


def put(writer, *files, read_ns=READ_NS):
    with writer.transaction() as transaction:
        for found in files:
            transaction.put(found, read_ns)
    return transaction.position


def remove(writer, *files):
    with writer.transaction() as transaction:
        for found in files:
            transaction.remove(found.document.id)
    return transaction.position


def targets(snapshot, found):
    """Where each link of a file leads: (document id, slug)."""
    return [(link.target, link.slug) for link in snapshot.links(found.document.id)]


def store_communities(writer, reader):
    """What the index manager does; returns whether other ones are stored."""
    with reader.snapshot() as snapshot:
        origin = CommunityOrigin(snapshot.position, snapshot.edges_digest())
        numbers = detect(pair_weights(snapshot.all_links())) or {}
    with writer.transaction() as transaction:
        return transaction.put_communities(numbers, origin)
