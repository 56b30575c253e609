from itertools import pairwise

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits, embedding_text
from ragdocs.config.settings import ChunkingConfig
from ragdocs.models import NodeKind
from tests.support.documents import SEED_SIZES, chunk, leaves, parse

WORDS = "The quick brown fox jumps over the lazy dog and runs home again. "


def prose(characters: int) -> str:
    return (WORDS * (characters // len(WORDS) + 1))[:characters].rstrip() + "."


def shape(chunks):
    return [
        (node.id.removeprefix("docs:note.md"), node.depth, node.text is not None) for node in chunks
    ]


GUIDE = (
    f"Before the first heading.\n\n# Guide\n\n{prose(300)}\n\n## Error Handling\n\n{prose(300)}\n\n"
    f"### Result Type\n\n{prose(400)}\n\n### Option Type\n\n{prose(400)}\n\n"
    f"## Logging\n\n{prose(400)}\n"
)


def test_the_tree_has_a_node_per_heading_below_the_document():
    assert shape(chunk(GUIDE)) == [
        ("", 0, False),
        ("#preamble", 0, True),
        ("#guide", 1, False),
        ("#guide~1", 2, True),
        ("#error-handling", 2, False),
        ("#error-handling~1", 3, True),
        ("#result-type", 3, True),
        ("#option-type", 3, True),
        ("#logging", 2, True),
    ]


def test_nodes_know_parent_position_title_and_breadcrumb():
    nodes = {node.id.partition("#")[2]: node for node in chunk(GUIDE)}
    result = nodes["result-type"]
    assert result.parent_id == "docs:note.md#error-handling"
    assert nodes["error-handling"].parent_id == "docs:note.md#guide"
    assert nodes["guide"].parent_id == "docs:note.md"
    assert nodes["preamble"].parent_id == "docs:note.md"
    assert nodes[""].parent_id is None
    assert (result.title, result.slug, result.doc_id) == (
        "Result Type",
        "result-type",
        "docs:note.md",
    )
    assert result.breadcrumb == ("Guide", "Error Handling", "Result Type")
    assert [node.position for node in chunk(GUIDE)] == list(range(9))


def test_a_document_title_of_its_own_leads_the_breadcrumb():
    nodes = chunk(f"---\ntitle: Handbook\n---\n{GUIDE}")
    assert nodes[-1].breadcrumb == ("Handbook", "Guide", "Logging")


def test_spans_are_lines_and_bytes_of_the_file():
    data = GUIDE.encode()
    for node in leaves(chunk(GUIDE)):
        assert data[node.span.byte_start : node.span.byte_end].decode() == node.text
        before = data[: node.span.byte_start].count(b"\n")
        assert node.span.line_start == before + 1
        assert node.span.line_end == before + max(1, node.text.count("\n"))


def test_a_parent_spans_its_children():
    nodes = {node.id: node for node in chunk(GUIDE)}
    for node in nodes.values():
        if node.parent_id:
            parent = nodes[node.parent_id].span
            assert parent.byte_start <= node.span.byte_start
            assert node.span.byte_end <= parent.byte_end


def test_a_small_document_is_one_leaf_in_which_every_heading_has_its_node():
    assert shape(chunk("# Setup\n\nShort.\n\n## Install\n\nShort.\n")) == [
        ("", 0, False),
        ("#setup", 1, True),
        ("#install", 2, False),
    ]


def test_a_small_document_that_starts_with_text_is_one_leaf_with_its_preamble_inside():
    nodes = chunk("Hello.\n\n# Setup\n\nShort.\n")
    assert shape(nodes) == [("", 0, True), ("#preamble", 0, False), ("#setup", 1, False)]
    assert lines_of(nodes) == {"": (1, 5), "preamble": (1, 2), "setup": (3, 5)}


def lines_of(nodes):
    return {
        node.slug: (node.span.line_start, node.span.line_end)
        for node in nodes
        if node.kind is not NodeKind.PART
    }


def test_a_document_without_headings_is_itself_the_leaf():
    assert shape(chunk("Only text.\n")) == [("", 0, True)]


def test_a_long_document_without_headings_has_numbered_parts():
    nodes = chunk("\n\n".join(prose(400) for _ in range(5)))
    assert shape(nodes)[0] == ("", 0, False)
    assert [part[0] for part in shape(nodes)[1:]] == ["~1", "~2", "~3"]
    assert {node.kind for node in nodes[1:]} == {NodeKind.PART}


@pytest.mark.parametrize("text", ["", " \n\n\t\n", "\ufeff", "---\ntitle: x\n---\n\n"])
def test_nothing_to_read_makes_no_leaf(text):
    assert [node.text for node in chunk(text)] == [None]


def test_sections_under_the_minimum_join_their_parent():
    tiny = "".join(f"### Item {number}\n\nShort text.\n\n" for number in range(5))
    nodes = chunk(
        f"# Top\n\n{prose(900)}\n\n## List\n\n{prose(100)}\n\n{tiny}## Next\n\n{prose(400)}\n"
    )
    item = next(node for node in nodes if node.slug == "item-3")
    assert (item.text, item.parent_id) == (None, "docs:note.md#list")
    lists = next(node for node in nodes if node.slug == "list")
    assert "Item 4" in (lists.text or "")


def test_a_run_of_small_sections_is_packed_and_embedded_under_its_first():
    tiny = "".join(f"## Item {number}\n\n{prose(150)}\n\n" for number in range(20))
    nodes = chunk(tiny)
    assert [leaf.id.removeprefix("docs:note.md") for leaf in leaves(nodes)][:2] == ["~1", "~2"]
    assert [leaf.breadcrumb[-1] for leaf in leaves(nodes)][:2] == ["Item 0", "Item 6"]
    assert leaves(nodes)[0].headings == tuple(f"Item {number}" for number in range(6))
    assert all(len(leaf.text) <= 1000 for leaf in leaves(nodes))
    sections = [node for node in nodes if node.kind is NodeKind.SECTION]
    assert [node.title for node in sections] == [f"Item {number}" for number in range(20)]
    assert [node.span.line_start for node in sections] == list(range(1, 80, 4))


def test_a_section_has_its_own_lines_also_where_its_leaf_has_more():
    text = f"# Top\n\n{prose(300)}\n\n## A\n\n{prose(500)}\n\n## B\n\nx\n\n## C\n\n{prose(500)}\n"
    assert lines_of(chunk(text)) == {
        "": (1, 15),
        "top": (1, 15),
        "a": (5, 8),
        "b": (9, 12),
        "c": (13, 15),
    }


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (f"# A\n\n{prose(900)}\n\n## Empty\n\n## B\n\n{prose(900)}\n", 0),
        (f"# A\n\n{prose(900)}\n\n## Above\n\n### B\n\n{prose(980)}\n", 1),
        (f"# A\n\n{prose(900)}\n\n## B\n\n{prose(900)}\n\n## Empty\n", 1),
    ],
)
def test_no_leaf_is_only_a_heading(text, joined):
    """One of an empty section goes with the text before it, one above more text with that."""
    found = leaves(chunk(text))
    assert all(leaf.text.replace("#", "").split() > ["A"] for leaf in found)
    assert [("## Empty" in leaf.text or "## Above" in leaf.text) for leaf in found].index(
        True
    ) == joined


