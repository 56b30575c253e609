"""`status` and answers are one truth, in every condition: a server's, and a command's beside it."""

import os
import signal

import pytest
from click.testing import CliRunner

from ragdocs.app import App
from ragdocs.cli.main import main
from ragdocs.diagnosis.collector import collect_status
from ragdocs.indexing.service import Role
from ragdocs.library.requests import ListRequest
from ragdocs.mcp_server.host import ServedApp
from ragdocs.mcp_server.library_tools import StatusArguments, index_status
from ragdocs.search.responses import Readiness
from ragdocs.store import lock
from ragdocs.store.lock import try_watch_lock, watching
from tests.support.indexes import Bench, holding, write
from tests.support.machine import bound_by_permissions, until
from tests.support.models import CountingEmbedder
from tests.support.program import STATUS, ServedProcess, ask, paths, served, started
from tests.support.stores import run_sql
from tests.support.systems.needs import resource

READY, BUILDING = Readiness.READY, Readiness.BUILDING
DEGRADED, UNAVAILABLE = Readiness.DEGRADED, Readiness.UNAVAILABLE
PATIENCE = 60.0


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    write(folder, "dawn.md", "# Dawn\n\nThe lark sings at dawn.\n")
    return folder


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def views(app: App) -> dict[str, Readiness]:
    """What each way of asking says at this moment."""
    service = app.service.state if "service" in vars(app) else None
    return {
        "status": collect_status(app, service).state,
        "state": app.index_state().state,
        "answer": ask(app, "lark").index.state,
    }


def all_say(expected: Readiness, *apps: App):
    said = [views(app) for app in apps]
    return {one for view in said for one in view.values()} == {expected} or (expected, said)


def assert_agree(expected: Readiness, *apps: App) -> None:
    until(lambda: all_say(expected, *apps) is True, PATIENCE)


def test_ready(apps, docs, index):
    server = started(apps, docs, index)
    second = started(apps, docs, index)
    assert_agree(READY, server, second, apps(served(docs, index)))


def test_vectors_that_are_to_come(bench):
    bench.build(vectors=False)
    with bench.app() as app:
        assert_agree(BUILDING, app)


def test_an_index_that_is_only_just_begun(bench):
    with bench.app() as app:
        assert_agree(UNAVAILABLE, app)
        with try_watch_lock(bench.index) as held:
            held.say({"mode": "watching"})
            assert_agree(BUILDING, app)
            held.say({"mode": "watching", "error": "no room"})
            assert_agree(UNAVAILABLE, app)


def test_the_status_for_a_model_says_once_that_it_is_being_built(bench):
    bench.build(vectors=False)
    with bench.app() as app:
        said = index_status(ServedApp(app), StatusArguments()).text
    assert said.count("building") == 1


def test_files_that_are_being_compared(bench):
    bench.build()
    with bench.app() as app, try_watch_lock(bench.index) as held:
        held.say({"last_scan": ""})
        assert_agree(BUILDING, app)
        held.say({"last_scan": "2026-01-01T00:00:00+00:00"})
        assert_agree(READY, app)


def test_failed_indexing_is_reported_everywhere_and_recovers(apps, docs, index):
    """The server's disk is full, so to speak: its files must not grow."""
    with ServedProcess(docs, index) as server:
        until(lambda: server.ask("lark")["readiness"] == "ready", PATIENCE)
        command = apps(served(docs, index))
        assert_agree(READY, command)
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (8192, hard))
        write(docs, "noon.md", "# Noon\n\n" + "Lizards bask in the sun.\n\n" * 500)
        answer = until(lambda: (now := server.ask("lark"))["error"] and now, PATIENCE)
        for _ in range(20):  # also while it tries again
            assert answer["readiness"] == "degraded", answer
            assert answer["reason"]
            assert answer["paths"][0] == "dawn.md"
            assert server.ask(STATUS)["state"] == "degraded"
            assert all_say(DEGRADED, command) is True
            answer = server.ask("lark")
        assert collect_status(command).watcher.trouble
        # Another server does not rely on it, and is in step.
        healthy = started(apps, docs, index)
        until(lambda: paths(ask(healthy, "lizards"))[:1] == ["noon.md"], PATIENCE)
        assert healthy.service.state.role is Role.STANDBY
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(lambda: server.ask("lark")["readiness"] == "ready", PATIENCE)
        assert server.ask(STATUS)["state"] == "ready"
        assert_agree(READY, command, healthy)


