"""`models fetch` against a small Hub on this machine, and the model used without it afterwards."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.hub_server import HubServer

NAME = "tiny/e5-words"


@pytest.fixture
def hub(models, tmp_path):
    folder = shutil.copytree(models / "a", tmp_path / "served")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"large, and of no use here")
    with HubServer(NAME, folder) as running:
        yield running


def ragdocs(*words, hub, code=0):
    environ = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1"}
    environ.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-m", "ragdocs", *words],
        env=environ,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def test_a_fetched_model_is_listed_and_used_without_the_hub(docs, hub):
    (docs.parent / ".ragdocs.toml").write_text(
        f'[embedding]\nprovider = "huggingface"\nmodel = "{NAME}"\nlocal_files_only = true\n'
        '[indexing]\ndocuments_path = "docs"\n',
        encoding="utf-8",
    )
    missing = json.loads(ragdocs("models", "--json", hub=hub, code=1).stdout)
    assert f"ragdocs models fetch {NAME}" in missing["embedding"]["problem"]
    done = ragdocs("models", "fetch", NAME, hub=hub)
    assert f"{NAME} is in " in done.stdout
    assert not any("onnx" in path for path in hub.asked)
    told = json.loads(ragdocs("models", "--json", hub=hub).stdout)
    assert told["embedding"]["problem"] == ""
    assert told["fetched"] == [NAME]
    hub.asked.clear()
    answer = json.loads(ragdocs("query", "tomatoes need sun", "--json", hub=hub).stdout)
    assert answer["results"][0]["path"] == "garden.md"
    assert answer["index"]["complete"]
    assert hub.asked == []


def test_a_model_that_the_hub_does_not_have(docs, hub):
    done = ragdocs("models", "fetch", "tiny/nothing", hub=hub, code=1)
    assert "tiny/nothing is no model of the Hub" in done.stderr
    assert "Traceback" not in done.stderr
