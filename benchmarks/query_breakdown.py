"""Where the time of a search goes: each part's own CPU time, over some questions."""

import functools
import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ragdocs.search.orchestrator import QueryOrchestrator
from ragdocs.search.requests import QueryRequest

WATCHED = {
    "open a snapshot": "ragdocs.store.reader:check_compatible",
    "catch-up check": "ragdocs.indices.embedded:EmbeddedIndices.catch_up",
    "scope": "ragdocs.indices.scopes:Scopes.of",
    "embed (beside keyword)": "ragdocs.embedding.builtin:BuiltinEmbedder.embed_query",
    "keyword": "ragdocs.indices.fts5:Fts5Engine.search",
    "code": "ragdocs.indices.code:CodeEngine.search",
    "meaning: rest (beside keyword)": "ragdocs.search.vector_search:MeaningSearch._nearest",
    "in context of documents": "ragdocs.indices.vector:VectorIndex.in_context",
    "vector (beside keyword)": "ragdocs.indices.vector:VectorIndex.search",
    "vectors of candidates": "ragdocs.indices.vector:VectorIndex.vectors_of",
    "graph: walk": "ragdocs.indices.graph:GraphIndex.neighbours",
    "graph: best passages": "ragdocs.indices.vector:VectorIndex.best_of",
    "graph: rest": "ragdocs.search.retrieval:Retrieval.neighbours",
    "fuse": "ragdocs.search.orchestrator:weigh",
    "add links": "ragdocs.search.orchestrator:weigh_links",
    "missing scores": "ragdocs.search.retrieval:RunningQuery.with_missing_scores",
    "rare words": "ragdocs.search.retrieval:Retrieval._with_rare",
    "exact tokens": "ragdocs.search.retrieval:Retrieval._find_exact",
    "read chunks": "ragdocs.store.snapshot:Snapshot.chunks_by_key",
    "read documents": "ragdocs.store.snapshot:Snapshot.document",
    "read documents at once": "ragdocs.store.snapshot:Snapshot.documents_by_id",
    "read trees": "ragdocs.store.snapshot:Snapshot.chunks",
    "read signatures": "ragdocs.indices.embedded:signatures_of",
    "hydrate: rest": "ragdocs.search.orchestrator:hydrate",
    "evidence": "ragdocs.search.orchestrator:with_evidence",
    "second look": "ragdocs.search.orchestrator:refine",
    "read sections": "ragdocs.store.snapshot:Snapshot.sections_in",
    "cite": "ragdocs.search.sections:Citer.cite",
    "presentation": "ragdocs.search.orchestrator:Presenter.draft",
    "index state": "ragdocs.search.responses:IndexStates.of",
    "stages": "ragdocs.search.orchestrator:run_stages",
    "words, expansion, waiting": "ragdocs.search.retrieval:Retrieval.find",
    "all the rest": "ragdocs.search.orchestrator:QueryOrchestrator.search",
}


class Watch:
    """Each function's own time, without that of watched ones it calls."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._local = threading.local()

    @contextmanager
    def on(self, label: str, place: str) -> Iterator[None]:
        module, _, path = place.partition(":")
        *owners, name = path.split(".")
        try:
            owner = functools.reduce(getattr, owners, importlib.import_module(module))
            original = getattr(owner, name)
        except (ImportError, AttributeError):
            print(f"  not watched, because it is not there any more: {place}")
            yield
            return
        setattr(owner, name, self._timed(label, original))
        try:
            yield
        finally:
            setattr(owner, name, original)

    def _timed(self, label: str, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def timed(*given: object, **named: object) -> object:
            inner = self._local.__dict__.setdefault("inner", [])
            inner.append(0.0)
            start = time.thread_time()
            try:
                return original(*given, **named)
            finally:
                whole = time.thread_time() - start
                self.spent[label] += whole - inner.pop()
                if inner:
                    inner[-1] += whole

        return timed


def show_breakdown(search: QueryOrchestrator, asked: Sequence[str]) -> None:
    """Means of one more round, in which measuring itself costs a little."""
    watch = Watch()
    stages: defaultdict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for label, place in WATCHED.items():
            stack.enter_context(watch.on(label, place))
        for question in asked:
            response = search.search(QueryRequest(queries=(question,)))
            for stage in response.stages:
                stages[stage.name] += stage.seconds
    print("  where a search spends CPU time, mean ms (a function without what it calls):")
    for label, seconds in sorted(watch.spent.items(), key=lambda item: -item[1]):
        print(f"    {label:32} {seconds * 1000 / len(asked):8.3f}")
    listed = [f"{name} {seconds * 1000 / len(asked):.3f}" for name, seconds in stages.items()]
    print(f"  stages by wall clock: {', '.join(listed)}")