def test_one_that_failed_leaves_no_lock(apps, docs, index):
    """Its store is someone else's database, which is never emptied."""
    index.mkdir()
    run_sql(index, "CREATE TABLE theirs (x)")
    server = started(apps, docs, index)
    until(lambda: server.service.state.role is Role.FAILING)
    assert_agree(UNAVAILABLE, server, apps(served(docs, index)))
    server.close()
    until(lambda: watching(index) is None)  # on a busy machine its thread outlives it a little


def test_stood_down(apps, docs, index):
    first = started(apps, docs, index)
    assert_agree(READY, first)
    second = started(apps, docs, index, search={"stemmer": "german"})
    until(lambda: second.service.state.role is Role.STOOD_DOWN)
    assert_agree(DEGRADED, second, apps(served(docs, index, search={"stemmer": "german"})))
    assert_agree(READY, first)


def test_a_folder_that_is_away_with_servers_and_without(apps, docs, index):
    with served(docs, index) as server:
        server.service.start()
        second = started(apps, docs, index)
        command = apps(served(docs, index))
        assert_agree(READY, server, second, command)
        away = docs.rename(docs.with_name("away"))
        assert_agree(DEGRADED, server, second, command)
        assert "the folder of docs is missing" in ask(command, "lark").index.in_words()
        assert "the folder of docs is missing" in collect_status(command).summary
        second.close()
    until(lambda: watching(index) is None)  # on a busy machine its thread outlives it a little
    assert_agree(DEGRADED, command)
    away.rename(docs)
    assert_agree(READY, command)


def test_a_model_that_fails_while_vectors_are_to_come(apps, docs, index):
    server = apps(served(docs, index))
    server.embedder.is_broken = True
    server.service.start()
    # Before the other one can: the model of that one is well, and would make the vectors.
    until(lambda: server.service.state.role is Role.WATCHING, PATIENCE)
    second = started(apps, docs, index)
    assert_agree(DEGRADED, server, second, apps(served(docs, index)))


def test_a_watcher_that_is_stopped_is_no_reason_to_doubt_but_said(bench, monkeypatch):
    bench.build()
    with holding(bench, "try_watch_lock") as pid, bench.app() as app:
        assert_agree(BUILDING, app)
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr("ragdocs.diagnosis.probes.SILENT_SECONDS", 0.0)
        monkeypatch.setattr(lock, "SILENT_SECONDS", 0.0)
        assert_agree(READY, app)
        (note,) = collect_status(app).notes
        os.kill(pid, signal.SIGCONT)
    assert f"process {pid}" in note
    assert "does not respond" in note


