"""Whatever fails inside a transaction: the store is as before or after it, and the next one works.

An index inside the store is the seam: it is called for every document that is put or removed, and
can raise there, or make SQLite itself fail from there on.
"""

import os
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ragdocs.errors import IndexStoreError, SourceError
from ragdocs.indexing import update
from ragdocs.indexing.changes import FoundFile, TreePath
from ragdocs.indexing.manifest import SourceFile
from ragdocs.indexing.reading import Ingestion
from ragdocs.indexing.update import Batch, Preparation, PreparedFile, apply
from ragdocs.models import DocId, FileState
from ragdocs.store.database import Database
from ragdocs.store.reader import Reader
from ragdocs.store.records import FileFailure
from ragdocs.store.writer import StoreWriter
from tests.support.documents import SEED_SIZES
from tests.support.indexes import DOCS, Place, did, fresh, held, later, tables
from tests.support.stores import FINGERPRINT, READ_NS, Section, file
from tests.support.systems.needs import resource

WORDS = ("river", "stone", "cloud", "maple", "ember")
Act = Callable[[Database], None]


class Saboteur:
    """An index without tables that does something bad at one of its calls."""

    name = "saboteur"
    version = "1"

    def __init__(self) -> None:
        self.calls = 0
        self.at = -1
        self.act: Act | None = None
        self.is_lasting = False
        self.is_right = True

    def arm(self, at: int, act: Act, *, is_lasting: bool = False) -> None:
        self.calls, self.at, self.act, self.is_lasting = 0, at, act, is_lasting

    def disarm(self) -> None:
        self.act = None

    def create(self, database: Database) -> None: ...

    def drop(self, database: Database) -> None: ...

    def put(self, database: Database, doc: int) -> None:
        self.calls += 1
        if self.act and (self.calls == self.at or self.is_lasting):
            self.act(database)

    remove = put

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        return self.is_right


class Sabotaged(Place):
    """A place whose index can be made to fail."""

    def __init__(self, path: Path) -> None:
        self.saboteur = Saboteur()
        super().__init__(path)

    def another(self, control=None, embedder=None, **more):
        given = {"tables": (*tables(), self.saboteur), **more}
        return super().another(control, embedder, **given)

    def cache_is_right(self) -> bool:
        """What the manager remembers of the last commit is what the store holds."""
        with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
            remembered = self.manager._session.manifest.at(snapshot.position)
            return remembered == snapshot.manifest()

    def edit(self, step: int) -> None:
        """One of each: a changed, a new, a deleted and a renamed file."""
        text = f"# Step {step}\n\n" + f"{WORDS[step % 5]} {step} " * 400
        self.write("changed.md", text)
        self.write(f"new-{step}.md", text + "[[changed]]\n")
        (self.root / f"new-{step - 2}.md").unlink(missing_ok=True)
        if (self.root / f"new-{step - 1}.md").exists():
            (self.root / f"new-{step - 1}.md").rename(self.root / f"moved-{step}.md")


@pytest.fixture
def place(tmp_path: Path):
    made = Sabotaged(tmp_path)
    yield made
    made.manager.close()


def fail_with(error: BaseException) -> Act:
    def act(_: Database) -> None:
        raise error

    return act


def fill_the_disk(database: Database) -> None:
    """As if: the file may not grow any more, by this connection."""
    (pages,) = database.one("PRAGMA page_count") or (0,)
    database.run(f"PRAGMA max_page_count = {pages}")


def interrupt_after(steps: int) -> Act:
    """SQLite stops within a statement, and rolls the whole transaction back by itself."""

    def act(database: Database) -> None:
        database._connection.set_progress_handler(lambda: 1, steps)

    return act


ACTS: dict[str, Callable[[random.Random], Act]] = {
    "interrupt": lambda _: fail_with(KeyboardInterrupt()),
    "no memory": lambda _: fail_with(MemoryError()),
    "a bug": lambda _: fail_with(ZeroDivisionError()),
    "an I/O error": lambda _: fail_with(OSError(5, "Input/output error")),
    "a full disk": lambda _: fill_the_disk,
    "SQLite interrupted": lambda rng: interrupt_after(rng.randrange(1, 3000)),
}
STOPS = {"interrupt", "a full disk", "SQLite interrupted"}
"""The others are taken for the fault of one file."""


