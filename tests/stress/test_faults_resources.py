"""Every kind of lack, at every time; and on real file systems, where some can be mounted."""

import pytest

from tests.support.faults.hardship import Hardship
from tests.support.faults.trouble import (
    Filled,
    Forbidden,
    Remounted,
    few_descriptors,
    full_disk,
    read_only,
    shim_for,
    small_disk,
    small_files,
)
from tests.support.machine import bound_by_permissions

WATCHED_SECONDS = 10.0


@pytest.fixture
def index(tmp_path):
    return tmp_path / "index"


@pytest.fixture
def assert_endured(measured):
    def assert_endured(hardship, server, trouble, *, is_answered=True):
        figures = hardship.endure(server, trouble, is_answered=is_answered, seconds=WATCHED_SECONDS)
        measured(f"a server in trouble ({_name(trouble)})", **figures)
        assert figures["cpu_seconds"] < 0.05 * WATCHED_SECONDS

    return assert_endured


def _name(trouble):
    about = getattr(trouble, "_fault", None) or getattr(trouble, "_which", "")
    return f"{type(trouble).__name__} {about}".strip()


def test_under_a_server_one_after_the_other(tmp_path, index, assert_endured):
    shim, hardship = shim_for(tmp_path, index), Hardship(tmp_path, index)
    with hardship.server(shim.environment) as server:
        hardship.settle(server)
        for trouble in (full_disk(shim), read_only(shim), few_descriptors(), small_files()):
            trouble.begin(server)
            assert_endured(hardship, server, trouble)


@pytest.mark.parametrize("make", [full_disk, read_only])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_from_the_start(tmp_path, index, assert_endured, make, is_indexed):
    hardship = Hardship(tmp_path, index)
    if is_indexed:
        hardship.index_now()
    trouble = make(shim := shim_for(tmp_path, index))
    trouble.begin(None)
    with hardship.server(shim.environment) as server:
        assert_endured(hardship, server, trouble, is_answered=is_indexed)


@pytest.mark.parametrize("is_running", [False, True])
def test_without_the_right_to_write_what_is_there_is_read(
    tmp_path, index, assert_endured, is_running
):
    hardship, trouble = Hardship(tmp_path, index), Forbidden(index)
    hardship.index_now()
    if not is_running:
        trouble.begin(None)
    with bound_by_permissions(), hardship.server() as server:
        if is_running:
            hardship.settle(server)
            trouble.begin(server)
        assert_endured(hardship, server, trouble)


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        if made is None:
            pytest.skip("nothing can be mounted here")
        yield made


def test_a_real_disk_that_is_full(tmp_path, disk, assert_endured):
    hardship, trouble = Hardship(tmp_path, disk), Filled(disk)
    with hardship.server() as server:
        hardship.settle(server)
        trouble.begin(server)
        assert_endured(hardship, server, trouble)


def test_a_real_disk_that_is_read_only(tmp_path, disk, assert_endured):
    hardship, trouble = Hardship(tmp_path, disk), Remounted(disk)
    hardship.index_now()
    trouble.begin(None)
    with hardship.server() as server:
        assert_endured(hardship, server, trouble)
