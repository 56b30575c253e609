"""The indexing thread: it follows the files, hands over, survives what fails, and says so."""

import os
import signal
import time

import pytest

from ragdocs.errors import IndexCorrupt
from ragdocs.indexing import service as service_module
from ragdocs.indexing import watcher
from ragdocs.indexing.service import IndexService, Role, ServiceParts
from ragdocs.indexing.watcher import WatchMode
from ragdocs.search.responses import Readiness
from ragdocs.store.integrity import StoreState, seal
from ragdocs.store.lock import watching, write_lock
from tests.support.indexes import write
from tests.support.machine import until
from tests.support.program import ServedProcess, ask, paths, served, started

TAKEN_OVER_SECONDS = 15
HEALED_SECONDS = 45
"""Three times what is promised, as in `test_storms`: other tests run beside these."""


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    write(folder, "dawn.md", "# Dawn\n\nThe lark sings at dawn.\n")
    write(folder, "dusk.md", "# Dusk\n\nBats come out at dusk.\n")
    return folder


def assert_finds(app, query, *expected):
    """Soon, if not at once."""
    assert until(lambda: paths(ask(app, query))[: len(expected)] == list(expected))


def is_ready(app):
    return ask(app, "lark").index.state is Readiness.READY


def until_served(other: ServedProcess) -> None:
    other.ask("lark")  # the start of a process is not what is waited for
    until(lambda: other.ask("lark")["readiness"] == "ready")


def test_it_follows_edits_new_files_and_deletions(apps, docs, index):
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    write(docs, "noon.md", "# Noon\n\nLizards bask.\n")
    assert_finds(app, "lizards", "noon.md")
    write(docs, "noon.md", "# Noon\n\nSnakes bask.\n")
    until(lambda: any("Snakes" in result.text for result in ask(app, "bask").results[:1]))
    (docs / "noon.md").rename(docs / "midday.md")
    assert_finds(app, "snakes", "midday.md")
    (docs / "midday.md").unlink()
    until(lambda: "midday.md" not in paths(ask(app, "snakes")))
    state = until(lambda: app.service.state if app.service.state.progress is None else None)
    assert (state.role, state.watch, state.is_alive) == (Role.WATCHING, WatchMode.WATCHING, True)
    assert state.last_scan
    assert not state.error


def test_a_second_one_stands_by_follows_and_takes_over(apps, docs, index):
    first = started(apps, docs, index)
    until(lambda: first.service.state.role is Role.WATCHING)
    second = started(apps, docs, index)
    until(lambda: second.service.state.role is Role.STANDBY)
    until(lambda: is_ready(second))
    write(docs, "noon.md", "# Noon\n\nLizards bask.\n")
    assert_finds(second, "lizards", "noon.md")
    first.close()
    write(docs, "night.md", "# Night\n\nOwls hunt.\n")
    until(lambda: second.service.state.role is Role.WATCHING, TAKEN_OVER_SECONDS)
    assert_finds(second, "owls", "night.md")


def test_it_takes_over_from_a_process_that_was_killed(apps, docs, index):
    with ServedProcess(docs, index) as other:
        until_served(other)
        app = started(apps, docs, index)
        until(lambda: app.service.state.role is Role.STANDBY)
        holder = watching(index)
        assert holder
        assert holder.pid == other.process.pid
        other.kill()
    until(lambda: app.service.state.role is Role.WATCHING, TAKEN_OVER_SECONDS)
    write(docs, "night.md", "# Night\n\nOwls hunt.\n")
    assert_finds(app, "owls", "night.md")


def test_one_that_is_stopped_and_keeps_its_lock_is_not_relied_on(apps, docs, index, monkeypatch):
    monkeypatch.setattr(service_module, "SILENT_SECONDS", 2.0)
    with ServedProcess(docs, index) as other:
        until_served(other)
        app = started(apps, docs, index)
        until(lambda: app.service.state.role is Role.STANDBY and is_ready(app))
        os.kill(other.process.pid, signal.SIGSTOP)
        write(docs, "night.md", "# Night\n\nOwls hunt.\n")
        assert_finds(app, "owls", "night.md")
        assert app.service.state.role is Role.STANDBY


