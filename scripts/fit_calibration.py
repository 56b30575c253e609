"""Fits what confidence is made from (search/evidence.py, search/calibration.py) to labelled sets.

Every query of a set is asked of its own corpus, and some queries of every other set too, which the
corpus cannot answer. A logistic regression says how likely a result is right, from what the
evidence is made of; each set weighs the same. The figures are made by leaving one set out, the
constants from all sets. Indexing a set the first time takes as long as it takes; then it is quick.

    python scripts/fit_calibration.py SET[@CONFIG.toml] SET [SET ...] [--others N] [--plot FILE.svg]

A configuration beside a set may cut a large corpus down, by `include`; queries whose answers are
all outside are left out then.
"""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragdocs.app import App
from ragdocs.cli.index_run import Orders, run
from ragdocs.cli.progress import display
from ragdocs.config.resolved import Config
from ragdocs.config.search_section import SearchConfig
from ragdocs.errors import QueryError
from ragdocs.evaluation.evaluating import settings_for
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.pictures import write_picture
from ragdocs.evaluation.reliability import Bin, calibration_error, reliability, separation
from ragdocs.evaluation.reliability_picture import reliability_chart
from ragdocs.lifecycle import Ending
from ragdocs.parsers.identity import decode_path
from ragdocs.search.calibration import Calibration
from ragdocs.search.candidates import Grounds
from ragdocs.search.evidence import ahead, asked_for, behind, worth
from ragdocs.search.requests import QueryRequest

FROM_OTHERS = 40
"""So many queries of each other set are asked by default, chosen by the seed."""
SEED = 7
UNANSWERABLE_SHARE = 0.3
"""Of a set's weight, what the queries have that its corpus cannot answer."""
LATER_SHARE = 0.15
"""And what the results after the first have: confidence must fall where a document lags behind."""
DOCUMENTS = 10
DAMPING = 1e-3
STEPS = 50

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answer:
    """One query's first documents, best first: what each is judged by, and whether it is right."""

    is_answerable: bool
    grounds: tuple[Grounds, ...]
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A logistic regression: a weight for each feature, and the constant."""

    weights: Vector
    constant: float

    def confidence(self, answer: Answer) -> float:
        if not answer.grounds:
            return 0.0
        value = float(features(answer.grounds[0]) @ self.weights) + self.constant
        return float(1.0 / (1.0 + np.exp(-value)))


def features(grounds: Grounds) -> Vector:
    return np.array([*asked_for(grounds), ahead(grounds), -behind(grounds)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the confidence to labelled sets.")
    parser.add_argument("sets", nargs="+", metavar="SET[@CONFIG.toml]")
    parser.add_argument("--others", type=int, default=FROM_OTHERS, metavar="N")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    if len(given.sets) < 2:
        parser.error("one set is left out each time: name at least two")
    places = [place.partition("@")[::2] for place in given.sets]
    sets = {Path(folder).name: read_set(Path(folder)) for folder, _ in places}
    configs = {Path(folder).name: Path(config) for folder, config in places if config}
    chosen = {name: some_of(each, given.others) for name, each in sets.items()}
    answers: dict[str, list[Answer]] = {}
    for name, each in sets.items():
        others = [text for other, texts in chosen.items() if other != name for text in texts]
        answers[name] = answers_of(each, others, configs.get(name))
    series = left_out(answers)
    as_shipped(answers)
    if given.plot:
        title = f"Confidence, leaving one set out ({len(sets)} sets)"
        write_picture(given.plot, reliability_chart(title, series))
    print_constants(fitted(list(answers.values())))


def answers_of(own: LabelledSet, others: Sequence[str], config_file: Path | None) -> list[Answer]:
    config = settings_for(own.folder, config_file)
    index(config)
    with App(config) as app:
        asked = [asked_of(app, text, grades) for text, grades in labelled(own, documents(app))]
        asked += [asked_of(app, text, {}) for text in others]
    return [answer for answer in asked if answer is not None]


def documents(app: App) -> frozenset[str]:
    with app.reader.snapshot() as snapshot:
        return frozenset(str(path) for (path,) in snapshot.select("SELECT path FROM documents"))


def labelled(
    labelled_set: LabelledSet, known: frozenset[str]
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Queries with their grades; those without an answer have none."""
    for query in labelled_set.queries:
        grades = labelled_set.labels.get(query.id, {})
        found = {path: grade for path, grade in grades.items() if path in known}
        if found or not grades:
            yield query.text, found


def some_of(labelled_set: LabelledSet, count: int) -> list[str]:
    texts = [query.text for query in labelled_set.queries if query.id in labelled_set.labels]
    return random.Random(SEED).sample(texts, min(count, len(texts)))


def asked_of(app: App, text: str, grades: Mapping[str, float]) -> Answer | None:
    try:
        request = QueryRequest(queries=(text,), top_n=2 * DOCUMENTS, explain=True)
    except QueryError:
        return None
    response = app.search(request)
    assert response.explanation
    first: dict[str, Grounds] = {}
    for result, why in zip(response.results, response.explanation.results, strict=False):
        first.setdefault(decode_path(result.doc_id.partition(":")[2]), why.grounds)
    paths = list(first)[:DOCUMENTS]
    right = tuple(grades.get(path, 0.0) > 0 for path in paths)
    return Answer(
        any(grade > 0 for grade in grades.values()), tuple(first[path] for path in paths), right
    )


