"""The built-in embedder against sentence-transformers on the original weights.

The expected vectors were made by scripts/make_reference_vectors.py, never by our embedder.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from ragdocs.embedding.builtin import BuiltinEmbedder

FIXTURES = Path(__file__).parents[1] / "fixtures" / "embedding"
TEXTS: list[str] = json.loads((FIXTURES / "texts.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=["fp32", "int8"])
def embedder(request, tmp_path_factory):
    return BuiltinEmbedder(cache_dir=tmp_path_factory.mktemp("cache"), precision=request.param)


@pytest.fixture(scope="module")
def vectors(embedder):
    return embedder.embed_documents(TEXTS)


@pytest.fixture(scope="module")
def reference():
    stored = np.load(FIXTURES / "vectors.npy", allow_pickle=False).astype(np.float32)
    return stored / np.linalg.norm(stored, axis=1, keepdims=True)


def test_every_vector_agrees_with_the_reference_implementation(embedder, vectors, reference):
    assert len(TEXTS) == 200
    least = {"fp32": 0.999, "int8": 0.99}[embedder.precision]
    cosines = (vectors * reference).sum(axis=1)
    assert cosines.min() >= least, TEXTS[int(cosines.argmin())]


def test_neighbours_are_ranked_as_by_the_reference(vectors, reference):
    def nearest(rows):
        return np.argsort(-(rows @ rows.T), axis=1)[:, :10]

    shared = [
        len(set(ours) & set(theirs))
        for ours, theirs in zip(nearest(vectors), nearest(reference), strict=True)
    ]
    assert np.mean(shared) >= 9


def test_vectors_are_float32_of_unit_length(vectors):
    assert vectors.dtype == np.float32
    assert vectors.shape == (200, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_vector_depends_on_its_own_text_only(embedder, vectors):
    some = range(0, 200, 7)
    alone = np.stack([embedder.embed_query(TEXTS[i]) for i in some])
    np.testing.assert_allclose(alone, vectors[list(some)], atol=1e-5)


def test_the_order_given_is_the_order_returned(embedder, vectors):
    order = np.random.default_rng(1).permutation(200)[:60]
    shuffled = embedder.embed_documents([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, vectors[order], atol=1e-5)


def test_nothing_was_split_or_cut_and_nothing_fell_back(embedder, vectors):
    assert embedder.counts.texts >= 200
    assert (embedder.counts.split_texts, embedder.counts.cut_texts) == (0, 0)
    assert embedder.notes == ()
