"""What an index should hold, and whether it does: by its files, and in full by a fresh build."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ragdocs.app import App
from ragdocs.errors import IndexStoreError
from ragdocs.indexing.reading import content_hash
from ragdocs.store.reader import Reader
from tests.support.indexes import held
from tests.support.machine import until
from tests.support.models import CountingEmbedder
from tests.support.program import config_of

PATIENCE_SECONDS = 90.0
"""What is well takes less than this on any machine."""
MODEL = CountingEmbedder().identity


def on_disk(root: Path) -> dict[str, str]:
    """Every note, with the hash of its bytes."""
    files = (file for file in root.rglob("*.md") if file.is_file())
    return {file.relative_to(root).as_posix(): content_hash(file.read_bytes()) for file in files}


@dataclass(frozen=True)
class Gap:
    """What is wrong with an index."""

    missing: tuple[str, ...]
    ghosts: tuple[str, ...]
    stale: tuple[str, ...]
    waiting: int | None
    without_vector: int

    def __bool__(self) -> bool:
        lists = self.missing or self.ghosts or self.stale
        return bool(lists or self.waiting != 0 or self.without_vector)


def gap(index: Path, expected: Mapping[str, str]) -> Gap:
    """Between an index and the files (`on_disk`)."""
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        known = {
            entry.path: entry.state.content_hash if entry.state else ""
            for entry in snapshot.manifest().values()
        }
        waiting, without = snapshot.waiting, snapshot.count_missing_embeddings(MODEL)
    both = known.keys() & expected.keys()
    return Gap(
        missing=tuple(sorted(expected.keys() - known.keys())),
        ghosts=tuple(sorted(known.keys() - expected.keys())),
        stale=tuple(sorted(path for path in both if known[path] != expected[path])),
        waiting=waiting,
        without_vector=without,
    )


def compare(docs: Path, index: Path, **sections: dict[str, object]) -> list[str]:
    """In which respects an index is not what a new one of the same files is; it is given a while,
    because the vocabulary's vectors come last. Vectors that nobody needs any more may be left.
    """
    fresh = index.with_name(f"fresh-{time.monotonic_ns()}")
    app = App(config_of(docs, fresh, **sections), CountingEmbedder())
    with app, app.manager() as manager:
        manager.update()
        manager.update_communities()
        manager.fill()
    try:
        until(lambda: not _differences(index, fresh), PATIENCE_SECONDS)
    except AssertionError:
        return [f"unlike a fresh build: {wrong}" for wrong in _differences(index, fresh)]
    shutil.rmtree(fresh)
    return []


def _differences(index: Path, fresh: Path) -> list[str]:
    names = ("files", "failures", "contents", "vocabulary")
    try:
        found, expected = _held(index), _held(fresh)
    except IndexStoreError as error:
        return [str(error)]
    wrong = [n for n, one, other in zip(names, found, expected, strict=True) if one != other]
    lacking = len(_vectors(fresh) - _vectors(index))
    return [*wrong, f"{lacking} vectors"] if lacking else wrong


def _held(index: Path) -> tuple[object, ...]:
    files, failures, sums, words = held(index)
    others = {**cast("dict[str, object]", sums)}
    del others["embeddings"]
    return files, failures, others, words


def _vectors(index: Path) -> set[tuple[bytes, bytes]]:
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        return set(snapshot.select("SELECT text_hash, vector FROM embeddings"))
