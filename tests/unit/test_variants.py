"""Index folders side by side: which there are, what they take from each other, and when one is
dropped."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ragdocs.app import Assembly, index_directory
from ragdocs.config.loading import load_config
from ragdocs.indexing.manager import IndexManager
from ragdocs.store.lock import WATCH_LOCK, WRITE_LOCK, try_lock
from ragdocs.store.reader import Reader
from ragdocs.store.variants import (
    DAY_SECONDS,
    USED_FILE,
    SiblingVectors,
    drop_unused,
    last_used,
    note_use,
    siblings,
    variant_name,
)
from tests.support.indexes import setup, tree, write
from tests.support.models import CountingEmbedder
from tests.support.processes import environment, run_python
from tests.support.stores import NOTES, FolderCorpus, run_sql

NOW = time.time()
OWN, OTHER, THIRD = (variant_name(name) for name in ("own", "other", "third"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path / "notes", "a.md", "# A\n\nOne text.\n")
    write(tmp_path / "notes", "b.md", "# B\n\nAnother text.\n")
    return tmp_path / "index"


def build(place: Path, name: str = "", embedder: CountingEmbedder | None = None) -> Path:
    """A variant with vectors; without a name, the store in the folder itself."""
    directory = place / name
    made = setup(directory, tree(place.parent / "notes"), fingerprint=name)
    with IndexManager(made, embedder or CountingEmbedder()) as manager:
        manager.update()
        manager.fill()
    return directory


def age(directory: Path, days: float) -> None:
    """As if it had last been used so many days ago."""
    note_use(directory)
    then = NOW - days * DAY_SECONDS
    os.utime(directory / USED_FILE, (then, then))


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.is_dir())


def directory_of(tmp_path: Path, **sections: dict[str, object]) -> Path:
    flags = {"indexing": {"documents_path": str(tmp_path)}, **sections}
    return index_directory(load_config(cwd=tmp_path, environ={"HOME": "/home/x"}, flags=flags))


@pytest.mark.parametrize(
    "sections",
    [
        {"chunking": {"max_leaf_chars": 900}},
        {"search": {"stemmer": "german"}},
        {"search": {"keyword_engine": "whoosh"}},
        {"embedding": {"model": "another"}},
        {"indexing": {"max_file_bytes": 1000}},
    ],
)
def test_every_set_of_index_settings_has_a_folder_of_its_own(tmp_path: Path, sections):
    indexing = {"documents_path": str(tmp_path), **sections.pop("indexing", {})}
    usual, other = directory_of(tmp_path), directory_of(tmp_path, indexing=indexing, **sections)
    assert usual != other
    assert usual.parent == other.parent


@pytest.mark.parametrize(
    "sections", [{"search": {"mmr_lambda": 0.1}}, {"search": {"boosts": {"title": 7.5}}}]
)
def test_settings_of_the_query_share_a_folder(tmp_path: Path, sections):
    assert directory_of(tmp_path) == directory_of(tmp_path, **sections)


def test_engines_beside_the_store_have_no_folder_in_common_with_other_weights(tmp_path: Path):
    """Each would rebuild the other's files at every question."""
    whoosh = {"keyword_engine": "whoosh"}
    one = directory_of(tmp_path, search=whoosh)
    two = directory_of(tmp_path, search={**whoosh, "boosts": {"title": 7.5}})
    assert one != two


@pytest.mark.parametrize("kind", ["schema", "tables"])
def test_another_version_of_the_program_has_a_folder_of_its_own(tmp_path: Path, kind: str):
    words = ["config", "--json", "--docs", str(tmp_path)]
    env = environment(HOME=str(tmp_path / "home"), XDG_CACHE_HOME="")
    told = [
        run_python("-m", *program, *words, env=env).stdout
        for program in (["ragdocs"], ["tests.support.children", kind])
    ]
    ours, theirs = (
        [line for line in one.splitlines() if "index_directory" in line] for one in told
    )
    assert ours
    assert ours != theirs


def test_a_folder_of_ones_choice_holds_the_store_itself(tmp_path: Path):
    flags = {"indexing": {"documents_path": str(tmp_path), "index_path": str(tmp_path / "i")}}
    for sections in ({}, {"chunking": {"max_leaf_chars": 900}}):
        config = load_config(cwd=tmp_path, environ={"HOME": "/home/x"}, flags={**flags, **sections})
        assert Assembly(config).directory == tmp_path / "i"


def test_vectors_are_taken_from_another_variant(place: Path):
    first, second = CountingEmbedder(), CountingEmbedder()
    build(place, OTHER, first)
    own = build(place, OWN, second)
    assert len(first.texts) == 2
    assert second.texts == []
    with Reader.open(own) as reader, reader.snapshot() as snapshot:
        assert snapshot.count_missing_embeddings(second.identity) == 0
        snapshot.verify(deep=True)


