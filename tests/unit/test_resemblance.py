import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.search.weighing import with_resemblance
from tests.support.engine import ParsedCorpus

CORPUS = ParsedCorpus()
for number in range(6):
    CORPUS.add(f"{number}.md", f"Note {number}.\n")


def candidates(*scores):
    return [CORPUS.candidate(leaf(number), score) for number, score in enumerate(scores)]


def leaf(number):
    (only,) = CORPUS.leaves(f"{number}.md")
    return only.chunk.id.removeprefix("docs:")


def cosines(*values):
    keys = (CORPUS.leaves(f"{number}.md")[0].key for number in range(len(values)))
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}


def ranked(scores, near, weight=0.1):
    found = with_resemblance(candidates(*scores), cosines(*near), weight)
    return [(int(item.document.path[0]), item.score) for item in found]


def about(*expected):
    return [(document, pytest.approx(score)) for document, score in expected]


def test_what_is_like_the_best_passes_what_is_not():
    assert ranked([0.8, 0.5, 0.48], [1.0, 0.1, 0.9]) == about((0, 0.82), (2, 0.5268), (1, 0.505))


def test_one_without_a_vector_is_taken_to_be_like_the_others():
    assert ranked([0.8, 0.5, 0.48], [1.0, None, 0.5]) == about((0, 0.82), (1, 0.5375), (2, 0.506))


@pytest.mark.parametrize(("near", "weight"), [((), 0.5), ((1.0, 0.0), 0.0)])
def test_without_vectors_or_weight_nothing_changes(near, weight):
    assert ranked([0.8, 0.5], near, weight) == about((0, 0.8), (1, 0.5))


def test_the_gain_is_told_as_a_factor():
    _, other = with_resemblance(candidates(0.8, 0.4), cosines(1.0, 0.5), 0.5)
    assert other.boosts == {"resemblance": pytest.approx(0.55 / 0.4)}


def test_what_is_unlike_loses_nothing():
    assert ranked([0.8, 0.4], [1.0, -0.3]) == about((0, 0.82), (1, 0.4))


SCORES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6)


@given(SCORES, st.lists(st.floats(-1.0, 1.0), min_size=5, max_size=5), st.floats(0.0, 1.0))
def test_the_best_stays_the_best(scores, near, weight):
    ordered = sorted(scores, reverse=True)
    found = with_resemblance(candidates(*ordered), cosines(1.0, *near[: len(ordered) - 1]), weight)
    assert found[0].document.path == "0.md"
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
