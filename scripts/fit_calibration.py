"""Fits the constants of confidence (search/confidence.py) to labelled sets.

Every question of a set is asked of its own corpus, once as it is and once with its relevant
documents excluded (a near miss), and some questions of every other set too, which are foreign. A
logistic regression says how likely a result is right, from what the evidence is made of; each set
weighs the same. What was set and not fitted (the size of the corpus, exact tokens, quotations)
counts as it is shipped. The figures are made by leaving one set out, the constants from all sets.
Indexing a set the first time takes as long as it takes; then it is quick.

    python scripts/fit_calibration.py SET[@CONFIG.toml] SET [SET ...] [--report-only SET]
        [--others N] [--plot FILE.svg]

A configuration beside a set may cut a large corpus down, by `include`; queries whose answers are
all outside are left out then.
"""

import argparse
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragdocs.app import App
from ragdocs.cli.index_run import IndexingOptions, run
from ragdocs.cli.progress import display
from ragdocs.config.resolved import Config
from ragdocs.config.settings import SearchConfig
from ragdocs.errors import QueryError
from ragdocs.evaluation.chart import reliability_chart, write_chart
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.reliability import Bin, calibration_error, reliability, separation
from ragdocs.evaluation.run import settings_for
from ragdocs.parsers.ids import decode_path, document_id
from ragdocs.search.candidates import Grounds
from ragdocs.search.confidence import (
    SIZE_WEIGHT,
    Calibration,
    Question,
    clipped_spread,
    combine,
    length_gain,
    question_evidence,
    similarity_and_coverage,
    size_of,
    worth,
)
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.shutdown import Ending

FROM_OTHERS = 40
"""How many queries of each other set are asked by default, chosen with a fixed seed."""
SEED = 7
LATER_SHARE = 0.15
"""The share of a kind's weight for the results after the first."""
DOCUMENTS = 10
BANDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""A difference that a reader notices."""
DAMPING = 1e-3
STEPS = 50
SHIPPED = Calibration(
    SearchConfig().score_calibration_threshold, SearchConfig().score_calibration_steepness
)

Vector = NDArray[np.float64]


class Kind(Enum):
    """How a question relates to the corpus."""

    OWN = "own question"
    NEAR_MISS = "own question without the documents that answer it"
    FOREIGN = "question that the corpus does not answer"


SHARES = {Kind.OWN: 0.4, Kind.NEAR_MISS: 0.4, Kind.FOREIGN: 0.2}
"""Of a set's weight."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question's first documents, best first: the features of each, and whether it is right."""

    kind: Kind
    question: Question
    grounds: tuple[Grounds, ...]
    right: tuple[bool, ...]

    @property
    def is_right(self) -> bool:
        return any(self.right[:1])


@dataclass(frozen=True, slots=True)
class Fit:
    """A logistic regression: a weight for each feature, and the constant."""

    weights: Vector
    constant: float

    def confidence(self, answer: Answer) -> float:
        if not answer.grounds:
            return 0.0
        first = answer.grounds[0]
        value = float(features(first, answer.question) @ self.weights) + self.constant
        return float(1.0 / (1.0 + np.exp(-value - as_set(first, answer.question))))


def features(grounds: Grounds, question: Question) -> Vector:
    similarity, coverage = similarity_and_coverage(grounds)
    return np.array(
        [
            combine(similarity, coverage, question.words),
            question.rarity,
            length_gain(similarity, question.words),
            float(grounds.is_named),
            -clipped_spread(question),
        ]
    )


def as_set(grounds: Grounds, question: Question) -> float:
    """The terms that are not fitted, on the scale of the regression."""
    bare = grounds._replace(token=0, wish=0.0)
    added = worth(grounds, question.words) - worth(bare, question.words)
    return SHIPPED.steepness * (added - SIZE_WEIGHT * size_of(question))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the confidence to labelled sets.")
    parser.add_argument("sets", nargs="+", metavar="SET[@CONFIG.toml]")
    parser.add_argument(
        "--report-only",
        action="append",
        default=[],
        metavar="SET[@CONFIG.toml]",
        help="a set that is judged by the fit of all others, and never fitted",
    )
    parser.add_argument("--others", type=int, default=FROM_OTHERS, metavar="N")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if len(given.sets) < 2:
        parser.error("one set is left out each time: name at least two")
    places = [place.partition("@")[::2] for place in [*given.sets, *given.report_only]]
    sets = {Path(folder).name: read_set(Path(folder)) for folder, _ in places}
    if len(sets) < len(places):
        parser.error("two sets have the same name")
    configs = {Path(folder).name: Path(config) for folder, config in places if config}
    chosen = {name: some_of(each, given.others) for name, each in sets.items()}
    answers: dict[str, list[Answer]] = {}
    for name, each in sets.items():
        others = [text for other, texts in chosen.items() if other != name for text in texts]
        answers[name] = answers_of(each, others, configs.get(name))
    names = list(answers)[: len(given.sets)]
    fitted_sets = {name: answers[name] for name in names}
    reported = {name: found for name, found in answers.items() if name not in fitted_sets}
    series = left_out(fitted_sets, reported)
    as_shipped(fitted_sets, reported)
    if given.plot:
        title = f"Confidence with and without the answers, leaving one set out ({len(names)} sets)"
        write_chart(given.plot, reliability_chart(title, series))
    print_constants(fitted(list(fitted_sets.values())))


def answers_of(own: LabelledSet, others: Sequence[str], config_file: Path | None) -> list[Answer]:
    config = settings_for(own.folder, config_file)
    index(config)
    found: list[Answer | None] = []
    with App(config) as app:
        for text, right in labelled(own, documents(app)):
            found.append(asked_of(app, text, Kind.OWN if right else Kind.FOREIGN, right))
            if right:
                found.append(asked_of(app, text, Kind.NEAR_MISS, right))
        found += [asked_of(app, text, Kind.FOREIGN) for text in others]
    return [answer for answer in found if answer is not None]


def documents(app: App) -> frozenset[str]:
    with app.reader.snapshot() as snapshot:
        return frozenset(str(path) for (path,) in snapshot.select("SELECT path FROM documents"))


def labelled(
    labelled_set: LabelledSet, known: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Queries with the documents that answer them, if any."""
    for query in labelled_set.queries:
        grades = labelled_set.labels.get(query.id, {})
        answering = frozenset(path for path, grade in grades.items() if grade > 0)
        if answering & known or not answering:
            yield query.text, answering & known


