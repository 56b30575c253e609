"""Seed 004's worked examples of chunks, ids and slugs, as it describes them."""

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import ChunkingConfig
from ragdocs.models import NodeKind
from tests.support.documents import SEED_SIZES, chunk, leaves, parse

EVERY_HEADING = ChunkSizes(leaf=Limits(1, 1000), small_document=0, overlap=0)
GUIDE = """Words before any heading.

# Guide

## Error Handling

### Result Type

What a result is.

### Option Type

What an option is.

## Logging

What is written down.
"""


def by_id(text=GUIDE, sizes=EVERY_HEADING, path="guide.md"):
    return {node.id.removeprefix("docs:"): node for node in chunk(text, sizes, path)}


def test_the_hierarchy_of_the_guide():
    nodes = by_id()
    # The headings above it go with the first text below them, for the embedder.
    joined = nodes.pop("guide.md#error-handling~1")
    assert joined.headings == ("Guide", "Error Handling", "Result Type")
    assert {name: (node.depth, node.parent_id) for name, node in nodes.items()} == {
        "guide.md": (0, None),
        "guide.md#preamble": (0, "docs:guide.md"),
        "guide.md#guide": (1, "docs:guide.md"),
        "guide.md#error-handling": (2, "docs:guide.md#guide"),
        "guide.md#result-type": (3, "docs:guide.md#error-handling"),
        "guide.md#option-type": (3, "docs:guide.md#error-handling"),
        "guide.md#logging": (2, "docs:guide.md#guide"),
    }
    assert [node.position for node in nodes.values()] == [0, 1, 2, 3, 5, 6, 7]


def test_a_span_ends_before_the_next_heading_of_its_own_level_or_above():
    section = by_id()["guide.md#error-handling"]
    text = GUIDE[section.span.byte_start : section.span.byte_end]
    assert "## Error Handling\n" in text
    assert text.endswith("What an option is.\n\n")


def test_only_leaves_have_a_text_and_the_document_node_is_always_there():
    nodes = by_id()
    assert nodes["guide.md"].kind is NodeKind.DOCUMENT
    assert [name for name, node in nodes.items() if node.text is None] == [
        "guide.md",
        "guide.md#guide",
        "guide.md#error-handling",
        "guide.md#result-type",
    ]
    assert nodes["guide.md#error-handling~1"].text.endswith("What a result is.\n\n")
    assert "".join(leaf.text or "" for leaf in nodes.values()).count("What a result is.") == 1


def test_breadcrumbs_lead_from_the_documents_title_to_the_chunk():
    leaf = by_id("---\ntitle: Book\n---\n" + GUIDE)["guide.md#result-type"]
    assert leaf.breadcrumb == ("Book", "Guide", "Error Handling", "Result Type")


def test_text_before_the_first_heading_is_the_preamble_and_blank_lines_are_none():
    sections = "".join(f"## Part {n}\n\n{'Some words. ' * 40}\n\n" for n in range(4))
    before = "Substantive words. " * 20
    assert "guide.md#preamble" in by_id(f"{before}\n\n# Guide\n\n{sections}", SEED_SIZES)
    blank = by_id(f"\n \n\n# Guide\n\n{sections}", SEED_SIZES)
    assert "guide.md#preamble" not in blank
    assert all(node.text is None or node.text.strip() for node in blank.values())


def test_a_plain_text_file_has_no_fragment():
    assert list(by_id("Words without any heading.\n", path="notes.txt")) == ["notes.txt"]


def test_a_document_under_1200_characters_is_one_leaf_below_its_document_node():
    sections = "".join(f"## Part {n}\n\n{'Some words. ' * 20}\n\n" for n in range(4))
    assert len(sections) < 1200
    assert len(leaves(chunk("# Small\n\n" + sections))) == 1
    assert len(leaves(chunk("# Small\n\n" + sections * 2))) > 1


def test_the_sizes_are_the_seeds():
    sizes = ChunkSizes.from_settings(ChunkingConfig())
    assert (sizes.leaf.minimum, sizes.leaf.maximum, sizes.small_document) == (250, 1000, 1200)
    assert sizes.leaf == SEED_SIZES.leaf


def test_a_section_under_250_characters_is_absorbed_and_one_over_1000_is_split():
    long = "\n\n".join(f"Paragraph {n} says something of its own. " * 5 for n in range(8))
    text = f"# Book\n\n{'Words. ' * 60}\n\n## Tiny\n\nA word.\n\n## Long\n\n{long}\n"
    found = by_id(text, SEED_SIZES, "book.md")
    assert found["book.md#tiny"].text is None
    parts = [node for name, node in found.items() if name.startswith("book.md#long")]
    assert len([part for part in parts if part.text]) > 1
    assert all(len(part.text) <= 1000 for part in parts if part.text)


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Error Handling", "error-handling"),
        ("Result_Type-2", "result_type-2"),
        ("What's new?", "whats-new"),
        ("C++ & Rust!", "c--rust"),  # GitHub's form; the seed's collapsed one resolves too
    ],
)
def test_slugs(heading, slug):
    assert [found.slug for found in parse(f"# {heading}\n").headings] == [slug]


def test_repeated_slugs_are_numbered():
    headings = parse("# Setup\n\n# Setup\n\n# Setup\n").headings
    assert [found.slug for found in headings] == ["setup", "setup-1", "setup-2"]
