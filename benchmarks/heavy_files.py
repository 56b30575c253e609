"""What one heavy file costs: seconds for each MB, and the most memory, at growing sizes.

Each kind of `heavy_texts.py` is indexed at each size by a process of its own: read, parsed,
chunked, stored and put into every index, then embedded by a tiny model (synthetic vectors without
the built-in one's memory, which is the same for every file). The growth is the exponent between the
smallest and the largest size: 1 is linear. The lock is the CPU time of the longest transaction.

    python benchmarks/heavy_files.py [--kinds NAME ...] [--sizes 1 9]
"""

import argparse
import json
import math
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from heavy_texts import KINDS, of_size
from indexing_memory import own_memory
from readings import Reading, note
from synthetic_notes import config_of

from ragdocs.embedding.base import EmbeddingCounts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEGABYTE = 1_000_000
MOST_MEGABYTES = 600
DIMENSION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU seconds, peak memory in bytes, and the result for the file."""

    update: float
    lock: float
    fill: float
    peak: int
    chunks: int
    warnings: list[str]


class TinyVectors:
    """A vector for each text, from its hash."""

    name, identity, dimension, max_tokens = "tiny", "tiny@1", DIMENSION, 1000
    counts, notes = EmbeddingCounts(), ()

    def load(self) -> None:
        pass

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        hashed = b"".join(blake2b(t.encode(), digest_size=DIMENSION).digest() for t in texts)
        rows = np.frombuffer(hashed, np.uint8).reshape(-1, DIMENSION).astype(np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        return self.embed_documents([text])[0]


def index(folder: Path) -> Cost:
    """In this process."""
    from ragdocs.app import App

    app = App(config_of(folder), TinyVectors())
    with app, app.manager() as manager, transactions_timed() as held:
        began = time.process_time()
        outcome = manager.update()
        update = time.process_time() - began
        manager.fill()
        fill = time.process_time() - began - update
        with app.reader.snapshot() as snapshot:
            warnings = [
                one.kind.value
                for found in snapshot.documents_with_warnings()
                for one in found.warnings
            ]
    assert not outcome.failed, outcome.failed
    return Cost(
        update=update,
        lock=max(held),
        fill=fill,
        peak=own_memory()[1],
        chunks=outcome.chunks,
        warnings=warnings,
    )


@contextmanager
def transactions_timed() -> Generator[list[float], None, None]:
    """CPU seconds of each transaction, which holds the write lock from its beginning to its end."""
    from ragdocs.store.writer import StoreWriter

    held: list[float] = [0.0]
    transaction = StoreWriter.transaction

    @contextmanager
    def timed(writer: StoreWriter) -> Generator[object, None, None]:
        began = time.process_time()
        with transaction(writer) as opened:
            yield opened
        held.append(time.process_time() - began)

    StoreWriter.transaction = timed
    try:
        yield held
    finally:
        StoreWriter.transaction = transaction


def in_process(kind: str, size: int) -> Cost:
    with tempfile.TemporaryDirectory() as temporary:
        docs = Path(temporary) / "docs"
        docs.mkdir()
        (docs / "a.md").write_bytes(of_size(kind, size).encode())
        done = subprocess.run(
            [sys.executable, __file__, "--index", temporary], stdout=subprocess.PIPE, check=True
        )
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def show(kind: str, sizes: Sequence[int], costs: Sequence[Cost]) -> None:
    rates = [cost.update / (size / MEGABYTE) for cost, size in zip(costs, sizes, strict=True)]
    ratio = costs[-1].update / max(costs[0].update, 0.001)
    growth = math.log(ratio) / math.log(sizes[-1] / sizes[0]) if sizes[-1] > sizes[0] else math.nan
    peak, last = max(cost.peak for cost in costs), costs[-1]
    print(
        f"  {kind:26} {' '.join(f'{rate:7.2f}' for rate in rates)} {growth:7.2f} "
        f"{peak / MEGABYTE:7.0f} {last.lock:7.2f} {last.fill:7.2f} {last.chunks:7}  "
        f"{', '.join(sorted(set(last.warnings)))}",
        flush=True,
    )
    note(
        Reading(what="growth", of=kind, value=growth, at="CPU", size=sizes[-1]),
        Reading(what="cost", of=kind, value=rates[-1], unit="s/MB", at="CPU", size=sizes[-1]),
        Reading(what="memory", of=kind, value=peak / MEGABYTE, unit="MB", at="peak"),
        Reading(what="lock", of=kind, value=last.lock, unit="s", at="CPU", size=sizes[-1]),
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    arguments.add_argument("--sizes", nargs="+", type=float, default=[1, 9], help="in MB")
    arguments.add_argument("--index", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.index:
        print(json.dumps(asdict(index(options.index))))
        return
    sizes = sorted(int(size * MEGABYTE) for size in options.sizes)
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    rates = " ".join(f"{size / MEGABYTE:4.2g} MB" for size in sizes)
    print(f"  {'CPU seconds for each MB':26} {rates}  growth    peak    lock    fill  chunks")
    worst: dict[str, int] = {}
    for kind in options.kinds:
        costs = [in_process(kind, size) for size in sizes]
        show(kind, sizes, costs)
        worst[kind] = max(cost.peak for cost in costs)
    kind = max(worst, key=lambda name: worst[name])
    most = worst[kind] / MEGABYTE
    print(f"most memory: {most:.0f} MB, {kind} (under {MOST_MEGABYTES} MB)")
    note(Reading(what="memory", of="the worst heavy file", value=most, unit="MB", at="peak"))


if __name__ == "__main__":
    main()
