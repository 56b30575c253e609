"""Whether the confidence is honest and stable: near misses, foreign questions, other documents.

For each set: what `ragdocs eval SET --near-miss` measures, with questions of the other sets as
foreign ones. Then how much the confidence of a result moves when other documents come or go: a
random half of the corpus is indexed, and results that are in the answers of both are compared; and
a copy of the file that came first is added, for some questions, one at a time. Only what other
documents do is measured here: the result itself stays as it was. Sets are folders as `ragdocs eval`
takes them; without arguments those of `benchmarks/quality.py`.

    python benchmarks/confidence.py [SET ...] [--all] [--copies 12] [--seed 7]
"""

import argparse
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from quality import index, usual_sets
from readings import Reading, note

from ragdocs.app import App, index_directory
from ragdocs.config.locations import IndexPlace
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from ragdocs.evaluation.labelled_set import CORPUS, LabelledQuery, LabelledSet, read_set
from ragdocs.evaluation.metrics import DEPTH
from ragdocs.evaluation.run import (
    Evaluation,
    EvaluationOptions,
    Helpers,
    Report,
    results_for,
    settings_for,
)
from ragdocs.models import ChunkId
from ragdocs.parsers.ids import document_id
from ragdocs.search.requests import QueryRequest

SMALL_CHANGE = 0.03
"""A number that changes by less counts as unchanged."""
SAME_STORE = "variant-0000000000000000"
"""An index beside that of the half, from which known vectors are reused."""
COPIED = "copy of "

Told = Mapping[ChunkId, float]
"""The confidence of each result of an answer, by the section that is cited."""


@dataclass(frozen=True, slots=True)
class Moved:
    """By how much the confidence of the same results differs between two answers."""

    changes: tuple[float, ...]

    @property
    def unchanged(self) -> float:
        within = sum(change <= SMALL_CHANGE for change in self.changes)
        return within / len(self.changes) if self.changes else 1.0

    @property
    def largest(self) -> float:
        return max(self.changes, default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether the confidence is honest and stable.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="the large sets too")
    parser.add_argument("--copies", type=int, default=12, help="questions asked with a copy")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    folders = [folder.resolve() for folder in given.sets or usual_sets(everything=given.all)]
    print(
        "| set | right | wrong | near miss | foreign | AUC near miss | AUC foreign | error |",
        end="",
    )
    print(" unordered | half: within .03 | largest | copy: within .03 | largest |")
    print("|---|" + "--:|" * 12)
    aucs: list[float] = []
    for folder in folders:
        labelled = read_set(folder)
        config = settings_for(labelled.folder, None)
        index(config)
        embedder = App(config).embedder
        others = tuple(other for other in folders if other != folder)
        report = honest(labelled, others, embedder)
        assert report.honesty
        if report.honesty.near_miss_auc:
            aucs.append(report.honesty.near_miss_auc.mean)
        chance = random.Random(given.seed)
        copied = chance.sample(labelled.queries, min(given.copies, len(labelled.queries)))
        with tempfile.TemporaryDirectory() as scratch:
            half = half_of(labelled, config, Path(scratch), chance)
            moved = stable(labelled, config, half, embedder, copied)
        show(report, *moved)
    if aucs:
        note(Reading(what="near-miss AUC", of="mean of the sets", value=sum(aucs) / len(aucs)))


def honest(labelled: LabelledSet, others: Sequence[Path], embedder: Embedder) -> Report:
    options = EvaluationOptions(near_miss=True, foreign=tuple(others))
    return Evaluation(labelled, options, Helpers(update_index=index, embedder=embedder)).run()[0]


def stable(
    labelled: LabelledSet,
    whole: Config,
    half: Config,
    embedder: Embedder,
    copied: Sequence[LabelledQuery],
) -> tuple[Moved, Moved]:
    """How confidence changes with half of the documents, and with a copy of the first result."""
    index(half)
    with App(whole, embedder) as app:
        every = told_by(app, labelled.queries)
    with App(half, embedder) as app:
        fewer = told_by(app, labelled.queries)
    pairs = [(every[query.id], fewer[query.id]) for query in labelled.queries]
    copies = [asked_with_copy(half, embedder, query) for query in copied]
    return compared(pairs), compared([pair for pair in copies if pair is not None])


def half_of(labelled: LabelledSet, config: Config, scratch: Path, chance: random.Random) -> Config:
    """Settings for a random half of the documents, whose vectors are known from the whole."""
    paths = sorted(path for path in labelled.corpus.rglob("*") if path.is_file())
    for path in chance.sample(paths, (len(paths) + 1) // 2):
        target = scratch / CORPUS / path.relative_to(labelled.corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    shutil.copytree(index_directory(config), scratch / "index" / SAME_STORE)
    return replace(settings_for(scratch, None), index_place=IndexPlace(scratch / "index"))


def told_by(app: App, queries: Sequence[LabelledQuery]) -> dict[str, Told]:
    top_n = results_for(DEPTH, app.config.search.max_chunks_per_doc)
    found: dict[str, Told] = {}
    for query in queries:
        response = app.search(QueryRequest(queries=(query.text,), top_n=top_n))
        found[query.id] = {result.id: result.confidence for result in response.results}
    return found


def asked_with_copy(
    config: Config, embedder: Embedder, query: LabelledQuery
) -> tuple[Told, Told] | None:
    """One question before and after the file of its first result is copied. Only one of the two
    equal results is shown, and counts for both."""
    with App(config, embedder) as app:
        before = told_by(app, [query])[query.id]
        response = app.search(QueryRequest(queries=(query.text,), top_n=1))
    if not response.results:
        return None
    (tree,) = config.trees
    path = PurePosixPath(response.results[0].path)
    twin = path.with_name(COPIED + path.name)
    own, other = document_id(tree.name, str(path)), document_id(tree.name, str(twin))
    shutil.copy2(tree.root / path, tree.root / twin)
    try:
        index(config)
        with App(config, embedder) as app:
            found = told_by(app, [query])[query.id]
    finally:
        (tree.root / twin).unlink()
        index(config)
    after = {ChunkId(one.replace(other, own, 1)): value for one, value in found.items()}
    first = response.results[0].id
    return {first: before[first]}, after


def compared(pairs: Sequence[tuple[Told, Told]]) -> Moved:
    return Moved(
        tuple(
            abs(confidence - after[one])
            for before, after in pairs
            for one, confidence in before.items()
            if one in after
        )
    )


def show(report: Report, half: Moved, copied: Moved) -> None:
    found = report.honesty
    assert found
    assert report.run.unordered
    kinds = (found.right, found.wrong, found.near_misses, found.foreign)
    cells = [f"{one.mean.mean:.3f}" if one.cases else "-" for one in kinds]
    for what, estimate in (
        ("near-miss AUC", found.near_miss_auc),
        ("foreign AUC", found.foreign_auc),
        ("error over both kinds", found.error),
        ("unordered answers", report.run.unordered),
    ):
        cells.append(f"{estimate.mean:.3f}" if estimate else "-")
        if estimate:
            low, high = estimate.low, estimate.high
            note(
                Reading(
                    what=what,
                    of="product",
                    where=report.name,
                    value=estimate.mean,
                    low=low,
                    high=high,
                )
            )
    for of, moved in (("half", half), ("copy", copied)):
        cells += [f"{moved.unchanged:.1%} of {len(moved.changes)}", f"{moved.largest:.3f}"]
        shared = {"what": "stability", "of": of, "where": report.name}
        note(Reading(**shared, at="within .03", value=moved.unchanged))
        note(Reading(**shared, at="largest", value=moved.largest))
    print(f"| {report.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
