"""The cost of a query while thousands of passages are embedded, compared with an idle machine.

One process, as a server is: an index of which a part has vectors (synthetic: queries take as long
with any) and the rest waits for them. In turns, some questions are asked while nothing else
happens, and then while the application's own indexing thread embeds with the built-in model.
A ratio is the median of the rounds' ratios. What is in `--folder` is used again, as far as passages
are still without vectors; with `--rounds 0` it is only made.

    python benchmarks/starvation.py [--chunks 4000] [--pending 4000] [--rounds 5] [--questions 60]
        [--folder DIR]
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from readings import Reading, note
from synthetic_notes import NoteWriter, SyntheticVectors, config_of

from ragdocs.app import App
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.indexing.service import IndexService, ServiceParts
from ragdocs.search.requests import QueryRequest

FORMS = ("how do I {} the {} of a {}", "{} {} and {}", "why is {} not {} with {} {}", "{} {} {} {}")
DEADLINE_SECONDS = 60.0
MOST = 3.0
"""How much longer a query may take at p95."""
SHARES = {"p50": 0.5, "p95": 0.95}


def main() -> None:
    parser = argparse.ArgumentParser(description="Queries while passages are embedded.")
    parser.add_argument("--chunks", type=int, default=4000)
    parser.add_argument("--pending", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        model = BuiltinEmbedder()
        made = NoteWriter(model, seed=21)
        config = config_of(folder)
        if not (folder / "docs").exists():
            make(folder, made, model, (given.chunks, given.pending))
        if given.rounds:
            with App(config, model) as app:
                compare(app, asked(made, given.questions), given.rounds)


def make(folder: Path, made: NoteWriter, model: BuiltinEmbedder, counts: tuple[int, int]) -> None:
    """So many passages with vectors, and so many without."""
    embedded, waiting = counts
    config = config_of(folder)
    made.write(folder / "docs" / "old", embedded)
    with App(config, SyntheticVectors(model)) as app, app.manager() as manager:
        manager.update()
        manager.fill()
    made.write(folder / "docs" / "new", waiting)
    with App(config, model) as app, app.manager() as manager:
        manager.update()


def asked(made: NoteWriter, count: int) -> list[str]:
    chosen = random.Random(22)
    forms = [FORMS[number % len(FORMS)] for number in range(count)]
    return [
        form.format(*chosen.sample(sorted(set(made.words(200))), form.count("{}")))
        for form in forms
    ]


def compare(app: App, questions: Sequence[str], rounds: int) -> None:
    times(app, questions)  # everything is loaded then
    idle: list[list[float]] = []
    busy: list[list[float]] = []
    filled = taken = 0.0
    for _ in range(rounds):
        idle.append(times(app, questions))
        with embedding(app):
            before, began = pending(app), time.perf_counter()
            busy.append(times(app, questions))
            filled, taken = filled + before - pending(app), taken + time.perf_counter() - began
    show(idle, busy, filled / taken)


@contextmanager
def embedding(app: App) -> Generator[None]:
    """While this is open, the indexing thread computes vectors."""
    parts = ServiceParts(
        directory=app.directory,
        make_manager=app.manager,
        make_watcher=app.make_watcher,
        follow=lambda _: None,
    )
    service = IndexService(parts)
    service.start()
    try:
        before, deadline = pending(app), time.monotonic() + DEADLINE_SECONDS
        while pending(app) == before:
            if time.monotonic() > deadline:
                raise SystemExit("no vector was made in time")
            time.sleep(0.05)
        yield
        if not pending(app):
            raise SystemExit("all is embedded already: ask fewer questions, or leave more pending")
    finally:
        service.stop()


def pending(app: App) -> int:
    with app.reader.snapshot() as snapshot:
        return snapshot.count_missing_embeddings(app.embedder.identity)


def times(app: App, questions: Sequence[str]) -> list[float]:
    found: list[float] = []
    for question in questions:
        began = time.perf_counter()
        app.search(QueryRequest(queries=(question,)))
        found.append(time.perf_counter() - began)
    return found


def show(idle: Sequence[list[float]], busy: Sequence[list[float]], rate: float) -> None:
    print(f"  embedded meanwhile: {rate:.0f} passages a second")
    note(Reading(what="rate", of="embedding while queries come", value=rate, unit="/s"))
    for at, share in SHARES.items():
        calm = [part(taken, share) * 1000 for taken in idle]
        loaded = [part(taken, share) * 1000 for taken in busy]
        ratios = [one / other for one, other in zip(loaded, calm, strict=True)]
        ratio = statistics.median(ratios)
        for of, values in (("query, idle", calm), ("query, while embedding", loaded)):
            value = statistics.median(values)
            note(Reading(what="latency", of=of, value=value, unit="ms", at=at))
        note(
            Reading(
                what="ratio",
                of="query, while embedding / query, idle",
                at=at,
                value=ratio,
                unit="x",
                low=min(ratios),
                high=max(ratios),
            )
        )
        target = f" (at most {MOST:g})" if at == "p95" else ""
        print(
            f"  {at}: idle {statistics.median(calm):.1f} ms, while embedding "
            f"{statistics.median(loaded):.1f} ms; ratio {ratio:.2f}{target}, "
            f"by rounds {min(ratios):.2f} to {max(ratios):.2f}"
        )


def part(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    main()
