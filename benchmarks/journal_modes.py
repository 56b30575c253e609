"""SQLite's write-ahead log against a rollback journal, under a storm of edits.

Real processes on one file: a writer that replaces 25 documents in one transaction every half second
(50 edits a second), and eight readers that ask in short read transactions: the generation, what has
changed since, and a keyword search with its passages. Both modes get the same work, by turns, round
after round. The store's own settings hold: full synchronisation, BEGIN IMMEDIATE, five seconds of
patience, 16 MB of cache. The rule of specs/0103 is on the 99th percentile of a query, which waits
while a rollback journal is committed; so these are times by the clock.

    python benchmarks/journal_modes.py [--rounds 4] [--seconds 10] [--documents 2000] [--readers 8]
        [--pause 0.1] [--start-every SECONDS] [--folder DIR]

With `--start-every`, one of the readers reads every vector in one transaction that often, as a
server does when it starts. At the end a writer is killed while it writes, and a reader that may
only read looks at what is left.
"""

import argparse
import multiprocessing
import random
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

MODES = ("WAL", "TRUNCATE")
WORDS = [f"word{number}" for number in range(4_000)]
CHUNKS, VECTOR_BYTES, BATCH, INTERVAL, PATIENCE = 10, 1_536, 25, 0.5, 5.0
SCHEMA = """
CREATE TABLE position (generation INTEGER NOT NULL);
INSERT INTO position VALUES (0);
CREATE TABLE change_log (generation INTEGER NOT NULL, document INTEGER NOT NULL);
CREATE INDEX change_log_generation ON change_log (generation);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, text TEXT, vector BLOB);
CREATE INDEX chunks_document ON chunks (document);
CREATE VIRTUAL TABLE words USING fts5 (text, content='');
"""


