"""`models fetch` against a small Hub on this machine, and the model used without it afterwards."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ragdocs.embedding.hub import find_folder
from tests.support.http_servers import COMMIT, HubServer
from tests.support.machine import trust_files
from tests.support.processes import environment, run_ragdocs

NAME = "tiny/e5-words"
WEIGHTS = "model.safetensors"
HUB_CACHE = "home/.cache/huggingface/hub"


@pytest.fixture
def hub(models, tmp_path):
    folder = shutil.copytree(models / "a", tmp_path / "served")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"large, and of no use here")
    with HubServer(NAME, folder) as running:
        yield running


def with_hub(hub):
    place = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1"}
    return environment(without=("HF_HUB_OFFLINE",), **place)


def ragdocs(*words, hub, code=0):
    return run_ragdocs(*words, code=code, env=with_hub(hub))


def stopped_by(number, hub):
    """What a `models fetch` says that gets a signal amid the weights, and its exit status."""
    hub.stops_in = WEIGHTS
    with subprocess.Popen(
        [sys.executable, "-m", "ragdocs", "models", "fetch", NAME],
        env=with_hub(hub),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # A program that was started in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert hub.is_stopped.wait(60)
        began = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    hub.stops_in = ""
    assert "Traceback" not in said
    assert time.monotonic() - began < 30
    return said, process.returncode


def use_it(docs):
    (docs.parent / ".ragdocs.toml").write_text(
        f'[embedding]\nprovider = "huggingface"\nmodel = "{NAME}"\nlocal_files_only = true\n'
        '[indexing]\ndocuments_path = "docs"\n',
        encoding="utf-8",
    )
    trust_files(docs.parent)


def is_fetched(hub):
    """As the list of models says."""
    done = ragdocs("models", "--json", hub=hub, code=None)
    told = json.loads(done.stdout)
    assert (done.returncode == 0) == (not told["embedding"]["problem"]) == (NAME in told["fetched"])
    return done.returncode == 0


def test_a_fetched_model_is_listed_and_used_without_the_hub(docs, hub):
    use_it(docs)
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
    assert "tiny/nothing is not on the Hub" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_of_an_interrupted_download_nothing_is_used_and_the_next_goes_on(docs, hub, number):
    use_it(docs)
    said, status = stopped_by(number, hub)
    if number == signal.SIGINT:
        assert "this download is not used" in said
        assert status == 130
    assert f"of 8: {WEIGHTS}" in said
    assert not is_fetched(hub)
    hub.asked.clear()
    ragdocs("models", "fetch", NAME, hub=hub)
    assert any(path.endswith(WEIGHTS) for path in hub.asked)
    assert not any(path.endswith("/config.json") for path in hub.asked)  # it had come before
    assert is_fetched(hub)
    assert not list(docs.parent.rglob("*.incomplete"))


def test_a_connection_that_breaks_is_one_error_and_the_next_attempt_goes_on(docs, hub):
    use_it(docs)
    hub.stops_in, hub.cuts = WEIGHTS, True
    done = ragdocs("models", "fetch", NAME, hub=hub, code=1)
    assert f"the download of {WEIGHTS} failed" in done.stderr
    assert f"ragdocs models fetch {NAME}" in done.stderr
    assert not is_fetched(hub)
    hub.stops_in = ""
    ragdocs("models", "fetch", NAME, hub=hub)
    assert is_fetched(hub)


def test_an_interrupted_update_leaves_the_model_before_in_use(docs, hub):
    use_it(docs)
    ragdocs("models", "fetch", NAME, hub=hub)
    hub.commit = "f" * 40
    (hub.folder / WEIGHTS).write_bytes((hub.folder / WEIGHTS).read_bytes()[::-1])
    stopped_by(signal.SIGKILL, hub)
    assert is_fetched(hub)
    assert find_folder(NAME, docs.parent / HUB_CACHE).name == COMMIT
    ragdocs("models", "fetch", NAME, hub=hub)
    assert find_folder(NAME, docs.parent / HUB_CACHE).name == hub.commit


def test_what_another_program_has_fetched_by_half_is_not_used(docs, hub, models):
    use_it(docs)
    cache = docs.parent / HUB_CACHE / f"models--{NAME.replace('/', '--')}"
    snapshot = cache / "snapshots" / COMMIT
    shutil.copytree(models / "a", snapshot, ignore=shutil.ignore_patterns(WEIGHTS))
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    assert not is_fetched(hub)
    shards = {"weight_map": {"x": "model-1.safetensors", "y": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(shards), encoding="utf-8")
    shutil.copy(models / "a" / WEIGHTS, snapshot / "model-1.safetensors")
    assert not is_fetched(hub)
    shutil.copy(models / "a" / WEIGHTS, snapshot / "model-2.safetensors")
    assert is_fetched(hub)
