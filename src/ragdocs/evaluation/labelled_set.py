"""A labelled set: a folder with `corpus/`, `queries.jsonl` and `qrels.tsv`, read and checked."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.json_lines import identity, objects, text_of, wrong
from ragdocs.evaluation.metrics import Grades

CORPUS, QUERIES, LABELS = "corpus", "queries.jsonl", "qrels.tsv"
_GRADE_NAMES = ("grade", "score", "relevance")


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query; `fields` is all that its line says."""

    id: str
    text: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Queries in their order, and the grades of documents by query; one without is unanswerable."""

    folder: Path
    queries: tuple[LabelledQuery, ...]
    labels: Mapping[str, Grades]

    @property
    def corpus(self) -> Path:
        return self.folder / CORPUS

    def missing_documents(self) -> int:
        """How many labelled documents the corpus does not have."""
        labelled = {document for grades in self.labels.values() for document in grades}
        return sum(not self._has(document) for document in labelled)

    def answers(self) -> dict[str, frozenset[str]]:
        """By query, every document that answers it; without the queries that none answers, or none
        that the corpus has."""
        found = {
            query: frozenset(document for document, grade in grades.items() if grade > 0)
            for query, grades in self.labels.items()
        }
        return {query: known for query, known in found.items() if any(map(self._has, known))}

    def _has(self, document: str) -> bool:
        return (self.corpus / document).is_file()


def read_set(folder: Path) -> LabelledSet:
    """Raises EvaluationError with the file and the line."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise EvaluationError(
            f"{folder} is not a folder: name one that holds {CORPUS}/, {QUERIES} and {LABELS}"
        )
    if not (folder / CORPUS).is_dir():
        raise EvaluationError(f"{folder} has no folder {CORPUS}/ with the documents in it")
    for name in (QUERIES, LABELS):
        if not (folder / name).is_file():
            raise EvaluationError(f"{folder} has no file {name}")
    for name in (CORPUS, QUERIES, LABELS):
        if not (folder / name).resolve().is_relative_to(folder):
            raise EvaluationError(
                f"{folder / name} is a link out of the set, and those are not followed: copy what "
                "it leads to into the set"
            )
    queries = _queries(folder / QUERIES)
    return LabelledSet(folder, queries, read_labels(folder / LABELS, {one.id for one in queries}))


def _queries(file: Path) -> tuple[LabelledQuery, ...]:
    lines: dict[str, int] = {}
    found: list[LabelledQuery] = []
    for number, fields in objects(file):
        name = identity(file, number, fields)
        text = fields.get("text")
        if not isinstance(text, str) or not text.strip():
            raise wrong(file, number, 'has no "text": what is asked')
        if name in lines:
            raise wrong(file, number, f"has the id {name!r} of line {lines[name]}: ids are unique")
        lines[name] = number
        found.append(LabelledQuery(name, text, fields))
    if not found:
        raise EvaluationError(f"{file} has no queries")
    return tuple(found)


def read_labels(file: Path, known: set[str]) -> dict[str, Grades]:
    """A document that is judged twice has its higher grade. Raises EvaluationError."""
    labels: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for number, line in enumerate(text_of(file).split("\n"), start=1):
        if not line.strip():
            continue
        columns = line.rstrip("\r").split("\t")
        if number == 1 and columns[-1].strip().lower() in _GRADE_NAMES:
            continue
        query, document, grade = _label(file, number, columns)
        if query not in known:
            raise wrong(file, number, f"judges the query {query!r}, which {QUERIES} does not have")
        labels[query][document] = max(grade, labels[query].get(document, grade))
    if not any(grade > 0 for grades in labels.values() for grade in grades.values()):
        raise EvaluationError(f"{file} has no label with a grade above 0: nothing can be measured")
    return dict(labels)


def _label(file: Path, number: int, columns: list[str]) -> tuple[str, str, float]:
    if len(columns) != 3:
        raise wrong(file, number, "must have query id, path and grade, with tabs between them")
    query, path, written = columns
    try:
        grade = float(written)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade):
        raise wrong(file, number, f"has the grade {written!r}, which is not a number")
    return query, plain_path(path), grade


def plain_path(path: str) -> str:
    """As the documents are named in an index."""
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path
