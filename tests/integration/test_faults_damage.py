"""Files of the index are damaged: answers are right or said not to be, and soon right again.

Some pairs of file and damage; `make stress` has them all, and those of the other keyword engines.
"""

import pytest

from tests.support.faults.damage import shapes_of, some_pairs
from tests.support.faults.scene import Scene
from tests.support.machine import until
from tests.support.program import ask, served

SEED = 4
HEALED_SECONDS = 45.0
"""Three times what `make stress` allows: other tests run beside these."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("damage"), patience=HEALED_SECONDS)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    ("heal", "by"), [(Scene.heal_at_rest, "rest"), (Scene.heal_by_command, "command")]
)
def test_damage_at_rest_is_repaired_by_the_next_start_or_update(scene, number, heal, by):
    """Commands, and programs that open an index, have no indexing thread that would look."""
    left = scene.at_rest[number % 2]
    pair = some_pairs(shapes_of(left), 4, f"{SEED} {by}")[number]
    print(f"seed {SEED}: {left.name} {pair}")  # noqa: T201
    assert heal(scene, left, pair, SEED) < scene.patience


def test_damage_under_a_server_is_repaired_without_a_restart(scene):
    with scene.running() as running:
        # Cut short under a process that has it mapped, it would end the process.
        pairs = [("store.db-shm", "emptied"), ("store.db", "old file")]
        for pair in pairs + some_pairs(shapes_of(running.index), 3, f"{SEED} run"):
            print(f"seed {SEED}: {pair}")  # noqa: T201
            running.heal(pair, SEED)
        assert running.end() == [0]


def test_damage_under_two_servers_is_told_by_both(scene):
    """Each has seen other commits, and one of them writes what the other must see."""
    with scene.running(2) as running:
        for pair in [("store.db-shm", "deleted"), ("store.db-wal", "old content")]:
            running.heal(pair, SEED)
        assert running.end() == [0, 0]


def test_a_header_of_a_format_that_sqlite_only_reads_is_damage(scene):
    """It was said to be opened when it was read-only, by servers and commands, for ever."""
    index = scene.copy_index(scene.at_rest[0])
    with (index / "store.db").open("r+b") as store:
        store.seek(18)
        store.write(b"\x0a")
    with served(scene.docs, index, **scene.sections) as app:
        assert not ask(app, "anchor").index.complete
        with app.manager() as manager:
            assert "its header" in manager.update().rebuilt
            manager.fill()
        until(lambda: ask(app, "anchor").index.complete)
