"""The provider `onnx` through the program: fetched, listed, used, changed, told by `status`."""

import json
from dataclasses import replace

import pytest

from ragdocs import open_index
from ragdocs.app import Assembly
from ragdocs.search.candidates import Strategy
from ragdocs.store.reader import Reader
from tests.support.http_servers import HubServer
from tests.support.machine import trust_files
from tests.support.model_files import DIMENSION, TinyExport
from tests.support.processes import environment, run_ragdocs

NAME = "tiny/multilingual-e5-tiny"
QUANTISED = "onnx/model_quantized.onnx"
TINY = TinyExport(path=QUANTISED, files={"config_sentence_transformers.json": {}})


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A project and its documents, as seen from there; and a home of their own."""
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "access.md").write_text("# Access\n\nreset password\n", encoding="utf-8")
    (project / "docs" / "garden.md").write_text("# Garden\n\ngreen sun\n", encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return project / "docs"


@pytest.fixture
def hub(tmp_path):
    folder = TINY.write(tmp_path / "served")
    replace(TINY, path="onnx/model.onnx").write(folder)
    for name in ("model.safetensors", "pytorch_model.bin", "README.md", "openvino/model.xml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"of no use here")
    with HubServer(NAME, folder) as running:
        yield running


def ragdocs(*words, hub=None, code=0):
    place = {"HF_ENDPOINT": hub.url} if hub else {}
    env = environment(without=("HF_HUB_OFFLINE",), HF_HUB_DISABLE_XET="1", **place)
    return run_ragdocs(*words, code=code, env=env)


def configure(docs, model):
    (docs.parent / ".ragdocs.toml").write_text(
        f'[embedding]\nprovider = "onnx"\nmodel = "{model}"\n[indexing]\ndocuments_path = "docs"\n',
        encoding="utf-8",
    )


def test_one_command_fetches_what_is_needed_and_the_model_is_used_without_the_hub(docs, hub):
    configure(docs, NAME)
    trust_files(docs.parent)
    absent = json.loads(ragdocs("models", "--json", hub=hub, code=1).stdout)
    assert f"ragdocs models fetch {NAME}" in absent["embedding"]["problem"]

    ragdocs("models", "fetch", NAME, hub=hub)

    fetched = {path.partition("/resolve/")[2].partition("/")[2] for path in hub.asked} - {""}
    assert fetched == {
        "config.json",
        "tokenizer.json",
        QUANTISED,
        "1_Pooling/config.json",
        "config_sentence_transformers.json",
    }
    told = json.loads(ragdocs("models", "--json").stdout)
    assert told["embedding"]["problem"] == ""
    assert told["fetched"] == [NAME]
    answer = json.loads(ragdocs("query", "reset password", "--json").stdout)
    assert answer["results"][0]["path"] == "access.md"
    assert answer["index"]["complete"]
    status = json.loads(ragdocs("status", "--json").stdout)
    model = status["model"]
    assert model["name"] == NAME
    assert model["dimension"] == DIMENSION
    assert model["place"] == "model_quantized.onnx"
    assert model["identity"].startswith("onnx:")
    assert "'query: '+'passage: '" in model["identity"]
    doctor = ragdocs("doctor").stdout
    assert f"{NAME}: loaded, {DIMENSION} dimensions" in doctor


def test_fetching_without_any_setting_tells_how_to_use_it(docs, hub):
    done = ragdocs("models", "fetch", NAME, "--for", "onnx", hub=hub)
    assert f'provider = "onnx", model = "{NAME}"' in done.stdout


def test_a_model_without_an_export_is_one_error(docs, hub):
    for file in (hub.folder / "onnx").iterdir():
        file.unlink()
    done = ragdocs("models", "fetch", NAME, "--for", "onnx", hub=hub, code=1)
    assert "has no ONNX export" in done.stderr


def test_an_interrupted_fetch_is_not_used(docs, hub):
    configure(docs, NAME)
    trust_files(docs.parent)
    hub.stops_in, hub.cuts = QUANTISED, True
    done = ragdocs("models", "fetch", NAME, hub=hub, code=1)
    assert f"the download of {QUANTISED} failed" in done.stderr
    ragdocs("models", hub=hub, code=1)
    hub.stops_in = ""
    ragdocs("models", "fetch", NAME, hub=hub)
    ragdocs("models", hub=hub)


def test_a_projects_file_cannot_name_a_model_before_it_is_trusted(docs):
    TINY.write(docs.parent / "model")
    configure(docs, "./model")
    told = json.loads(ragdocs("models", "--json").stdout)
    assert told["embedding"]["provider"] == "builtin"
    trust_files(docs.parent)
    told = json.loads(ragdocs("models", "--json").stdout)
    assert (told["embedding"]["provider"], told["embedding"]["problem"]) == ("onnx", "")
    # Another file in the folder is another model, which nobody has trusted.
    replace(TINY, seed=5).write(docs.parent / "model")
    told = json.loads(ragdocs("models", "--json").stdout)
    assert told["embedding"]["provider"] == "builtin"


def test_check_config_knows_the_settings_and_names_those_without_effect(docs):
    file = docs.parent / "own.toml"
    file.write_text('[embedding]\npooling = "cls"\nmodel_file = "x.onnx"\n', encoding="utf-8")
    said = ragdocs("check-config", "--config", str(file)).stdout
    assert "embedding.pooling" in said
    assert "embedding.model_file" in said
    file.write_text('[embedding]\nprovider = "onnx"\npooling = "middle"\n', encoding="utf-8")
    done = ragdocs("check-config", "--config", str(file), code=2)
    assert "pooling" in done.stdout + done.stderr


def identity_of(index):
    return Assembly(index.config).embedder.identity


def missing_vectors(index):
    with Reader.open(index.directory) as reader, reader.snapshot() as snapshot:
        return snapshot.count_missing_embeddings(identity_of(index))


def test_another_model_embeds_everything_again(docs, tmp_path):
    settings = {"search": {"query_expansion_enabled": False}}
    seen = set()
    for seed in (0, 1):
        folder = replace(TINY, seed=seed).write(tmp_path / "model")
        used = settings | {"embedding": {"provider": "onnx", "model": str(folder)}}
        with open_index(docs, settings=used, update=False) as index:
            before = index.search("reset password")
            assert not any(Strategy.SEMANTIC in one.found_by for one in before.results)
            index.update()
            assert missing_vectors(index) == 0
            after = index.search("reset password").results[0]
            assert after.path == "access.md"
            assert Strategy.SEMANTIC in after.found_by
            seen.add(identity_of(index))
    assert len(seen) == 2
