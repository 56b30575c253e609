"""What several of these tests begin with: an empty store, written and read side by side, or an
index that is to be examined.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer
from tests.examined import Bench
from tests.store_builder import FINGERPRINT


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with Writer.open(tmp_path, FINGERPRINT) as opened:
        yield opened


@pytest.fixture
def reader(tmp_path: Path, writer: Writer) -> Iterator[Reader]:
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
