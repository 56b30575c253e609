"""How many files are not stored yet: known to every process, in every commit."""

import threading
from pathlib import Path

import pytest

from ragdocs.indexing import update
from ragdocs.indexing.changes import Hints, Phase, Progress, TreePath
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import DOCS, Place, held, later, setup, tree
from tests.support.stores import FINGERPRINT, file, put


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "FILES_PER_BATCH", 2)
    # A busy machine would make the batches smaller.
    monkeypatch.setattr(update, "SECONDS_PER_BATCH", 3600.0)
    monkeypatch.setattr(update, "TURN_SECONDS", 0)
    made = Place(tmp_path)
    yield made
    made.manager.close()


def write_notes(place: Place, count: int, text: str = "") -> None:
    for number in range(count):
        place.write(f"{number}.md", f"# Note {number}\n\n{text}\n")


def hints(*paths: str) -> Hints:
    return Hints(frozenset(TreePath(DOCS, path) for path in paths))


class Watched:
    """What another process sees after each batch; `stop_after` so many files."""

    def __init__(self, place: Place, stop_after: int | None = None) -> None:
        self.seen: list[int | None] = []
        self._place = place
        self._stop_after = stop_after
        self.stop = threading.Event()
        self.control = Control(stop=self.stop, on_progress=self._progress, clock_ns=later)

    def _progress(self, progress: Progress) -> None:
        if progress.phase is Phase.READING:
            self.seen.append(self._place.waiting())
            if progress.done == self._stop_after:
                self.stop.set()


