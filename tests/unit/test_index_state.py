"""What is said of the index: by its state, and in words."""

from pathlib import Path

import pytest

from ragdocs.indexing import update
from ragdocs.search.responses import IndexState, IndexStates, Readiness
from ragdocs.store.reader import Reader
from tests.support.engine import Engine
from tests.support.indexes import Place
from tests.support.stores import index_over

NOTES = {"a.md": "# A\n\nsome words\n", "b.md": "# B\n\nother words\n"}


def state(readiness: Readiness, **given) -> IndexState:
    usual = {
        "complete": False,
        "generation": 7,
        "documents": 1200,
        "passages": 2000,
        "vectors_pending": 0,
        "failed_files": 0,
        "files_waiting": 0,
    }
    return IndexState(readiness, **{**usual, **given})


READY, BUILDING = Readiness.READY, Readiness.BUILDING
DEGRADED, UNAVAILABLE = Readiness.DEGRADED, Readiness.UNAVAILABLE


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (state(READY), "ready: 1,200 documents, 2,000 passages"),
        (state(READY, documents=1, passages=1), "ready: 1 document, 1 passage"),
        (
            state(READY, failed_files=2),
            "ready: 1,200 documents, 2,000 passages; 2 files could not be indexed",
        ),
        (state(BUILDING, files_waiting=120), "building: 120 files to be read"),
        (state(BUILDING, files_waiting=1), "building: 1 file to be read"),
        (state(BUILDING, files_waiting=None), "building: not all files have been read yet"),
        (
            state(BUILDING, vectors_pending=1660),
            "building: 340 of 2,000 passages have vectors",
        ),
        (state(DEGRADED), "degraded: search uses keywords only"),
        (state(DEGRADED, reason="no model was found"), "degraded: no model was found"),
        (state(UNAVAILABLE), "unavailable: there is nothing to search yet"),
        (state(UNAVAILABLE, reason="it is damaged"), "unavailable: it is damaged"),
    ],
)
def test_a_state_in_words(given: IndexState, words: str):
    assert given.in_words() == words


def test_text_that_is_still_to_come_makes_it_building(tmp_path: Path):
    with Engine(tmp_path, NOTES) as engine:
        assert engine.ask("words").index.state is READY
        for waiting in (5, 0):
            with engine.writer.transaction() as transaction:
                transaction.expect(waiting)
            found = engine.ask("words").index
            assert found.files_waiting == waiting
            assert found.state is (BUILDING if waiting else READY)
            assert found.complete is not bool(waiting)


def test_without_vectors_the_files_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Degraded is what waiting does not mend."""
    monkeypatch.setattr(update, "FILES_PER_BATCH", 1)
    place = Place(tmp_path)
    place.write("a.md", "# A\n")
    place.manager.open()
    states = IndexStates()
    with Reader.open(place.index) as reader:
        index = index_over(reader)
        with index.view(for_search=False) as view:
            assert states.of(view, has_vectors=True).state is BUILDING
        place.manager.update()
        with index.view(for_search=False) as view:
            found = states.of(view, has_vectors=True)
    place.manager.close()
    assert (found.state, found.files_waiting, found.complete) == (DEGRADED, 0, False)
