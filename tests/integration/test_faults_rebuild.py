"""`rebuild-index` while two servers run: its lock, its progress, and how the servers follow."""

from tests.support.faults.rebuilding import Rebuilding
from tests.support.storms.seeds import storm_seed

FILES = 60
FOLLOWED_SECONDS = 30.0
"""Three times what `make stress` allows: other tests run beside this one."""


def test_servers_answer_through_a_rebuild_from_a_terminal_and_then_from_what_it_made(tmp_path):
    """They do not watch: only the command can have told them of the edits."""
    with Rebuilding(tmp_path, storm_seed(), FILES, watch=False) as scene:
        scene.start(servers=2)
        before = scene.edit(5)
        for path, word in before.items():
            assert scene.holders(word) == [{path}] * 2
        said = scene.rebuild()
        scene.follow()
        for path, word in before.items():
            assert scene.holders(word) == [set()] * 2
            assert scene.holders(scene.editor.words[path]) == [{path}] * 2
        assert scene.end() == [(0, "")] * 2
        assert scene.differences() == []
    figures = scene.figures
    assert figures.wrong == []
    assert figures.answers > 0
    assert figures.follow <= FOLLOWED_SECONDS
    assert said["pid"] in figures.wrote
    assert f"reading: {FILES} of {FILES} files" in said["progress"]
    assert (said["complete"], said["documents"], said["modified"]) == (True, FILES, 5)
