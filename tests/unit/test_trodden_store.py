"""A store whose files are changed by something else, while it is in use: noticed, and repaired."""

import os
import sqlite3

import pytest

from ragdocs.errors import IndexCorrupt, IndexIncompatible
from ragdocs.indexing import session
from ragdocs.indices.signatures import signatures_of
from ragdocs.store.folder import SEAL_FILE
from ragdocs.store.integrity import StoreCondition, StoreState, seal
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import Place, held, settled, setup
from tests.support.stores import Corpus, run_sql


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    for number in range(30):
        made.write(f"{number}.md", f"# Note {number}\n\n" + f"lark{number} sings. " * 40)
    made.update()
    made.manager.close()
    made.manager = made.another(settled())
    made.manager.open()
    yield made
    made.manager.close()


def flip(path, place=-5000):
    """A bit far behind in the file."""
    with path.open("r+b") as opened:
        opened.seek(place, 2)
        byte = opened.read(1)[0]
        opened.seek(place, 2)
        opened.write(bytes([byte ^ 4]))


def test_a_store_that_was_left_alone_is_continued(place):
    assert place.manager.look().is_sound
    place.write("new.md", "# New\n")
    place.update()
    assert place.manager.look().is_sound
    assert place.manager.look().is_sound


def test_commits_of_others_are_no_damage(place):
    assert place.manager.look().is_sound
    place.write("new.md", "# New\n")
    with place.another(settled()) as other:
        other.update()
        assert place.manager.look().is_sound
        other.fill()
    assert place.manager.look().is_sound


def test_others_that_close_leave_the_files_as_their_last_commit_did(place):
    """A log that they put into the store then looked like a change by another program."""
    place.write("new.md", "# New\n")
    with place.another(settled()) as other:
        other.update()
        other.fill()
        assert place.manager.look().is_sound
    assert place.manager.look().is_sound


def test_another_process_that_rebuilds_the_indices_does_not_look_like_damage(place):
    assert place.manager.look().is_sound
    given = setup(place.index, place.tree)
    with StoreWriter.open(place.index, given.fingerprint, indices=given.tables) as other:
        before = other.position
        with other.transaction() as transaction:
            transaction.rebuild_indices([table.name for table in given.tables])
        assert other.position.generation == before.generation + 1
        assert place.manager.look().is_sound
    assert place.is_as_new()


@pytest.mark.parametrize("side", ["", "-wal"])
def test_a_changed_file_is_noticed_and_the_store_repaired(place, side):
    place.write("new.md", "# New\n\n" + "words " * 2000)
    place.update()
    assert place.manager.look().is_sound
    flip(place.index / f"store.db{side}")
    assert place.manager.look().condition is StoreCondition.CHANGED
    place.update()
    assert place.manager.look().is_sound
    assert place.is_as_new()


def test_what_was_lost_is_not_sound_before_an_update_has_opened_it_again(place):
    """Embedding had met another store, and nobody looked: it tried again after half a minute."""
    assert place.manager.look().is_sound
    place.manager.lose(StoreState.after(IndexIncompatible("replaced")))
    assert not place.manager.look().is_sound
    place.update()
    assert place.manager.look().is_sound


def test_our_own_damaged_seal_is_rewritten_without_a_check(place):
    """Nobody sealed it again before the next commit, and until then no answer was sure."""
    reports = []
    place.write("new.md", "# New\n")
    place.update()
    with Reader.open(place.index, report=reports.append) as reader:
        (place.index / SEAL_FILE).write_bytes(b"")
        reader.position()
        assert len(reports) == 1
        assert place.manager.look().is_sound
        reader.position()
        assert len(reports) == 1
    assert place.manager.look().is_sound


def test_a_store_that_is_changed_again_and_again_is_not_checked_all_the_time(place, monkeypatch):
    """Every second all of it was checked and all files compared: in a large index, without end."""
    reports = []
    monkeypatch.setattr(session, "CHECKING_SHARE", 1e-9)
    assert place.manager.look().is_sound
    flip(place.index / "store.db")
    assert place.manager.look().condition is StoreCondition.CHANGED
    place.update()
    with Reader.open(place.index, report=reports.append) as reader:
        os.utime(place.index / "store.db")
        assert place.manager.look().is_sound
        reader.position()
        assert len(reports) == 1


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_damaged_row_of_an_index_is_rebuilt(place, is_sealed):
    """Every question that met it was refused, and nobody looked at it: it stayed so for good."""
    run_sql(place.index, "UPDATE signatures SET ngrams = zeroblob(length(ngrams))")
    if is_sealed:
        with Reader.open(place.index) as reader:
            seal(place.index, reader.position())
        place.manager.lose(StoreState.after(IndexCorrupt("the stored signature 1 is damaged")))
    place.update()
    with Reader.open(place.index) as reader, reader.snapshot() as snapshot:
        keys = [key for (key,) in snapshot.select("SELECT key FROM signatures")]
        assert keys
        assert signatures_of(snapshot, keys)
    assert place.is_as_new()