def test_only_what_no_variant_has_is_embedded(place: Path):
    build(place, OTHER)
    write(place.parent / "notes", "c.md", "# C\n\nA third text.\n")
    second = CountingEmbedder()
    build(place, OWN, second)
    assert len(second.texts) == 1
    assert "third" in second.texts[0]


def test_vectors_of_another_model_are_not_taken(place: Path):
    build(place, OTHER, CountingEmbedder("words@2"))
    second = CountingEmbedder()
    build(place, OWN, second)
    assert len(second.texts) == 2


def test_vectors_are_taken_from_a_store_of_before_there_were_variants(place: Path):
    """Of another schema: its vectors are declared as ever, and each proves itself."""
    build(place)
    run_sql(place, "PRAGMA user_version = 2", "ALTER TABLE meta DROP COLUMN settings")
    second = CountingEmbedder()
    build(place, OWN, second)
    assert second.texts == []


def texts_of(directory: Path) -> list[bytes]:
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        return [text for (text,) in snapshot.select("SELECT text_hash FROM embeddings")]


@pytest.mark.parametrize("column", ["vector", "row_hash", "text_hash"])
def test_a_damaged_vector_is_computed_again_and_never_copied(place: Path, column: str):
    other = build(place, OTHER)
    run_sql(other, f"UPDATE embeddings SET {column} = 'damaged' WHERE key = 1")
    second = CountingEmbedder()
    own = build(place, OWN, second)
    assert len(second.texts) == 1
    with Reader.open(own) as reader, reader.snapshot() as snapshot:
        snapshot.verify(deep=True)


@pytest.mark.parametrize("damage", ["noise", "empty", "another program's", "a folder"])
def test_a_variant_that_cannot_be_read_is_passed_over_and_counted(place: Path, damage: str):
    other = build(place, OTHER)
    store = other / "store.db"
    match damage:
        case "noise":
            store.write_bytes(b"noise" * 1000)
        case "empty":
            store.write_bytes(b"")
        case "another program's":
            store.unlink()
            run_sql(other, "CREATE TABLE theirs (x)")
        case _:
            store.unlink()
            store.mkdir()
    found = SiblingVectors(place / OWN)
    assert found.find("words@1", [b"x" * 16]) == {}
    assert found.skipped == 1
    second = CountingEmbedder()
    build(place, OWN, second)
    assert len(second.texts) == 2