def test_a_new_store_has_not_been_filled_from_all_files(tmp_path: Path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        put(writer, file("a.md"))
        with reader.snapshot() as snapshot:
            assert snapshot.waiting is None


def test_what_is_expected_is_a_commit_of_its_own_unless_it_is_known(tmp_path: Path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
        positions = [writer.position]
        for waiting in (3, 3, 0, 0):
            with writer.transaction() as transaction:
                transaction.expect(waiting)
            positions.append(transaction.position)
            with reader.snapshot() as snapshot:
                assert snapshot.waiting == waiting
                assert snapshot.changes_since(positions[0]) == ()
                snapshot.verify(deep=True)
        put(writer, file("a.md"))
        with reader.snapshot() as snapshot:
            assert snapshot.waiting == 0
    assert [one.generation for one in positions] == [1, 2, 2, 3, 3]


def test_other_settings_begin_again(tmp_path: Path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer, writer.transaction() as transaction:
        transaction.expect(0)
    with (
        StoreWriter.open(tmp_path, "others"),
        Reader.open(tmp_path) as reader,
        reader.snapshot() as snapshot,
    ):
        assert snapshot.waiting is None


def test_a_first_build_counts_down(place: Place):
    write_notes(place, 7)
    watched = Watched(place)
    with place.another(watched.control) as manager:
        manager.update()
    assert watched.seen == [None, 5, 3, 1, 0]
    assert place.waiting() == 0


def test_removed_and_renamed_files_count_until_they_are_gone(place: Place):
    for number in range(7):
        place.write(f"{number}.md", "# Each of another size\n\n" + "word " * number)
    place.update()
    for number in range(4):
        (place.root / f"{number}.md").unlink()
    (place.root / "4.md").rename(place.root / "moved.md")
    place.write("edited.md", "# Edited just now\n\nIt is long enough to be no other file.\n")
    watched = Watched(place)
    with place.another(watched.control) as manager:
        manager.update()
    # 4 gone, in two commits; then 2 to read, of which one takes its old name along.
    assert watched.seen == [3, 0]
    assert place.waiting() == 0


def test_nothing_is_committed_when_everything_is_known_to_be_there(place: Place):
    write_notes(place, 3)
    place.update()
    with Reader.open(place.index) as reader:
        before = reader.position()
        place.update()
        assert reader.position() == before


def test_an_update_that_finds_nothing_says_that_all_is_there(place: Place):
    """A first build was killed after its last file but before its end, or files went away."""
    place.manager.open()
    assert place.waiting() is None
    place.update()
    assert place.waiting() == 0
    with StoreWriter.open(place.index, "test") as writer, writer.transaction() as transaction:
        transaction.expect(9)
    place.update()
    assert place.waiting() == 0


def test_a_stopped_update_leaves_what_it_had_left(place: Place):
    write_notes(place, 7)
    watched = Watched(place, stop_after=4)
    with place.another(watched.control) as manager:
        assert manager.update().stopped
    assert place.waiting() == 3
    place.update()
    assert place.waiting() == 0


def test_an_interrupted_update_leaves_what_it_had_left(place: Place):
    write_notes(place, 5)

    def on_progress(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with (
        place.another(Control(on_progress=on_progress)) as manager,
        pytest.raises(KeyboardInterrupt),
    ):
        manager.update()
    assert place.waiting() == 3


def test_hints_count_while_they_take_several_commits(place: Place):
    write_notes(place, 5)
    place.update()
    write_notes(place, 5, "new text")
    watched = Watched(place)
    with place.another(watched.control) as manager:
        manager.update(hints(*(f"{number}.md" for number in range(5))))
    assert watched.seen == [0, 3, 1, 0]


def test_hints_leave_what_others_have_left(place: Place):
    """A first build was stopped: that one file was stored does not make it complete."""
    write_notes(place, 7)
    with place.another(Watched(place, stop_after=2).control) as manager:
        manager.update()
    assert place.waiting() == 5
    with place.another() as manager:
        manager.update(hints("6.md"))
        assert place.waiting() == 5
        manager.update(hints("3.md", "4.md", "5.md"))
        assert place.waiting() == 5


def test_hints_never_say_that_all_was_looked_at(place: Place):
    write_notes(place, 5)
    place.manager.open()
    place.update("0.md")
    assert place.paths() == ["0.md"]
    assert place.waiting() is None
    place.update(*(f"{number}.md" for number in range(5)))
    assert place.waiting() is None


def test_two_that_follow_hints_at_once_end_at_nothing(place: Place):
    write_notes(place, 9)
    place.update()
    write_notes(place, 9, "new text")
    seen: list[int | None] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING:
            seen.append(place.waiting())
            if progress.done == 2:
                watched = Watched(place)
                with place.another(watched.control) as other:
                    other.update(hints("6.md", "7.md", "8.md"))
                seen.extend(watched.seen)

    with place.another(Control(on_progress=on_progress)) as manager:
        manager.update(hints(*(f"{number}.md" for number in range(5))))
    assert seen == [0, 3, 3, 4, 3, 1, 0]


def test_hints_do_not_undo_what_a_whole_update_says(place: Place):
    """While these hints are followed, another process looks at all files and stores them."""
    write_notes(place, 6)
    place.update()
    write_notes(place, 6, "new text")
    seen: list[int | None] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING:
            if progress.done == 2:
                with place.another() as other:
                    other.update()
            seen.append(place.waiting())

    with place.another(Control(on_progress=on_progress)) as manager:
        manager.update(hints(*(f"{number}.md" for number in range(6))))
    assert seen == [0, 0, 2, 0]


def test_a_hint_at_a_file_that_is_gone_before_it_is_read_leaves_nothing(place: Place):
    write_notes(place, 2)
    place.update()
    new = place.write("new.md", "# New\n")

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.SCANNING and progress.done:
            new.unlink(missing_ok=True)

    with place.another(Control(on_progress=on_progress)) as manager:
        manager.update(hints("new.md"))
    assert place.waiting() == 0


def test_a_tree_that_is_away_keeps_nothing_waiting(place: Place):
    write_notes(place, 3)
    away = tree(place.path / "away", "away")
    with IndexManager(setup(place.index, place.tree, away)) as manager:
        outcome = manager.update()
    assert len(outcome.kept) == 1
    assert place.waiting() == 0


def test_files_that_fail_or_are_never_quiet_keep_nothing_waiting(place: Place):
    place.write("binary.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    restless = place.write("restless.md", "# 0\n")

    def on_progress(progress: Progress) -> None:
        if progress.phase is Phase.READING:
            restless.write_text(restless.read_text(encoding="utf-8") + "more\n", encoding="utf-8")

    with place.another(Control(on_progress=on_progress)) as manager:
        outcome = manager.update()
    assert (len(outcome.failed), len(outcome.unsettled)) == (1, 1)
    assert place.waiting() == 0


def test_a_rebuild_counts_down_and_leaves_the_index_as_it_was(place: Place):
    write_notes(place, 5)
    place.update()
    before = held(place.index)
    watched = Watched(place)
    with place.another(watched.control) as manager:
        manager.update(rebuild=True)
    assert watched.seen == [0, 3, 1, 0]
    assert held(place.index) == before
