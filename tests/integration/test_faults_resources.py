"""A full disk, no descriptors left, an index that must not be written: said, lived with, healed."""

from tests.support.faults.hardship import Hardship
from tests.support.faults.trouble import Forbidden, few_descriptors, full_disk, read_only, shim_for
from tests.support.machine import bound_by_permissions

HEALED_SECONDS = 90.0
"""Three times what `make stress` allows: other tests run beside these."""
CPU_SHARE = 0.3
"""Of a core, for one or two attempts in a second; a busy loop takes all of it."""


def assert_endured(hardship, server, trouble):
    assert hardship.endure(server, trouble, is_answered=True)["cpu_seconds"] < CPU_SHARE


def test_a_server_reports_what_is_missing_and_recovers(tmp_path, index):
    shim, hardship = shim_for(tmp_path, index), Hardship(tmp_path, index, HEALED_SECONDS)
    with hardship.server(shim.environment) as server:
        hardship.settle(server)
        for trouble in (full_disk(shim), few_descriptors()):
            trouble.begin(server)
            assert_endured(hardship, server, trouble)


def test_an_index_that_was_read_only_at_the_start_is_written_later(tmp_path, index):
    hardship = Hardship(tmp_path, index, HEALED_SECONDS)
    hardship.index_now()
    trouble = read_only(shim := shim_for(tmp_path, index))
    trouble.begin(None)
    with hardship.server(shim.environment) as server:
        assert_endured(hardship, server, trouble)


def test_without_the_right_to_write_what_is_there_is_read(tmp_path, index):
    hardship, trouble = Hardship(tmp_path, index, HEALED_SECONDS), Forbidden(index)
    hardship.index_now()
    trouble.begin(None)
    with bound_by_permissions(), hardship.server() as server:
        assert_endured(hardship, server, trouble)