def test_a_variant_that_is_being_written_does_not_keep_anyone_waiting(place: Path):
    other = build(place, OTHER)
    with closing(sqlite3.connect(other / "store.db", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        second = CountingEmbedder()
        build(place, OWN, second)
    assert second.texts == []  # of a log, readers see what was before


def test_an_unused_variant_is_dropped(place: Path):
    own, other, third = (build(place, name) for name in (OWN, OTHER, THIRD))
    age(own, 1)
    age(other, 31)
    age(third, 29)
    assert drop_unused(own, NOW) == (other,)
    assert names(place) == sorted([OWN, THIRD])


def test_a_folder_that_cannot_be_renamed_while_it_is_locked_loses_its_store(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    own, other = build(place, OWN), build(place, OTHER)
    age(other, 31)
    rename = Path.rename

    def refuse_folders(path: Path, target: Path) -> Path:
        """As Windows does, where a file in the folder is open."""
        if path.is_dir():
            raise PermissionError(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_folders)
    assert drop_unused(own, NOW) == (other,)
    assert siblings(own) == []
    assert names(place) == sorted([OWN, OTHER])
    assert {path.name for path in other.iterdir()} == {WRITE_LOCK, WATCH_LOCK, "ragdocs-index.txt"}
    build(place, OTHER)
    assert [one.path for one in siblings(own)] == [other]


def test_a_variant_that_was_just_made_drops_others_too(place: Path):
    own, other = build(place, OWN), build(place, OTHER)
    (own / USED_FILE).unlink(missing_ok=True)
    age(other, 31)
    assert drop_unused(own, NOW) == (other,)


def test_a_store_of_before_there_were_variants_is_dropped_like_one(place: Path):
    build(place)
    own = build(place, OWN)
    write(place, "mine.txt", "not the program's")
    for name in ("store.db", "store.seal"):
        os.utime(place / name, (NOW - 31 * DAY_SECONDS,) * 2)
    assert drop_unused(own, NOW) == (place,)
    left = {path.name for path in place.iterdir()} - {WRITE_LOCK, WATCH_LOCK, "ragdocs-index.txt"}
    assert left == {OWN, "mine.txt"}
    assert siblings(own) == []


@pytest.mark.parametrize("lock", [WRITE_LOCK, WATCH_LOCK])
def test_a_variant_that_someone_works_with_is_never_dropped(place: Path, lock: str):
    own, other = build(place, OWN), build(place, OTHER)
    age(other, 300)
    held = try_lock(other / lock)
    assert held is not None
    with held:
        assert drop_unused(own, NOW) == ()
    assert drop_unused(own, NOW) == (other,)


def test_a_folder_with_something_else_in_it_is_left_as_it_is(place: Path):
    own, other = build(place, OWN), build(place, OTHER)
    write(other, "thesis.md", "years of work")
    age(other, 300)
    assert drop_unused(own, NOW) == ()
    assert (other / "thesis.md").read_text() == "years of work"
    assert (other / "store.db").exists()


@pytest.mark.parametrize(
    "path",
    [
        "keyword-mine/thesis.txt",
        "keyword-whoosh/thesis.txt",
        "keyword-whoosh/00000002-d2ebeec2/thesis.txt",
        "keyword-tantivy/drafts/meta.json",
    ],
)
def test_other_files_in_the_folder_of_an_engine_are_never_deleted(place: Path, path: str):
    own, other = build(place, OWN), build(place, OTHER)
    write(other, path, "years of work")
    age(other, 300)
    assert drop_unused(own, NOW) == ()
    assert (other / path).read_text() == "years of work"


def test_other_files_beside_a_store_of_before_there_were_variants_are_left(place: Path):
    build(place)
    own, path = build(place, OWN), "keyword-mine/thesis.txt"
    write(place, path, "years of work")
    age(place, 300)
    assert drop_unused(own, NOW) == (place,)
    assert (place / path).read_text() == "years of work"


@pytest.mark.parametrize("engine", ["whoosh", "tantivy"])
def test_the_files_of_an_engine_are_dropped_with_its_index(place: Path, engine: str):
    own, other = build(place, OWN), build(place, OTHER)
    corpus = FolderCorpus(place.parent / "corpus", NOTES, engine)
    corpus.search("engine")
    corpus.files.rename(other / corpus.files.name)
    age(other, 300)
    assert drop_unused(own, NOW) == (other,)
    assert names(place) == [OWN]


def test_a_link_is_not_followed(place: Path, tmp_path: Path):
    own, elsewhere = build(place, OWN), build(tmp_path / "elsewhere", OTHER)
    (place / OTHER).symlink_to(elsewhere)
    age(elsewhere, 300)
    assert drop_unused(own, NOW) == ()
    assert (elsewhere / "store.db").exists()


def test_a_time_in_the_future_is_not_unused_and_counts_from_now_on(place: Path):
    own, other = build(place, OWN), build(place, OTHER)
    age(other, -400)
    assert drop_unused(own, NOW) == ()
    assert last_used(other) == pytest.approx(NOW, abs=1)
    age(own, -30.5)
    assert drop_unused(own, NOW + 31 * DAY_SECONDS) == (other,)


@pytest.mark.parametrize("days", [31, 4000, -2])
def test_a_clock_that_jumped_drops_nothing_at_first(place: Path, days: float):
    """Seen by this variant's own mark: it looks as unused as the others, or used in the future."""
    own, other = build(place, OWN), build(place, OTHER)
    age(own, days)
    age(other, 40)
    assert drop_unused(own, NOW) == ()
    assert drop_unused(own, NOW + DAY_SECONDS) == (other,)


def test_what_a_kill_left_of_a_variant_is_deleted_the_next_time(place: Path):
    own, other = build(place, OWN), build(place, OTHER)
    left = other.rename(place / f"dropped-{'1' * 16}")
    (left / "store.db").unlink()
    assert siblings(own) == []
    write(place, f"dropped-{'0' * 16}/thesis.md", "years of work")
    drop_unused(own, NOW)
    assert names(place) == sorted([OWN, f"dropped-{'0' * 16}"])


def test_a_process_that_waited_for_a_dropped_variants_lock_starts_over(place: Path):
    own, other = build(place, OWN), build(place, OTHER)
    age(other, 31)
    drop_unused(own, NOW)
    again = CountingEmbedder()
    assert build(place, OTHER, again) == other
    assert again.texts == []


def test_use_is_noted_once_a_day(place: Path):
    own = build(place, OWN)
    for days, expected in ((0.5, 0.5), (1.5, 0.0), (-1, 0.0)):
        age(own, days)
        note_use(own, NOW)
        found = last_used(own)
        assert found == pytest.approx(NOW - expected * DAY_SECONDS, abs=1)