@pytest.mark.parametrize("kind", ACTS)
def test_every_failure_leaves_one_commit_or_the_next(
    place: Sabotaged, kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(update, "TURN_SECONDS", 0)
    rng = random.Random(kind)
    failures = 0
    place.edit(0)
    place.edit(1)
    place.manager.update()
    for at in range(1, 6):
        monkeypatch.setattr(update, "FILES_PER_BATCH", rng.choice((1, 2, 64)))
        place.edit(at + 1)
        place.saboteur.arm(at, ACTS[kind](rng))
        try:
            place.manager.update()
        except (KeyboardInterrupt, IndexStoreError):
            failures += 1
        else:
            assert place.saboteur.calls >= at
        assert place.cache_is_right()
        held(place.index)  # which checks all rows
        place.saboteur.disarm()
        # A bug is taken for the fault of the file, which is not read again until it changes.
        place.manager.update(rebuild=kind == "a bug")
        assert place.cache_is_right()
        assert (place.waiting(), place.failures()) == (0, {})
    assert bool(failures) is (kind in STOPS)
    place.manager.fill()
    place.manager.prune()
    assert held(place.index) == fresh(place.path / "fresh", place.tree)


@pytest.mark.parametrize("act", [fail_with(KeyboardInterrupt()), fill_the_disk, interrupt_after(1)])
def test_one_transaction_that_fails_changes_nothing(place: Sabotaged, act: Act):
    place.edit(0)
    place.update()
    before = held(place.index)
    with Reader.open(place.index) as reader:
        position = reader.position()
        place.edit(1)
        place.saboteur.arm(2, act)
        with pytest.raises((KeyboardInterrupt, IndexStoreError)):
            place.manager.update()
        assert reader.position() == position
    assert held(place.index) == before


def test_a_rebuild_that_fails_while_rebuilding_the_indices(place: Sabotaged):
    place.edit(0)
    place.update()
    before = held(place.index)
    place.saboteur.is_right = False
    place.saboteur.arm(1, interrupt_after(1))
    with pytest.raises(IndexStoreError, match="interrupted"):
        place.manager.update(rebuild=True)
    assert held(place.index) == before
    place.saboteur.disarm()
    assert did(place.update(rebuild=True)) == {"unchanged": 2}
    assert held(place.index) == before


def test_a_file_for_which_there_is_no_memory_is_tried_again(place: Sabotaged):
    """It says nothing of the file, unlike a picture, which is left alone until it changes."""
    place.write("a.md", "# A\n")
    place.write("picture.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))

    place.saboteur.arm(1, fail_with(MemoryError()), is_lasting=True)
    place.update()
    assert place.failures() == {"a.md": "MemoryError", "picture.md": "SourceBinary"}
    place.saboteur.disarm()
    outcome = place.update()
    assert (did(outcome), place.failures()) == (
        {"modified": 1, "unchanged": 1},
        {"picture.md": "SourceBinary"},
    )


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Takes all but so many of what this process may still open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as taken:
        taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
        with suppress(OSError):
            while True:
                taken.enter_context(open(os.devnull, encoding="utf-8"))
        for descriptor in spare:
            os.close(descriptor)
        yield


def test_a_lack_of_descriptors_is_not_the_fault_of_a_file(place: Sabotaged):
    """With two left, its folder can be opened, and the file itself cannot."""
    path = place.write("a.md", "# A\n")
    status = path.stat()
    found = FoundFile("a.md", status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    source = SourceFile(DocId("docs:a.md"), DOCS, found)
    ingestion = Ingestion(DOCS, place.root, 1000, SEED_SIZES)
    preparation = Preparation({DOCS: ingestion}, lambda _: True, later)
    with descriptors_left(2):
        assert preparation.is_as_found(source)
        assert preparation.prepare(source) is None
    prepared = preparation.prepare(source)
    assert prepared
    assert prepared.content


def test_only_touched_but_not_indexed_any_more_is_read_as_a_new_file(tmp_path: Path):
    """Nothing leads there that is known of; should something do, the file is not lost."""
    state = FileState(4, 5, "hash")
    failure = FileFailure(DOCS, "a.md", "SourceBinary", "a picture", state, READ_NS)
    source = SourceFile(DocId("docs:a.md"), DOCS, FoundFile("a.md", 4, 6, 7))
    touched = PreparedFile(source, FileState(4, 6, "hash"), READ_NS + 1)
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        with writer.transaction() as transaction:
            transaction.fail(failure)
        with reader.snapshot() as snapshot:
            manifest = snapshot.manifest()
        with writer.transaction() as transaction:
            applied = apply(transaction, Batch((touched,)), manifest, manifest)
        assert applied.again == {TreePath(DOCS, "a.md")}
        assert applied.written == {"docs:a.md": None}
        with reader.snapshot() as snapshot:
            assert (snapshot.manifest(), snapshot.failures()) == ({}, ())


def test_a_text_too_long_for_sqlite_costs_its_file_only(tmp_path: Path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        writer._database._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 20_000)
        with writer.transaction() as transaction:
            transaction.put(file("a.md"), READ_NS)
            with pytest.raises(SourceError, match="too big"):
                transaction.put(file("b.md", [Section("One", "x" * 30_000)]), READ_NS)
        with reader.snapshot() as snapshot:
            assert set(snapshot.manifest()) == {"docs:a.md"}
            snapshot.verify(deep=True)
