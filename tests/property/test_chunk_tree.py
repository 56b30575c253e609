"""For any text and any sizes: the leaves tile the body, fit, and hang in one proper tree."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.chunking.header_chunker import ChunkSizes
from ragdocs.chunking.splitting import BLANK_SLACK, Limits
from ragdocs.models import BlockKind, NodeKind
from tests.parsing import chunk, leaves, parse

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
        assert parent.span.byte_start <= node.span.byte_start
        assert node.span.byte_end <= parent.span.byte_end
        assert parent.text is None


@settings(max_examples=300, deadline=None)
@given(TEXTS, sizes())
def test_no_leaf_is_over_the_maximum(text, chosen):
    longest = max(chosen.leaf.maximum + BLANK_SLACK, chosen.small_document)
    assert all(len(leaf.text) <= longest for leaf in leaves(chunk(text, chosen)))


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
