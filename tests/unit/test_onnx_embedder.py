"""Any ONNX export as an embedder: what its files say is what is computed, and numpy agrees."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragdocs.config.loading import read_config
from ragdocs.config.settings import EmbeddingConfig
from ragdocs.embedding import hub
from ragdocs.embedding.hub import choose_model, needed_files
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ModelCorrupt, ModelMissing, ModelRefused
from tests.support.model_files import DIMENSION, INT32, TinyExport, rows, unit

TINY = TinyExport()
TEXT = "red green blue"
SENTENCE = "config_sentence_transformers.json"
WINDOW = "sentence_bert_config.json"


def opened(folder, **settings):
    model = str(folder)
    return make_embedder(EmbeddingConfig(provider="onnx", model=model, threads=2, **settings))


def passage(folder, text=TEXT, **settings):
    return opened(folder, **settings).embed_documents([text])[0]


def same(vector, expected):
    return bool(np.allclose(vector, unit(expected), atol=1e-3))


def mean(text, seed=0):
    return rows(text, seed).mean(axis=0)


POOLED = {
    "mean_tokens": mean(TEXT),
    "mean_sqrt_len_tokens": mean(TEXT),
    "cls_token": rows(TEXT)[0],
    "max_tokens": rows(TEXT).max(axis=0),
    "lasttoken": rows(TEXT)[-1],
}


@pytest.mark.parametrize("pooling", POOLED)
def test_tokens_become_a_vector_as_the_export_says(tmp_path, pooling):
    folder = replace(TINY, pooling=pooling).write(tmp_path)
    embedder = opened(folder)
    assert same(embedder.embed_documents([TEXT])[0], POOLED[pooling])
    assert embedder.dimension == DIMENSION
    assert not embedder.notes


def test_pooling_by_name_in_a_folder_that_modules_names(tmp_path):
    modules = [{"type": "sentence_transformers.models.Pooling", "path": "9_Pooling"}]
    files = {"modules.json": modules, "9_Pooling/config.json": {"pooling_mode": "cls"}}
    assert same(passage(replace(TINY, files=files).write(tmp_path)), POOLED["cls_token"])


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("mean", "mean_tokens"), ("cls", "cls_token"), ("max", "max_tokens"), ("last", "lasttoken")],
)
def test_the_settings_pooling_wins_over_the_files(tmp_path, setting, expected):
    outputs = {"sentence_embedding": "mean", "last_hidden_state": "tokens"}
    folder = replace(TINY, pooling="cls_token", outputs=outputs).write(tmp_path)
    assert same(passage(folder, pooling=setting), POOLED[expected])


def test_pooling_that_no_file_tells_is_known_by_the_name_or_guessed_and_said(tmp_path):
    tiny = replace(TINY, pooling="", config={"_name_or_path": "BAAI/bge-tiny"})
    embedder = opened(tiny.write(tmp_path / "a"))
    embedder.load()
    assert same(embedder.embed_documents([TEXT])[0], POOLED["cls_token"])
    other = opened(replace(TINY, pooling="").write(tmp_path / "b"))
    assert same(other.embed_documents([TEXT])[0], POOLED["mean_tokens"])
    assert 'embedding.pooling = "mean"' in other.notes[0]


@pytest.mark.parametrize(
    "variant",
    [
        {"inputs": ("input_ids",)},
        {"inputs": ("input_ids", "attention_mask")},
        {"inputs": ("input_ids", "attention_mask", "position_ids")},
        {"element": INT32},
        {"outputs": {"token_embeddings": "tokens", "pooler_output": "mean"}},
        {"outputs": {"logits": "mean", "output_1": "tokens"}},
        {"outputs": {"token_embeddings": "tokens", "sentence_embedding": "mean"}},
        {"is_half": True},
        {"external": "model.onnx_data"},
        {"path": "model.onnx"},
    ],
    ids=lambda variant: "-".join(variant),
)
def test_graphs_of_other_shapes_give_the_same(tmp_path, variant):
    vector = passage(replace(TINY, **variant).write(tmp_path))
    assert same(vector, mean(TEXT))
    assert vector.dtype == np.float32


def test_a_graph_with_whole_vectors_may_have_layers_after_the_pooling(tmp_path):
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Pooling", "Dense")]
    with_layer = replace(TINY, files={"modules.json": modules})
    whole = replace(with_layer, outputs={"sentence_embedding": "mean"})
    assert same(passage(whole.write(tmp_path / "whole")), mean(TEXT))
    with pytest.raises(ModelCorrupt, match=r"Dense.*sentence_embedding"):
        opened(with_layer.write(tmp_path / "tokens")).load()


def test_prefixes_by_the_files_by_the_name_and_by_the_settings(tmp_path):
    prompts = {"prompts": {"query": "red ", "passage": "blue "}}
    told = replace(TINY, files={SENTENCE: prompts}).write(tmp_path / "told")
    assert same(opened(told).embed_query("one"), mean("red one"))
    assert same(passage(told, "one"), mean("blue one"))
    known = TINY.write(tmp_path / "multilingual-e5-small")
    assert same(opened(known).embed_query("one"), mean("query : one"))
    assert same(passage(known, "one"), mean("passage : one"))
    assert same(passage(known, "one", passage_prefix=""), mean("one"))
    assert same(opened(known, query_prefix="two ").embed_query("one"), mean("two one"))


def test_a_text_beyond_the_window_is_split_and_its_end_counts(tmp_path):
    folder = replace(TINY, files={WINDOW: {"max_seq_length": 5}}).write(tmp_path)
    embedder = opened(folder)
    vector = embedder.embed_documents(["one two three four five red"])[0]
    halves = [unit(mean("one two three")), unit(mean("four five red"))]
    weights = [len("one two three"), len(" four five red")]
    assert same(vector, np.average(halves, axis=0, weights=weights))
    assert embedder.max_tokens == 5
    assert embedder.counts.split_texts == 1
    beginning = embedder.embed_beginning("one two three four five red", 1)
    assert same(beginning.vector, mean("one two three"))
    assert beginning.cut_characters == len("four five red")


def test_upper_case_of_a_model_without_it(tmp_path):
    folder = replace(TINY, files={WINDOW: {"do_lower_case": True}}).write(tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "normalizer": None}))
    assert same(passage(folder, "RED Green"), mean("red green"))


def test_a_text_does_not_depend_on_its_neighbours(tmp_path):
    embedder = opened(replace(TINY, is_quantised=True).write(tmp_path))
    texts = ["red green", "sun password", "one two", "reset blue"]
    together = embedder.embed_documents(texts)
    alone = [embedder.embed_documents([text])[0] for text in texts]
    assert np.allclose(together, alone, atol=1e-7)


def test_a_quantised_file_is_preferred_and_another_may_be_named(tmp_path):
    TINY.write(tmp_path)
    replace(TINY, path="onnx/model_quantized.onnx", seed=1).write(tmp_path)
    replace(TINY, path="onnx/model_fp16.onnx", seed=2).write(tmp_path)
    assert same(passage(tmp_path), mean(TEXT, 1))
    assert same(passage(tmp_path, model_file="onnx/model_fp16.onnx"), mean(TEXT, 2))
    assert same(passage(tmp_path, model_file="onnx/model.onnx"), mean(TEXT, 0))
    with pytest.raises(ModelMissing, match=r"has no onnx/other\.onnx"):
        opened(tmp_path, model_file="onnx/other.onnx").load()


def test_a_file_for_another_processor_is_not_chosen(monkeypatch):
    names = [
        "onnx/model.onnx",
        "onnx/model_qint8_arm64.onnx",
        "onnx/model_quint8_avx2.onnx",
        "onnx/model_O4.onnx",
    ]
    monkeypatch.setattr(hub.platform, "machine", lambda: "aarch64")
    assert choose_model(names) == "onnx/model_qint8_arm64.onnx"
    monkeypatch.setattr(hub.platform, "machine", lambda: "x86_64")
    assert choose_model(names) == "onnx/model_quint8_avx2.onnx"
    monkeypatch.setattr(hub.platform, "machine", lambda: "riscv64")
    assert choose_model(names) == "onnx/model.onnx"
    assert choose_model(["README.md", "model.safetensors"]) is None


def test_what_is_needed_of_a_model_on_the_hub():
    needed = {
        "1_Pooling/config.json",
        "config.json",
        "modules.json",
        "onnx/model.onnx",
        "onnx/model.onnx_data",
        "onnx/model.onnx_data_1",
        "sentence_bert_config.json",
        "tokenizer.json",
    }
    others = {
        "2_Dense/config.json",
        "README.md",
        "model.safetensors",
        "onnx/config.json",
        "onnx/model_fp16.onnx",
        "onnx/model_fp16.onnx_data",
        "pytorch_model.bin",
        "sentencepiece.bpe.model",
    }
    assert set(needed_files(needed | others, "onnx/model.onnx")) == needed


def test_identity_is_of_all_that_decides_a_vector_and_of_nothing_else(tmp_path):
    identities = [opened(TINY.write(tmp_path)).identity]
    (tmp_path / "README.md").write_text("changed", encoding="utf-8")
    (tmp_path / "onnx" / "model_fp16.onnx").write_bytes(b"not used")
    assert opened(tmp_path).identity == identities[0]
    loaded = opened(tmp_path)
    loaded.load()
    assert loaded.identity == identities[0]
    identities += [
        opened(tmp_path, pooling="cls").identity,
        opened(tmp_path, passage_prefix="red ").identity,
        opened(replace(TINY, files={WINDOW: {"max_seq_length": 9}}).write(tmp_path)).identity,
        opened(replace(TINY, external="model.onnx_data").write(tmp_path)).identity,
        opened(replace(TINY, seed=1).write(tmp_path)).identity,
        opened(replace(TINY, pooling="lasttoken").write(tmp_path)).identity,
        opened(tmp_path / "absent").identity,
    ]
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b"\n")
    identities.append(opened(tmp_path).identity)
    assert len(set(identities)) == len(identities)


def test_other_external_data_is_another_model(tmp_path):
    folder = replace(TINY, external="model.onnx_data").write(tmp_path)
    before = opened(folder).identity
    data = folder / "onnx" / "model.onnx_data"
    data.write_bytes(data.read_bytes()[::-1])
    assert opened(folder).identity != before


def refusal(kind, folder, **settings):
    embedder = opened(folder, **settings)
    assert embedder.identity.endswith(":absent") or embedder.dimension >= 0
    with pytest.raises(kind) as caught:
        embedder.load()
    return str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "onnx/model.onnx"])
def test_a_missing_file_is_named_with_what_to_do(tmp_path, name):
    (TINY.write(tmp_path) / name).unlink()
    message = refusal(ModelMissing, tmp_path)
    assert name in message
    assert "download the missing files" in message


def test_a_missing_folder_and_a_name_that_was_not_fetched(tmp_path):
    message = refusal(ModelMissing, tmp_path / "nowhere")
    assert "tokenizer.json" in message
    assert "embedding.model" in message
    message = refusal(ModelMissing, "intfloat/multilingual-e5-small", cache_folder=tmp_path)
    assert "models fetch intfloat/multilingual-e5-small" in message


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "onnx/model.onnx", "1_Pooling/config.json"]
)
@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html>", b"[1]", bytes(range(256)) * 9])
def test_a_damaged_file_is_named(tmp_path, name, content):
    (TINY.write(tmp_path) / name).write_bytes(content)
    assert name in refusal(ModelCorrupt, tmp_path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"modules.json": {"a": 1}}, "modules.json"),
        ({"modules.json": [{"type": 3}]}, "modules.json"),
        ({WINDOW: {"max_seq_length": 0}}, "max_seq_length"),
        ({WINDOW: {"max_seq_length": 2}}, "no room"),
        ({"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}, "pooling"),
        (
            {
                "1_Pooling/config.json": {
                    "pooling_mode_cls_token": True,
                    "pooling_mode_max_tokens": True,
                }
            },
            "pooling",
        ),
        ({SENTENCE: {"prompts": {"query": "red " * 600}}}, "no room"),
    ],
)
def test_settings_that_mean_nothing_here_are_refused(tmp_path, files, said):
    assert said in refusal(ModelCorrupt, replace(TINY, files=files).write(tmp_path))


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"inputs": ("input_ids", "past_key_values.0.key")}, "inputs input_ids, past_key_values"),
        ({"inputs": ("input_ids", "pixel_values")}, "export it for feature extraction"),
        ({"outputs": {"logits": "mean"}}, "outputs logits"),
    ],
)
def test_a_graph_of_another_kind_is_refused(tmp_path, variant, said):
    assert said in refusal(ModelCorrupt, replace(TINY, **variant).write(tmp_path))


@pytest.mark.parametrize(
    "location",
    ["../../secret", "/etc/passwd", "a\\..\\b", "c:secret", "*/_ORT_MEM_ADDR_/*"],
)
def test_external_data_elsewhere_is_refused_before_it_is_read(tmp_path, location):
    (tmp_path / "secret").write_bytes(b"x" * 10_000)
    folder = replace(TINY, external=location).write(tmp_path / "a" / "model")
    assert "do not use it" in refusal(ModelRefused, folder)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "onnx/model.onnx_data", "tokenizer.json"])
def test_a_link_out_of_the_folder_is_refused(tmp_path, name):
    folder = replace(TINY, external="model.onnx_data").write(tmp_path / "model")
    elsewhere = tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    assert "links to a file outside the model's folder" in refusal(ModelRefused, folder)


def test_nothing_in_the_folder_is_run_or_imported(tmp_path):
    """Settings that name code, a library of operators and a pickle are passed over."""
    marker = tmp_path / "ran"
    code = f"open({str(marker)!r}, 'w').close()"
    config = {"auto_map": {"AutoModel": "modeling.Model"}, "custom_ops": "ops.so"}
    modules = [{"type": "modeling.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_P"}]
    folder = replace(TINY, config=config, files={"modules.json": modules}).write(tmp_path / "m")
    for name in ("modeling.py", "__init__.py", "ops.so", "pytorch_model.bin"):
        (folder / name).write_text(code, encoding="utf-8")
    with pytest.raises(ModelCorrupt):  # 1_P is not there, and x.Pooling tells nothing
        opened(replace(TINY, files={"1_P/config.json": {}}).write(folder)).load()
    (folder / "1_P" / "config.json").write_text('{"pooling_mode": "mean"}', encoding="utf-8")
    assert same(passage(folder), mean(TEXT))
    assert not marker.exists()


@pytest.mark.parametrize("name", ["/etc/x.onnx", "../x.onnx", "model.bin", "a\\b.onnx", ""])
def test_a_models_file_is_one_of_its_folder(tmp_path, name):
    file = tmp_path / "config.toml"
    file.write_text(f"[embedding]\nmodel_file = '{name}'\n", encoding="utf-8")
    reading = read_config(Path(file), environ={"HOME": str(tmp_path)})
    assert any("model_file" in str(problem) for problem in reading.problems)
