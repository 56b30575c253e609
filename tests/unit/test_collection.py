"""The garbage collector rests while much is made and kept, and only then."""

import gc

import pytest

from ragdocs.memory import NEW_OBJECTS, collect_seldom, no_collection


@pytest.fixture(autouse=True)
def as_before():
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable() if was_enabled else gc.disable()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_it_is_afterwards_as_it_was_before(is_enabled):
    gc.enable() if is_enabled else gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled() == is_enabled


def test_collection_resumes_after_an_error():
    gc.enable()
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()


def test_what_a_request_makes_is_dropped_before_it_counts_as_long_lived():
    gc.collect()
    collect_seldom()
    made = [[] for _ in range(NEW_OBJECTS // 2)]
    assert gc.get_count()[1] == 0
    assert len(made) > 700 * 10
    assert gc.get_threshold()[1:] == (10, 10)
