"""What several of these tests begin with: an empty store, written and read side by side, or an
index that is to be examined.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import Bench
from tests.support.stores import FINGERPRINT


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[StoreWriter]:
    with StoreWriter.open(tmp_path, FINGERPRINT) as opened:
        yield opened


@pytest.fixture
def reader(tmp_path: Path, writer: StoreWriter) -> Iterator[Reader]:
    """Of the same store, which the writer has made."""
    with Reader.open(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("built"))
    bench.build()
    return bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Not built yet."""
    return Bench(tmp_path)


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A root with `folder/a.md`, which says `public`; meanwhile `folder` becomes a link to outside,
    where such a file says `secret`, and a folder again, all the time."""
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_bytes(b"secret")
    (root / "folder" / "a.md").write_bytes(b"public")
    stop = threading.Event()

    def keep_swapping() -> None:
        while not stop.is_set():
            (root / "folder").rename(root / "kept")
            (root / "folder").symlink_to("../outside")
            (root / "folder").unlink()
            (root / "kept").rename(root / "folder")

    swapper = threading.Thread(target=keep_swapping)
    swapper.start()
    yield root
    stop.set()
    swapper.join()
    assert (root / "folder" / "a.md").read_bytes() == b"public"
