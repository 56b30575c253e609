"""The metrics against worked examples, against plain definitions, and against the shared scorer."""

import json
import math
import random
from pathlib import Path

import pytest

from ragdocs.evaluation.labelled_set import write_run
from ragdocs.evaluation.metrics import METRICS, Estimate, estimate, percentile, score, score_all
from tests.support.processes import run_python

SCORER = Path(__file__).parents[3] / "shared" / "eval" / "score.py"
SEED = 20261116


def test_a_worked_example():
    grades = {"a": 3.0, "b": 1.0, "c": 0.0}
    found = score(["c", "b", "a"], grades)
    best = 3 + 1 / math.log2(3)
    assert found["nDCG@5"] == pytest.approx((1 / math.log2(3) + 3 / 2) / best)
    assert found["MRR@10"] == pytest.approx(0.5)
    assert found["Recall@10"] == pytest.approx(1.0)
    assert found["Hit@1"] == pytest.approx(0.0)


def test_only_documents_of_the_level_are_relevant():
    found = score(["b", "a"], {"a": 2.0, "b": 1.0}, level=2.0)
    assert (found["MRR@10"], found["Recall@10"], found["Hit@1"]) == pytest.approx((0.5, 1.0, 0.0))


def test_a_document_counts_once_at_its_first_place():
    assert score(["x", "x", "a"], {"a": 1.0})["MRR@10"] == pytest.approx(0.5)


def test_a_query_that_was_not_asked_scores_nothing_and_one_without_an_answer_is_left_out():
    scores = score_all({"q1": ["a"]}, {"q1": {"a": 1.0}, "q2": {"a": 1.0}, "q3": {"a": 0.0}})
    assert set(scores) == {"q1", "q2"}
    assert [*scores["q2"].values()] == pytest.approx([0.0] * len(scores["q2"]))


def plainly(ranked, grades, level):
    """The definitions written out another way: by permuted places, without shared helpers."""
    places = {}
    for document in ranked:
        places.setdefault(document, len(places) + 1)

    def dcg(places_of, depth):
        return math.fsum(
            grade / math.log2(1 + place)
            for document, grade in grades.items()
            if grade > 0 and (place := places_of.get(document, depth + 1)) <= depth
        )

    ideal = {d: i for i, d in enumerate(sorted(grades, key=lambda d: -grades[d]), start=1)}
    relevant = [document for document, grade in grades.items() if grade >= level]
    seen = sorted(place for d in relevant if (place := places.get(d, 99)) <= 10)
    return [
        dcg(places, 5) / dcg(ideal, 5),
        dcg(places, 10) / dcg(ideal, 10),
        1 / seen[0] if seen else 0.0,
        len(seen) / len(relevant) if relevant else 0.0,
        1.0 if 1 in seen else 0.0,
    ]


def some_labels(chance):
    documents = [f"d/{number}.md" for number in range(30)]
    labels = {}
    for query in range(60):
        judged = chance.sample(documents, chance.randint(1, 15))
        labels[str(query)] = {d: float(chance.choice((0, 1, 1, 2, 3))) for d in judged}
        labels[str(query)][judged[0]] = 2.0
    run = {query: chance.choices(documents, k=chance.randint(0, 14)) for query in labels}
    return labels, run


@pytest.mark.parametrize("seed", [SEED])
def test_random_rankings_score_as_the_definitions_say(seed):
    labels, run = some_labels(random.Random(seed))
    for level in (1.0, 2.0):
        for query, grades in labels.items():
            found = score(run[query], grades, level)
            assert list(found.values()) == pytest.approx(plainly(run[query], grades, level))
            assert tuple(found) == METRICS
            assert all(0.0 <= value <= 1.0 for value in found.values())


@pytest.mark.skipif(not SCORER.is_file(), reason="the shared scorer is not beside this clone")
@pytest.mark.parametrize("level", ["1", "2"])
def test_the_shared_scorer_agrees_to_four_decimals(tmp_path, level):
    labels, run = some_labels(random.Random(SEED))
    del run["7"]
    lines = [f"{q}\t{d}\t{g:g}\n" for q, grades in labels.items() for d, g in grades.items()]
    (tmp_path / "qrels.tsv").write_text("query-id\tpath\tgrade\n" + "".join(lines), "utf-8")
    write_run(tmp_path / "run.jsonl", run)
    words = (SCORER, "run.jsonl", "qrels.tsv", "--json", "--rel-level", level)
    done = run_python(*words, cwd=tmp_path)
    told = json.loads(done.stdout)
    scores = list(score_all(run, labels, float(level)).values())
    assert len(scores) == told["queries"] == 60
    for metric in METRICS:
        mean = sum(one[metric] for one in scores) / len(scores)
        assert mean == pytest.approx(told[metric], abs=5.1e-5), metric


def test_an_interval_is_about_two_standard_errors_and_always_the_same():
    values = [0.0, 1.0] * 50
    found = estimate(values)
    assert found.mean == pytest.approx(0.5)
    assert 0.38 < found.low < 0.42
    assert 0.58 < found.high < 0.62
    assert estimate(values) == found


def test_a_difference_is_clear_when_zero_is_outside_of_its_interval():
    assert estimate([0.1, 0.2, 0.15, 0.1]).is_clear
    assert not estimate([0.1, -0.1, 0.2, -0.2]).is_clear
    assert estimate([]) == Estimate(0.0, 0.0, 0.0)


def test_percentiles_are_measured_values():
    assert percentile(range(1, 101), 0.5) == 51
    assert percentile(range(1, 101), 0.95) == 96
    assert percentile([4.0], 0.95) == pytest.approx(4.0)
