"""Every file of the index, damaged in every way: 0 wrong answers, 0 crashes, healed in 15 s."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.faults.damage import pairs_of, shapes_of
from tests.support.faults.scene import Scene

HEALED_SECONDS = 15.0


def at_rest(folder, engine, seed, heal=Scene.heal_at_rest):
    scene = Scene(folder, engine)
    return [
        heal(scene, left, pair, seed)
        for left in scene.at_rest
        for pair in pairs_of(_shapes(left, engine))
    ]


def under_servers(folder, engine, seed, servers):
    scene = Scene(folder, engine)
    with scene.running(servers) as running:
        pairs = pairs_of(_shapes(running.index, engine))
        seconds = [running.heal(pair, seed) for pair in pairs]
        assert running.end() == [0] * servers
    return [each for each in seconds if each is not None]


def _shapes(index, engine):
    """What the engines have in common need not be damaged under each of them."""
    shapes = shapes_of(index)
    return shapes if engine == "fts5" else [name for name in shapes if name.startswith("keyword")]


def assert_healed(measured, what, seconds):
    measured(what, damages=len(seconds), slowest_seconds=max(seconds))
    assert max(seconds) < HEALED_SECONDS


@pytest.mark.parametrize("engine", ["fts5", "whoosh", "tantivy"])
@pytest.mark.parametrize("round_", range(2))
def test_at_rest(tmp_path, seed, measured, engine, round_):
    seconds = at_rest(tmp_path, engine, f"{seed} {round_}")
    assert_healed(measured, f"a file damaged at rest ({engine})", seconds)


@pytest.mark.parametrize("engine", ["fts5", "whoosh", "tantivy"])
def test_at_rest_without_a_server(tmp_path, seed, measured, engine):
    seconds = at_rest(tmp_path, engine, seed, Scene.heal_by_command)
    assert_healed(measured, f"a file damaged at rest, by a command ({engine})", seconds)


def test_under_servers(tmp_path, seed, measured):
    """Side by side: most of the time they wait for the next look."""
    runs = [("fts5", 1), ("fts5", 2), ("whoosh", 1), ("tantivy", 1)]
    with ThreadPoolExecutor(len(runs)) as pool:
        begun = {
            (engine, servers): pool.submit(
                under_servers, tmp_path / f"{engine}{servers}", engine, seed, servers
            )
            for engine, servers in runs
        }
        for (engine, servers), running in begun.items():
            assert_healed(
                measured, f"a file damaged under {servers} server(s) ({engine})", running.result()
            )


@pytest.mark.parametrize("side", ["store.db-shm", "store.db-wal"])
def test_a_server_that_comes_after_a_side_file_was_deleted_sees_what_others_write(
    tmp_path, seed, side
):
    """Who still has the deleted one open would write what nobody else ever sees."""
    with Scene(tmp_path).running() as running:
        running.heal((side, "deleted"), seed)
        running.start()
        running.go_on()
        assert running.end() == [0, 0]
