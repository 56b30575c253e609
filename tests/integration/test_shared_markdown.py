"""The awkward Markdown collected outside the project: every file parses, chunks and is whole."""

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.support.documents import chunk, leaves, parse
from tests.support.machine import takes_less_than

NASTY = Path(__file__).parents[2] / ".." / "shared" / "nasty"
FILES = sorted(path for path in NASTY.glob("*/*") if path.is_file())

pytestmark = pytest.mark.skipif(
    not FILES, reason="the collection of awkward Markdown (../shared/nasty) is not here"
)


def test_every_file_is_read_whole_in_time():
    for path in FILES:
        data = path.read_bytes()
        made = []
        assert takes_less_than(2, lambda: made.append(leaves(chunk(data)))), path.name  # noqa: B023
        found = made[0]
        document = parse(data)
        body = data[document.source.byte_of(document.body_start) :]
        read = b"".join(data[leaf.span.byte_start : leaf.span.byte_end] for leaf in found)
        assert read == body or not body.strip(), path.name


def headings_by_reference(text: str) -> list[tuple[int, int]]:
    """Level and first line of each top-level heading, by the plain CommonMark parser."""
    return [
        (int(token.tag[1]), token.map[0] + 1)
        for token in MarkdownIt("commonmark").parse(text)
        if token.type == "heading_open" and token.level == 0
    ]


def test_commonmark_examples_have_exactly_their_headings():
    examples = [path for path in FILES if path.parent.name == "commonmark_spec"]
    assert len(examples) > 600
    for path in examples:
        document = parse(path.read_bytes())
        if document.body_start:
            continue  # an example that begins with a rule pair reads as front matter
        found = [(heading.level, heading.span.line_start) for heading in document.headings]
        assert found == headings_by_reference(document.source.text), path.name


def test_no_heading_stands_inside_code_fences_or_comments():
    for path in FILES:
        document = parse(path.read_bytes())
        body = document.source.text[document.body_start :]
        first = document.source.line_of(document.body_start)
        protected = {
            line + first + 1
            for token in MarkdownIt("commonmark").parse(body)
            if token.type in ("fence", "code_block", "html_block")
            for line in range(*token.map)
        }
        lines = {heading.span.line_start for heading in document.headings}
        assert not lines & protected, path.name