def test_a_folder_that_is_away_is_said_in_every_answer(apps, docs, index):
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    second = started(apps, docs, index)
    until(lambda: is_ready(second))
    away = docs.rename(docs.with_name("away"))
    for one in (app, second):
        # All files may be looked at first, which is said as well.
        until(lambda one=one: ask(one, "lark").index.state is Readiness.DEGRADED)
        response = ask(one, "lark")
        assert response.index.complete is False
        assert "docs" in response.index.in_words()
        assert paths(response)[0] == "dawn.md"
    away.rename(docs)
    until(lambda: is_ready(app) and is_ready(second))


def test_the_watching_process_reports_its_mode(apps, docs, index):
    started(apps, docs, index)
    holder = until(lambda: (found := watching(index)) and "last_scan" in found.says and found)
    assert holder.pid == os.getpid()
    said = until(lambda: (now := watching(index)) and now.says["activity"] == "idle" and now.says)
    assert said["mode"] == "watching"
    assert said["last_scan"]


def test_a_write_error_is_reported_and_recovers_automatically(apps, docs, index):
    index.write_text("in the way", encoding="utf-8")
    app = started(apps, docs, index)
    # While it tries again, it is starting, and the error is still said.
    assert until(lambda: (now := app.service.state).role is Role.FAILING and now).error
    response = ask(app, "lark")
    assert response.index.state is Readiness.UNAVAILABLE
    assert response.index.reason
    index.unlink()
    assert_finds(app, "lark", "dawn.md")
    assert until(lambda: not app.service.state.error)


def test_a_store_damaged_while_in_use_is_noticed_and_rebuilt(apps, docs, index):
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    store = index / "store.db"
    with write_lock(index, timeout=60):  # it is not made anew before it was asked
        (index / "damaged").write_bytes(b"\0" * store.stat().st_size)
        for side in ("store.db-wal", "store.db-shm"):
            (index / side).unlink(missing_ok=True)
        (index / "damaged").rename(store)
        response = ask(app, "lark")
    assert response.index.state is Readiness.UNAVAILABLE
    assert "damaged" in response.index.reason
    until(lambda: ask(app, "lark").index.complete, HEALED_SECONDS)
    assert paths(ask(app, "lark"))[0] == "dawn.md"


def test_an_older_copy_of_the_store_is_brought_up_to_date(apps, docs, index):
    with served(docs, index) as app:
        app.service.start()
        until(lambda: is_ready(app))
    old = (index / "store.db").read_bytes()
    app = started(apps, docs, index)
    write(docs, "noon.md", "# Noon\n\nLizards bask.\n")
    assert_finds(app, "lizards", "noon.md")
    until(lambda: is_ready(app))
    (index / "old").write_bytes(old)
    for side in ("store.db-wal", "store.db-shm"):
        (index / side).unlink(missing_ok=True)
    (index / "old").rename(index / "store.db")
    assert_finds(app, "lizards", "noon.md")


def test_a_deleted_index_directory_is_created_again(apps, docs, index):
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    index.rename(index.with_name("gone"))
    assert_finds(app, "lark", "dawn.md")
    until(lambda: app.service.state.role is Role.WATCHING and (index / "store.db").exists())
    write(docs, "noon.md", "# Noon\n\nLizards bask.\n")
    assert_finds(app, "lizards", "noon.md")


def test_a_suspicion_of_a_reader_leads_to_a_deep_check(apps, docs, index):
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    before = app.service.state.last_scan
    app.service.report(StoreState.after(IndexCorrupt("a page is damaged")))
    until(lambda: app.service.state.last_scan != before)
    assert_finds(app, "lark", "dawn.md")


def test_the_one_that_started_first_keeps_a_folder_that_was_named(apps, docs, index):
    first = started(apps, docs, index)
    until(lambda: is_ready(first))
    second = started(apps, docs, index, search={"stemmer": "german"})
    state = until(lambda: second.service.state.role is Role.STOOD_DOWN and second.service.state)
    assert 'search.stemmer: "english" there, "german" here' in state.error
    write(docs, "noon.md", "# Noon\n\nLizards are basking.\n")
    for app in (first, second):
        assert_finds(app, "bask", "noon.md")  # by the stored stemmer, whoever asks
    assert first.service.state.role is Role.WATCHING
    assert ask(first, "lark").index.state is Readiness.READY
    told = ask(second, "lark").index
    assert (told.state, told.complete) == (Readiness.DEGRADED, False)
    assert 'search.stemmer: "english" there, "german" here' in told.reason


