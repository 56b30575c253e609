"""A tree checked out with Windows' line ends: the same chunks, lines and answers as with LF."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ragdocs import open_index
from ragdocs.api import Index
from ragdocs.library.requests import ListKind, ListRequest
from tests.support.documents import documentation
from tests.support.indexes import write_all
from tests.support.models import CountingEmbedder

QUERIES = (
    "how do I sign in with a passkey",
    "dead letter queue",
    '"verify before you parse"',
    "retry delay backoff",
    "def submit",
)
TIME = 1_700_000_000
_OF_BYTES = ("bytes", "byte_start", "byte_end", "tokens", "file")
"""A line's end has another length, and so has what is estimated from it; the file is another."""


def told(tmp_path: Path, name: str, ending: str) -> dict[str, Any]:
    """All that a user sees of the documentation, with these line ends."""
    texts = {path: text.replace("\n", ending) for path, text in documentation().items()}
    folder = write_all(tmp_path / name / "docs", texts, TIME)
    settings = {"indexing": {"index_path": str(tmp_path / name / "index")}}
    with open_index(folder, embedder=CountingEmbedder(), settings=settings) as index:
        return {
            "chunks": list(chunks(index)),
            "texts": {path: index.get(path).text for path in documentation()},
            "results": [results(index, query) for query in QUERIES],
        }


def chunks(index: Index):
    for path in documentation():
        listing = index.library.list(ListRequest(kind=ListKind.CHUNKS, path=path, limit=100))
        for entry in listing.chunks:
            yield {key: value for key, value in asdict(entry).items() if key not in _OF_BYTES}


def results(index: Index, query: str) -> list[tuple[object, ...]]:
    return [
        (
            found.id,
            found.heading_path,
            found.line_start,
            found.line_end,
            found.text,
            found.snippet.text,
            round(found.score, 6),
            round(found.confidence, 6),
        )
        for found in index.search(query).results
    ]


@pytest.mark.parametrize("ending", ["\r\n", "\r"], ids=["CRLF", "CR"])
def test_line_ends_change_nothing_that_is_seen(tmp_path: Path, ending: str):
    plain, other = told(tmp_path, "plain", "\n"), told(tmp_path, "other", ending)
    assert len(plain["chunks"]) > 50
    assert all(plain["results"])
    assert other["texts"] == plain["texts"]
    assert other["chunks"] == plain["chunks"]
    assert other["results"] == plain["results"]


def test_git_keeps_the_bytes_of_what_tests_compare():
    """A checkout on Windows must not turn the line ends of fixtures into its own."""
    rules = (Path(__file__).parents[2] / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert "* text=auto eol=lf" in rules
    assert "tests/fixtures/** -text" in rules