@pytest.mark.parametrize("damage", ["noise", "cut", "meta", "tables", "folders", "not ours"])
def test_a_store_that_cannot_be_used(bench, damage):
    bench.build()
    raw = bench.store.read_bytes()
    match damage:
        case "noise":
            bench.store.write_bytes(b"noise" * (len(raw) // 5))
        case "cut":
            bench.store.write_bytes(raw[:5000])
        case "meta":
            run_sql(bench.index, "UPDATE meta SET generation = 99")
        case "tables":
            run_sql(bench.index, "DELETE FROM stored_indices")
        case "not ours":
            bench.store.unlink()
            run_sql(bench.index, "CREATE TABLE theirs (x)")
        case _:
            pass
    if damage == "folders":
        bench.docs.rename(bench.base / "moved")
        bench.docs = bench.base / "moved"
    with bench.app(CountingEmbedder()) as app:
        assert_agree(UNAVAILABLE, app)


def test_an_index_directory_that_is_not_a_directory(bench):
    bench.index.write_text("in the way", encoding="utf-8")
    with bench.app() as app:
        assert_agree(UNAVAILABLE, app)


def test_an_index_directory_that_must_not_be_read(bench):
    bench.build()
    bench.index.chmod(0)
    try:
        with bound_by_permissions(), bench.app() as app:
            assert_agree(UNAVAILABLE, app)
            summary = collect_status(app).summary
            assert "Permission denied" in summary
            assert "ragdocs doctor" in summary
            place = ["--docs", str(bench.docs), "--index", str(bench.index)]
            told = CliRunner().invoke(main, ["status", *place])
        assert told.exit_code == 1
        assert "ragdocs doctor" in told.stdout
    finally:
        bench.index.chmod(0o700)


def test_an_index_that_another_program_made_says_which_settings_differ(bench):
    bench.build()
    with bench.app(chunking={"max_leaf_chars": 900}) as app:
        answer = ask(app, "tomatoes")
        assert paths(answer)[:1] == ["garden.md"]
        assert app.library.list(ListRequest()).documents
        for said in (answer.index.reason, answer.index.in_words(), collect_status(app).summary):
            assert "chunking.max_leaf_chars: 1000 there, 900 here" in said
            assert "`ragdocs rebuild-index` rebuilds it" in said
            assert "--index" in said


def test_meaning_is_not_searched_by_another_model_than_the_stored_one(bench):
    bench.build()
    model = CountingEmbedder("another@1")
    with bench.app(model, embedding={"passage_prefix": "text: "}) as app:
        answer = ask(app, "tomatoes")
        assert_agree(DEGRADED, app)
    assert "search by meaning is off" in answer.index.reason
    assert paths(answer)[:1] == ["garden.md"]
    assert model.texts == []


def test_an_index_of_other_folders_is_not_served(bench):
    bench.build()
    elsewhere = bench.base / "elsewhere"
    write(elsewhere, "x.md", "# X\n\nSun.\n")
    known = bench.docs
    bench.docs = elsewhere
    with bench.app() as app:
        answer = ask(app, "sun")
    assert paths(answer) == []
    assert str(known) in answer.index.reason
    assert str(elsewhere) in answer.index.reason


@pytest.mark.parametrize("engine", ["whoosh", "fts5"])
def test_the_words_of_an_index_that_another_keyword_engine_keeps(bench, engine):
    """The one that reads writes nothing beside the store."""
    other = {"whoosh": "fts5", "fts5": "whoosh"}[engine]
    bench.build(search={"keyword_engine": engine})
    before = sorted(bench.index.rglob("*"))
    with bench.app(search={"keyword_engine": other}) as app:
        answer = ask(app, "tomatoes")
    assert paths(answer)[:1] == ["garden.md"]
    assert answer.index.state is DEGRADED
    left = {path for path in bench.index.rglob("*") if not path.name.startswith("store.db-")}
    assert left <= set(before)


def test_only_a_rebuild_takes_an_index_from_a_running_process_and_says_so(bench):
    bench.build()
    write(bench.base, "other.toml", "[chunking]\nmax_leaf_chars = 900\n")
    place = ["--docs", str(bench.docs), "--index", str(bench.index)]
    others = ["--config", str(bench.base / "other.toml")]
    with holding(bench, "try_watch_lock") as pid:
        updated = CliRunner().invoke(main, ["update", "--no-vectors", *place, *others])
        asked = CliRunner().invoke(main, ["query", "tomatoes", *place, *others])
        taken = CliRunner().invoke(main, ["rebuild-index", "--no-vectors", *place, *others])
    again = CliRunner().invoke(main, ["update", "--no-vectors", *place, *others])
    assert (updated.exit_code, taken.exit_code, again.exit_code) == (3, 0, 0)
    assert "chunking.max_leaf_chars: 1000 there, 900 here" in updated.stderr
    assert "garden.md" in asked.stdout
    assert "was rebuilt" in taken.stderr
    assert f"Process {pid} was updating it with the other settings" in taken.stderr
    assert "kept it" not in again.stderr