def test_a_rebuild_takes_a_named_folder_over_and_gives_it_back(apps, docs, index):
    first = started(apps, docs, index)
    until(lambda: is_ready(first))
    with served(docs, index, search={"stemmer": "german"}) as other, other.manager() as manager:
        assert manager.update(rebuild=True).taken_over
        manager.fill()
    until(lambda: first.service.state.role is Role.STOOD_DOWN)
    assert ask(first, "lark").index.state is Readiness.DEGRADED
    assert paths(ask(first, "lark"))[:1] == ["dawn.md"]
    with served(docs, index) as same, same.manager() as manager:
        manager.update(rebuild=True)
    until(lambda: first.service.state.role is Role.WATCHING)
    until(lambda: is_ready(first))


def test_an_index_of_others_that_is_damaged_is_left_to_them(apps, docs, index):
    with served(docs, index) as first, first.manager() as manager:
        manager.update()
    second = started(apps, docs, index, search={"stemmer": "german"})
    until(lambda: second.service.state.role is Role.STOOD_DOWN)
    damaged = b"not a database at all" * 100
    (index / "store.db").write_bytes(damaged)
    until(lambda: second.service.state.role is Role.FAILING)
    assert (index / "store.db").read_bytes() == damaged


def test_without_watching_files_are_read_once(apps, docs, index):
    app = started(apps, docs, index, indexing={"watch": False})
    until(lambda: is_ready(app))
    assert until(lambda: app.service.state.role is Role.UNWATCHED)
    assert watching(index) is None


def test_a_model_that_fails_is_said_and_words_go_on(apps, docs, index):
    app = apps(served(docs, index))
    app.embedder.is_broken = True
    app.service.start()
    assert_finds(app, "lark", "dawn.md")
    assert until(lambda: "broken" in app.service.state.trouble)
    state = ask(app, "lark").index
    assert (state.state, state.complete) == (Readiness.DEGRADED, False)
    assert "broken" in state.in_words()


class _Fatal(BaseException):
    """What no one is expected to catch."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_seen_and_started_again(docs, index):
    deaths = []

    def die_once(_):
        if not deaths:
            deaths.append(time.monotonic())
            raise _Fatal

    with served(docs, index) as app:
        parts = ServiceParts(
            directory=index,
            make_manager=app.manager,
            make_watcher=None,
            follow=die_once,
        )
        service = IndexService(parts)
        service.start()
        until(lambda: deaths)
        until(lambda: service.state.restarts == 1)
        until(lambda: service.state.is_alive and service.state.role is Role.UNWATCHED)
        assert service.stop(60)
        assert service.state.role is Role.ENDED


def test_a_process_ends_with_its_input_and_leaves_no_lock(docs, index):
    with ServedProcess(docs, index) as other:
        until_served(other)
        assert other.end() == 0
    assert watching(index) is None


def test_it_ends_at_once_though_it_waits_for_changes(apps, docs, index, monkeypatch):
    """It looked up once a second: under load, more than a second after it was told to end."""
    monkeypatch.setattr(service_module, "TICK_SECONDS", 3600.0)
    monkeypatch.setattr(watcher, "CHECK_SECONDS", 3600.0)
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    assert app.service.stop(60)


def test_a_problem_found_by_a_reader_is_reported_in_the_next_answer(apps, docs, index, monkeypatch):
    """What is related was told from an older copy, and the next answer knew nothing of it."""
    app = started(apps, docs, index)
    until(lambda: is_ready(app))
    monkeypatch.setattr(service_module, "TICK_SECONDS", 3600.0)
    monkeypatch.setattr(watcher, "CHECK_SECONDS", 3600.0)
    until(lambda: app.service.state.role is Role.WATCHING)
    os.utime(index / "store.db")
    seal(index, app.reader.position())  # a look of the library's; the next one finds it sound
    assert not ask(app, "lark").index.complete
