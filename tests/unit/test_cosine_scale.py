"""Models whose cosines all lie near one another are read on the built-in model's scale."""

import numpy as np
import pytest

from ragdocs.indices import vector
from ragdocs.indices.hits import USUAL_DEVIATION, USUAL_MEAN, USUAL_SPREAD, CosineScale
from ragdocs.indices.vector import FlatVectors
from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey, VectorBatch

DIMENSION = 64
pytestmark = pytest.mark.numeric


def units(count, common, seed=1):
    """The more they have in common, the nearer all are to one another."""
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    rows[:, 0] += common
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def flat(rows, order=None):
    found = FlatVectors(DIMENSION)
    for at in order if order is not None else range(len(rows)):
        batch = VectorBatch(
            keys=(ChunkKey(at + 1),),
            doc_ids=(DocId(f"docs:{at}.md"),),
            dimension=DIMENSION,
            data=rows[at].tobytes(),
        )
        found.add(batch)
    return found


def test_cosines_that_are_as_usual_stay():
    assert flat(units(100, 0.0)).scale() is None


def test_cosines_that_are_all_high_are_spread_out():
    rows = units(100, 16.0)
    scale = flat(rows).scale()
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    read = np.array([scale.of(float(cosine)) for cosine in cosines])
    assert read.mean() == pytest.approx(USUAL_MEAN, abs=0.001)
    assert read.std() == pytest.approx(USUAL_DEVIATION, abs=0.001)


def test_a_scale_keeps_the_order_and_can_be_turned_round():
    scale = CosineScale(0.8, 0.03)
    assert scale.of(0.9) > scale.of(0.85)
    assert scale.of(1.0) <= 1.0
    assert scale.of(scale.inverse(0.5)) == pytest.approx(0.5)
    assert CosineScale().of(0.4) == pytest.approx(0.4)


def test_too_few_passages_tell_nothing():
    assert flat(units(3, 16.0)).scale() is None


def test_the_order_in_which_vectors_came_does_not_matter(monkeypatch):
    monkeypatch.setattr(vector, "SAMPLED", 20)
    rows = units(60, 16.0)
    forwards, backwards = flat(rows), flat(rows, order=reversed(range(60)))
    assert forwards.scale() == pytest.approx(backwards.scale())
    assert forwards.spread(rows[0]) == pytest.approx(backwards.spread(rows[0]))


def test_what_is_added_or_goes_counts():
    rows = np.concatenate([units(60, 0.0), units(400, 16.0, seed=2)])
    found = flat(rows[:60])
    assert found.scale() is None
    before = found.spread(rows[0])
    for at in range(60, 460):
        found.add(
            VectorBatch(
                keys=(ChunkKey(at + 1),),
                doc_ids=(DocId(f"docs:{at}.md"),),
                dimension=DIMENSION,
                data=rows[at].tobytes(),
            )
        )
    assert found.scale() is not None
    assert found.spread(rows[0]) != pytest.approx(before)
    found.keep([DocId(f"docs:{at}.md") for at in range(60, 460)])
    assert found.scale() is None
    assert found.spread(rows[0]) == pytest.approx(before)


def test_without_vectors_the_spread_is_the_usual_one():
    assert FlatVectors(DIMENSION).spread(units(1, 0.0)[0]) == pytest.approx(USUAL_SPREAD)
