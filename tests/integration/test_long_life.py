"""A long life: memory that stays, and space that comes back. The long form is `tests/stress`."""

import os
import random
from pathlib import Path

from ragdocs.indexing.manager import IndexManager
from ragdocs.store import stored_index
from ragdocs.store.database import store_path
from ragdocs.store.reader import Reader
from tests.support.indexes import held, settled, setup, tree, write
from tests.support.machine import until
from tests.support.mcp_clients import in_memory
from tests.support.models import CountingEmbedder
from tests.support.processes import python_process, read_line
from tests.support.program import ask, paths, served
from tests.support.stores import run_sql
from tests.support.storms.editor import Editor
from tests.support.storms.soaking import Asker, own_memory
from tests.support.storms.words import Words

NOTES, LEFT = 1000, 50
FREE = 1 << 20
"""May stay free, for what comes next."""

CHILD = """
import sys
from pathlib import Path
from ragdocs.indexing.manager import IndexManager
from ragdocs.store import stored_index as space
from tests.support.indexes import setup, tree
from tests.support.models import CountingEmbedder
space.STEP_BYTES, space.FREE_BYTES, space.FREE_SHARE = 8192, 0, 0.0
docs, index = map(Path, sys.argv[1:])
with IndexManager(setup(index, tree(docs)), CountingEmbedder()) as manager:
    manager.open()
    while manager.shrink_some():
        print("step", flush=True)
    print("done", flush=True)
"""


def file_bytes(index: Path) -> int:
    """Of the store and its log."""
    return sum(file.stat().st_size for file in index.glob("store.db*") if "shm" not in file.name)


def counted(index: Path, sql: str) -> int:
    return run_sql(index, sql)[0][0] or 0


def test_the_store_gives_space_back_after_deletions(tmp_path):
    """And answers meanwhile. What may stay: a megabyte, the vectors of what is gone, the log of
    changes by which others catch up."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    editor = Editor(docs, "space")
    editor.populate(NOTES)
    wrong = []
    with served(docs, index) as app:
        app.service.start()
        until(lambda: app.index_state().complete, 300)
        before = file_bytes(index)
        assert counted(index, "SELECT count(*) FROM chunks") > NOTES
        for path in list(editor.words)[:-LEFT]:
            (docs / path).unlink()
            del editor.words[path]
        left = list(editor.words.items())

        def is_shrunk() -> bool:
            path, word = random.choice(left)
            if set(paths(ask(app, f'"{word}"'))) != {path}:
                wrong.append(path)
            state = app.index_state()
            free = counted(index, "PRAGMA freelist_count") * 4096
            return state.documents == LEFT and state.complete and free <= FREE

        until(is_shrunk, 120)
        until(lambda: file_bytes(index) < before / 2)
        assert wrong == []
    kept = counted(index, "SELECT sum(length(vector) + 100) FROM embeddings")
    kept += counted(index, "SELECT sum(length(changes) + 100) FROM generations")
    with served(docs, tmp_path / "fresh") as app:
        app.service.start()
        until(lambda: app.index_state().complete, 300)
    assert file_bytes(index) <= 1.5 * file_bytes(tmp_path / "fresh") + 1.5 * kept + FREE
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        snapshot.verify(deep=True)
        assert not snapshot.space.is_wasted


def deleted(tmp_path: Path, notes: int, left: int) -> tuple[Path, Path]:
    """A folder of which most is gone, and its index, which has not given space back yet."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    words = Words(random.Random("deleted"))
    for number in range(notes):
        write(docs, f"{number}.md", f"# {words.new()}\n\n{words.sentences(6)}\n")
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled()) as manager:
        manager.update()
        manager.fill()
        for number in range(left, notes):
            (docs / f"{number}.md").unlink()
        manager.update()
    return docs, index


def test_a_kill_while_space_is_given_back_leaves_a_sound_store(tmp_path):
    docs, index = deleted(tmp_path, 120, 10)
    before, rng = held(index), random.Random("kills")
    for _ in range(6):
        with python_process(CHILD, docs, index) as process:
            for _ in range(rng.randint(1, 4)):
                read_line(process)
        assert held(index) == before
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled()) as manager:
        outcome = manager.update()
    assert (outcome.added, outcome.modified, outcome.rebuilt) == (0, 0, None)
    assert held(index) == before


