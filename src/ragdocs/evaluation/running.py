"""Every query of a set put to the application, as a user would: what came back, and how fast."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.errors import EvaluationError, IndexStoreError, QueryError
from ragdocs.evaluation.labelled_set import LabelledQuery
from ragdocs.evaluation.metrics import DEPTH
from ragdocs.evaluation.run_files import Ranked

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.search.requests import QueryRequest


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run brought: documents by query, and how long each query took."""

    ranked: Ranked
    seconds: tuple[float, ...] = ()


def ask_all(app: "App", queries: Sequence[LabelledQuery]) -> Answers:
    """The first is asked twice: its first time includes what is loaded but once.

    Raises EvaluationError for a query that cannot be asked, IndexStoreError without an index.
    """
    top_n = results_for(DEPTH, app.config.search.max_chunks_per_doc)
    requests = [_request(query, top_n) for query in queries]
    _ask(app, requests[0])
    ranked: dict[str, Sequence[str]] = {}
    seconds: list[float] = []
    for query, request in zip(queries, requests, strict=True):
        began = time.perf_counter()
        ranked[query.id] = _ask(app, request)
        seconds.append(time.perf_counter() - began)
    return Answers(ranked, tuple(seconds))


def results_for(documents: int, per_document: int) -> int:
    """So many passages that they come from as many documents, however they are spread."""
    from ragdocs.search.requests import MAX_TOP_N

    return min(MAX_TOP_N, documents * per_document) or MAX_TOP_N


def _request(query: LabelledQuery, top_n: int) -> "QueryRequest":
    from ragdocs.search.requests import QueryRequest

    try:
        return QueryRequest(queries=(query.text,), top_n=top_n)
    except QueryError as error:
        raise EvaluationError(f"the query {query.id!r} cannot be asked: {error}") from error


def _ask(app: "App", request: "QueryRequest") -> tuple[str, ...]:
    """Documents, each at the place of its best passage."""
    from ragdocs.parsers.identity import decode_path

    response = app.search(request)
    if not response.index.is_there:
        raise IndexStoreError(f"the corpus cannot be searched: {response.index.in_words()}")
    ids = dict.fromkeys(result.doc_id for result in response.results)
    return tuple(decode_path(one.partition(":")[2]) for one in ids)[:DEPTH]
