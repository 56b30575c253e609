"""The index manager over real files: what each change does to the index, and what it costs."""

import os
import random
import shutil
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragdocs.app import App
from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.errors import IndexIncompatible, IndexLocked, IndexStoreError
from ragdocs.indexing import manager as manager_module
from ragdocs.indexing import update
from ragdocs.indexing.changes import Hints, Phase, Progress, TreePath
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control
from ragdocs.indices.keyword import compile_query
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.models import DocId
from ragdocs.search.query_language import parse_query
from ragdocs.store.database import Database
from ragdocs.store.integrity import seal
from ragdocs.store.lock import write_lock
from ragdocs.store.reader import Reader
from tests.support.indexes import (
    DOCS,
    Place,
    did,
    fresh,
    held,
    later,
    settled,
    setup,
    tables,
    term_vectors,
    tree,
    write,
)
from tests.support.models import CountingEmbedder
from tests.support.processes import python_process, read_line
from tests.support.program import config_of
from tests.support.stores import ANALYZER, keyword_engine

ROOT = Path(__file__).parents[2]
LONG = "\n\n".join(f"## Part {number}\n\n{'Some words here. ' * 30}" for number in range(4))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # A busy machine would make the batches smaller.
    monkeypatch.setattr(update, "SECONDS_PER_BATCH", 3600.0)
    made = Place(tmp_path)
    yield made
    made.manager.close()


# What changes do


def test_the_first_build(place: Place):
    for number in range(5):
        place.write(f"{number}.md", f"# Note {number}\n\n[[{number + 1}]]\n\n{LONG}")
    outcome = place.update()
    assert did(outcome) == {"added": 5}
    assert (outcome.documents, outcome.rebuilt, outcome.stopped) == (5, None, False)
    assert outcome.chunks > 20
    assert len(place.embedder.texts) == len(set(place.embedder.texts))
    assert place.is_as_new()


def test_an_empty_folder(place: Place):
    outcome = place.update()
    assert did(outcome) == {}
    assert not outcome.has_changed
    assert outcome.documents == 0


