"""Reads and checks a labelled set (`corpus/`, `queries.jsonl`, `qrels.tsv`) and files of runs."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.metrics import Grades

# Files with one JSON object per line, and errors in them with their line.


def text_of(file: Path) -> str:
    """Raises EvaluationError if it cannot be read as text."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{file} is not UTF-8: {error.reason}; save it as UTF-8") from error
    except OSError as error:
        raise EvaluationError(f"{file} cannot be read: {error.strerror or error}") from error


def objects(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yields each object with its line number; skips blank lines. Raises EvaluationError."""
    for number, line in enumerate(text_of(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value: object = json.loads(line)
        except ValueError as error:
            raise wrong(file, number, f"is not JSON: {error}") from error
        except RecursionError as error:
            raise wrong(file, number, "is nested too deeply") from error
        if not isinstance(value, dict):
            raise wrong(file, number, 'must be an object: {"id": …}')
        yield number, cast("dict[str, object]", value)


def identity(file: Path, number: int, found: dict[str, object]) -> str:
    """The id of a query, which may be a number in the file. Raises EvaluationError."""
    given = found.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise wrong(file, number, 'has no "id": a string or a whole number')
    return str(given)


def wrong(file: Path, line: int, problem: str) -> EvaluationError:
    return EvaluationError(f"{file}:{line}: the line {problem}")


# A labelled set: a folder with `corpus/`, `queries.jsonl` and `qrels.tsv`, read and checked.

CORPUS, QUERIES, LABELS = "corpus", "queries.jsonl", "qrels.tsv"
_GRADE_NAMES = ("grade", "score", "relevance")


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query; `fields` is its whole line."""

    id: str
    text: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Queries in order, and the grades of documents for each; a query without is unanswerable."""

    folder: Path
    queries: tuple[LabelledQuery, ...]
    labels: Mapping[str, Grades]

    @property
    def corpus(self) -> Path:
        return self.folder / CORPUS

    def missing_documents(self) -> int:
        """The number of labelled documents that are not in the corpus."""
        labelled = {document for grades in self.labels.values() for document in grades}
        return sum(not self._has(document) for document in labelled)

    def answers(self) -> dict[str, frozenset[str]]:
        """Query → its relevant documents; without the queries for which the corpus has none."""
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
            f"{folder} is not a folder; name one that contains {CORPUS}/, {QUERIES} and {LABELS}"
        )
    if not (folder / CORPUS).is_dir():
        raise EvaluationError(f"{folder} has no folder {CORPUS}/ with the documents")
    for name in (QUERIES, LABELS):
        if not (folder / name).is_file():
            raise EvaluationError(f"{folder} has no file {name}")
    for name in (CORPUS, QUERIES, LABELS):
        if not (folder / name).resolve().is_relative_to(folder):
            raise EvaluationError(
                f"{folder / name} is a link to outside the set, which is not followed: copy its "
                "target into the set"
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
            raise wrong(file, number, 'has no "text": the question')
        if name in lines:
            raise wrong(file, number, f"has the id {name!r} of line {lines[name]}: ids are unique")
        lines[name] = number
        found.append(LabelledQuery(name, text, fields))
    if not found:
        raise EvaluationError(f"{file} has no queries")
    return tuple(found)


def read_labels(file: Path, known: set[str]) -> dict[str, Grades]:
    """A document that is judged twice gets the higher grade. Raises EvaluationError."""
    labels: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for number, line in enumerate(text_of(file).split("\n"), start=1):
        if not line.strip():
            continue
        columns = line.rstrip("\r").split("\t")
        if number == 1 and columns[-1].strip().lower() in _GRADE_NAMES:
            continue
        query, document, grade = _label(file, number, columns)
        if query not in known:
            raise wrong(file, number, f"judges the query {query!r}, which is not in {QUERIES}")
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
    """The path as an index has it."""
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path


# Runs in files, one query per line: {"id": …, "results": [path, …]}, best first.

Ranked: TypeAlias = Mapping[str, Sequence[str]]
"""Query → documents, best first, without duplicates."""


def read_run(file: Path) -> Ranked:
    """Raises EvaluationError with the file and the line."""
    run: dict[str, Sequence[str]] = {}
    for number, fields in objects(file):
        name = identity(file, number, fields)
        if name in run:
            raise wrong(file, number, f"has the id {name!r} for the second time")
        run[name] = _paths(file, number, fields.get("results"))
    return run


def _paths(file: Path, number: int, results: object) -> Sequence[str]:
    if not isinstance(results, list):
        raise wrong(file, number, 'has no "results": a list of paths')
    paths: list[str] = []
    for result in cast("list[object]", results):
        named = (
            cast("dict[str, object]", result).get("path") if isinstance(result, dict) else result
        )
        if not isinstance(named, str):
            raise wrong(file, number, 'has a result that is not a path: write "folder/file.md"')
        paths.append(plain_path(named))
    return tuple(dict.fromkeys(paths))


def write_run(file: Path, run: Ranked) -> None:
    """Raises EvaluationError when it cannot be written."""
    lines = [
        json.dumps({"id": query, "results": list(paths)}, ensure_ascii=False) + "\n"
        for query, paths in run.items()
    ]
    write_text(file, "".join(lines))


def write_text(file: Path, text: str) -> None:
    """Raises EvaluationError when it cannot be written."""
    try:
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error.strerror or error}") from error