def some_of(labelled_set: LabelledSet, count: int) -> list[str]:
    texts = [query.text for query in labelled_set.queries if query.id in labelled_set.labels]
    return random.Random(SEED).sample(texts, min(count, len(texts)))


def asked_of(
    app: App, text: str, kind: Kind, answering: Collection[str] = frozenset()
) -> Answer | None:
    left_out = answering if kind is Kind.NEAR_MISS else ()
    ids = [document_id(tree.name, path) for tree in app.config.trees for path in left_out]
    filters = Filters(excluded_files=tuple(ids))
    try:
        request = QueryRequest(queries=(text,), top_n=2 * DOCUMENTS, explain=True, filters=filters)
    except QueryError:
        return None
    response = app.search(request)
    assert response.explanation
    first: dict[str, Grounds] = {}
    for result, why in zip(response.results, response.explanation.results, strict=False):
        first.setdefault(decode_path(result.doc_id.partition(":")[2]), why.grounds)
    paths = list(first)[:DOCUMENTS]
    right = tuple(path in answering for path in paths)
    (query,) = response.explanation.queries
    return Answer(kind, query.question, tuple(first[path] for path in paths), right)


def index(config: Config) -> None:
    with Ending(watch_parent=False) as ending, closing(display(quiet=False)) as shown:
        run(config, IndexingOptions(rebuild=False), ending, shown)


@dataclass(frozen=True, slots=True)
class Row:
    """One result in the regression."""

    question: Question
    grounds: Grounds
    is_right: bool
    weight: float


def fitted(sets: Sequence[Sequence[Answer]]) -> Fit:
    """Newton's method; each set has the same weight, regardless of its size."""
    rows = [row for answers in sets for row in weighed(answers)]
    known = np.array([[*features(row.grounds, row.question), 1.0] for row in rows])
    fixed = np.array([as_set(row.grounds, row.question) for row in rows])
    right = np.array([float(row.is_right) for row in rows])
    weight = np.array([row.weight for row in rows]) * 1000 / len(sets)
    damping = np.diag([DAMPING] * (known.shape[1] - 1) + [0.0])
    found: Vector = np.zeros(known.shape[1])
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-known @ found - fixed))
        slope = known.T @ (weight * (likely - right)) + damping @ found
        curve = (known * (weight * likely * (1.0 - likely))[:, None]).T @ known + damping
        found = found - np.linalg.solve(curve, slope)
    return Fit(found[:-1], float(found[-1]))


def weighed(answers: Sequence[Answer]) -> Iterator[Row]:
    for kind, share in SHARES.items():
        found = [
            [(answer.question, *pair) for pair in zip(answer.grounds, answer.right, strict=True)]
            for answer in answers
            if answer.kind is kind
        ]
        first = [each for one in found for each in one[:1]]
        later = [each for one in found for each in one[1:]]
        for part, results in ((1.0 - LATER_SHARE, first), (LATER_SHARE, later)):
            yield from (Row(*each, share * part / len(results)) for each in results)


