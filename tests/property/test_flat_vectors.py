"""Any sequence of additions and removals leaves what a dictionary would: nothing that has gone is
found, whether it was taken out already or not.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.indices import vector
from ragdocs.indices.vector import FlatVectors
from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey, VectorBatch
from tests.support.machine import assert_best

DIMENSION = 4
DOCUMENTS = [DocId(f"{number}.md") for number in range(6)]
KEYS = range(240)
ROWS = np.random.default_rng(5).standard_normal((len(KEYS), DIMENSION)).astype(np.float32)
QUERY = np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32)

keys = st.sets(st.sampled_from(KEYS))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), keys),
        st.tuples(st.just("keep"), st.sets(st.sampled_from(DOCUMENTS)), keys),
    ),
    max_size=12,
)


def owner(key):
    return DOCUMENTS[key % len(DOCUMENTS)]


def batch(chosen):
    ordered = sorted(chosen)
    return VectorBatch(
        [ChunkKey(key) for key in ordered],
        [owner(key) for key in ordered],
        DIMENSION,
        ROWS[ordered].tobytes(),
    )


def play(vectors, taken):
    """Does the steps, and gives the chunks that must be there afterwards."""
    present = set(KEYS)
    vectors.add(batch(present))
    for name, *given_to_it in taken:
        if name == "add":
            vectors.add(batch(given_to_it[0]))
            present |= given_to_it[0]
        else:
            documents, kept = given_to_it
            vectors.keep(documents, kept)
            present = {key for key in present if owner(key) not in documents or key in kept}
    return present


def scores(present):
    products = ROWS.astype(np.float64) @ QUERY.astype(np.float64)
    return {key: float(products[key]) for key in present}


@pytest.mark.parametrize("most_dead", [0.0, 0.3, 1.0])
@given(taken=steps, scope=st.sets(st.sampled_from(DOCUMENTS)))
@settings(max_examples=40, deadline=None)
def test_what_is_found_is_what_is_there(most_dead, taken, scope):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vector, "MOST_DEAD", most_dead)
        vectors = FlatVectors(DIMENSION)
        present = play(vectors, taken)
    assert len(vectors) == len(present)
    for limit in (5, len(KEYS)):
        assert_best(vectors.search(QUERY, limit, None), scores(present), limit)
    within = {key for key in present if owner(key) in scope}
    assert_best(vectors.search(QUERY, len(KEYS), frozenset(scope)), scores(within), len(KEYS))
    assert set(vectors.vectors_of([ChunkKey(key) for key in KEYS])) == present
    alone = vectors.in_context(QUERY, [ChunkKey(key) for key in KEYS], 0.0)
    assert alone == pytest.approx(scores(present), abs=1e-5)
    near = vectors.in_context(QUERY, [ChunkKey(key) for key in KEYS], 0.5)
    assert set(near) == present
    assert all(np.isfinite(score) for score in near.values())
