"""No foreign code from a model's folder: real libraries, folders that would run code if they could.

Each writes a marker as soon as its code runs.
"""

import pickle
import shutil
from pathlib import Path

import pytest

from ragdocs.config.settings import EmbeddingConfig
from ragdocs.embedding.cross_encoder import open_cross_encoder
from ragdocs.embedding.download import fetch_model
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ConfigError, ModelMissing, ModelRefused
from tests.support.http_servers import HubServer
from tests.support.machine import move_home
from tests.support.model_files import ANY_MODEL, WITH_MODULES, HostileMaker, code, pickled
from tests.support.processes import run_code, run_ragdocs

HUGGINGFACE = "llama_index.embeddings.huggingface:HuggingFaceEmbedding"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    move_home(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "marker"


def hostile(models: Path, name: str, make: HostileMaker, marker: Path) -> tuple[Path, Path]:
    folder = shutil.copytree(models / name, marker.parent / "hostile")
    return folder, folder / make(folder, marker)


@pytest.mark.parametrize("make", [*ANY_MODEL, *WITH_MODULES])
def test_an_embedding_model_runs_no_code(models: Path, marker: Path, make: HostileMaker):
    folder, named = hostile(models, "a", make, marker)
    settings = EmbeddingConfig(provider="huggingface", model=str(folder), local_files_only=True)
    with pytest.raises(ModelRefused) as caught:
        make_embedder(settings).embed_documents(["how do i sign in"])
    assert str(named) in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize("make", ANY_MODEL)
def test_a_cross_encoder_runs_no_code(models: Path, marker: Path, make: HostileMaker):
    folder, named = hostile(models, "reader", make, marker)
    with pytest.raises(ModelRefused) as caught:
        open_cross_encoder(str(folder)).score("how do i", ["sign in"])
    assert str(named) in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize("make", [*ANY_MODEL, *WITH_MODULES])
def test_a_class_of_llama_index_is_not_given_such_a_folder(
    models: Path, marker: Path, make: HostileMaker
):
    folder, named = hostile(models, "a", make, marker)
    with pytest.raises(ModelRefused) as caught:
        llama_index(model_name=str(folder)).load()
    assert str(named) in str(caught.value)
    assert not marker.exists()


def llama_index(class_name: str = HUGGINGFACE, **arguments: object):
    return make_embedder(
        EmbeddingConfig(provider="llama-index", class_name=class_name, arguments=arguments)
    )


def test_the_same_class_still_takes_an_honest_folder(models: Path, marker: Path):
    assert llama_index(model_name=str(models / "a"), device="cpu").dimension == 32


@pytest.mark.parametrize(
    "arguments",
    [
        {"trust_remote_code": True},
        {"TRUST_REMOTE_CODE": 1},
        {"trust-remote-code": "true"},
        {"model_kwargs": {"trust_remote_code": "Yes"}},
        {"tokenizer_kwargs": {"Trust Remote Code": True}},
        {"config_kwargs": [{"trustRemoteCode": True}]},
        {"model_kwargs": {"use_safetensors": False}},
        {"model_kwargs": {"weights_only": "no"}},
        {"model_kwargs": {"attn_implementation": "someone/kernel"}},
    ],
)
def test_arguments_that_let_code_in_are_refused_in_any_spelling(arguments: dict[str, object]):
    with pytest.raises(ConfigError, match=r"embedding\.arguments.* never run"):
        llama_index(model_name="x", **arguments)


def test_arguments_that_say_no_are_taken(models: Path, marker: Path):
    made = llama_index(model_name=str(models / "a"), device="cpu", trust_remote_code=False)
    assert made.dimension == 32


def test_no_class_is_imported_from_the_working_folder(marker: Path, monkeypatch):
    (marker.parent / "evil.py").write_text(code(marker), encoding="utf-8")
    beside = marker.parent / "llama_index" / "embeddings"
    beside.mkdir(parents=True)
    (beside / "evil.py").write_text(code(marker), encoding="utf-8")
    for here in ("", str(marker.parent)):
        monkeypatch.syspath_prepend(here)
        for module in ("evil", "llama_index.embeddings.evil"):
            with pytest.raises(ModelMissing, match="cannot be imported"):
                llama_index(f"{module}:Evil").load()
    assert not marker.exists()


def test_a_module_of_the_working_folder_is_not_imported_by_the_program(marker: Path):
    """As `python -m ragdocs` is started in a stranger's folder."""
    (marker.parent / "evil.py").write_text(code(marker), encoding="utf-8")
    (marker.parent / "docs").mkdir()
    (marker.parent / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    settings = marker.parent / "own.toml"
    settings.write_text(
        '[embedding]\nprovider = "llama-index"\nclass_name = "evil:Evil"\n', encoding="utf-8"
    )
    words = ("update", "--docs", "docs", "--config", "own.toml")
    done = run_ragdocs(*words, cwd=marker.parent, code=None)
    assert "evil:Evil cannot be imported" in done.stdout + done.stderr
    assert not marker.exists()


def test_a_model_that_is_only_a_pickle_is_not_fetched(models: Path, marker: Path, monkeypatch):
    folder = shutil.copytree(models / "a", marker.parent / "offered")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickled(marker))
    with HubServer("someone/evil", folder) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        with pytest.raises(ModelRefused, match=r"pytorch_model\.bin"):
            fetch_model("someone/evil", marker.parent / "cache")
        assert not [path for path in hub.asked if path.endswith(".bin")]


# that the attacks are attacks


def test_the_pickle_runs_when_it_is_read(marker: Path):
    pickle.loads(pickled(marker))
    assert marker.exists()


@pytest.mark.parametrize("make", [ANY_MODEL[0], WITH_MODULES[0]])
def test_the_code_runs_where_it_is_trusted(models: Path, marker: Path, make: HostileMaker):
    folder, _ = hostile(models, "a", make, marker)
    program = (
        "import sys\nfrom sentence_transformers import SentenceTransformer\n"
        "SentenceTransformer(sys.argv[1], trust_remote_code=True, local_files_only=True)\n"
    )
    run_code(program, folder, code=None)
    assert marker.exists()