def test_nothing_is_read_or_written_when_nothing_has_changed(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    with Reader.open(place.index) as reader:
        before = reader.position()
        (place.root / "a.md").chmod(0o600)  # only the clock of the manager is ahead of this
        assert did(place.update()) == {"unchanged": 1}
        assert reader.position() == before


def test_a_start_with_nothing_to_do_takes_no_lock(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    with write_lock(place.index, 0), place.another(Control(lock_seconds=0)) as second:
        place_only = second.update(Hints(frozenset({TreePath(DOCS, "none.md")})))
        assert did(place_only) == {}


def test_an_edit_embeds_what_is_new(place: Place):
    file = place.write("a.md", f"# A\n\n{LONG}")
    place.write("b.md", f"# B\n\n{LONG}")
    place.update()
    place.embedder.texts.clear()
    file.write_text(f"# A\n\n{LONG}\n\n## New\n\n{'Fresh words. ' * 40}", encoding="utf-8")
    os.utime(file, ns=(1, 1))
    assert did(place.update()) == {"modified": 1, "unchanged": 1}
    assert 1 <= len(place.embedder.texts) <= 3
    assert place.is_as_new()


def test_a_deletion(place: Place):
    place.write("a.md", "[[b]]\n")
    place.write("b.md", "# B\n")
    place.update()
    (place.root / "b.md").unlink()
    assert did(place.update()) == {"removed": 1, "unchanged": 1}
    assert place.is_as_new()


def test_a_rename_embeds_nothing(place: Place):
    place.write("a.md", f"# A\n\n{LONG}")
    place.write("c.md", "[[a]] and [[b]]\n")
    place.update()
    place.embedder.texts.clear()
    (place.root / "a.md").rename(place.root / "b.md")
    assert did(place.update()) == {"moved": 1, "unchanged": 1}
    assert place.embedder.texts == []
    assert place.is_as_new()


def test_a_renamed_document_is_never_absent(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Each commit holds it under the one name or the other, whatever else is to be read."""
    monkeypatch.setattr(update, "FILES_PER_BATCH", 1)
    place.write("a.md", "# Same\n")
    place.update()
    (place.root / "a.md").rename(place.root / "z.md")
    for number in range(4):
        place.write(f"{number}.md", "# Else\n")
    seen: list[list[str]] = []
    control = Control(on_progress=lambda _: seen.append(place.paths()))
    with place.another(control) as second:
        assert did(second.update()) == {"moved": 1, "added": 4}
    assert len(seen) >= 6
    assert all(("a.md" in paths) != ("z.md" in paths) for paths in seen)


def test_a_folder_is_moved(place: Place):
    for number in range(70):
        place.write(f"one/{number}.md", f"# Note {number}\n\ntext {number}\n")
    place.update()
    place.embedder.texts.clear()
    (place.root / "one").rename(place.root / "two")
    assert did(place.update("one", "two")) == {"moved": 70}
    assert place.embedder.texts == []
    assert place.is_as_new()


def test_a_file_that_was_only_touched(place: Place):
    dated = place.write("dated.md", "---\ndate: 2020-01-01\n---\n# A\n")
    undated = place.write("undated.md", "# B\n")
    place.update()
    for file in (dated, undated):
        os.utime(file, ns=(10**18, 10**18))
    with place.another() as second:  # one that does not look into the future
        assert did(second.update()) == {"unchanged": 2}
    assert place.is_as_new()


def test_an_edit_that_keeps_size_and_mtime(place: Place):
    with place.another() as second:
        file = place.write("a.md", "# 1234\n")
        status = file.stat()
        assert did(second.update()) == {"added": 1}
        file.write_text("# 4321\n", encoding="utf-8")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert did(second.update()) == {"modified": 1}
        second.fill()
    assert place.is_as_new()


# What cannot be indexed


def test_files_that_cannot_be_indexed_do_not_stop_the_rest(place: Place):
    place.manager.close()
    place.manager = place.another(settled(), place.embedder, max_file_bytes=1000)
    place.write("a.md", "# A\n")
    place.write("binary.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    place.write("large.md", b"x" * 1001)
    outcome = place.update()
    assert did(outcome) == {"added": 1, "failed": 2}
    assert {failure.path: failure.kind for failure in outcome.failed} == place.failures()
    assert place.failures() == {"binary.md": "SourceBinary", "large.md": "SourceTooLarge"}
    assert all(failure.path in failure.reason for failure in outcome.failed)
    assert did(place.update()) == {"unchanged": 3}, "not read again until they change"
    place.write("large.md", "# Small\n")
    os.utime(place.root / "large.md", ns=(1, 1))
    assert did(place.update()) == {"modified": 1, "unchanged": 2}
    assert place.failures() == {"binary.md": "SourceBinary"}


def test_a_good_file_that_becomes_bad_is_forgotten(place: Place):
    file = place.write("a.md", "# A\n")
    place.update()
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert did(place.update()) == {"failed": 1}
    assert place.paths() == []
    file.unlink()
    assert did(place.update()) == {"removed": 1}
    assert place.failures() == {}


NOBODY = 65534


@contextmanager
def unprivileged(folder: Path):
    """Root may read everything: for a while, and in this folder, it is someone else."""
    if os.geteuid() != 0:
        yield
        return
    for at in (folder, *folder.rglob("*")):
        os.chown(at, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_read():
    """A file: a failure until that changes. A folder: what is known of it is kept."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        file = place.write("a.md", "# A\n")
        place.write("sub/b.md", "# B\n")
        with place.another() as manager:
            manager.update()
            with unprivileged(place.path):
                file.chmod(0)
                assert did(manager.update()) == {"failed": 1, "unchanged": 1}
                assert place.failures() == {"a.md": "SourceUnreadable"}
                file.chmod(0o600)
                assert did(manager.update()) == {"modified": 1, "unchanged": 1}
                (place.root / "sub").chmod(0)
                outcome = manager.update()
                (place.root / "sub").chmod(0o700)
                (kept,) = outcome.kept
                assert (kept.reason, kept.documents) == (
                    "has folders that cannot be read",
                    1,
                )
                assert place.paths() == ["a.md", "sub/b.md"]
            manager.fill()
        assert place.is_as_new()
        place.manager.close()


def test_a_file_that_vanishes_before_it_is_read(place: Place):
    """It is looked for again: no failure, no ghost."""
    place.write("a.md", "# A\n")
    doomed = place.write("b.md", "# B\n")

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING:
            doomed.unlink(missing_ok=True)

    with place.another(Control(on_progress=on_progress)) as second:
        outcome = second.update()
        assert (did(outcome), outcome.unsettled) == ({"added": 1}, frozenset())
    assert (place.paths(), place.failures()) == (["a.md"], {})


def test_a_file_that_changes_while_it_is_stored_is_looked_at_again(place: Place):
    place.write("a.md", "# Old\n")
    texts = iter(["# Newer\n", "# Newest of all\n"])

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING and not progress.done:
            place.write("a.md", next(texts, "# Newest of all\n"))

    with place.another(Control(on_progress=on_progress)) as second:
        second.update()
        second.fill()
    assert place.is_as_new()


def test_a_failure_that_is_over_before_the_end_is_not_reported(place: Place):
    """The first file is mended while the second one is read."""
    place.write("a.md", b"\x89PNG\r\n\x1a\n\x00\x00")
    place.write("b.md", "# B\n")
    readings: list[int] = []

    def clock_ns() -> int:
        readings.append(time.time_ns())
        if len(readings) == 2:
            place.write("a.md", "# A\n")
        return readings[-1]

    with place.another(Control(clock_ns=clock_ns)) as second:
        assert did(second.update()) == {"added": 1, "modified": 1}
    assert len(readings) == 3
    assert place.failures() == {}


def test_a_file_that_is_never_quiet_does_not_hold_the_update_up(place: Place):
    place.write("a.md", "# A\n")
    count = iter(range(1000))

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING and not progress.done:
            place.write("a.md", f"# A {'x' * next(count)}\n")

    with place.another(Control(on_progress=on_progress)) as second:
        assert second.update().unsettled == {TreePath(DOCS, "a.md")}


class FussyTable(SignatureIndex):
    """Has an error that nobody foresaw, in one document."""

    name = "fussy"

    def create(self, database: Database) -> None: ...

    def drop(self, database: Database) -> None: ...

    def put(self, database: Database, doc: int) -> None:
        if database.one("SELECT 1 FROM documents WHERE key = ? AND title = 'Poison'", (doc,)):
            raise ZeroDivisionError("nobody foresaw this")

    def remove(self, database: Database, doc: int) -> None: ...


def test_a_file_that_the_store_cannot_take_costs_itself_only(place: Place):
    for name in ("a", "poison", "z"):
        place.write(f"{name}.md", f"# {name.title()}\n")
    with place.another(settled(), tables=(*tables(), FussyTable())) as second:
        outcome = second.update()
        assert did(outcome) == {"added": 2, "failed": 1}
        assert did(second.update()) == {"unchanged": 3}
    assert place.failures() == {"poison.md": "ZeroDivisionError"}
    assert "foresaw" not in outcome.failed[0].reason
    assert place.paths() == ["a.md", "z.md"]


# Roots


def test_a_root_that_goes_away_and_comes_back(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    away = place.root.rename(place.path / "away")
    outcome = place.update()
    assert did(outcome) == {}
    (kept,) = outcome.kept
    assert (kept.tree, kept.reason, kept.documents) == (DOCS, "is missing", 1)
    assert place.paths() == ["a.md"]
    away.rename(place.root)
    outcome = place.update()
    assert (did(outcome), outcome.kept) == ({"unchanged": 1}, ())


def test_what_is_left_out_is_told(place: Place):
    (place.root / "gone.md").symlink_to("nowhere.md")
    ((skipped),) = place.update().skipped
    assert (skipped.tree, skipped.skipped.path) == (DOCS, "gone.md")


# Hints


def test_a_hint_looks_there_and_nowhere_else(place: Place):
    place.write("a.md", "# A\n")
    place.write("sub/b.md", "# B\n")
    place.update()
    place.write("new.md", "# New\n")
    place.write("sub/new.md", "# New\n")
    (place.root / "a.md").unlink()
    assert did(place.update("new.md")) == {"added": 1}
    assert did(place.update("sub")) == {"added": 1, "unchanged": 1}
    assert place.paths() == ["a.md", "new.md", "sub/b.md", "sub/new.md"]
    assert did(place.update("a.md")) == {"removed": 1}
    assert place.is_as_new()


def test_an_ignore_file_that_changes(place: Place):
    place.write("sub/a.md", "# A\n")
    place.write("sub/b.md", "# B\n")
    place.update()
    place.write("sub/.gitignore", "b.md\n")
    assert did(place.update("sub/.gitignore")) == {"removed": 1, "unchanged": 1}
    (place.root / "sub/.gitignore").unlink()
    assert did(place.update("sub/.gitignore")) == {"added": 1, "unchanged": 1}


def test_hints_that_everything_must_be_looked_at(place: Place):
    place.write("a.md", "# A\n")
    assert did(place.manager.update(Hints(must_rescan=True))) == {"added": 1}


def test_the_first_hint_without_an_index_looks_at_everything(place: Place):
    place.write("a.md", "# A\n")
    place.write("b.md", "# B\n")
    assert did(place.update("a.md")) == {"added": 2}


def test_one_edit_does_not_read_the_manifest_again(place: Place):
    for number in range(3):
        place.write(f"{number}.md", "# A\n")
    place.update()
    cache = place.manager._session.manifest
    readings = cache.readings
    place.write("0.md", "# Other\n")
    place.update("0.md")
    (place.root / "1.md").unlink()
    place.update("1.md")
    assert cache.readings == readings
    with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
        assert cache.at(snapshot.position) == snapshot.manifest()
    with place.another() as second:
        place.write("4.md", "# By another\n")
        second.update()
    place.update("4.md")
    assert cache.readings == readings + 1


def test_one_edit_looks_at_the_store_once_before_and_once_after_its_commit(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    reader = place.manager._session.reader
    taken, view = [], reader.view
    reader.view = lambda make: taken.append(make) or view(make)
    place.write("a.md", "# Other\n")
    assert place.manager.look().is_sound
    hints = Hints(frozenset({TreePath(DOCS, "a.md")}))
    assert did(place.manager.update(hints, looked=True)) == {"modified": 1}
    assert len(taken) == 2
    # Between two batches of vectors, a recent look will do.
    assert place.manager.look(max_age=60).is_sound
    assert len(taken) == 2


# Rebuilding


def test_a_rebuild_reads_everything_and_embeds_nothing(place: Place):
    for number in range(3):
        place.write(f"{number}.md", f"# Note {number}\n\n{LONG} {number}")
    place.update()
    (place.root / "0.md").unlink()
    place.embedder.texts.clear()
    seen: list[Progress] = []
    with place.another(Control(on_progress=seen.append), place.embedder) as second:
        outcome = second.update(rebuild=True)
        second.fill()
    assert (did(outcome), outcome.rebuilt) == ({"unchanged": 2, "removed": 1}, None)
    assert Progress(Phase.READING, 2, 2, outcome.chunks) in seen
    assert place.embedder.texts == []
    assert place.is_as_new()


def hits(place: Place, query: str) -> int:
    with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
        compiled = compile_query(parse_query(query), ANALYZER)
        return len(keyword_engine().search(snapshot, compiled, 10).hits)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM keyword",
        "UPDATE vocabulary SET documents = 7, term = 'x'",
        "DELETE FROM signatures",
        "DELETE FROM code_terms",
    ],
)
def test_a_rebuild_rebuilds_the_indices_inside_the_store(place: Place, damage: str):
    """What no checksum tells of: rows of an index that are whole, and wrong."""
    for number in range(3):
        place.write(f"{number}.md", f"# Note {number}\n\nzebra\n\n```python\nzebra = 1\n```\n")
    place.update()
    place.manager.close()
    before = index_rows(place)
    with closing(Database(place.index / "store.db", write=True)) as database:
        database.run(damage)
    assert index_rows(place) != before
    place.manager = place.another(settled())
    assert did(place.update()) == {"unchanged": 3}
    assert index_rows(place) != before
    outcome = place.update(rebuild=True)
    assert (did(outcome), outcome.rebuilt) == ({"unchanged": 3}, None)
    assert index_rows(place) == before
    assert place.is_as_new()


def test_a_rebuild_keeps_indices_that_are_right(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.write("a.md", "# A\n\nzebra\n\n```python\nzebra = 1\n```\n")
    place.write("empty.md", "---\ntitle: Nothing\n---\n")
    place.update()
    dropped: list[str] = []
    for table in tables():
        monkeypatch.setattr(type(table), "drop", lambda self, _: dropped.append(self.name))
    place.update(rebuild=True)
    assert dropped == []
    with closing(Database(place.index / "store.db", write=True)) as database:
        database.run("UPDATE vocabulary SET documents = 7")
    with pytest.raises(IndexStoreError):  # what was not dropped cannot be made again
        place.update(rebuild=True)
    assert dropped == ["vocabulary"]


def test_a_rebuild_finds_damage_though_an_index_is_of_another_version(place: Place):
    """It opened the store for that index, and looked no further."""
    place.write("a.md", "# A\n\nzebra\n")
    place.update()
    place.manager.close()
    with closing(Database(place.index / "store.db", write=True)) as database:
        database.run("UPDATE chunks SET text = 'wrong' WHERE text NOT NULL")
        database.run("UPDATE stored_indices SET version = 'older' WHERE name = 'code_terms'")
    with Reader.open(place.index) as reader:
        seal(place.index, reader.position())
    place.manager = place.another(settled())
    rebuilt = place.update(rebuild=True).rebuilt or ""
    assert "is damaged" in rebuilt
    assert "rebuild the index" not in rebuilt  # it says the cause, no advice
    assert place.is_as_new()


def test_others_write_while_a_rebuild_looks_through_the_index(place: Place):
    """It made all indices anew under the write lock: 11 s at 10,000 passages, without a word."""
    for number in range(5):
        place.write(f"{number}.md", f"# Note {number}\n\nzebra\n")
    place.update()
    seen: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase is not Phase.CHECKING:
            return
        seen.append(progress)
        place.write("other.md", f"# Other\n\nturn {len(seen)}\n")
        with place.another(Control(lock_seconds=0)) as other:
            other.update()

    with place.another(Control(on_progress=on_progress)) as second:
        second.update(rebuild=True)
        second.fill()
    steps = 5 * len(tables())
    assert [one.done for one in seen] == [0, *range(steps), steps]
    assert {one.total for one in seen} == {steps}
    assert place.is_as_new()


def test_a_rebuild_ends_when_it_is_told_to_while_it_looks_through_the_index(place: Place):
    place.write("a.md", "# A\n\nzebra\n")
    place.update()
    stop = threading.Event()
    control = Control(stop=stop, on_progress=lambda _: stop.set())
    with place.another(control) as second:
        assert second.update(rebuild=True).stopped
    place.update()
    assert place.is_as_new()


def index_rows(place: Place) -> list[object]:
    with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
        return [
            hits(place, "zebra"),
            snapshot.select("SELECT * FROM vocabulary ORDER BY word"),
            snapshot.select("SELECT * FROM signatures ORDER BY key"),
            snapshot.select("SELECT * FROM code_terms_vocabulary"),
        ]


def test_a_rebuild_of_a_damaged_store_says_so(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    place.manager.close()
    (place.index / "store.db").write_bytes(b"not a database at all" * 100)
    place.manager = place.another()
    outcome = place.update(rebuild=True)
    assert did(outcome) == {"added": 1}
    assert outcome.rebuilt
    assert place.is_as_new()


def test_damage_that_is_met_on_the_way_is_repaired(place: Place):
    """The store is replaced under a manager that has it open."""
    place.write("a.md", "# A\n")
    place.update()
    for name in os.listdir(place.index):
        if name.startswith("store.db"):
            (place.index / name).unlink()
    place.write("b.md", "# B\n")
    assert did(place.update("b.md")) == {"added": 2}
    assert place.is_as_new()


@pytest.mark.parametrize("is_open", [True, False])
def test_another_store_in_its_place_is_noticed(place: Place, is_open: bool):
    """It has not what this manager knows: hints are not enough."""
    place.write("a.md", "# A\n")
    place.update()
    with place.another() as second:
        second.update()
        if is_open:
            second.open()
        place.manager.close()
        shutil.rmtree(place.index)
        with IndexManager(setup(place.index)) as other:
            other.update()
        place.write("b.md", "# B\n")
        outcome = second.update(Hints(frozenset({TreePath(DOCS, "b.md")})))
        assert did(outcome) == {"added": 2}


def test_other_settings_rebuild_by_themselves_and_reuse_vectors(place: Place):
    for number in range(3):
        place.write(f"{number}.md", f"# Note {number}\n\nshort {number}\n")
    place.write("long.md", f"# Long\n\n{LONG}")
    place.update()
    place.manager.close()
    place.embedder.texts.clear()
    sizes = ChunkSizes(leaf=Limits(100, 400), small_document=300, overlap=0)
    other = {"sizes": sizes, "fingerprint": "other"}
    place.manager = place.another(settled(), place.embedder, **other)
    outcome = place.update()
    assert did(outcome) == {"added": 4}
    assert "other settings" in (outcome.rebuilt or "")
    assert place.embedder.texts
    assert not any("short" in text for text in place.embedder.texts)
    place.manager.prune()
    assert held(place.index) == fresh(place.path / "other", place.tree, **other)


def test_programs_of_different_settings_are_told(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Each empties the index for itself; that must not go on for ever."""
    monkeypatch.setattr(manager_module, "MAX_RESTARTS", 1)
    place.write("a.md", "# A\n")

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING and not progress.done:
            with place.another(fingerprint="other") as other:
                other.open()

    with (
        place.another(Control(on_progress=on_progress)) as second,
        pytest.raises(IndexIncompatible),
    ):
        second.update()
    place.update()
    assert place.is_as_new()


# Stopping


def test_a_stopped_update_goes_on_where_it_ended(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "FILES_PER_BATCH", 2)
    for number in range(9):
        place.write(f"{number}.md", f"# Note {number}\n")
    stop = threading.Event()

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING and progress.done == 4:
            stop.set()

    control = Control(stop=stop, on_progress=on_progress, clock_ns=later)
    with place.another(control) as second:
        outcome = second.update()
        assert (did(outcome), outcome.stopped, outcome.documents) == ({"added": 4}, True, 4)
    assert did(place.update()) == {"added": 5, "unchanged": 4}
    assert place.is_as_new()


def test_stopped_while_others_write(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    place.write("b.md", "# B\n")
    stop = threading.Event()

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING:
            threading.Timer(0.05, stop.set).start()

    control = Control(stop=stop, on_progress=on_progress, clock_ns=later)
    with write_lock(place.index, 0), place.another(control) as second:
        outcome = second.update()
    assert (did(outcome), outcome.stopped) == ({"unchanged": 1}, True)


def test_others_that_never_let_go(place: Place):
    place.write("a.md", "# A\n")
    place.update()
    place.write("b.md", "# B\n")
    with (
        write_lock(place.index, 0),
        place.another(Control(lock_seconds=0.05)) as second,
        pytest.raises(IndexLocked),
    ):
        second.update()
    assert did(place.update()) == {"added": 1, "unchanged": 1}


def test_an_interrupt_leaves_a_usable_index(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "FILES_PER_BATCH", 1)
    for number in range(3):
        place.write(f"{number}.md", f"# Note {number}\n")

    def on_progress(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with (
        place.another(Control(on_progress=on_progress)) as second,
        pytest.raises(KeyboardInterrupt),
    ):
        second.update()
    assert place.paths() == ["0.md", "1.md"]
    place.update()
    assert place.is_as_new()


# Vectors


def test_vectors_come_newest_first_and_can_be_stopped(place: Place):
    for number in range(40):
        place.write(f"{number}.md", f"# Note {number}\n\nword{number}\n")
    place.manager.update()
    assert place.manager.fill_some().has_more
    assert 0 < len(place.embedder.texts) < 40
    place.write("new.md", "# The newest\n")
    place.manager.update()
    before = len(place.embedder.texts)
    place.manager.fill_some()
    assert any("newest" in text for text in place.embedder.texts[before:])
    assert place.manager.fill().error == ""
    assert len(place.embedder.texts) == len(set(place.embedder.texts)) == 41
    assert place.is_as_new()


def test_nothing_is_embedded_once_it_is_stopped(place: Place):
    place.write("a.md", "# A\n")
    stop = threading.Event()
    with place.another(Control(stop=stop), place.embedder) as second:
        second.update()
        stop.set()
        filled = second.fill()
    assert (filled.has_more, filled.stored, place.embedder.texts) == (True, 0, [])


def test_a_model_that_fails_is_reported_and_text_search_goes_on(place: Place):
    place.embedder.is_broken = True
    place.write("a.md", "# A\n")
    assert did(place.manager.update()) == {"added": 1}
    filled = place.manager.fill()
    assert (filled.error, filled.stored, filled.has_more) == ("the model is broken", 0, False)
    assert place.paths() == ["a.md"]
    place.embedder.is_broken = False
    assert place.manager.fill().stored == 1
    assert place.is_as_new()


def test_without_a_model_there_is_nothing_to_fill(place: Place):
    place.write("a.md", "# A\n")
    with IndexManager(setup(place.index, place.tree)) as second:
        second.update()
        filled = second.fill()
        assert (filled.stored, filled.error, second.prune()) == (0, "", 0)


def test_without_an_index_there_is_nothing_to_fill(place: Place):
    filled = place.manager.fill()
    assert (filled.stored, filled.has_more) == (0, False)
    assert "no index" in filled.error


def test_terms_come_after_texts(place: Place):
    place.write("a.md", "# Apples\n\napples and pears grow on trees\n")
    seen: list[Progress] = []
    embedder = CountingEmbedder()
    control = Control(on_progress=seen.append)
    with IndexManager(
        setup(place.index, place.tree), embedder, term_vectors(embedder), control
    ) as second:
        second.update()
        assert second.fill().phase is Phase.TERMS
        assert "pears" in embedder.texts
        count = len(embedder.texts)
        assert second.fill().stored == 0
        assert second.prune() == 0
        assert len(embedder.texts) == count
    phases = list(dict.fromkeys(progress.phase for progress in seen))
    assert phases == [Phase.SCANNING, Phase.READING, Phase.EMBEDDING, Phase.TERMS]
    assert all(progress.done <= progress.total for progress in seen)


def test_what_another_has_embedded_is_not_embedded_again(place: Place):
    for number in range(40):
        place.write(f"{number}.md", f"# Note {number}\n\nword{number}\n")
    place.manager.update()
    place.manager.fill_some()
    with place.another() as second:
        second.fill()
    before = len(place.embedder.texts)
    place.manager.fill()
    assert len(place.embedder.texts) == before
    assert place.is_as_new()


# Several at once


def keep_updating(place: Place, done: threading.Event, problems: list[BaseException]) -> None:
    """Until it is done, and once more."""
    try:
        with place.another() as mine:
            is_last = False
            while not is_last:
                is_last = done.is_set()
                mine.update()
                mine.fill_some()
    except BaseException as error:
        problems.append(error)


def test_several_managers_at_once_converge(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "FILES_PER_BATCH", 3)
    rng = random.Random(7)
    done = threading.Event()
    problems: list[BaseException] = []
    for number in range(20):
        place.write(f"{number}.md", f"# Note {number}\n")
    threads = [
        threading.Thread(target=keep_updating, args=(place, done, problems)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for step in range(60):
        path = f"{rng.randrange(30)}.md"
        if rng.random() < 0.3:
            (place.root / path).unlink(missing_ok=True)
        else:
            place.write(path, f"# Step {step}\n\n[[{rng.randrange(30)}]]\n")
    done.set()
    for thread in threads:
        thread.join(timeout=240)
    assert problems == []
    place.manager.fill()
    assert place.is_as_new()


def test_a_stale_removal_does_not_win_over_a_newer_reading(place: Place):
    """This one saw that the file was gone; it came back, and another one read it."""
    file = place.write("a.md", "# A\n")
    place.write("b.md", "# B\n")
    place.update()
    file.unlink()

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.SCANNING and progress.done and not file.exists():
            place.write("a.md", "# A is back\n")
            with place.another() as other:
                other.update(Hints(frozenset({TreePath(DOCS, "a.md")})))

    with place.another(Control(on_progress=on_progress)) as second:
        second.update()
        second.fill()
    assert place.paths() == ["a.md", "b.md"]
    assert place.is_as_new()


def test_a_stale_reading_does_not_win_over_a_newer_one(place: Place):
    """While this one reads the second file, another one reads a newer version of the first."""
    place.write("a.md", "# Old\n")
    place.write("b.md", "# B\n")
    place.update()
    place.write("a.md", "# Stale\n")
    place.write("b.md", "# B 2\n")
    readings: list[int] = []
    titles: list[str] = []

    def clock_ns() -> int:
        readings.append(time.time_ns())
        if len(readings) == 2:
            place.write("a.md", "# The newest\n")
            with place.another() as other:
                other.update()
        return readings[-1]

    def on_progress(_: Progress) -> None:
        with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
            found = snapshot.document(DocId("docs:a.md"))
            titles.append(found.title if found else "")

    with place.another(Control(clock_ns=clock_ns, on_progress=on_progress)) as second:
        assert second.update().unsettled == frozenset()
        second.fill()
    assert list(dict.fromkeys(titles)) == ["Old", "The newest"]
    assert place.is_as_new()


def test_a_stale_reading_does_not_bring_a_deleted_file_back(place: Place):
    file = place.write("a.md", "# A\n")
    place.write("b.md", "# B\n")
    place.update()
    place.write("a.md", "# A again\n")

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING and progress.done == 0 and file.exists():
            file.unlink()
            with place.another() as other:
                other.update()

    with place.another(Control(on_progress=on_progress)) as second:
        second.update()
    assert place.paths() == ["b.md"]
    assert place.failures() == {}


WORKER = """
import sys
from pathlib import Path
from ragdocs.indexing import update as batching
from ragdocs.indexing.session import Control
from ragdocs.indexing.manager import IndexManager
from tests.support.indexes import setup, tree
from tests.support.models import CountingEmbedder
batching.FILES_PER_BATCH = 4
say = lambda progress: print(progress.phase, progress.done, flush=True)
place = setup(Path(sys.argv[1]), tree(Path(sys.argv[2])))
with IndexManager(place, CountingEmbedder(), control=Control(on_progress=say)) as manager:
    manager.update()
    manager.fill()
print("done", flush=True)
"""


def run_until(place: Place, lines: int) -> bool:
    """A real process, killed after it has said so much; whether it came to its end before."""
    with python_process(WORKER, place.index, place.root) as process:
        said = [read_line(process) for _ in range(lines)]
    return "done" in said


def test_kills_at_random_moments_are_recovered_from(place: Place):
    rng = random.Random(11)
    kills = 0
    for round_number in range(6):
        for _ in range(40):
            path = f"{rng.randrange(8)}/{rng.randrange(8)}.md"
            if rng.random() < 0.25:
                (place.root / path).unlink(missing_ok=True)
            else:
                text = f"# Round {round_number}\n\n[[{rng.randrange(8)}]] {rng.random()}\n"
                # A time of its own: those of one tick of the clock, and of one size, are not told
                # apart when their folder takes the place of another.
                written = time.time_ns()
                os.utime(place.write(path, text), ns=(written, written))
        folder = place.root / str(rng.randrange(8))
        if folder.exists():
            shutil.rmtree(place.root / "moved", ignore_errors=True)
            folder.rename(place.root / "moved")
        kills += not run_until(place, rng.randrange(2, 12))
        if (place.index / "store.db").exists():
            with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
                snapshot.verify(deep=True)
    assert kills >= 5
    outcome = place.update()
    assert outcome.rebuilt is None
    assert place.is_as_new()


def test_a_tree_that_is_not_configured_any_more_takes_its_documents_with_it(place: Place):
    other = tree(place.path / "other", "other")
    write(other.root, "o.md", "# O\n")
    place.write("a.md", "# A\n")
    with IndexManager(setup(place.index, place.tree, other)) as both:
        assert did(both.update()) == {"added": 2}
    with IndexManager(setup(place.index, place.tree)) as one:
        assert did(one.update())["removed"] == 1
    with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
        assert snapshot.document(DocId("other:o.md")) is None


def test_totals_of_embedding_and_of_words_are_known_before_and_stay(tmp_path):
    """Half of 1,400 passages are equal, and more words than one window holds are embedded."""
    docs = tmp_path / "docs"
    for number in range(1_400):
        same = number // 2
        write(docs, f"n{number:04}/note.md", f"# Note\n\nThe word is w{same:04}x.\n")
    seen: list[Progress] = []
    config = config_of(docs, tmp_path / "ix", search={"query_expansion_max_terms": 2_000})
    with (
        App(config, CountingEmbedder()) as app,
        app.manager(Control(on_progress=seen.append)) as manager,
    ):
        manager.update()
        manager.fill()

    for phase, total in ((Phase.EMBEDDING, 700), (Phase.TERMS, None)):
        steps = [one for one in seen if one.phase is phase]
        assert len({one.total for one in steps}) == 1
        assert total in (None, steps[0].total)
        assert steps[-1].done == steps[-1].total >= 700
        assert [one.done for one in steps] == sorted({one.done for one in steps})
