"""`rebuild-index` again and again while servers watch, and files change meanwhile."""

import pytest

from tests.support.faults.rebuilding import Rebuilding

FILES = 1000
REBUILDS = 3


@pytest.mark.parametrize("watch", [True, False], ids=["watching", "not watching"])
def test_rebuilds_from_a_terminal_while_two_servers_run(tmp_path, seed, measured, watch):
    with Rebuilding(tmp_path, seed, FILES, watch=watch) as scene:
        scene.start(servers=2)
        followed = []
        for _ in range(REBUILDS):
            scene.edit(20)
            said = scene.rebuild()
            assert said["complete"]
            assert said["pid"] in scene.figures.wrote
            scene.follow()
            followed.append(scene.figures.follow)
        assert scene.end() == [(0, "")] * 2
        wrong = scene.figures.wrong + scene.differences()
    measured(
        f"rebuild-index under 2 servers ({'watching' if watch else 'not watching'})",
        rebuilds=REBUILDS,
        files=FILES,
        answers=scene.figures.answers,
        wrong=len(wrong),
        slowest_rebuild_seconds=scene.figures.seconds,
        slowest_follow_seconds=max(followed),
    )
    assert wrong == []
    assert scene.figures.answers > 0
    assert max(followed) <= 10
