"""The seam between an engine and whoever asks it: what a View answers, and who may see what."""

import ast
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragdocs.indices.conditions import (
    All,
    Comparison,
    FilterField,
    Operator,
    Some,
    Unit,
    Without,
    both,
    compile_filter,
    except_documents,
    in_language,
    in_tree,
)
from ragdocs.indices.keyword import KeywordQuery
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from tests.support.engine import Engine
from tests.support.stores import Corpus, index_over

SOURCE = Path(__file__).parents[2] / "src" / "ragdocs"
ENGINE_SIDE = ("store", "indices")
ALLOWED = {
    "ragdocs.indices.analysis",
    "ragdocs.indices.conditions",
    "ragdocs.indices.hits",
    "ragdocs.indices.keyword",
    "ragdocs.indices.languages",
    "ragdocs.indices.ngrams",
    "ragdocs.indices.view",
    "ragdocs.store.records",
}
"""Values, and pure functions over text."""
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA)\b.*\b(FROM|INTO|SET|WHERE)\b|\bPRAGMA ")

TEXTS = {
    "guide/fox.md": "---\ntags: [animal/wild]\nauthor: Ada, Bob\n---\n# Fox\n\nA quick fox.\n",
    "guide/dog.md": "---\ntags: [animal]\ncategory: pets\n---\n# Dog\n\nA lazy dog and a fox.\n",
    "notes/code.md": "# Code\n\n```python\nfox = 1\n```\n",
    "other:far.md": "# Far\n\nA fox far away.\n",
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    corpus = Corpus(tmp_path_factory.mktemp("index"), TEXTS)
    with Reader.open(corpus.folder) as reader:
        yield reader


def names(view, condition):
    return {document.path for document in view.filtered_documents(condition)}


FOX = Unit(("fox",))
UNDER_GUIDE = Comparison(FilterField.PATH, Operator.UNDER, "guide")
NOT_GUIDE = {"notes/code.md", "far.md"}
NAMED = Comparison(FilterField.FILE, Operator.ONE_OF, ("dog.md", "notes"))
WILD = Comparison(FilterField.TAG, Operator.IS, "animal")
NEW = Comparison(FilterField.MODIFIED, Operator.AT_LEAST, datetime.now(UTC) + timedelta(days=1))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, {"guide/fox.md", "guide/dog.md", "notes/code.md", "far.md"}),
        (in_tree("other"), {"far.md"}),
        (UNDER_GUIDE, {"guide/fox.md", "guide/dog.md"}),
        (WILD, {"guide/fox.md", "guide/dog.md"}),
        (NEW, set()),
        (Without(UNDER_GUIDE), NOT_GUIDE),
        (Some((in_tree("other"), UNDER_GUIDE)), {"guide/fox.md", "guide/dog.md", "far.md"}),
        (All((UNDER_GUIDE, Without(Some((WILD, NEW))))), set()),
        (except_documents([DocId("docs:guide/fox.md")]), {*NOT_GUIDE, "guide/dog.md"}),
        (Comparison(FilterField.AUTHOR, Operator.IS, "bob"), {"guide/fox.md"}),
        (Comparison(FilterField.CATEGORY, Operator.IS, "Pets"), {"guide/dog.md"}),
        (NAMED, {"guide/dog.md", "notes/code.md"}),
        (Comparison(FilterField.PATH, Operator.BEGINS, "gui"), {"guide/fox.md", "guide/dog.md"}),
    ],
)
def test_a_filter_means_the_same_for_documents_hits_and_keys(reader, condition, expected):
    """Whichever way it is carried out: by documents, inside an index, or for given passages."""
    with index_over(reader).view() as view:
        assert names(view, condition) == expected
        assert view.has_documents(condition) is bool(expected)
        keys = view.matching(FOX)
        kept = view.matching(condition, keys)
        hits = view.search_words(KeywordQuery((FOX,)), 10, condition).hits
        assert {hit.key for hit in hits} == kept
        owners = view.documents_by_id(view.documents_of(kept).values())
        having = {"guide/fox.md", "guide/dog.md", "notes/code.md", "far.md"} & expected
        assert {document.path for document in owners.values()} == having


def test_conditions_of_words_fields_and_languages_hold_together(reader):
    with index_over(reader).view() as view:
        every = view.matching(FOX)
        assert view.count_matching(FOX) == len(every) == 4
        assert view.matching(None, every) == every
        assert view.matching(None) > every
        speaking = view.matching(in_language("py"), every)
        assert [view.documents_of(speaking)[key] for key in speaking] == ["docs:notes/code.md"]
        assert view.count_matching(both(FOX, in_language("py"))) == 1
        assert view.matching(both(Unit(("dog",)), UNDER_GUIDE), every) == view.matching(
            Unit(("dog",))
        )
        assert view.matching(both(FOX, both(in_language("py"), UNDER_GUIDE)), every) == set()


def test_a_filter_of_words_is_a_mistake_that_is_reported():
    with pytest.raises(ValueError, match="it has no words"):
        compile_filter(FOX)
    with pytest.raises(ValueError, match="cannot be compared"):
        compile_filter(Comparison(FilterField.TREE, Operator.AT_MOST, "x"))


def test_conditions_join_flat_and_none_is_neutral():
    assert both(None, None) is None
    assert both(FOX, None) == FOX == both(None, FOX)
    assert both(All((FOX, WILD)), UNDER_GUIDE) == All((FOX, WILD, UNDER_GUIDE))


def test_passages_come_in_one_trip_with_all_that_is_known_of_them(tmp_path):
    with Engine(tmp_path, TEXTS) as engine, engine.index.view() as view:
        keys = sorted(view.matching(FOX))
        found = view.passages([*keys, 10**9], with_vectors=True)
        assert sorted(found) == keys
        for key, passage in found.items():
            assert passage.stored.key == key
            assert passage.document.id == passage.stored.chunk.doc_id
            assert passage.vector is not None
            assert passage.ngrams > 0
        bare = view.passages(keys, with_vectors=False)
        assert all(passage.vector is None for passage in bare.values())


def test_a_view_without_vectors_says_so_and_answers_the_rest(reader):
    with index_over(reader).view() as view:
        assert (view.has_vectors, view.vector_count) == (False, 0)
        assert view.vector_recall(5)(None) == []
        assert view.passage_vectors(view.matching(FOX)) == {}
        assert not view.has_term_vectors()
        assert view.search_words(KeywordQuery((FOX,)), 10).hits


def test_a_view_is_overtaken_once_an_index_has_followed_a_later_commit(tmp_path):
    with Engine(tmp_path, TEXTS) as engine:
        vector = VectorIndex(engine.embedder)
        index = index_over(engine.reader, vector=vector)
        with index.view() as view:
            assert not view.is_overtaken
            engine.update({"new.md": "# New\n\nA new fox.\n"})
            with index.view() as later:
                assert not later.is_overtaken
            assert view.is_overtaken


def modules(*packages):
    return [path for package in packages for path in sorted((SOURCE / package).rglob("*.py"))]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_search_library_and_lint_know_the_index_as_a_view_alone():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in modules("search", "library", "lint")
        for name in imported(path)
        if name.startswith(("ragdocs.store", "ragdocs.indices", "sqlite3")) and name not in ALLOWED
    }
    assert found == set()


def test_no_sql_is_written_outside_of_the_store_and_the_indices():
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ENGINE_SIDE:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += [(path.name, node.value[:60])] if SQL.search(node.value) else []
    assert found == []
