"""What is refused before a library sees a model: without those libraries."""

import json
import os
import sys
from pathlib import Path

import pytest

from ragdocs.embedding.foreign_code import (
    check_arguments,
    check_folder,
    importable_paths,
    without_working_folder,
)
from ragdocs.errors import ConfigError, ModelCorrupt, ModelRefused
from tests.support.model_files import ANY_MODEL, WITH_MODULES, HostileMaker, edit, pickled

MODULES = [
    ("", "sentence_transformers.base.modules.transformer.Transformer"),
    ("1_Pooling", "sentence_transformers.models.Pooling"),
    ("2_Dense", "sentence_transformers.models.Dense"),
    ("3_Normalize", "sentence_transformers.models.Normalize"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As an honest model's is, with what often lies beside it."""
    made = tmp_path / "model"
    for path, _ in MODULES:
        (made / path).mkdir(parents=True, exist_ok=True)
        (made / path / "model.safetensors").write_bytes(b"")
    listed = [{"idx": n, "path": path, "type": kind} for n, (path, kind) in enumerate(MODULES)]
    (made / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    config = {"model_type": "bert", "attn_implementation": "sdpa", "hidden_act": "gelu"}
    edit(made / "config.json", lambda found: found.update(config))
    activation = {"activation_function": "torch.nn.modules.activation.Tanh"}
    edit(made / "2_Dense" / "config.json", lambda found: found.update(activation))
    edit(
        made / "tokenizer_config.json", lambda found: found.update(tokenizer_class="BertTokenizer")
    )
    words = {"auto_map": 1, "trust_remote_code": 2}
    edit(made / "vocab.json", lambda found: found.update(words))
    (made / "pytorch_model.bin").write_bytes(b"beside safetensors, never read")
    (made / "training_args.bin").write_bytes(b"never read")
    (made / "openvino").mkdir()
    (made / "openvino" / "openvino_model.bin").write_bytes(b"of another program")
    return made


def test_the_checks_are_survived_by_an_honest_folder(folder: Path):
    check_folder(folder)
    check_arguments({"model_name": str(folder), "trust_remote_code": False, "cache_folder": "/"})


@pytest.mark.parametrize("make", [*ANY_MODEL, *WITH_MODULES[:3], WITH_MODULES[5]])
def test_whatever_asks_for_code_is_refused_and_named(folder: Path, make: HostileMaker):
    for other in (folder / "pytorch_model.bin", folder / "training_args.bin"):
        other.unlink()
    named = folder / make(folder, folder.parent / "marker")
    with pytest.raises(ModelRefused) as caught:
        check_folder(folder)
    assert str(caught.value).startswith(f"{named} ")


@pytest.mark.parametrize("suffix", ["bin", "pt", "pth", "ckpt", "pkl", "PKL", "pickle", "joblib"])
def test_a_pickle_without_safetensors_beside_it_is_refused(folder: Path, suffix: str):
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "other.safetensors")
    pickle = folder / "2_Dense" / f"model.{suffix}"
    pickle.write_bytes(pickled(folder / "marker"))
    with pytest.raises(ModelRefused) as caught:
        check_folder(folder)
    assert str(pickle) in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[" * 100_000, '{"a": ' * 150 + "1" + "}" * 150])
def test_settings_that_cannot_be_read_are_damage(folder: Path, content: str):
    (folder / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        check_folder(folder)


def test_settings_larger_than_any_are_not_read(folder: Path):
    os.truncate(folder / "config.json", 10**12)  # sparse
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        check_folder(folder)


@pytest.mark.parametrize("path", ["../outside", "/etc", "a/../../b", "..\\outside", "C:\\models"])
def test_a_module_stays_in_its_folder(folder: Path, path: str):
    listed = [{"idx": 0, "path": path, "type": MODULES[0][1]}]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    with pytest.raises(ModelRefused, match=r"modules\.json points to"):
        check_folder(folder)


@pytest.mark.parametrize(
    "kind",
    [
        "sentence_transformers.util.misc.import_from_string",
        "sentence_transformers.models.Dense.__init__",
        "sentence_transformersx.models.Dense",
        "Dense",
        "",
        None,
        7,
    ],
)
def test_only_known_modules_are_imported(folder: Path, kind: object):
    listed = [{"idx": 0, "path": "", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    with pytest.raises(ModelRefused, match=r"modules\.json names the class"):
        check_folder(folder)


@pytest.mark.parametrize("value", [True, 1, "true", "YES", "on", ["x"], {"a": False}, 0.5])
@pytest.mark.parametrize("key", ["trust_remote_code", "Trust-Remote-Code", "trustRemoteCode"])
def test_trust_in_any_spelling_is_refused(key: str, value: object):
    with pytest.raises(ConfigError, match="is never run"):
        check_arguments({"model_kwargs": [{"inner": {key: value}}]})


@pytest.mark.parametrize("value", [False, None, 0, "false", "No", ""])
def test_the_checks_are_survived_by_no_in_any_spelling(value: object):
    check_arguments({"trust_remote_code": value, "use_safetensors": None})


def test_the_working_folder_is_no_place_to_import_from(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    below = str(tmp_path / "venv" / "lib")
    given = ["", ".", str(tmp_path), str(tmp_path / "link"), below, "/usr/lib"]
    assert importable_paths(given) == [below, "/usr/lib"]
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with without_working_folder():
        assert "" not in sys.path
    assert sys.path[0] == ""
