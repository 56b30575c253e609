"""Indices inside the store that a program does not find as it needs them."""

from pathlib import Path

import pytest

from ragdocs.errors import IndexIncompatible
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.indices.vocabulary import VocabularyIndex
from ragdocs.store.database import Database
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import ENGLISH, Place, did, held, settled, tables
from tests.support.stores import FINGERPRINT, file, put


class NewerSignatures(SignatureIndex):
    """As a later version of the program might make them."""

    version = "2"


OLD = (SignatureIndex(),)
WITH_WORDS = (SignatureIndex(), VocabularyIndex(ENGLISH))


@pytest.mark.parametrize(
    ("needed", "named"), [(WITH_WORDS, "vocabulary"), ((NewerSignatures(),), "signatures")]
)
def test_an_index_that_lacks_what_is_needed_is_incompatible(tmp_path: Path, needed, named: str):
    """A missing table would look like damage, and one of another version like an answer."""
    with StoreWriter.open(tmp_path, FINGERPRINT, indices=OLD) as writer:
        put(writer, file("a.md"))
    with pytest.raises(IndexIncompatible, match=rf"{named}\): update the index"):
        Reader.open(tmp_path, FINGERPRINT, indices=needed)
    with Reader.open(tmp_path, FINGERPRINT, indices=OLD):
        StoreWriter.open(tmp_path, FINGERPRINT, indices=needed).close()
    with Reader.open(tmp_path, FINGERPRINT, indices=needed) as reader:
        assert reader.position().generation == 2


def test_an_index_that_missed_a_commit_is_not_asked(tmp_path: Path):
    """By a program that does not keep these words: they would be those of before."""
    with StoreWriter.open(tmp_path, FINGERPRINT, indices=WITH_WORDS) as writer:
        put(writer, file("a.md"))
        with (
            Reader.open(tmp_path, indices=WITH_WORDS) as reader,
            StoreWriter.open(tmp_path, FINGERPRINT, indices=OLD) as other,
        ):
            put(other, file("b.md"))
            with pytest.raises(IndexIncompatible, match="vocabulary"):
                reader.position()
            with writer.transaction():
                pass  # nothing to do but to catch up
            assert reader.position() == other.position


def test_readers_never_see_an_emptied_store_without_its_indices(tmp_path: Path):
    seen: list[str] = []

    class Looking(SignatureIndex):
        def create(self, database: Database) -> None:
            super().create(database)
            with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
                seen.append(snapshot.fingerprint)

    StoreWriter.open(tmp_path, "others").close()
    with StoreWriter.open(tmp_path, FINGERPRINT, indices=(Looking(),)) as writer:
        assert writer.rebuilt
    assert seen == ["others"]


def test_an_update_with_nothing_to_read_brings_them_up(tmp_path: Path):
    """As after another keyword engine was chosen, with which files were edited."""
    place = Place(tmp_path)
    place.write("a.md", "# A\n")
    place.update()
    place.manager.close()
    place.manager = place.another(settled(), tables=tables()[:-1])
    place.write("b.md", "# Zebra\n")
    place.update()
    place.manager.close()
    place.manager = place.another(settled())
    outcome = place.update()
    assert (did(outcome), outcome.rebuilt) == ({"unchanged": 2}, None)
    with Reader.open(place.index, indices=tables()) as reader, reader.snapshot() as snapshot:
        assert snapshot.select("SELECT documents FROM vocabulary WHERE word = 'zebra'") == [(1,)]
    held(place.index)
    place.manager.close()
