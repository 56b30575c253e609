from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.search.sections import passage_around
from tests.support.documents import chunk, leaves

CHILDREN = ChunkSizes(leaf=Limits(40, 120), small_document=0, overlap=0)
TEXT = "".join(
    f"# Part {part}\n\n"
    + "".join(f"## S{part}{n}\n\n{'Words go here. ' * 5}\n\n" for n in range(3))
    for part in range(4)
)


def ids(passage):
    return [node.slug for node in passage]


def test_the_enclosing_section_that_fits_is_returned():
    nodes = chunk(TEXT, CHILDREN)
    leaf = next(node for node in leaves(nodes) if node.slug == "s11")
    assert [node.breadcrumb[-1] for node in passage_around(leaf, nodes, Limits(0, 400))] == [
        "S10",
        "S11",
        "S12",
    ]


def test_when_no_section_fits_only_the_leaf_and_what_is_needed_around_it():
    nodes = chunk(TEXT, CHILDREN)
    leaf = next(node for node in leaves(nodes) if node.slug == "s11")
    assert ids(passage_around(leaf, nodes, Limits(0, 120))) == ["s11"]
    assert ids(passage_around(leaf, nodes, Limits(150, 210))) == ["s11", "s12"]


def test_a_small_section_takes_in_its_neighbours_to_reach_the_minimum():
    nodes = chunk(TEXT, CHILDREN)
    leaf = next(node for node in leaves(nodes) if node.slug == "s11")
    passage = passage_around(leaf, nodes, Limits(400, 500))
    assert sum(len(node.text) for node in passage) >= 400
    assert leaf in passage


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(0, 600), st.integers(1, 600))
def test_a_passage_is_contiguous_holds_its_leaf_and_fits(data, minimum, extra):
    nodes = chunk(TEXT, CHILDREN)
    leaf = data.draw(st.sampled_from(leaves(nodes)))
    limits = Limits(minimum, minimum + extra)
    passage = passage_around(leaf, nodes, limits)
    positions = [leaves(nodes).index(node) for node in passage]
    assert leaf in passage
    assert positions == list(range(positions[0], positions[-1] + 1))
    assert len(passage) == 1 or sum(len(node.text) for node in passage) <= limits.maximum