def test_steps_are_no_commits_and_end(tmp_path, monkeypatch):
    reports = []
    docs, index = deleted(tmp_path, 120, 10)
    monkeypatch.setattr(stored_index, "FREE_BYTES", 16384)
    monkeypatch.setattr(stored_index, "STEP_BYTES", 65536)
    before, size = held(index), file_bytes(index)
    with (
        IndexManager(setup(index, tree(docs)), CountingEmbedder()) as manager,
        Reader.open(index, report=reports.append) as reader,
    ):
        manager.open()
        position, steps = reader.position(), 0
        while manager.shrink_some():
            steps += 1
            assert reader.position() == position
            assert steps < 500
        assert not reports
    assert 2 < steps < size / 65536 + 10  # each of them takes all that a step may
    assert held(index) == before
    assert file_bytes(index) < size / 2


def test_the_log_is_put_away_although_someone_read_at_the_end(tmp_path, monkeypatch):
    reports = []
    docs, index = deleted(tmp_path, 120, 10)
    for name in ("FREE_BYTES", "LOG_BYTES"):
        monkeypatch.setattr(stored_index, name, 16384)
    log = store_path(index).with_name("store.db-wal")
    with (
        IndexManager(setup(index, tree(docs)), CountingEmbedder()) as manager,
        Reader.open(index, report=reports.append) as reader,
    ):
        manager.open()
        with reader.snapshot():
            while manager.shrink_some():
                pass
            assert not manager.shrink_some()
            assert log.stat().st_size > stored_index.LOG_BYTES
        manager.shrink_some()
        assert log.stat().st_size == 0
        assert not reports


def test_a_store_that_could_not_be_converted_is_not_stepped_through_for_ever(tmp_path, monkeypatch):
    docs, index = deleted(tmp_path, 60, 10)
    make_unshrinkable(index)
    monkeypatch.setattr(stored_index, "FREE_BYTES", 4096)
    # As on a full disk, on which VACUUM fails.
    monkeypatch.setattr(stored_index, "make_shrinkable", lambda _: None)
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled()) as manager:
        manager.open()
        for number in range(10, 20):
            write(docs, f"{number}.md", f"# Large\n\n{'word ' * 9000}\n")
        manager.update()
        for number in range(10, 20):
            (docs / f"{number}.md").unlink()
        manager.update()
        assert counted(index, "PRAGMA freelist_count") * 4096 > stored_index.FREE_BYTES
        assert not manager.shrink_some()
        with Reader.open(index) as reader, reader.snapshot() as snapshot:
            assert snapshot.space.is_wasted


def make_unshrinkable(index: Path) -> None:
    """As an earlier version made its stores."""
    run_sql(index, "PRAGMA auto_vacuum = NONE", "VACUUM")
    assert counted(index, "PRAGMA auto_vacuum") == 0


def test_a_store_of_an_earlier_version_can_give_space_back_once_it_was_opened(tmp_path):
    docs, index = deleted(tmp_path, 60, 10)
    make_unshrinkable(index)
    before = held(index)
    with IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=settled()) as manager:
        manager.open()
        assert manager.update().rebuilt is None
    assert counted(index, "PRAGMA auto_vacuum") == 2
    assert held(index) == before


def test_distinct_requests_do_not_add_to_memory(tmp_path):
    """Once all is loaded and caches are full. Each query has two hundred words that nobody has
    asked for before; by number, 32,768 of them were kept in each of several caches."""
    editor = Editor(tmp_path / "docs", "memory")
    editor.populate(100)
    asker, words = Asker("memory requests", editor), Words(random.Random("memory"))
    app = served(tmp_path / "docs", tmp_path / "index")
    app.service.start()
    until(lambda: app.index_state().complete)
    with in_memory(app) as server:

        def run(requests: int) -> int:
            for number in range(requests):
                server.call("query_documents", query=" ".join(words.new() for _ in range(199)))
                tool, arguments = asker.next()
                if tool in ("query_documents", "search_with_hypothesis"):
                    server.call(tool, **arguments)
                if number % 20 == 0:
                    editor.edit()
            return own_memory(os.getpid())

        before = run(100)
        after = run(120)
    assert (after - before) / 2**20 < 10