def test_a_bare_heading_joins_the_section_below_it():
    nodes = chunk(f"# Top\n\n## First\n\n{prose(700)}\n\n## Second\n\n{prose(700)}\n")
    assert leaves(nodes)[0].text.startswith("# Top\n\n## First")


def test_a_small_section_after_a_large_leaf_joins_it():
    nodes = chunk(f"# Top\n\n{prose(300)}\n\n## Big\n\n{prose(900)}\n\n## See also\n\nx\n")
    assert leaves(nodes)[-1].text.endswith("## See also\n\nx\n")
    assert leaves(nodes)[-1].breadcrumb == ("Top", "Big")
    assert leaves(nodes)[-1].headings == ("Big", "See also")


def test_a_small_section_between_two_large_ones_joins_the_one_before():
    text = f"# Top\n\n{prose(300)}\n\n## A\n\n{prose(500)}\n\n## B\n\nx\n\n## C\n\n{prose(500)}\n"
    first, second = [leaf for leaf in leaves(chunk(text)) if leaf.breadcrumb[-1] in "AC"]
    assert first.text.endswith("## B\n\nx\n\n")
    assert second.text.startswith("## C")


def test_a_small_section_never_goes_below_headings_that_are_not_its_own():
    text = (
        f"# Top\n\n{prose(300)}\n\n## Lists\n\n{prose(300)}\n\n### Nested\n\n{prose(400)}\n\n"
        f"## Rule\n\nx\n\n## Next\n\n{prose(400)}\n"
    )
    rule = next(leaf for leaf in leaves(chunk(text)) if "## Rule" in leaf.text)
    assert rule.breadcrumb == ("Top", "Rule")
    assert rule.parent_id == "docs:note.md#top"
    assert rule.text == "## Rule\n\nx\n\n"


