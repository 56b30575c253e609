"""The project's own benchmark: fifty documents, a hundred labelled queries, floors of quality.

How the floors were chosen is in docs/evaluation.md. Dates stand in the documents' front matter, so
that a fresh checkout does not make them news.
"""

import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from statistics import mean

import pytest

from ragdocs.app import App
from ragdocs.config.choices import Stemmer
from ragdocs.config.loading import load_config
from ragdocs.evaluation.labelled_set import read_set
from ragdocs.evaluation.metrics import score_all
from ragdocs.evaluation.run import ask_all
from ragdocs.indices.analysis import text_analyzer
from ragdocs.search.requests import QueryRequest
from tests.support.documents import parse
from tests.support.indexes import write
from tests.support.models import RememberingEmbedder

FOLDER = Path(__file__).parents[1] / "fixtures" / "benchmark"
SET = read_set(FOLDER)
TEXTS = {
    path.relative_to(SET.corpus).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(SET.corpus.rglob("*.md"))
}
ANSWERED = [query for query in SET.queries if query.id in SET.labels]
UNANSWERED = [query for query in SET.queries if query.id not in SET.labels]

FLOORS = {
    "all": 0.87,
    "factual": 0.80,
    "navigational": 0.95,
    "exploratory": 0.72,
    "code": 0.94,
    "own words": 0.66,
    "words of the answer": 0.94,
}
"""nDCG@10 of groups of queries, some .04 under what was measured; of all of them .025, which is
above what meaning alone reaches."""
AUC_FLOOR = 0.87


class Benchmark:
    """The corpus indexed once with the product's settings, asked with others at will."""

    def __init__(self, folder: Path, corpus: Path = SET.corpus) -> None:
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self.config = load_config(
            cwd=folder,
            environ={"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", ""), **home},
            flags={"indexing": {"documents_path": str(corpus), "index_path": str(folder / "ix")}},
        )
        self.embedder = RememberingEmbedder("benchmark")

    def index(self) -> int:
        """How many documents there are now."""
        with App(self.config, self.embedder) as app, app.manager() as manager:
            documents = manager.update().documents
            assert not manager.fill().error
        return documents

    def app(self, **settings) -> App:
        search = self.config.search.model_copy(update=settings)
        return App(replace(self.config, search=search), self.embedder)

    def figures(self, **settings) -> dict[str, float]:
        """nDCG@10 by group."""
        with self.app(**settings) as app:
            scores = score_all(ask_all(app, ANSWERED).ranked, SET.labels)
        groups = {"all": [scores[query.id]["nDCG@10"] for query in ANSWERED]}
        for query in ANSWERED:
            wording = "own words" if query.fields["wording"] == "own" else "words of the answer"
            for name in (str(query.fields["kind"]), wording):
                groups.setdefault(name, []).append(scores[query.id]["nDCG@10"])
        return {name: mean(values) for name, values in groups.items()}


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    benchmark = Benchmark(tmp_path_factory.mktemp("benchmark"))
    assert benchmark.index() == len(TEXTS)
    return benchmark


def fallen(figures) -> dict[str, float]:
    return {name: round(figures[name], 4) for name in FLOORS if figures[name] < FLOORS[name]}


def test_the_product_stays_above_the_floors(benchmark):
    assert not fallen(benchmark.figures())


@pytest.mark.parametrize("weight", ["semantic_weight", "keyword_weight"])
def test_neither_words_nor_meaning_alone_would(benchmark, weight):
    assert "all" in fallen(benchmark.figures(**{weight: 0.0}))


def test_two_runs_give_the_same_ranking_and_so_does_another_index(benchmark, tmp_path):
    """The other is built in two goes, the last documents first."""
    other = Benchmark(tmp_path / "other", tmp_path / "corpus")
    backwards = sorted(TEXTS, reverse=True)
    for part in (backwards[:25], backwards[25:]):
        for path in part:
            write(tmp_path / "corpus", path, TEXTS[path])
        other.index()
    asked = SET.queries[::3]
    with benchmark.app() as one, benchmark.app() as two, other.app() as three:
        first, *others = (ask_all(app, asked).ranked for app in (one, two, three))
    assert all(first.values())
    assert others == [first, first]


def test_confidence_tells_what_can_be_answered(benchmark):
    def first(query):
        results = app.search(QueryRequest(queries=(query.text,), top_n=1)).results
        return results[0].confidence if results else 0.0

    with benchmark.app() as app:
        answered, unanswered = map(first, ANSWERED), map(first, UNANSWERED)
        pairs = list(product(answered, unanswered))
    auc = mean(1.0 if good > bad else 0.5 if good == bad else 0.0 for good, bad in pairs)
    assert auc >= AUC_FLOOR


def test_the_corpus_is_what_it_is_said_to_be():
    assert len(TEXTS) == 50
    assert set(Counter(path.split("/")[0] for path in TEXTS).values()) == {10}
    documents = {path: parse(text, path) for path, text in TEXTS.items()}
    assert all(text.startswith("---\ntitle: ") for text in TEXTS.values())
    assert all("\ndate: 202" in text for text in TEXTS.values())
    assert sum(bool(document.links) for document in documents.values()) >= 20
    assert sum(bool(document.code_blocks) for document in documents.values()) >= 12


def test_some_documents_are_nearly_the_same():
    def words(text):
        return set(text.lower().split())

    topics = [sorted(path for path in TEXTS if path.startswith(t)) for t in ("g", "h", "l", "n")]
    alike = [
        (one, other)
        for paths in topics
        for one, other in pairwise(paths)
        if len(words(TEXTS[one]) & words(TEXTS[other])) > 0.5 * len(words(TEXTS[one]))
    ]
    assert len(alike) >= 4, alike


def test_the_queries_are_what_they_are_said_to_be():
    kinds = Counter(query.fields["kind"] for query in ANSWERED)
    assert sum(kinds.values()) == 100
    assert set(kinds) == {"factual", "navigational", "exploratory", "code"}
    assert min(kinds.values()) >= 20
    assert len(UNANSWERED) == 20
    assert {document for grades in SET.labels.values() for document in grades} == set(TEXTS)
    assert {int(grade) for grades in SET.labels.values() for grade in grades.values()} == {1, 2}


def test_many_queries_have_no_word_of_their_answers():
    analyzer = text_analyzer(Stemmer.ENGLISH)
    known = {path: set(analyzer.terms(f"{path} {text}")) for path, text in TEXTS.items()}
    own = []
    for query in ANSWERED:
        terms = {token.term for token in analyzer.query(query.text)}
        shares = any(terms & known[document] for document in SET.labels[query.id])
        assert query.fields["wording"] == ("shared" if shares else "own"), query.text
        own += [] if shares else [query]
    assert len(own) >= 30
