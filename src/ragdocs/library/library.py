"""The reading side of the index: its documents word for word, and how they are related."""

from collections.abc import Callable
from dataclasses import dataclass

from ragdocs.config.resolved import Tree
from ragdocs.config.settings import ContextConfig
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.view import SearchableIndex
from ragdocs.library.answers import ContextAnswer, DocumentText, Listing, Related
from ragdocs.library.context import answer_plan, plan_context
from ragdocs.library.documents import DocumentReader, PathMatcher, TextSource
from ragdocs.library.listing import Lister
from ragdocs.library.related import Embed, Relations
from ragdocs.library.requests import ContextRequest, DocumentRequest, ListRequest, RelatedRequest
from ragdocs.places import Places
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import SearchResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySetup:
    """What the library needs besides the index: the trees, and functions of other parts."""

    trees: tuple[Tree, ...]
    places: Callable[[], Places]
    context: ContextConfig
    search: Callable[[QueryRequest], SearchResponse]
    matches: PathMatcher
    files: TextSource | None = None
    embed: "Embed | None" = None
    """Computes vectors of texts; None without the stored vectors' model."""


class Library:
    """Reads, lists and relates the documents of one index; safe to share between threads."""

    def __init__(self, index: SearchableIndex, analyzer: Analyzer, setup: LibrarySetup) -> None:
        self._index = index
        self._analyzer = analyzer
        self._setup = setup

    def get(self, request: DocumentRequest) -> DocumentText:
        places = self._setup.places()
        with self._index.view(for_search=False) as view:
            found = DocumentReader(view, places, self._setup.files).read(request)
        return places.with_files(found)

    def list(self, request: ListRequest) -> Listing:
        places = self._setup.places()
        with self._index.view(for_search=False) as view:
            found = Lister(view, self._setup.trees, places, request).listing()
        return places.with_files(found)

    def related(self, request: RelatedRequest) -> Related:
        places = self._setup.places()
        with self._index.view() as view:
            relations = Relations(view, self._analyzer, places)
            if request.content is None:
                found = relations.of(request)
            else:
                found = relations.of_text(request, self._setup.embed)
        return places.with_files(found)

    def context(self, request: ContextRequest) -> ContextAnswer:
        setup = self._setup
        with self._index.view() as view:
            plan = plan_context(
                request, view, self._analyzer, setup.trees, setup.context, setup.matches
            )
        return setup.places().with_files(answer_plan(plan, request, setup.search))
