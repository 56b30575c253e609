import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import ChunkingConfig, SearchConfig
from ragdocs.models import FileState, IndexedFile
from ragdocs.search.requests import QueryRequest
from ragdocs.search.sections import expand_to_parents
from ragdocs.search.stages import StageName, StageTools, build_stages
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.documents import chunk, leaves, parse
from tests.support.engine import ParsedCorpus, name_of, scores, slugs
from tests.support.stores import FINGERPRINT, put

ON = ChunkingConfig(parent_retrieval_enabled=True)
PARENTS = Limits(1500, 2000)

CHILDREN = ChunkSizes(leaf=Limits(40, 120), small_document=0, overlap=0)
BOOK = "".join(
    f"# Part {part}\n\n"
    + "".join(
        f"## S{part}{n}\n\nSentence {part}{n} goes here. {'And on. ' * 8}\n\n" for n in range(3)
    )
    for part in range(3)
)
ONE_PART = Limits(0, 400)


def book():
    return ParsedCorpus(CHILDREN).add("book.md", BOOK)


def found(**scored):
    return [book().candidate(f"book.md#{slug}", score) for slug, score in scored.items()]


def expand(items, size=ONE_PART, top_n=10):
    return expand_to_parents(items, book().nodes_of, size, 0, top_n)


def long_document():
    paragraphs = [f"Paragraph {n}. {'Words. ' * 60}\n\n" for n in range(12)]
    return "".join(f"# Section {n}\n\n" + "".join(paragraphs[4 * n : 4 * n + 4]) for n in range(3))


def test_two_level_chunking():
    nodes = chunk(long_document(), ChunkSizes.from_settings(ON))
    children = leaves(nodes)
    assert all(len(child.text) <= ON.child_chunk_max_chars + 32 for child in children)
    corpus = ParsedCorpus(ChunkSizes.from_settings(ON)).add("long.md", long_document())
    first = corpus.candidate("long.md#section-0~1")
    [parent] = expand_to_parents([first], corpus.nodes_of, PARENTS, 200, 5)
    assert len(first.text) < 1500 <= len(parent.text) <= 2000
    assert first.text in parent.text


def test_parent_reference_stored(tmp_path):
    document = parse(long_document(), "long.md")
    nodes = chunk(long_document(), ChunkSizes.from_settings(ON), "long.md")
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, IndexedFile(FileState(1, 1, "hash"), document, tuple(nodes)))
    with Reader.open(tmp_path, FINGERPRINT) as reader, reader.snapshot() as snapshot:
        stored = snapshot.chunks(document.id)
    parents = {node.chunk.id: node.chunk.parent_id for node in stored}
    assert parents["docs:long.md#section-1~1"] == "docs:long.md#section-1"
    assert parents["docs:long.md#section-1"] == "docs:long.md"
    assert all(parent is None or parent in parents for parent in parents.values())


def test_expand_to_parents():
    [item] = found(s11=0.8)
    [parent] = expand([item])
    assert slugs([parent]) == ["part-1"]
    assert parent.score == pytest.approx(0.8)
    assert parent.constituents == (item.stored,)
    start = BOOK.index("# Part 1")
    assert parent.text == BOOK[start : BOOK.index("# Part 2")]
    assert (parent.span.byte_start, parent.span.line_start) == (start, BOOK[:start].count("\n") + 1)


def test_parent_dedup_across_children():
    items = found(s11=0.8, s20=0.7, s10=0.6, s12=0.5)
    first, second = expand(items)
    assert slugs([first, second]) == ["part-1", "part-2"]
    assert scores([first, second]) == pytest.approx([0.8, 0.7])
    assert [name_of(node) for node in first.constituents] == ["s10", "s11", "s12"]


@pytest.mark.parametrize("parent_size", [None, ONE_PART])
def test_parent_retrieval_disabled(parent_size):
    settings = SearchConfig(merge_threshold=0)
    tools = StageTools(nodes_of=book().nodes_of, parent_size=parent_size)
    names = [stage.name for stage in build_stages(settings, QueryRequest(queries=("q",)), tools)]
    assert (StageName.PARENTS in names) is (parent_size is not None)


def test_a_leaf_that_no_section_fits_around_stays_itself():
    items = found(s11=0.8)
    assert expand(items, Limits(0, 100)) == items


def test_a_widened_passage_is_named_by_the_largest_section_in_it():
    [leaf] = expand(found(s11=0.8), Limits(150, 250))
    assert slugs([leaf]) == ["s11"]
    assert [name_of(node) for node in leaf.passage] == ["s11", "s12"]
    [part] = expand(found(s11=0.8), Limits(400, 500))
    assert slugs([part]) == ["part-1"]
    assert len(part.passage) == 4


def test_no_text_is_given_twice():
    items = found(s11=0.8, s10=0.7)
    passages = [
        [name_of(node) for node in item.passage or (item.stored,)]
        for item in expand(items, Limits(150, 250))
    ]
    assert passages == [["s11", "s12"], ["s10"]]


def test_a_merged_section_is_large_enough_and_keeps_what_is_its_own():
    corpus = book()
    merged = corpus.candidate("book.md#part-1", 0.5, passage=tuple(corpus.leaves("book.md")[3:6]))
    [before, after] = expand([*found(s02=0.9), merged], Limits(450, 600))
    assert slugs([before]) == ["part-0"]
    assert after == merged
    assert not {leaf.key for leaf in before.passage} & {leaf.key for leaf in after.passage}


def test_later_candidates_fill_the_places_that_joined_children_leave():
    items = found(s11=0.9, s12=0.8, s01=0.7, s20=0.6)
    assert slugs(expand(items)) == ["part-1", "part-0", "part-2"]


def test_trees_are_fetched_only_for_what_a_document_may_give():
    corpus = ParsedCorpus(CHILDREN).add("a.md", BOOK).add("b.md", BOOK)
    fetched = []

    def nodes_of(doc_id, _found, *, beside):
        assert beside >= ONE_PART.maximum
        fetched.append(doc_id)
        return corpus.nodes_of(doc_id)

    items = [corpus.candidate(place, 0.5) for place in ("a.md#s11", "a.md#s01", "b.md#s11")]
    assert len(expand_to_parents(items, nodes_of, ONE_PART, 0, 1)) == 3
    assert fetched == ["docs:a.md", "docs:b.md"]
