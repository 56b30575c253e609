"""For any text and any sizes: the leaves tile the body, fit, and hang in one proper tree."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.chunking.chunker import MAX_BARE_CHARS, ChunkSizes
from ragdocs.chunking.splitting import BLANK_SLACK, Limits
from ragdocs.models import BlockKind, NodeKind
from tests.support.documents import chunk, leaves, parse

PIECES = st.sampled_from(
    [
        "# A\n",
        "## B\n",
        "### A\n",
        "\n",
        "text. ",
        "more words here\n",
        "```\ncode\n",
        "```\n",
        "- item\n",
        "> quote\n",
        "| a | b |\n|---|---|\n",
        "| c | d |\n",
        "$$\n",
        "---\n",
        "<!-- ",
        "-->\n",
        "é😀\n",
        "    indented\n",
        "Title\n===\n",
        "\r\n",
        "\r",
        "[[x]] ",
        "x" * 40,
        " " * 12,
        "# Preamble\n",
        "title: x\n",
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=200
)


@st.composite
def sizes(draw):
    minimum = draw(st.integers(0, 60))
    maximum = draw(st.integers(max(1, minimum), 120))
    small, overlap = draw(st.integers(0, 200)), draw(st.integers(0, 50))
    return ChunkSizes(leaf=Limits(minimum, maximum), small_document=small, overlap=overlap)


@settings(max_examples=400, deadline=None)
@given(TEXTS, sizes())
def test_leaves_tile_the_body_exactly(text, chosen):
    data = text.encode()
    document = parse(data)
    found = leaves(chunk(data, chosen))
    body_start = document.source.byte_of(document.body_start)
    if not document.source.text[document.body_start :].strip():
        assert found == []
        return
    assert b"".join(data[n.span.byte_start : n.span.byte_end] for n in found) == data[body_start:]
    assert "".join(n.text for n in found) == document.source.text[document.body_start :]
    assert found[0].span.byte_start == body_start


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_the_tree_is_a_tree(text, chosen):
    nodes = chunk(text, chosen)
    by_id = {node.id: node for node in nodes}
    assert len(by_id) == len(nodes)
    assert [node.position for node in nodes] == list(range(len(nodes)))
    for node in nodes[1:]:
        parent = by_id[node.parent_id]
        assert parent.position < node.position
        assert node.span.byte_end <= parent.span.byte_end
        if node.kind is not NodeKind.PART:
            assert parent.span.byte_start <= node.span.byte_start
        elif node.span.byte_start < parent.span.byte_start:
            # Only headings that the parent stands below, and the document's blank beginning.
            lines = range(node.span.line_start, parent.span.line_start)
            headings = [h.span for h in parse(text).headings]
            named = {n for h in headings for n in range(h.line_start, h.line_end + 1)}
            own = parse(text).source.text.split("\n")
            assert not "".join(own[line - 1] for line in lines if line not in named).strip()
        if parent.text is not None:
            assert node.text is None  # it lies inside the leaf


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_every_heading_has_a_node_with_its_own_lines(text, chosen):
    document = parse(text)
    by_slug = {n.slug: n for n in chunk(text, chosen) if n.kind is NodeKind.SECTION}
    assert len(by_slug) == len(document.headings)
    for number, heading in enumerate(document.headings):
        following = (h for h in document.headings[number + 1 :] if h.level <= heading.level)
        end = next((h.span.line_start - 1 for h in following), None)
        section = by_slug[heading.slug]
        assert (section.title, section.depth) == (heading.text, heading.level)
        assert section.span.line_start == heading.span.line_start
        assert end is None or section.span.line_end == end


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_no_leaf_is_blank_or_only_a_heading_where_there_is_text(text, chosen):
    document = parse(text)
    lines = document.source.text.split("\n")
    for heading in document.headings:
        for line in range(heading.span.line_start - 1, heading.span.line_end):
            lines[line] = ""
    body = document.source.line_of(document.body_start)
    if not "".join(lines[body:]).strip():
        return
    for leaf in leaves(chunk(text, chosen)):
        own = lines[leaf.span.line_start - 1 : leaf.span.line_end]
        assert "".join(own).strip() or len(leaf.text) > MAX_BARE_CHARS or is_within_line(leaf, text)


def is_within_line(leaf, text):
    """A heading that is cut in pieces, because it alone is too long."""
    return "\n" not in leaf.text.strip() and not leaf.text.lstrip().startswith("#")


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_no_leaf_is_over_the_maximum(text, chosen):
    """But for headings without a text of their own, which go with what stands beside them."""
    longest = max(chosen.leaf.maximum + BLANK_SLACK, chosen.small_document)
    starts = {heading.span.line_start for heading in parse(text).headings}
    for leaf in leaves(chunk(text, chosen)):
        headings = starts & set(range(leaf.span.line_start, leaf.span.line_end + 1))
        assert len(leaf.text) <= longest + len(headings) * MAX_BARE_CHARS


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(["\r\n", "\r"]))
def test_line_ends_do_not_matter(text, end):
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    expected = [(n.id, n.text, n.overlap, n.span.line_start, n.span.line_end) for n in chunk(unix)]
    other = chunk(unix.replace("\n", end))
    assert [
        (n.id, n.text, n.overlap, n.span.line_start, n.span.line_end) for n in other
    ] == expected


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_ids_have_one_form_and_breadcrumbs_are_true(text, chosen):
    document = parse(text)
    nodes = chunk(text, chosen)
    by_id = {node.id: node for node in nodes}
    chains = heading_chains(document)
    for node in nodes:
        assert re.fullmatch(r"docs:note\.md(#[^#~]+)?(~\d+)?", node.id)
        if node.kind is NodeKind.SECTION:
            parent = by_id[node.parent_id]
            assert node.depth > parent.depth
            assert set(node.breadcrumb) <= {document.title, *chains[node.slug]}


def heading_chains(document):
    """For each heading the texts of those it stands under, and its own."""
    open_headings, chains = [], {}
    for heading in document.headings:
        open_headings = [above for above in open_headings if above.level < heading.level]
        open_headings.append(heading)
        chains[heading.slug] = {above.text for above in open_headings}
    return chains


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_a_whole_block_that_fits_is_never_cut(text, chosen):
    document = parse(text)
    bounds = {found.span.byte_start for found in leaves(chunk(text, chosen))}
    for block in document.blocks:
        if block.kind is BlockKind.WHOLE and block.end - block.start <= chosen.leaf.maximum:
            inside = range(block.start + 1, block.end)
            assert not bounds & {document.source.byte_of(offset) for offset in inside}
