"""Real questions on a real folder of notes, with the product's own settings and model."""

import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from ragdocs.parsers.ids import decode_path
from tests.support.engine import DefaultEngine
from tests.support.models import RememberingEmbedder

SET = Path(__file__).parents[3] / "shared" / "eval" / "obsidian-help"

pytestmark = pytest.mark.skipif(
    not SET.is_dir(), reason="the labelled sets are not beside this clone (../shared/eval)"
)


def labels():
    grades = defaultdict(dict)
    for line in (SET / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, path, grade = line.split("\t")
        if grade.replace(".", "", 1).isdigit():
            grades[query][path] = float(grade)
    return grades


def ndcg(ranked, grades, depth=5):
    def gain(values):
        return sum(grade / math.log2(place + 2) for place, grade in enumerate(values[:depth]))

    best = gain(sorted(grades.values(), reverse=True))
    return gain([grades.get(path, 0.0) for path in ranked]) / best if best else 0.0


def test_questions_on_a_folder_of_notes(tmp_path):
    corpus = SET / "corpus"
    texts = {
        path.relative_to(corpus).as_posix(): path.read_text(encoding="utf-8")
        for path in corpus.rglob("*.md")
    }
    grades = labels()
    lines = (SET / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    found = []
    with DefaultEngine(tmp_path, texts, RememberingEmbedder("obsidian-help")) as engine:
        for query in map(json.loads, lines):
            results = engine.ask(query["text"], top_n=10).results
            paths = [decode_path(result.doc_id.partition(":")[2]) for result in results]
            found.append(ndcg(list(dict.fromkeys(paths)), grades[str(query["id"])]))
    assert len(found) > 50
    assert sum(found) / len(found) >= 0.74
