"""sentence-transformers models as embedders: tiny ones, real libraries, no network."""

import json
import shutil
import threading
import time

import numpy as np
import pytest

from ragdocs.config.settings import EmbeddingConfig
from ragdocs.embedding.base import Prefixes, known_prefixes
from ragdocs.embedding.hub import declared_dimension
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ModelCorrupt, ModelMissing, ModelRefused

TEXTS = ["tomatoes need sun", "how do i sign in", "boats sink in the storm"]


def embedder(model, **settings):
    return make_embedder(EmbeddingConfig(provider="huggingface", model=str(model), **settings))


def reference(folder, texts):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(texts, prompt="", normalize_embeddings=True, show_progress_bar=False)


def test_vectors_are_those_of_the_library(models):
    made = embedder(models / "a", device="cpu", batch_size=2, threads=1)
    vectors = made.embed_documents(TEXTS)
    assert np.allclose(vectors, reference(models / "a", TEXTS), atol=1e-5)
    assert np.allclose(made.embed_query(TEXTS[1]), vectors[1], atol=1e-5)
    assert (made.counts.texts, made.max_tokens) == (3, 32)


@pytest.mark.parametrize(("name", "dimension"), [("a", 32), ("wide", 48)])
def test_the_dimension_is_the_models_before_it_is_loaded_and_after(models, name, dimension):
    made = embedder(models / name)
    assert (made.dimension, declared_dimension(models / name)) == (dimension, dimension)
    assert made.embed_documents(["sun"]).shape == (1, dimension)
    assert made.dimension == dimension


def test_the_identity_is_the_files_and_the_prefixes(models, tmp_path):
    before = embedder(models / "a").identity
    copied = shutil.copytree(models / "a", tmp_path / "copied")
    assert embedder(copied).identity == before
    others = [embedder(models / "b"), embedder(models / "a", query_prefix="query: ")]
    assert len({before, *(one.identity for one in others)}) == 3
    made = embedder(models / "a")
    made.load()
    assert made.identity == before


def test_prefixes_come_before_texts(models):
    plain = embedder(models / "a")
    made = embedder(models / "a", query_prefix="query : ", passage_prefix="passage : ")
    assert np.allclose(made.embed_query("sun"), plain.embed_query("query : sun"), atol=1e-5)
    (passage,) = made.embed_documents(["sun"])
    assert np.allclose(passage, plain.embed_documents(["passage : sun"])[0], atol=1e-5)
    assert not np.allclose(passage, made.embed_query("sun"), atol=1e-3)


def test_what_the_model_says_of_its_prefixes_counts_before_its_name(models, tmp_path):
    from tests.support.model_files import make_embedding_model

    prompts = {"query": "search query : ", "document": "search document : "}
    folder = make_embedding_model(tmp_path / "e5-tiny", seed=7, prompts=prompts)
    made = embedder(folder)
    assert Prefixes("search query : ", "search document : ").identity in made.identity
    assert (
        Prefixes("query: ", "passage: ").identity
        in embedder(shutil.copytree(models / "a", tmp_path / "e5-small")).identity
    )
    none = embedder(folder, query_prefix="", passage_prefix="")
    plain = reference(folder, ["sun"])[0]
    assert np.allclose(none.embed_query("sun"), plain, atol=1e-5)


def test_a_family_that_llamaindex_knows_is_not_prefixed_against_the_settings(models, tmp_path):
    folder = shutil.copytree(models / "a", tmp_path / "BAAI" / "bge-small-en-v1.5")
    none = embedder(folder, query_prefix="", passage_prefix="")
    assert np.allclose(none.embed_query("sun"), reference(folder, ["sun"])[0], atol=1e-5)
    assert "Represent this sentence" in embedder(folder).identity


def test_llamaindex_says_the_same_of_chinese_bge():
    # Of the English ones it says "question", where the models' own pages say "sentence".
    from llama_index.embeddings.huggingface.utils import get_query_instruct_for_model_name

    name = "BAAI/bge-large-zh-v1.5"
    assert known_prefixes(name).query == get_query_instruct_for_model_name(name)


def test_a_default_prompt_of_the_model_is_not_put_before_ours(tmp_path):
    from tests.support.model_files import make_embedding_model

    folder = make_embedding_model(tmp_path / "tiny", seed=8, prompts={"query": "search query : "})
    file = folder / "config_sentence_transformers.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    none = embedder(folder, query_prefix="", passage_prefix="").embed_documents(["sun"])
    file.write_text(json.dumps({**said, "default_prompt_name": "query"}), encoding="utf-8")
    again = embedder(folder, query_prefix="", passage_prefix="").embed_documents(["sun"])
    assert np.allclose(none, again, atol=1e-6)
    asked = embedder(folder).embed_query("sun")
    assert np.allclose(
        asked, embedder(folder).embed_documents(["search query : sun"])[0], atol=1e-5
    )


def test_a_long_text_is_split_and_its_end_counts(models):
    made = embedder(models / "a")
    start = "tomatoes need sun " * 10
    one, other = made.embed_documents([start + "boats " * 30, start + "storm " * 30])
    assert made.counts.split_texts == 2
    assert made.counts.cut_texts == 0
    assert float(one @ other) < 0.9999
    made.embed_documents(["sun " * 5_000])
    assert made.counts.cut_texts == 1


def test_queries_and_passages_from_several_threads(models):
    made = embedder(models / "a")
    made.load()
    wanted = made.embed_query(TEXTS[0])
    failures = []

    def work(number):
        try:
            for _ in range(5):
                if number % 2:
                    made.embed_documents(TEXTS * 4)
                elif not np.allclose(made.embed_query(TEXTS[0]), wanted, atol=1e-5):
                    failures.append("another vector")
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_a_lone_surrogate_is_no_reason_to_fail(models):
    made = embedder(models / "a")
    assert np.isfinite(made.embed_documents(["sun \ud800", ""])).all()
    assert made.embed_documents([]).shape == (0, 32)


@pytest.mark.parametrize("settings", [{"local_files_only": True}, {}])
def test_a_model_that_is_nowhere_is_one_error_with_three_ways_out(settings, tmp_path):
    made = embedder("nobody/no-such-model", cache_folder=tmp_path, **settings)
    began = time.monotonic()
    with pytest.raises(ModelMissing) as raised:
        made.load()
    assert time.monotonic() - began < 20
    for way in ("ragdocs models fetch nobody/no-such-model", "folder", 'provider = "builtin"'):
        assert way in str(raised.value)
    assert (made.dimension, made.name) == (0, "nobody/no-such-model")


def test_a_folder_without_a_model_and_one_with_a_damaged_one(models, tmp_path):
    with pytest.raises(ModelMissing, match=r"config\.json"):
        embedder(tmp_path / "nothing").load()
    damaged = shutil.copytree(models / "a", tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelCorrupt, match="cannot be loaded"):
        embedder(damaged).load()


def test_a_model_that_wants_its_own_code_to_be_run_is_refused(models, tmp_path):
    folder = shutil.copytree(models / "a", tmp_path / "custom")
    said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    said |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"},
    }
    (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    with pytest.raises(ModelRefused, match="is never run"):
        embedder(folder).load()
    assert not (tmp_path / "ran").exists()


def test_a_device_that_is_not_there_is_named(models):
    with pytest.raises(ModelCorrupt, match='Is there a device "cuda:99"'):
        embedder(models / "a", device="cuda:99").load()