def test_a_small_section_that_does_not_fit_beside_stays_with_its_parent():
    text = f"# Top\n\n{prose(300)}\n\n## Big\n\n{prose(960)}\n\n## Small\n\n{prose(100)}\n"
    small = leaves(chunk(text))[-1]
    assert (small.breadcrumb, small.depth) == (("Top", "Small"), 2)


def test_sections_have_the_depth_of_their_heading():
    text = f"# A\n\n{prose(300)}\n\n### C\n\n{prose(1200)}\n\n##### E\n\n{prose(400)}\n"
    depths = {node.slug: node.depth for node in chunk(text) if node.kind is NodeKind.SECTION}
    assert depths == {"a": 1, "c": 3, "e": 5}


def test_a_preamble_that_is_split_has_numbered_parts():
    text = "Intro words here. " * 100 + "\n\n## H\n\n" + prose(400)
    assert [part[0] for part in shape(chunk(text))][1:4] == [
        "#preamble",
        "#preamble~1",
        "#preamble~2",
    ]


def test_a_small_document_without_headings_is_one_leaf_too():
    assert shape(chunk(prose(1100))) == [("", 0, True)]


def test_with_no_minimum_every_heading_has_its_node():
    sizes = ChunkSizes(leaf=Limits(0, 1000), small_document=0, overlap=0)
    assert [part[0] for part in shape(chunk("# A\n\nx\n\n## B\n\ny\n", sizes))] == [
        "",
        "#a",
        "#a~1",
        "#b",
    ]


# Splitting


def split(text: str, minimum: int = 50, maximum: int = 200):
    sizes = ChunkSizes(leaf=Limits(minimum, maximum), small_document=0, overlap=0)
    return [leaf.text for leaf in leaves(chunk(text, sizes))]


def test_a_long_section_splits_between_paragraphs():
    paragraphs = [f"Paragraph {number} {prose(100)}\n\n" for number in range(4)]
    assert split("".join(paragraphs)) == paragraphs


def test_a_long_paragraph_splits_between_sentences():
    assert all(piece.rstrip().endswith(".") for piece in split(WORDS * 10))


def test_hard_wrapped_text_splits_at_sentences_not_at_lines():
    text = "\n".join(["one two three four five six seven. Eight nine ten"] * 12)
    assert all(piece.rstrip().endswith(".") for piece in split(text)[:-1])


def test_a_word_over_the_maximum_is_cut_hard():
    assert [len(piece) for piece in split("x" * 450)] == [200, 200, 50]


def test_words_are_kept_whole_where_there_are_spaces():
    assert all(piece.endswith("word ") for piece in split("word " * 100)[:-1])


CODE = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(10)) + "```\n"


def test_code_that_fits_is_never_split():
    pieces = split(f"{prose(120)}\n\n{CODE}\n{prose(120)}\n")
    assert sum(CODE in piece for piece in pieces) == 1


def test_code_that_alone_is_too_long_is_split_between_lines():
    long = "```\n" + "".join(f"{'x' * 30} {number}\n" for number in range(20)) + "```\n"
    pieces = split(long)
    assert len(pieces) > 1
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_table_is_kept_whole_or_split_between_rows():
    row = "| cell one | cell two |\n"
    table = "| a | b |\n|---|---|\n" + row * 4
    assert any(table in piece for piece in split(f"{prose(150)}\n\n{table}\n{prose(150)}\n"))
    pieces = split("| a | b |\n|---|---|\n" + row * 40)
    assert all(piece.endswith("|\n") for piece in pieces)


def test_math_is_kept_whole():
    formula = "$$\na = b\n\nc = d\n$$\n"
    assert any(formula in piece for piece in split(f"{prose(190)}\n\n{formula}\n{prose(190)}\n"))