def test_a_number_that_has_become_a_text_is_damage(place):
    """One flipped bit can do that; adding to it ended the search with a TypeError."""
    run_sql(
        place.index,
        "PRAGMA foreign_keys = OFF",
        "PRAGMA ignore_check_constraints = ON",
        "UPDATE chunks SET doc = 'x' WHERE text IS NOT NULL",
    )
    with (
        Reader.open(place.index) as reader,
        reader.snapshot() as snapshot,
        pytest.raises(IndexCorrupt),
    ):
        list(snapshot.vectors(place.embedder.identity))


def test_a_suspect_store_is_checked_row_by_row_whoever_opens_it(place):
    """Who took over the watching opened it, without that look, and it was not suspect any more."""
    run_sql(place.index, "UPDATE chunks SET text = 'wrong' WHERE text IS NOT NULL")
    with Reader.open(place.index) as reader:
        seal(place.index, reader.position())
    place.manager.lose(StoreState.after(IndexCorrupt("a row is not as it was written")))
    place.manager.open()
    place.update()
    assert place.is_as_new()


def test_nothing_is_written_onto_a_changed_file(place):
    flip(place.index / "store.db")
    place.write("new.md", "# New\n")
    place.update()
    assert place.is_as_new()


def test_a_reader_has_doubts_about_a_changed_file(place):
    reports = []
    with Reader.open(place.index, report=reports.append) as reader:
        reader.position()
        assert not reports
        place.write("new.md", "# New\n")
        place.update()
        reader.position()
        assert not reports
        flip(place.index / "store.db")
        reader.position()
        assert len(reports) == 1
        reader.position()
        assert len(reports) == 2


def test_a_reader_has_doubts_about_another_history_even_if_it_is_longer(place, tmp_path):
    """A copy of another time was taken for commits of others: it looked complete, and was not."""
    reports = []
    (tmp_path / "copy").mkdir()
    copy = Place(tmp_path / "copy")
    for number in range(5):
        copy.write(f"{number}.md", f"# Another {number}\n")
        copy.update()
    copy.manager.close()
    place.manager.close()
    with Reader.open(place.index, report=reports.append) as reader:
        ours = reader.position()
        reader.release()
        store = place.index / "store.db"
        store.write_bytes((copy.index / "store.db").read_bytes())
        assert reader.position().generation > ours.generation
        assert len(reports) == 1


def test_a_store_emptied_while_others_read_it_is_rebuilt(place):
    with Reader.open(place.index), Reader.open(place.index):
        with (place.index / "store.db").open("r+b") as opened:
            opened.truncate(0)
        for side in ("-wal", "-shm"):
            (place.index / f"store.db{side}").unlink(missing_ok=True)
        place.manager.lose(StoreState.after(IndexIncompatible("changed")))
        place.update()
    assert len(place.paths()) == 30
    held(place.index)


def test_a_damaged_list_of_words_is_rebuilt(tmp_path):
    """No page and no row is damaged: only what FTS5 made of them."""
    corpus = Corpus(tmp_path, {"a.md": "# Lark\n", "b.md": "# Owl\n", "c.md": "# Zebra\n"})
    assert corpus.paths("zebra") == ["c.md"]
    connection = sqlite3.connect(tmp_path / "store.db")
    ((number, block),) = connection.execute(
        "SELECT id, block FROM keyword_data ORDER BY length(block) DESC LIMIT 1"
    ).fetchall()
    rows = [row for (row,) in connection.execute("SELECT rowid FROM keyword ORDER BY rowid")]
    place = block.index(b"zebra") + len(b"zebra")  # there the row is named that has it
    assert block[place] == rows[2]
    wrong = block[:place] + bytes([rows[1]]) + block[place + 1 :]
    connection.execute("UPDATE keyword_data SET block = ? WHERE id = ?", (wrong, number))
    connection.commit()
    connection.close()
    assert corpus.paths("zebra") == ["b.md"]
    with corpus.writer() as writer:
        assert writer.rebuilt is None
    assert corpus.paths("zebra") == ["c.md"]
