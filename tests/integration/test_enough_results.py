"""One long document, or many copies, must not leave the others without a place."""

import pytest

from ragdocs.search.requests import QueryRequest
from tests.engine import Engine

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
    with Engine(tmp_path, {"manual.md": MANUAL, **NOTES}, merge_threshold=0) as engine:
        engine.update({})
        found = engine.ask("kubernetes", top_n=top_n).results
        assert len({result.path for result in found}) >= min(top_n - 1, 7)


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
