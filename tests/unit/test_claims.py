"""Two programs of different settings on one index directory: one has it, the other is told."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragdocs.errors import IndexIncompatible
from ragdocs.indexing.manager import IndexManager
from ragdocs.store.reader import Reader
from ragdocs.store.records import Position
from ragdocs.store.writer import Writer
from tests.managed_index import Place, did, settled
from tests.store_builder import FINGERPRINT, file, put


@pytest.fixture
def place(tmp_path: Path):
    made = Place(tmp_path)
    made.write("a.md", "# A\n")
    made.update()
    yield made
    made.manager.close()


@pytest.fixture
def other(place: Place) -> Iterator[IndexManager]:
    with place.another(settled(), fingerprint="other") as manager:
        yield manager


def position(place: Place) -> Position:
    with Reader.open(place.index) as reader:
        return reader.position()


def run_sql(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize("is_open", [True, False])
def test_who_does_not_claim_the_index_leaves_it_to_who_does(
    place: Place, other: IndexManager, is_open: bool
):
    if not is_open:
        place.manager.close()
        place.manager = place.another(settled())
    assert place.manager.claims
    place.manager.claims = False
    assert did(other.update()) == {"added": 1}
    before = position(place)
    place.write("b.md", "# B\n")
    for attempt in (
        place.update,
        lambda: place.update("b.md"),
        lambda: place.update(rebuild=True),
        place.manager.open,
    ):
        with pytest.raises(IndexIncompatible, match="other settings"):
            attempt()
    assert place.manager.fill().error
    assert position(place) == before
    assert did(other.update()) == {"added": 1, "unchanged": 1}


def test_it_works_again_when_the_index_is_given_back(place: Place, other: IndexManager):
    place.manager.claims = other.claims = False
    with place.another(settled(), fingerprint="other") as taking:
        taking.update()
    with pytest.raises(IndexIncompatible):
        place.manager.update()
    assert did(other.update()) == {"unchanged": 1}
    with place.another() as giving_back:
        giving_back.update()
    place.write("b.md", "# B\n")
    assert did(place.update()) == {"added": 1, "unchanged": 1}
    assert place.is_as_new()
    with pytest.raises(IndexIncompatible):
        other.update()


def test_claiming_it_again_takes_it_back(place: Place, other: IndexManager):
    place.manager.claims = False
    other.update()
    with pytest.raises(IndexIncompatible):
        place.manager.update()
    place.manager.claims = True
    assert did(place.update()) == {"added": 1}
    assert place.is_as_new()


def test_absence_and_damage_are_repaired_without_a_claim(place: Place):
    place.manager.claims = False
    place.manager.close()
    place.manager = place.another(settled())
    place.manager.claims = False
    store = place.index / "store.db"
    store.write_bytes(b"not a database at all" * 100)
    assert did(place.update()) == {"added": 1}
    assert place.is_as_new()
    for name in os.listdir(place.index):
        if name.startswith("store.db"):
            (place.index / name).unlink()
    assert did(place.update()) == {"added": 1}
    assert place.is_as_new()


@pytest.mark.parametrize("header", ["user_version", "application_id"])
def test_a_damaged_header_does_not_make_it_anothers(tmp_path: Path, header: str):
    with Writer.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    run_sql(tmp_path / "store.db", f"PRAGMA {header} = 77")
    with Writer.open(tmp_path, FINGERPRINT, may_empty=False) as writer:
        assert writer.rebuilt
        put(writer, file("a.md"))


def test_a_store_of_another_version_is_left_alone_without_a_claim(tmp_path: Path):
    with Writer.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    run_sql(tmp_path / "store.db", "PRAGMA user_version = 77")
    run_sql(tmp_path / "store.db", "ALTER TABLE meta ADD COLUMN novelty TEXT")
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(IndexIncompatible, match="schema 77"):
        Writer.open(tmp_path, FINGERPRINT, may_empty=False)
    assert (tmp_path / "store.db").read_bytes() == before
    with Writer.open(tmp_path, FINGERPRINT) as writer:
        assert "schema 77" in (writer.rebuilt or "")
