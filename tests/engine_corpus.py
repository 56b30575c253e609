"""A corpus asked through any keyword engine, in a test or in a process that a test starts."""

from contextlib import contextmanager

from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import text_analyzer
from ragdocs.indices.engine_folder import DerivedFolder
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.keyword import compile_query
from ragdocs.search.query_language import parse_query
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer
from tests.corpus import Corpus
from tests.word_vectors import WordModel, embed_missing

NOTES = {
    "apples.md": "# Apples\n\nThe apple is a fruit. Apples grow on trees.\n",
    "pears.md": "# Pears\n\nThe pear is a fruit. Pears grow on trees as apples do.\n",
    "cars.md": "# Cars\n\nA car has an engine. The engine needs fuel.\n",
    "fuel.md": "---\ntags: [energy]\nkeywords: [petrol]\n---\n# Fuel\n\nFuel burns in an engine.\n",
    "deep/http.md": "# HTTP\n\nCall `getUserById` with a timeout. Error handling comes below.\n",
}


class EngineCorpus(Corpus):
    """A corpus asked through the engine that the settings choose."""

    def __init__(self, folder, texts, engine, **settings):
        self.settings = SearchConfig(keyword_engine=engine, **settings)
        self.analyzer = text_analyzer(self.settings.stemmer)
        self.setup = keyword_setup(self.settings, self.analyzer, folder)
        self.engine = self.setup.engine
        super().__init__(folder, texts)

    @contextmanager
    def writer(self):
        with Writer.open(self.folder, "test", indices=self.setup.tables) as writer:
            yield writer

    def search(self, query, limit=50, scope=None):
        if isinstance(query, str):
            query = compile_query(parse_query(query), self.analyzer)
        with self.snapshot() as snapshot:
            self.engine.catch_up(snapshot)
            return self.engine.search(snapshot, query, limit, scope)

    def ask(self, query, scope=None, limit=50):
        found = self.search(query, limit, scope)
        with self.snapshot() as snapshot:
            chunks = snapshot.chunks_by_key([hit.key for hit in found.hits])
            return [(chunks[hit.key].chunk.id, hit.score) for hit in found.hits]

    def matching(self, condition):
        with self.snapshot() as snapshot:
            self.engine.catch_up(snapshot)
            keys = self.engine.matching(snapshot, condition)
            chunks = snapshot.chunks_by_key(keys)
            assert len(chunks) == len(keys)
            return {chunk.chunk.doc_id.partition(":")[2] for chunk in chunks.values()}


class FolderCorpus(EngineCorpus):
    """Knows the engine's folder, and can begin again with another engine object."""

    def __init__(self, folder, texts, engine, **settings):
        super().__init__(folder, texts, engine, **settings)
        self.files = folder / f"keyword-{engine}"

    def restarted(self, **settings):
        chosen = self.settings.model_dump(include={"keyword_engine"}) | settings
        self.settings = SearchConfig(**chosen)
        self.engine = keyword_setup(self.settings, self.analyzer, self.folder).engine
        return self

    def embed(self, count):
        """Commits that change no text."""
        with self.writer() as writer, Reader.open(self.folder) as reader:
            embed_missing(writer, reader, WordModel(), limit=count)

    def current(self):
        state = DerivedFolder(self.files).state()
        return self.files / state.directory

    def content_files(self):
        files = [path for path in self.current().iterdir() if path.is_file()]
        return sorted(path for path in files if not path.name.endswith(("lock", "LOCK")))