def index(config: Config) -> None:
    with Ending(watch_parent=False) as ending, closing(display(quiet=False)) as shown:
        run(config, Orders(rebuild=False), ending, shown)


def fitted(sets: Sequence[Sequence[Answer]]) -> Fit:
    """By Newton's method; each set weighs the same, however many queries it has."""
    rows = [row for answers in sets for row in weighed(answers)]
    known = np.array([[*features(grounds), 1.0] for grounds, _, _ in rows])
    right = np.array([float(is_right) for _, is_right, _ in rows])
    weight = np.array([share for _, _, share in rows]) * 1000 / len(sets)
    damping = np.diag([DAMPING] * (known.shape[1] - 1) + [0.0])
    found: Vector = np.zeros(known.shape[1])
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-known @ found))
        slope = known.T @ (weight * (likely - right)) + damping @ found
        curve = (known * (weight * likely * (1.0 - likely))[:, None]).T @ known + damping
        found = found - np.linalg.solve(curve, slope)
    return Fit(found[:-1], float(found[-1]))


def weighed(answers: Sequence[Answer]) -> Iterator[tuple[Grounds, bool, float]]:
    for is_answerable in (True, False):
        share = 1.0 - UNANSWERABLE_SHARE if is_answerable else UNANSWERABLE_SHARE
        found = [
            list(zip(answer.grounds, answer.right, strict=True))
            for answer in answers
            if answer.is_answerable is is_answerable
        ]
        first = [pair for pairs in found for pair in pairs[:1]]
        later = [pair for pairs in found for pair in pairs[1:]]
        for pairs, part in ((first, 1.0 - LATER_SHARE), (later, LATER_SHARE)):
            yield from ((grounds, right, share * part / len(pairs)) for grounds, right in pairs)


def left_out(sets: Mapping[str, Sequence[Answer]]) -> dict[str, Sequence[Bin]]:
    """Each set judged by what the others say, then all together; the reliability of each."""
    said: dict[str, list[float]] = {}
    print_head("left out")
    for name, answers in sets.items():
        fit = fitted([others for other, others in sets.items() if other != name])
        said[name] = [fit.confidence(answer) for answer in answers]
        print_row(name, answers, said[name])
    pooled = [answer for answers in sets.values() for answer in answers]
    everything = [value for values in said.values() for value in values]
    series = {"all together": print_row("all together", pooled, everything)}
    return series | {name: bins_of(answers, said[name]) for name, answers in sets.items()}


def as_shipped(sets: Mapping[str, Sequence[Answer]]) -> None:
    """What users are told: by the constants as they stand, which were fitted to some of these."""
    search = SearchConfig()
    curve = Calibration(search.score_calibration_threshold, search.score_calibration_steepness)

    def confidence(answer: Answer) -> float:
        return curve.of(worth(answer.grounds[0])) if answer.grounds else 0.0

    print()
    print_head("as shipped")
    pooled = [answer for answers in sets.values() for answer in answers]
    for name, answers in [*sets.items(), ("all sets", pooled)]:
        print_row(name, answers, [confidence(answer) for answer in answers])


def print_head(first: str) -> None:
    print(f"| {first} | queries | calibration error | confidence - right | AUC answerable |")
    print("|---|--:|--:|--:|--:|")


def print_row(name: str, answers: Sequence[Answer], said: Sequence[float]) -> Sequence[Bin]:
    bins = bins_of(answers, said)
    cases = sum(each.cases for each in bins)
    excess = sum(each.cases * (each.confidence - each.right) for each in bins) / max(1, cases)
    pairs = list(zip(answers, said, strict=True))
    good = [value for answer, value in pairs if answer.is_answerable]
    bad = [value for answer, value in pairs if not answer.is_answerable]
    print(
        f"| {name} | {cases} | {calibration_error(bins):.3f} | {excess:+.3f} "
        f"| {separation(good, bad):.3f} |"
    )
    return bins


def bins_of(answers: Sequence[Answer], said: Sequence[float]) -> Sequence[Bin]:
    """Of answerable queries: whether the first result is right."""
    asked = [(value, answer) for value, answer in zip(said, answers, strict=True)]
    kept = [(value, answer) for value, answer in asked if answer.is_answerable]
    right = [bool(answer.right) and answer.right[0] for _, answer in kept]
    return reliability([value for value, _ in kept], right)


def print_constants(fit: Fit) -> None:
    """The curve's steepness is the weight of the evidence itself, which all others are part of."""
    similarity, coverage, lead, lag = fit.weights
    steepness = similarity + coverage
    print(f"\nSIMILARITY_PART = {similarity / steepness:.2f}")
    print(f"LEAD_WEIGHT = {lead / steepness:.2f}")
    print(f"LAG_WEIGHT = {lag / steepness:.2f}")
    print(f"score_calibration_threshold = {-fit.constant / steepness:.3f}")
    print(f"score_calibration_steepness = {steepness:.2f}")


if __name__ == "__main__":
    main()
