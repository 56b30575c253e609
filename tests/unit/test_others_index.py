"""An index in a folder that the user has named, made by a program with other settings: it is left
to that one, until somebody asks for a rebuild.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragdocs.config.fingerprint import Making, differences, read_making
from ragdocs.errors import OtherFolders, OtherSettings, OthersIndex, OtherVersion
from ragdocs.indexing.manager import IndexManager
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import Place, did, settled
from tests.support.stores import FINGERPRINT, file, put, run_sql


def making(root: str = "/notes", **more: object) -> Making:
    tree = {"docs": {"path": root, "include": ["**/*.md"], "exclude": []}}
    return Making(3, {"tree": tree, **more}, {"keyword": "1"})


OURS = making(chunking={"max_leaf_chars": 900}, search={"stemmer": "english"})
THEIRS = making(chunking={"max_leaf_chars": 1500}, search={"stemmer": "german"})


@pytest.fixture
def place(tmp_path: Path):
    made = Place(tmp_path)
    made.write("a.md", "# A\n")
    made.manager = ours(made)
    made.update()
    yield made
    made.manager.close()


def ours(place: Place) -> IndexManager:
    return place.another(
        settled(), fingerprint=OURS.fingerprint, settings=OURS.text, owns_directory=False
    )


@pytest.fixture
def other(place: Place) -> Iterator[IndexManager]:
    given = {"fingerprint": THEIRS.fingerprint, "settings": THEIRS.text, "owns_directory": False}
    with place.another(settled(), **given) as manager:
        yield manager


def contents(directory: Path) -> dict[str, bytes]:
    """All but the memory that readers share, and the log that they may leave, which is empty."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if not path.name.endswith("-shm") and path.stat().st_size
    }


def test_the_differences_are_told_with_both_values():
    found = {one.key: (one.stored, one.own) for one in differences(THEIRS, OURS)}
    assert found == {
        "chunking.max_leaf_chars": ("1500", "900"),
        "search.stemmer": ('"german"', '"english"'),
    }


def test_what_is_stored_is_read_back():
    assert read_making(THEIRS.text) == THEIRS
    for text in ("", "[]", "{}", '{"settings": 1}', "{" * 100_000, '{"schema": "x"}'):
        assert read_making(text) is None


@pytest.mark.parametrize("is_open", [True, False])
def test_an_index_of_other_settings_is_never_written(
    place: Place, other: IndexManager, is_open: bool
):
    if not is_open:
        place.manager.close()
    before = contents(place.index)
    place.write("b.md", "# B\n")
    for attempt in (other.update, other.open, other.check_ours):
        with pytest.raises(OtherSettings) as caught:
            attempt()
        for said in ("chunking.max_leaf_chars: 900 there, 1500 here", "rebuild-index"):
            assert said in str(caught.value)
    assert "other settings" in other.fill().error
    assert contents(place.index) == before
    if is_open:
        assert did(place.update()) == {"added": 1, "unchanged": 1}


def test_a_rebuild_takes_it_over_and_the_first_leaves_it_then(place: Place, other: IndexManager):
    outcome = other.update(rebuild=True)
    assert did(outcome) == {"added": 1}
    assert outcome.taken_over
    assert "other settings" in (outcome.rebuilt or "")
    place.write("b.md", "# B\n")
    for attempt in (place.update, lambda: place.update("b.md"), place.manager.open):
        with pytest.raises(OtherSettings):
            attempt()
    outcome = other.update()
    assert (did(outcome), outcome.taken_over) == ({"added": 1, "unchanged": 1}, False)
    assert place.update(rebuild=True).taken_over
    with pytest.raises(OtherSettings):
        other.update()


def test_a_rebuild_that_takes_over_keeps_the_vectors(place: Place, other: IndexManager):
    before = len(place.embedder.texts)
    other.update(rebuild=True)
    assert other.fill().stored == 0
    place.update(rebuild=True)
    assert len(place.embedder.texts) == before


def test_an_index_of_other_folders_is_refused_and_both_are_named(place: Place):
    elsewhere = making("/elsewhere")
    given = {"fingerprint": elsewhere.fingerprint, "settings": elsewhere.text}
    with (
        place.another(settled(), **given, owns_directory=False) as manager,
        pytest.raises(OtherFolders) as caught,
    ):
        manager.update()
    assert "/notes (docs)" in str(caught.value)
    assert "/elsewhere (docs)" in str(caught.value)


def test_absence_and_damage_are_repaired(place: Place):
    place.manager.close()
    place.manager = ours(place)
    store = place.index / "store.db"
    store.write_bytes(b"not a database at all" * 100)
    assert did(place.update()) == {"added": 1}
    for name in os.listdir(place.index):
        if name.startswith("store.db"):
            (place.index / name).unlink()
    assert did(place.update()) == {"added": 1}


@pytest.mark.parametrize("header", ["user_version", "application_id"])
def test_a_damaged_header_does_not_make_it_anothers(place: Place, header: str):
    place.manager.close()
    run_sql(place.index, f"PRAGMA {header} = 77")
    place.manager = ours(place)
    outcome = place.update()
    assert outcome.rebuilt
    assert not outcome.taken_over
    assert did(outcome) == {"added": 1}


def test_a_store_of_another_version_is_left_alone(tmp_path: Path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    run_sql(tmp_path, "PRAGMA user_version = 77")
    run_sql(tmp_path, "ALTER TABLE meta ADD COLUMN novelty TEXT")
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(OtherVersion, match="schema 77"):
        StoreWriter.open(tmp_path, FINGERPRINT, takes_over=False)
    assert (tmp_path / "store.db").read_bytes() == before
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert "schema 77" in (writer.rebuilt or "")
        assert writer.took_over


def test_a_variants_own_folder_is_repaired_whatever_is_in_it(tmp_path: Path):
    """Nobody else would look for an index there."""
    place = Place(tmp_path)
    place.write("a.md", "# A\n")
    place.update()
    with place.another(settled(), fingerprint="other") as manager:
        assert did(manager.update()) == {"added": 1}
    place.manager.close()


def test_readers_say_whose_it_is(place: Place):
    with pytest.raises(OthersIndex) as caught:
        Reader.open(place.index, THEIRS.fingerprint, settings=THEIRS.text)
    assert caught.value.stored == OURS.text