def test_a_heading_stays_with_what_follows():
    text = f"# Top\n\n{prose(100)}\n\n## H\n\n{prose(60)}\n\n{prose(120)}\n"
    (piece,) = [piece for piece in split(text, minimum=400) if "## H" in piece]
    assert piece.partition("## H\n")[2].strip()


@pytest.mark.parametrize("after", ["", "[a]: x.md\n[b]: y.md\n", "\n" * 40 + "End.\n"])
def test_a_block_of_nearly_the_maximum_is_whole_under_its_heading(after):
    code = "```\n" + "x = 1\n" * 31 + "```\n"
    assert 190 < len(code) <= 200
    pieces = split(f"{prose(150)}\n\n## A heading of some length\n\n{code}{after}")
    assert any(code in piece for piece in pieces)


def test_a_last_piece_under_the_minimum_joins_the_one_before():
    paragraphs = [("x" * (size - 2)) + "\n\n" for size in (110, 130, 20)]
    assert split("".join(paragraphs), minimum=60) == [paragraphs[0], "".join(paragraphs[1:])]


def test_a_quoted_heading_stays_with_what_follows():
    text = f"{'a' * 98}\n\n> # Quoted\n>\n> {'b' * 150}\n"
    assert [piece[:3] for piece in split(text)] == ["aaa", "> #"]


def test_a_block_of_exactly_the_maximum_leaves_no_blank_piece():
    code = "```\n" + "x" * 191 + "\n```\n"
    assert len(code) == 200
    pieces = split(f"{code}\n{prose(150)}\n")
    assert pieces[0] == f"{code}\n"
    assert all(piece.strip() for piece in pieces)


def test_parts_are_even():
    lengths = [
        len(piece) for piece in split("".join(f"{prose(60)}\n\n" for _ in range(8)), 10, 400)
    ]
    assert max(lengths) - min(lengths) <= 62


# Overlap and what is embedded


def test_overlap_repeats_the_end_of_the_part_before_from_a_word():
    nodes = leaves(chunk("\n\n".join(prose(400) for _ in range(5))))
    assert nodes[0].overlap == ""
    for before, node in pairwise(nodes):
        assert 0 < len(node.overlap) <= 100
        assert before.text.endswith(node.overlap)
        assert before.text[-len(node.overlap) - 1].isspace()


def test_no_overlap_between_sections():
    tiny = "".join(f"## Item {number}\n\n{prose(150)}\n\n" for number in range(20))
    for text in (GUIDE, tiny):
        assert all(leaf.overlap == "" for leaf in leaves(chunk(text)))


def test_what_is_embedded_is_the_heading_path_a_blank_line_and_the_text():
    node = leaves(chunk(GUIDE))[-1]
    assert embedding_text(node) == f"Guide > Logging\n\n{node.text.strip()}"


def test_a_blank_leaf_embeds_nothing():
    node = chunk("")[0]
    assert embedding_text(node) == ""


# Line ends and names


def test_crlf_gives_the_same_chunks_and_lines_as_lf():
    unix, windows = chunk(GUIDE), chunk(GUIDE.replace("\n", "\r\n"))
    assert [(n.id, n.text, n.span.line_start, n.span.line_end) for n in unix] == [
        (n.id, n.text, n.span.line_start, n.span.line_end) for n in windows
    ]


@pytest.mark.parametrize("name", ["a#b.md", "100%.md", "a%23b.md", "line\nbreak.md", "n\udcff.md"])
def test_ids_of_awkward_names_are_one_line_and_distinct(name):
    document = parse("x", path=name)
    assert document.id.encode().decode() == document.id
    assert "\n" not in document.id
    assert document.id.count("#") == 0
    assert len({parse("x", path=other).id for other in ("a#b.md", "a%23b.md")}) == 2


def test_settings_shape_the_tree():
    assert ChunkSizes.from_settings(ChunkingConfig()) == SEED_SIZES
    sizes = ChunkSizes.from_settings(ChunkingConfig(parent_retrieval_enabled=True))
    assert sizes.leaf == Limits(400, 600)
    assert max(len(leaf.text) for leaf in leaves(chunk(GUIDE * 3, sizes))) <= 600
