"""Random file operations while servers run: what they keep in step is what a fresh build holds."""

from tests.support.storms.machine import assert_random_operations_converge
from tests.support.storms.seeds import storm_seed


def test_servers_that_followed_random_operations_hold_what_a_fresh_build_holds():
    assert_random_operations_converge(storm_seed(), examples=4, steps=20)
