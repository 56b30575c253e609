"""The garbage collector rests while much is made and kept, and only then."""

import gc

import pytest

from ragdocs.store.collection import no_collection


@pytest.fixture(autouse=True)
def as_before():
    was_enabled = gc.isenabled()
    yield
    gc.enable() if was_enabled else gc.disable()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_it_is_afterwards_as_it_was_before(is_enabled):
    gc.enable() if is_enabled else gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled() == is_enabled


def test_whatever_happens_it_goes_on():
    gc.enable()
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()
