"""Cross-encoders on torch: tiny ones, the real library."""

import numpy as np
import pytest

from ragdocs import open_index
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, TorchCrossEncoder, open_cross_encoder
from ragdocs.errors import ModelCorrupt, ModelMissing
from tests.support.model_files import TinyCrossEncoder

QUERY = "how do i sign in"
PASSAGES = ["sign in to the garden", "tomatoes need sun", "boats sink " * 200]


def raw(folder):
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), local_files_only=True)
    pairs = [(QUERY, passage) for passage in PASSAGES]
    return model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)


def test_one_label_is_its_sigmoid(models):
    scores = open_cross_encoder(str(models / "reader"), 1).score(QUERY, PASSAGES)
    assert np.allclose(scores, 1 / (1 + np.exp(-raw(models / "reader"))), atol=1e-5)
    assert all(0 <= score <= 1 for score in scores)


def test_two_labels_are_the_softmax_of_the_second(models):
    encoder = open_cross_encoder(str(models / "two-labels"))
    weights = np.exp(raw(models / "two-labels"))
    assert np.allclose(encoder.score(QUERY, PASSAGES), weights[:, 1] / weights.sum(1), atol=1e-5)
    assert encoder.name == "two-labels"
    assert encoder.score(QUERY, []) == []


def test_what_cannot_rank_is_refused(models):
    with pytest.raises(ModelCorrupt, match="3 labels"):
        open_cross_encoder(str(models / "three-labels")).load()


def test_the_kind_of_model_that_is_there_is_used(models, tmp_path):
    onnx = TinyCrossEncoder(meanings=["sign", "sun"]).write(tmp_path / "onnx-reader")
    assert isinstance(open_cross_encoder(str(onnx)), OnnxCrossEncoder)
    assert isinstance(open_cross_encoder(str(models / "reader")), TorchCrossEncoder)
    assert isinstance(open_cross_encoder("cross-encoder/any"), TorchCrossEncoder)


def test_a_name_that_is_not_on_this_disk_says_how_to_fetch_it(tmp_path):
    encoder = open_cross_encoder("cross-encoder/none", cache=tmp_path)
    with pytest.raises(ModelMissing, match="ragdocs models fetch cross-encoder/none"):
        encoder.load()


def test_results_are_ranked_by_it(docs, models):
    model = str(models / "reader")
    alone = {"rerank_enabled": True, "rerank_model": model, "rerank_weight": 1.0}
    with open_index(docs, settings={"search": alone}) as index:
        plain = index.search("sign in garden boats", top_n=3)
    assert not any("cross-encoder" in note for note in plain.notes), plain.notes
    assert len(plain.results) == 3
    scores = [result.score for result in plain.results]
    assert scores == sorted(scores, reverse=True)
    encoder = open_cross_encoder(str(models / "reader"))
    said = encoder.score("sign in garden boats", [result.text for result in plain.results])
    assert said == sorted(said, reverse=True)
