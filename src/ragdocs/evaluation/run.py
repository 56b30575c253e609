"""Every query of a set put to the application, as a user would: what came back, and how fast."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragdocs.errors import EvaluationError, IndexStoreError, QueryError
from ragdocs.evaluation.labelled_set import LabelledQuery, Ranked
from ragdocs.evaluation.metrics import DEPTH

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResult


@dataclass(frozen=True, slots=True)
class Cited:
    """One result as it was shown: where it stands, and how sure of it the search was."""

    path: str
    heading: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run brought: documents by query, how long each query took, and the results of each in
    the order in which they were shown; the last two only where the search itself was asked."""

    ranked: Ranked
    seconds: tuple[float, ...] = ()
    cited: Mapping[str, tuple[Cited, ...]] = field(default_factory=dict[str, tuple[Cited, ...]])

    @property
    def firsts(self) -> dict[str, Cited | None]:
        """By query its first result, if it has any."""
        return {query: next(iter(found), None) for query, found in self.cited.items()}


def ask_all(
    app: "App",
    queries: Sequence[LabelledQuery],
    excluded: Mapping[str, Collection[str]] | None = None,
) -> Answers:
    """The first is asked twice: its first time includes what is loaded but once. `excluded` are the
    documents, by query, that may not answer it.

    Raises EvaluationError for a query that cannot be asked, IndexStoreError without an index.
    """
    top_n = results_for(DEPTH, app.config.search.max_chunks_per_doc)
    left_out = excluded or {}
    requests = [_request(app, query, top_n, left_out.get(query.id, ())) for query in queries]
    for request in requests[:1]:
        _ask(app, request)
    ranked: dict[str, Sequence[str]] = {}
    cited: dict[str, tuple[Cited, ...]] = {}
    seconds: list[float] = []
    for query, request in zip(queries, requests, strict=True):
        began = time.perf_counter()
        found = _ask(app, request)
        seconds.append(time.perf_counter() - began)
        cited[query.id] = found
        ranked[query.id] = tuple(dict.fromkeys(each.path for each in found))[:DEPTH]
    return Answers(ranked, tuple(seconds), cited)


def results_for(documents: int, per_document: int) -> int:
    """So many passages that they come from as many documents, however they are spread."""
    from ragdocs.limits import MAX_TOP_N

    return min(MAX_TOP_N, documents * per_document) or MAX_TOP_N


def _request(
    app: "App", query: LabelledQuery, top_n: int, excluded: Collection[str]
) -> "QueryRequest":
    from ragdocs.parsers.ids import document_id
    from ragdocs.search.requests import Filters, QueryRequest

    # By their ids: a bare path would leave out the files below a folder of that name too.
    ids = tuple(document_id(tree.name, path) for tree in app.config.trees for path in excluded)
    filters = Filters(excluded_files=ids)
    try:
        return QueryRequest(queries=(query.text,), top_n=top_n, filters=filters)
    except QueryError as error:
        raise EvaluationError(f"the query {query.id!r} cannot be asked: {error}") from error


def _ask(app: "App", request: "QueryRequest") -> tuple[Cited, ...]:
    response = app.search(request)
    if not response.index.is_there:
        raise IndexStoreError(f"the corpus cannot be searched: {response.index.in_words()}")
    return tuple(_cited(result) for result in response.results)


def _cited(result: "SearchResult") -> Cited:
    from ragdocs.parsers.ids import decode_path

    path = decode_path(result.doc_id.partition(":")[2])
    return Cited(path, " > ".join(result.heading_path), result.confidence)
