"""One long document, or many copies, must not leave the others without a place."""

import pytest

from ragdocs.indices.fts5 import Fts5Engine
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.vector_search import HITS_PER_INDEX
from tests.support.engine import Engine

MANUAL = "# Manual\n\n" + "\n\n".join(
    f"## Part {n}\n\nKubernetes, part {n}: " + f"kubernetes step {n} of the rollout. " * 10
    for n in range(150)
)
SUBJECTS = {
    "boats": "The harbour ran its cranes on kubernetes until the crane drivers went on strike.",
    "bread": "My sourdough app is deployed by kubernetes, which is far too much for one loaf.",
    "cats": "We named the second cat kubernetes because it orchestrates all the others.",
    "law": "Kubernetes is a trademark; do not print it on mugs without asking the foundation.",
    "music": "The band Kubernetes split up in 2019 after a quarrel over the drummer's containers.",
    "school": "Pupils learn about kubernetes in year nine, right after volcanoes.",
}
NOTES = {f"{name}.md": f"# On {name}\n\n{text}\n" for name, text in SUBJECTS.items()}
COPY = "# Kubernetes\n\nKubernetes and kubernetes again.\n"


@pytest.mark.parametrize("top_n", [5, 20])
def test_a_long_document_does_not_crowd_out_the_others(tmp_path, top_n):
    with Engine(
        tmp_path, {"manual.md": MANUAL, **NOTES}, merge_threshold=0, max_chunks_per_doc=2
    ) as engine:
        engine.update({})
        found = engine.ask("kubernetes", top_n=top_n).results
        assert len({result.path for result in found}) >= min(top_n - 1, 7)


@pytest.fixture
def looks(monkeypatch):
    """How many passages each look asked the keyword index for, and within which documents."""
    made: list[tuple[int, frozenset[str] | None]] = []
    original = Fts5Engine.search

    def counting(self, snapshot, query, limit, scope=None, allowed=None):
        made.append((limit, scope))
        return original(self, snapshot, query, limit, scope, allowed)

    monkeypatch.setattr(Fts5Engine, "search", counting)
    return made


def test_a_document_that_fills_a_look_is_left_out_of_the_next_one(tmp_path, looks):
    with Engine(
        tmp_path, {"manual.md": MANUAL, **NOTES}, merge_threshold=0, max_chunks_per_doc=2
    ) as engine:
        engine.ask("kubernetes", top_n=5)
    assert looks == [
        (HITS_PER_INDEX, None),
        (HITS_PER_INDEX, frozenset(f"docs:{name}" for name in NOTES)),
    ]


def test_one_look_is_enough_where_every_document_has_its_share(tmp_path, looks):
    with Engine(tmp_path, {"manual.md": MANUAL}, merge_threshold=0, max_chunks_per_doc=2) as engine:
        found = engine.ask("kubernetes", top_n=5).results
    assert len(found) == 2
    assert len(looks) == 1


def test_a_filter_binds_the_next_look_too(tmp_path, looks):
    texts = {"in/manual.md": MANUAL, "in/note.md": NOTES["cats.md"], **NOTES}
    with Engine(tmp_path, texts, merge_threshold=0, max_chunks_per_doc=2) as engine:
        request = QueryRequest(queries=("kubernetes",), filters=Filters(paths=("in",)))
        found = engine.answer(request, max_chunks_per_doc=2).results
    assert {result.path for result in found} == {"in/manual.md", "in/note.md"}
    assert looks[-1] == (HITS_PER_INDEX, frozenset({"docs:in/note.md"}))


def test_without_a_limit_of_passages_a_document_is_looked_at_deeper(tmp_path, looks):
    settings = {"merge_threshold": 0, "max_chunks_per_doc": 0}
    with Engine(tmp_path, {"manual.md": MANUAL + "\n" + MANUAL}, **settings) as engine:
        engine.ask("kubernetes", top_n=50)
    assert all(scope is None for _, scope in looks)


def test_copies_do_not_crowd_out_the_others(tmp_path):
    copies = {f"copies/{n}.md": COPY for n in range(120)}
    with Engine(tmp_path, {**copies, **NOTES}) as engine:
        found = engine.ask("kubernetes", top_n=5).results
        assert sum(result.path.startswith("copies") for result in found) == 1
        assert len(found) >= 2


def test_looking_deeper_stops_where_nothing_more_is_worth_it(tmp_path):
    with Engine(tmp_path, {"manual.md": MANUAL, **NOTES}) as engine:
        request = QueryRequest(queries=("kubernetes",), top_n=50, explain=True)
        strict = engine.answer(request, min_confidence=0.99)
        (query,) = strict.explanation.queries
        assert query.candidates <= 150


def test_each_of_several_queries_has_its_own_elbow(tmp_path):
    texts = {
        "zebra.md": "# Zebra\n\nZebra zebra zebra.\n",
        "quokka.md": "# Animals\n\n" + "Many animals were seen. " * 30 + "Also a quokka.\n",
    }
    with Engine(tmp_path, texts, cutoff_ratio=0.9, semantic_weight=0) as engine:
        found = engine.paths("zebra", "quokka in the west of the country", top_n=5)
    assert set(found) == {"zebra.md", "quokka.md"}
