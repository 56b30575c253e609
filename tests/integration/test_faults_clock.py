"""The clock is set back, and with it the times of files that are written then: it converges."""

import os

import pytest

from ragdocs.indexing.session import Control
from tests.support.faults.hardship import Hardship
from tests.support.faults.trouble import shim_for
from tests.support.indexes import Place, did, later

DAY_SECONDS = 86_400
DAY_NS = DAY_SECONDS * 10**9
CONVERGED_SECONDS = 30.0
"""Three times what is promised: other tests run beside this one."""


class Clock:
    """The time as a manager is told it."""

    def __init__(self):
        self.behind = 0

    def __call__(self):
        return later() - self.behind


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def place(tmp_path, clock):
    made = Place(tmp_path)
    made.manager = made.another(Control(clock_ns=clock))
    made.write("kept.md", "# Kept\n\nA lark.\n")
    made.write("edited.md", "# Edited\n\nA lark.\n")
    made.update()
    assert did(made.update()) == {"unchanged": 2}
    clock.behind = DAY_NS
    yield made
    made.manager.close()


def set_back(path, ns=DAY_NS):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - ns))


def test_an_edit_of_the_same_size_and_time_is_seen_though_the_clock_went_back(place):
    """Neither of the file's times is later than the reading, which was in the future then."""
    path = place.root / "edited.md"
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"lark", b"owls"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert did(place.update()) == {"modified": 1, "unchanged": 1}
    assert place.is_as_new()


def test_files_of_the_time_that_comes_again_are_seen(place):
    set_back(place.write("edited.md", "# Edited\n\nAn owl.\n"))
    set_back(place.write("new.md", "# New\n\nAn owl.\n"))
    assert did(place.update()) == {"added": 1, "modified": 1, "unchanged": 1}
    assert did(place.update()) == {"unchanged": 3}
    assert place.is_as_new()


def test_a_server_whose_clock_goes_back_stays_up_to_date(tmp_path):
    index = tmp_path / "index"
    shim, hardship = shim_for(tmp_path, index), Hardship(tmp_path, index)
    with hardship.server(shim.environment) as server:
        hardship.settle(server)
        shim.set_clock(-DAY_SECONDS)
        assert hardship.edit(server, set_back) <= CONVERGED_SECONDS
        shim.set_clock(DAY_SECONDS)
        assert hardship.edit(server) <= CONVERGED_SECONDS
    shim.set_clock(-DAY_SECONDS)
    with hardship.server(shim.environment) as server:
        hardship.settle(server)
        assert hardship.edit(server, set_back) <= CONVERGED_SECONDS
