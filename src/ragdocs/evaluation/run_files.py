"""Runs in files, a query on a line: {"id": …, "results": [path, …]}, best first."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.json_lines import identity, objects, wrong
from ragdocs.evaluation.labelled_set import plain_path

Ranked: TypeAlias = Mapping[str, Sequence[str]]
"""Query → documents, best first, each once."""


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