@dataclass(frozen=True, slots=True)
class Storm:
    """The work on one file, and for how long."""

    path: Path
    documents: int
    readers: int
    seconds: float
    pause: float
    start_every: float


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of each piece of work in one process, and how often SQLite refused it."""

    role: str
    taken: list[float]
    refused: int


def connect(path: Path) -> sqlite3.Connection:
    found = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    found.execute("PRAGMA synchronous = FULL")
    found.execute("PRAGMA cache_size = -16384")
    return found


def put(store: sqlite3.Connection, document: int, chance: random.Random) -> None:
    old = store.execute("SELECT id, text FROM chunks WHERE document = ?", (document,)).fetchall()
    store.executemany("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", old)
    store.execute("DELETE FROM chunks WHERE document = ?", (document,))
    for _ in range(CHUNKS):
        text = " ".join(chance.choices(WORDS, k=100))
        values = (document, text, chance.randbytes(VECTOR_BYTES))
        added = store.execute(
            "INSERT INTO chunks (document, text, vector) VALUES (?, ?, ?)", values
        )
        store.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, text))


def build(path: Path, mode: str, documents: int) -> None:
    store = connect(path)
    store.execute(f"PRAGMA journal_mode = {mode}")
    store.executescript(SCHEMA)
    chance = random.Random(1)
    store.execute("BEGIN IMMEDIATE")
    for document in range(documents):
        put(store, document, chance)
    store.execute("COMMIT")
    store.close()


def write(path: Path, documents: int, until: float) -> Times:
    """From asking for the lock to the end of the commit."""
    store, chance, taken, refused = connect(path), random.Random(2), list[float](), 0
    while (start := time.monotonic()) < until:
        edited = chance.sample(range(documents), BATCH)
        try:
            store.execute("BEGIN IMMEDIATE")
            store.execute("UPDATE position SET generation = generation + 1")
            [(generation,)] = store.execute("SELECT generation FROM position").fetchall()
            for document in edited:
                put(store, document, chance)
            noted = [(generation, document) for document in edited]
            store.executemany("INSERT INTO change_log VALUES (?, ?)", noted)
            store.execute("COMMIT")
        except sqlite3.OperationalError:
            refused += 1
            if store.in_transaction:
                store.execute("ROLLBACK")
        taken.append((time.monotonic() - start) * 1000)
        time.sleep(max(0.0, INTERVAL - (time.monotonic() - start)))
    store.close()
    return Times("writer", taken, refused)


def ask(store: sqlite3.Connection, seen: int, words: list[str]) -> int:
    store.execute("BEGIN")
    try:
        [(generation,)] = store.execute("SELECT generation FROM position").fetchall()
        if generation > seen:
            changed = "SELECT DISTINCT document FROM change_log WHERE generation > ?"
            for (document,) in store.execute(changed, (seen,)).fetchall():
                vectors = "SELECT id, vector FROM chunks WHERE document = ?"
                store.execute(vectors, (document,)).fetchall()
        found = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 60"
        for (chunk,) in store.execute(found, (" OR ".join(words),)).fetchall():
            store.execute("SELECT text FROM chunks WHERE id = ?", (chunk,)).fetchone()
        return generation
    finally:
        store.execute("COMMIT")


def read(given: Storm, number: int, until: float) -> Times:
    store, chance = connect(given.path), random.Random(10 + number)
    taken, refused = list[float](), 0
    [(seen,)] = store.execute("SELECT generation FROM position").fetchall()
    starts = time.monotonic() + given.start_every
    while (start := time.monotonic()) < until:
        if number == 1 and given.start_every and start > starts:
            store.execute("SELECT id, vector FROM chunks").fetchall()
            starts = time.monotonic() + given.start_every
            continue
        try:
            seen = ask(store, seen, chance.sample(WORDS, 4))
        except sqlite3.OperationalError:
            refused += 1
        taken.append((time.monotonic() - start) * 1000)
        time.sleep(chance.uniform(0, 2 * given.pause))
    store.close()
    return Times("reader", taken, refused)


def work(given: Storm, number: int, begin: Event, done: "Queue[Times]") -> None:
    begin.wait()
    until = time.monotonic() + given.seconds
    done.put(read(given, number, until) if number else write(given.path, given.documents, until))


def storm(given: Storm) -> list[Times]:
    context = multiprocessing.get_context("spawn")
    done: Queue[Times] = context.Queue()
    begin = context.Event()
    numbers = range(given.readers + 1)
    running = [context.Process(target=work, args=(given, each, begin, done)) for each in numbers]
    for process in running:
        process.start()
    begin.set()
    found = [done.get(timeout=given.seconds + 120) for _ in running]
    for process in running:
        process.join()
    return found


def write_until_killed(path: Path, began: Event) -> None:
    """With so little cache that SQLite writes into the file before the commit, as it does during
    every commit."""
    store = connect(path)
    store.execute("PRAGMA cache_size = 10")
    store.execute("BEGIN IMMEDIATE")
    for document in range(200):
        put(store, document, random.Random(3))
    began.set()
    time.sleep(600)


def after_a_kill(path: Path) -> str:
    context = multiprocessing.get_context("spawn")
    began = context.Event()
    writer = context.Process(target=write_until_killed, args=(path, began))
    writer.start()
    began.wait()
    writer.kill()
    writer.join()
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    try:
        return f"reads {reader.execute('SELECT count(*) FROM chunks').fetchone()[0]:,} chunks"
    except sqlite3.OperationalError as error:
        return f"fails: {error} ({error.sqlite_errorname})"
    finally:
        reader.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(mode: str, found: list[Times]) -> None:
    for role in ("reader", "writer"):
        times = [one for one in found if one.role == role]
        taken = [each for one in times for each in one.taken]
        shown = "  ".join(
            f"{name} {percentile(taken, share):7.1f}"
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
        )
        refused = sum(one.refused for one in times)
        print(f"{mode:9}{role:8}{len(taken):6} times, ms: {shown}  refused {refused}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.1, help="between questions, seconds")
    parser.add_argument("--start-every", type=float, default=0.0)
    parser.add_argument("--folder", type=Path, help="where the files are made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        paths = {mode: Path(folder) / f"{mode}.db" for mode in MODES}
        for mode, path in paths.items():
            build(path, mode, given.documents)
        all_found: dict[str, list[Times]] = {mode: [] for mode in MODES}
        for number in range(given.rounds):
            order = MODES if number % 2 else MODES[::-1]
            for mode in order:
                what = (given.documents, given.readers, given.seconds, given.pause)
                found = storm(Storm(paths[mode], *what, given.start_every))
                all_found[mode] += found
                report(f"{number + 1} {mode}", found)
        print(f"all {given.rounds} rounds, {given.readers} readers, {given.documents:,} documents:")
        for mode, found in all_found.items():
            report(mode, found)
        for mode, path in paths.items():
            print(f"{mode:9}a reader after a writer was killed: {after_a_kill(path)}")


if __name__ == "__main__":
    main()
