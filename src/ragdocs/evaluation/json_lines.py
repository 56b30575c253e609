"""Files of one JSON object on a line, and what is wrong with them, by line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from ragdocs.errors import EvaluationError


def text_of(file: Path) -> str:
    """Raises EvaluationError when it cannot be read as text."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{file} is not UTF-8: {error.reason}; save it as UTF-8") from error
    except OSError as error:
        raise EvaluationError(f"{file} cannot be read: {error.strerror or error}") from error


def objects(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Each with the number of its line; blank lines are left out. Raises EvaluationError."""
    for number, line in enumerate(text_of(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value: object = json.loads(line)
        except ValueError as error:
            raise wrong(file, number, f"is not JSON: {error}") from error
        except RecursionError as error:
            raise wrong(file, number, "is nested too deep") from error
        if not isinstance(value, dict):
            raise wrong(file, number, 'must be an object: {"id": …}')
        yield number, cast("dict[str, object]", value)


def identity(file: Path, number: int, found: dict[str, object]) -> str:
    """A query's id, which may be written as a number. Raises EvaluationError."""
    given = found.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise wrong(file, number, 'has no "id": a string or a whole number')
    return str(given)


def wrong(file: Path, line: int, problem: str) -> EvaluationError:
    return EvaluationError(f"{file}:{line}: the line {problem}")
