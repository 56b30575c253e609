"""One edited file in a large index beside one in a small index, and how soon it is found.

Both are edited in turns. An edit exchanges one passage of a note. Its costs, one after the other:
the update by a hint with its commit; the catch-up of a reader's views with the new text; vectors
for it (synthetic, so this is all but the model's time); the catch-up with the vectors. Then, in the
large one: from writing a file to the first answer that has its new word, with the debounce.
"""

import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from ratios import Rounds
from synthetic_notes import NoteWriter, SyntheticVectors, config_of

from ragdocs.app import App
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.indexing.changes import Hints, TreePath
from ragdocs.indexing.session import Control
from ragdocs.models import TreeName
from ragdocs.search.requests import QueryRequest

DOCS = TreeName("docs")
DEADLINE_SECONDS = 30.0
STEPS = ("update", "catch up: text", "fill", "catch up: vectors")


class Edited:
    """An index that is edited, with a reader's views."""

    def __init__(self, folder: Path, model: BuiltinEmbedder, seed: int) -> None:
        self.docs = folder / "docs"
        self.app = App(config_of(folder), SyntheticVectors(model))
        self.paths = sorted(at.relative_to(self.docs) for at in self.docs.rglob("*.md"))
        # An index that is reused must not get texts whose vectors it already has.
        seed += self.app.reader.position().generation
        self._writer = NoteWriter(model, seed)
        self._random = random.Random(seed)

    def edit(self, *new_words: str) -> Path:
        """One passage of some note has other words then."""
        path = self._random.choice(self.paths)
        parts = (self.docs / path).read_text(encoding="utf-8").split("\n\n")
        parts[4] = " ".join([*self._writer.words(90), *new_words]) + "."
        (self.docs / path).write_text("\n\n".join(parts), encoding="utf-8")
        return path

    def catch_up(self) -> None:
        """What a query would do first: update all indices and the words' vectors."""
        indices = self.app.indices
        with self.app.reader.snapshot() as snapshot:
            indices.catch_up(snapshot)
            if indices.terms:
                indices.terms.catch_up(snapshot)


def compare(small: Edited, large: Edited, rounds: int) -> None:
    taken = Rounds()
    sizes = {"small": small, "large": large}
    with small.app.manager() as small_manager, large.app.manager() as large_manager:
        managers = {"small": small_manager, "large": large_manager}
        for name, manager in managers.items():
            manager.open()
            manager.update()
            manager.fill()
            sizes[name].catch_up()
        for number in range(rounds + 2):
            if number == 2:
                taken = Rounds()  # the first ones only warmed the caches
            for name, edited in sizes.items():
                at = TreePath(DOCS, edited.edit().as_posix())
                hints = Hints(frozenset({at}))
                steps: tuple[Callable[[], object], ...] = (
                    partial(managers[name].update, hints),
                    edited.catch_up,
                    managers[name].fill,
                    edited.catch_up,
                )
                for step, work in zip(STEPS, steps, strict=True):
                    taken.measure(f"{step}, {name}", work)
    for name in sizes:
        taken.sum(
            f"both catch-ups, {name}", f"catch up: text, {name}", f"catch up: vectors, {name}"
        )
        taken.sum(f"all, {name}", *(f"{step}, {name}" for step in STEPS))
    taken.show()
    for step in ("update", "both catch-ups", "fill", "all"):
        taken.show_ratio(f"{step}, large", f"{step}, small", "at most 1.5")


class Keeper(Protocol):
    """Anything that keeps an index up to date with its files."""

    def start(self) -> None: ...
    def stop(self) -> object: ...


class WatcherAndManager:
    """The minimum: a thread that updates by the watcher's hints."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(DEADLINE_SECONDS)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_SECONDS)

    def _run(self) -> None:
        watcher = self._app.make_watcher()
        watcher.start()
        with self._app.manager(Control(stop=self._stop)) as manager:
            manager.open()
            manager.update()
            manager.fill()
            self._ready.set()
            while not self._stop.is_set():
                hints = watcher.wait(0.1)
                if hints:
                    manager.update(hints)
                    manager.fill()
        watcher.stop()


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds after the debounce: until the text was committed, and until the answer had it."""

    commit: float
    answer: float


def measure_delays(edited: Edited, keeper: Keeper, rounds: int) -> list[Delay]:
    keeper.start()
    delays: list[Delay] = []
    for _ in range(rounds + 1):
        # One that no document has, nor had when this index was used before.
        word = f"zz{edited.app.reader.position().stamp}"
        path = edited.edit(word)
        began = time.perf_counter() + edited.app.config.indexing.debounce_seconds
        committed = found_at(edited, path, word)
        delays.append(Delay(committed - began, time.perf_counter() - began))
    keeper.stop()
    return delays[1:]  # by then all was open and warm


def found_at(edited: Edited, path: Path, word: str) -> float:
    """Asks after each commit; when the one was seen of which the answer has the word."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    known = None
    while time.monotonic() < deadline:
        position = edited.app.reader.position()
        if position != known:
            known, seen = position, time.perf_counter()
            results = edited.app.search(QueryRequest(queries=(word,))).results
            if any(result.path == path.as_posix() for result in results):
                return seen
        time.sleep(0.005)
    raise SystemExit(f"{word} was not found within {DEADLINE_SECONDS} s")


def show_delays(name: str, delays: Sequence[Delay]) -> None:
    for what, taken in (
        ("can be found by keyword", [delay.commit for delay in delays]),
        ("is in an answer", [delay.answer for delay in delays]),
    ):
        print(
            f"  {what} after the debounce, {name}: median {statistics.median(taken):.3f} s, "
            f"{min(taken):.3f} to {max(taken):.3f} s (at most 0.5)"
        )


def run(small: Path, large: Path, model: BuiltinEmbedder, rounds: int) -> None:
    print("(c) one edited file; synthetic vectors")
    few, many = Edited(small, model, 11), Edited(large, model, 12)
    compare(few, many, rounds)
    keepers: dict[str, Keeper] = {
        "watcher and manager": WatcherAndManager(many.app),
        "the app's service": many.app.service,
    }
    for name, keeper in keepers.items():
        show_delays(name, measure_delays(many, keeper, rounds))
    few.app.close()
    many.app.close()
