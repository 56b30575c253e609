"""Awkward Markdown through the index manager, and a folder of everything that is not a file."""

import os
import socket
from pathlib import Path

import pytest

from ragdocs.indexing.changes import Hints, Progress
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control
from ragdocs.store.reader import Reader
from tests.support.indexes import held, settled, setup, tree, write
from tests.support.models import CountingEmbedder

NASTY = Path(__file__).parents[2] / ".." / "shared" / "nasty"


@pytest.mark.skipif(
    not NASTY.is_dir(), reason="the collection of awkward Markdown (../shared/nasty) is not here"
)
def test_all_awkward_markdown_goes_in_and_stays(tmp_path: Path):
    notes = tree(NASTY.resolve())
    seen: list[Progress] = []
    control = Control(on_progress=seen.append, clock_ns=settled().clock_ns)
    embedder = CountingEmbedder()
    with IndexManager(setup(tmp_path, notes), embedder, control=control) as manager:
        outcome = manager.update()
        assert outcome.added + len(outcome.failed) > 1000
        assert outcome.failed == ()
        assert (outcome.kept, outcome.unsettled, outcome.removed) == ((), frozenset(), 0)
        filled = manager.fill()
        assert (filled.error, filled.has_more) == ("", False)
        before = held(tmp_path)
        again = manager.update()
        assert (again.unchanged, again.has_changed) == (outcome.added, False)
        assert manager.update(rebuild=True).unchanged == outcome.added
        assert manager.fill().stored == 0
        assert held(tmp_path) == before
    with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
        assert snapshot.count_missing_embeddings(embedder.identity) == 0
    assert all(progress.done <= progress.total for progress in seen)


def test_what_is_no_file_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root, index = tmp_path / "notes", tmp_path / "index"
    awkward = ["a#b%c?.md", "new\nline.md", "-dash.md", "Case.md", "case.md", "é.md", "e\u0301.md"]
    for name in awkward:
        write(root, name, f"# {name!r}\n")
    (root / os.fsdecode(b"bad\xff.md")).write_bytes(b"# Bytes\n")
    (root / "folder.md").mkdir()
    os.mkfifo(root / "pipe.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "outside.md").write_text("# Secret\n", encoding="utf-8")
    monkeypatch.chdir(root)  # a socket's path may only be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
        with IndexManager(setup(index, tree(root)), CountingEmbedder()) as manager:
            outcome = manager.update()
            assert (outcome.added, outcome.failed) == (len(awkward) + 1, ())
            assert len(outcome.skipped) == 4
            manager.fill()
            assert manager.update(Hints(must_rescan=True)).documents == len(awkward) + 1
    held(index)