def left_out(
    sets: Mapping[str, Sequence[Answer]], reported: Mapping[str, Sequence[Answer]]
) -> dict[str, Sequence[Bin]]:
    """Judges each set by a fit to the others, then all together; returns each reliability."""
    said: dict[str, list[float]] = {}
    print_head("left out")
    for name, answers in sets.items():
        fit = fitted([others for other, others in sets.items() if other != name])
        said[name] = [fit.confidence(answer) for answer in answers]
        print_row(name, answers, said[name])
    pooled = [answer for answers in sets.values() for answer in answers]
    everything = [value for values in said.values() for value in values]
    series = {"all together": print_row("all together", pooled, everything)}
    fit = fitted(list(sets.values()))
    for name, answers in reported.items():
        told = [fit.confidence(answer) for answer in answers]
        print_row(f"{name}, not fitted", answers, told)
    return series | {name: bins_of(answers, said[name]) for name, answers in sets.items()}


def as_shipped(
    sets: Mapping[str, Sequence[Answer]], reported: Mapping[str, Sequence[Answer]]
) -> None:
    """What users see: by the current constants, which were fitted to some of these sets."""

    def confidence(answer: Answer) -> float:
        if not answer.grounds:
            return 0.0
        evidence = worth(answer.grounds[0], answer.question.words) + question_evidence(
            answer.question
        )
        return SHIPPED.of(evidence)

    print()
    print_head("as shipped")
    pooled = [answer for answers in sets.values() for answer in answers]
    for name, answers in [*sets.items(), *reported.items(), ("all sets", pooled)]:
        print_row(name, answers, [confidence(answer) for answer in answers])
    print()
    print_bands(pooled, [confidence(answer) for answer in pooled])


def print_bands(answers: Sequence[Answer], said: Sequence[float]) -> None:
    """How often a first result of each confidence is right, over both kinds; and where the right
    results, the near misses and the foreign questions are."""
    right = [value for answer, value in zip(answers, said, strict=True) if answer.is_right]
    told = {
        kind: [value for answer, value in zip(answers, said, strict=True) if answer.kind is kind]
        for kind in Kind
    }
    both = told[Kind.OWN] + told[Kind.NEAR_MISS]
    print("| told | first results | of these right | of all right | of near misses | of foreign |")
    print("|---|--:|--:|--:|--:|--:|")
    for low, high in pairwise(BANDS):
        within, hits, missed, foreign = (
            sum(low <= value < high or value == high == BANDS[-1] for value in values)
            for values in (both, right, told[Kind.NEAR_MISS], told[Kind.FOREIGN])
        )
        parts = (
            (hits, within),
            (hits, len(right)),
            (missed, len(told[Kind.NEAR_MISS])),
            (foreign, len(told[Kind.FOREIGN])),
        )
        cells = " | ".join(f"{part / max(1, whole):.1%}" for part, whole in parts)
        print(f"| {low:.0%} to {high:.0%} | {within} | {cells} |", flush=True)


def print_head(first: str) -> None:
    print(
        f"| {first} | questions | calibration error | confidence - right | AUC foreign "
        "| AUC near miss |"
    )
    print("|---|--:|--:|--:|--:|--:|")


def print_row(name: str, answers: Sequence[Answer], said: Sequence[float]) -> Sequence[Bin]:
    """The error is over both kinds: each question counts once with its answers and once without."""
    bins = bins_of(answers, said)
    cases = sum(each.cases for each in bins)
    excess = sum(each.cases * (each.confidence - each.right) for each in bins) / max(1, cases)
    pairs = list(zip(answers, said, strict=True))
    told = {kind: [value for answer, value in pairs if answer.kind is kind] for kind in Kind}
    right = [value for answer, value in pairs if answer.is_right]
    print(
        f"| {name} | {len(told[Kind.OWN])} | {calibration_error(bins):.3f} | {excess:+.3f} "
        f"| {separation(told[Kind.OWN], told[Kind.FOREIGN]):.3f} "
        f"| {separation(right, told[Kind.NEAR_MISS]):.3f} |",
        flush=True,
    )
    return bins


def bins_of(answers: Sequence[Answer], said: Sequence[float]) -> Sequence[Bin]:
    """Whether the first result is right, for questions with and without their answers."""
    pairs = zip(said, answers, strict=True)
    kept = [(value, answer) for value, answer in pairs if answer.kind is not Kind.FOREIGN]
    return reliability([value for value, _ in kept], [answer.is_right for _, answer in kept])


def print_constants(fit: Fit) -> None:
    """The steepness is the weight of the whole evidence, of which the other terms are parts."""
    steepness, rarity, length, named, spread = fit.weights
    print(f"\nRARITY_WEIGHT = {rarity / steepness:.3f}")
    print(f"LENGTH_WEIGHT = {length / steepness:.3f}")
    print(f"NAMED_WEIGHT = {named / steepness:.3f}")
    print(f"SPREAD_WEIGHT = {spread / steepness:.2f}")
    print(f"score_calibration_threshold = {-fit.constant / steepness:.3f}")
    print(f"score_calibration_steepness = {steepness:.2f}")


if __name__ == "__main__":
    main()
