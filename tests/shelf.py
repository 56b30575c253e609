"""A library over real files: indexed by the manager, read again as the application does."""

from collections.abc import Sequence
from pathlib import Path

from ragdocs.config.settings import ContextConfig, SearchConfig
from ragdocs.indexing.ignore import matches_any
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.reading import read_file
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.vocabulary import Vocabulary
from ragdocs.library.documents import FoundFile
from ragdocs.library.library import Library, LibrarySetup
from ragdocs.library.requests import ContextRequest, DocumentRequest, ListRequest, RelatedRequest
from ragdocs.models import TreeName
from ragdocs.search.orchestrator import QueryOrchestrator
from ragdocs.search.retrieval import Indices
from ragdocs.search.understanding import WordSources
from ragdocs.store.reader import Reader
from tests.corpus import keyword_engine
from tests.managed_index import ENGLISH, CountingEmbedder, setup, tree, write

MAX_BYTES = 10_000_000


class Shelf:
    """Write files, update, ask; closed at the end of a `with`."""

    def __init__(self, folder: Path, texts, trees: Sequence[str] = ("docs",), **more) -> None:
        self.trees = tuple(tree(folder / name, name) for name in trees)
        for each in self.trees:
            each.root.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.embedder = more.pop("embedder", None) or CountingEmbedder()
        self._setup = setup(folder / "index", *self.trees)
        self.write(texts)
        self.reader = Reader.open(folder / "index")
        analyzer = text_analyzer(ENGLISH)
        self.indices = Indices(
            analyzer=analyzer,
            keyword=keyword_engine(),
            code=CodeEngine(code_analyzer(), analyzer),
            vector=VectorIndex(self.embedder),
            embedder=self.embedder,
            graph=GraphIndex(),
            words=WordSources(vocabulary=Vocabulary(analyzer)),
        )
        settings = SearchConfig(query_expansion_enabled=False)
        self.orchestrator = QueryOrchestrator(self.reader, self.indices, settings)
        self.library = self.configured(**more)

    def configured(self, **more) -> Library:
        usual = {
            "trees": self.trees,
            "context": ContextConfig(),
            "search": self.orchestrator.search,
            "files": self,
            "matches": matches_any,
        }
        return Library(self.reader, self.indices, LibrarySetup(**{**usual, **more}))

    def read(self, tree: TreeName, path: str) -> FoundFile:
        """The seam that the application fills."""
        (root,) = [each.root for each in self.trees if each.name == tree]
        found = read_file(root, path, MAX_BYTES)
        return FoundFile(found.data, found.state.content_hash)

    def write(self, texts, removed: Sequence[str] = ()) -> None:
        self.edit(texts, removed)
        self.update()

    def edit(self, texts, removed: Sequence[str] = ()) -> None:
        """On disk alone: the index does not know yet."""
        for place, text in texts.items():
            write(*self._place(place), text)
        for place in removed:
            root, path = self._place(place)
            (root / path).unlink()

    def update(self) -> None:
        with IndexManager(self._setup, self.embedder) as manager:
            manager.update()
            manager.fill()

    def find_communities(self) -> None:
        with IndexManager(self._setup, self.embedder) as manager:
            manager.update_communities()

    def _place(self, place: str) -> tuple[Path, str]:
        """`path`, or `tree>path` for another tree than the first."""
        name, _, path = place.rpartition(">")
        return self.folder / (name or self.trees[0].name), path

    def get(self, reference: str = "", **more):
        return self.library.get(DocumentRequest(reference=reference, **more))

    def list(self, **more):
        return self.library.list(ListRequest(**more))

    def related(self, reference: str, **more):
        return self.library.related(RelatedRequest(reference=reference, **more))

    def context(self, *files, **more):
        return self.library.context(ContextRequest(files=files, **more))

    def pages(self, reference: str = "", max_tokens: int = 5_000, **more):
        """Every page of one request, each by the cursor of the one before alone."""
        page = self.get(reference, max_tokens=max_tokens, **more)
        yield page
        for _ in range(4 * page.total_tokens + 1):
            if not page.cursor:
                return
            page = self.get(cursor=page.cursor, max_tokens=max_tokens)
            yield page
        raise AssertionError("the pages have no end")

    def __enter__(self) -> "Shelf":
        return self

    def __exit__(self, *_: object) -> None:
        self.orchestrator.close()
        self.reader.close()
