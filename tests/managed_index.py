"""An index manager over a real folder, with a tiny real model that counts what it is given."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragdocs.config.choices import Stemmer
from ragdocs.config.resolved import Tree, TreeScope
from ragdocs.embedding.base import EmbeddingCounts
from ragdocs.errors import EmbeddingError
from ragdocs.indexing.changes import Hints, Outcome, TreePath
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control, IndexSetup
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeIndex
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vocabulary import Vocabulary, VocabularyIndex
from ragdocs.models import DocId, FileState, TreeName
from ragdocs.store.reader import Reader
from tests.corpus import keyword_tables
from tests.parsing import SEED_SIZES
from tests.word_vectors import DIMENSION, WordModel

DOCS = TreeName("docs")
ENGLISH = Stemmer("english")


class CountingEmbedder(WordModel):
    """Remembers the texts; fails while it is told to."""

    name = "words"
    max_tokens = 1000
    notes: tuple[str, ...] = ()

    def __init__(self, identity: str = "words@1") -> None:
        super().__init__(identity)
        self.texts: list[str] = []
        self.is_broken = False

    @property
    def passages(self) -> list[str]:
        """Of the texts, those that are no single word: the vocabulary's words are embedded too."""
        return [text for text in self.texts if len(text.split()) > 1]

    @property
    def counts(self) -> EmbeddingCounts:
        return EmbeddingCounts(len(self.texts))

    def load(self) -> None:
        pass

    def embed_documents(self, texts: Sequence[str]):
        if self.is_broken:
            raise EmbeddingError("the model is broken")
        self.texts += texts
        return np.stack([self.embed(text) for text in texts]).reshape(-1, DIMENSION)

    def embed_query(self, text: str):
        return self.embed(text)


def tables():
    return (
        keyword_tables(),
        CodeIndex(code_analyzer()),
        SignatureIndex(),
        VocabularyIndex(ENGLISH),
    )


def tree(root: Path, name: str = "docs") -> Tree:
    return Tree(TreeName(name), root, ("**/*.md", "**/*.txt"), (), TreeScope.LOCAL)


def term_vectors(embedder: CountingEmbedder) -> TermVectors:
    return TermVectors(embedder, Vocabulary(text_analyzer(ENGLISH)), limit=1000)


def setup(directory: Path, *trees: Tree, **more) -> IndexSetup:
    given = {"fingerprint": "test", "sizes": SEED_SIZES, "tables": tables(), **more}
    return IndexSetup(directory=directory, trees=trees, **given)


def later() -> int:
    """So long after any edit that only the next one is a doubt."""
    return time.time_ns() + 60 * 10**9


def settled() -> Control:
    return Control(clock_ns=later)


def write(root: Path, path: str, text: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def held(directory: Path) -> tuple[object, ...]:
    """All that a store holds, but for when its files were read; and that it is whole."""
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        snapshot.verify(deep=True)
        states: dict[DocId, FileState | None] = {
            doc_id: entry.state for doc_id, entry in snapshot.manifest().items()
        }
        sums = json.loads(snapshot.ledger.encoded())
        failures = [(one.path, one.kind, one.reason) for one in snapshot.failures()]
        words = snapshot.select("SELECT word, term, documents FROM vocabulary ORDER BY word")
    del sums["files"]  # a file's row says when it was read
    return states, failures, sums, words


def fresh(directory: Path, *trees: Tree, **more) -> tuple[object, ...]:
    """What a new index of the same files holds."""
    with IndexManager(setup(directory, *trees, **more), CountingEmbedder()) as manager:
        manager.update()
        manager.fill()
    return held(directory)


class Place:
    """A folder, its index, and one manager."""

    def __init__(self, path: Path) -> None:
        self.root, self.index = path / "notes", path / "index"
        self.root.mkdir()
        self.path = path
        self.tree = tree(self.root)
        self.embedder = CountingEmbedder()
        self.manager = self.another(settled(), self.embedder)

    def another(self, control=None, embedder=None, **more) -> IndexManager:
        return IndexManager(
            setup(self.index, self.tree, **more), embedder or CountingEmbedder(), control=control
        )

    def write(self, path: str, text: str | bytes) -> Path:
        return write(self.root, path, text)

    def update(self, *hints: str, **more) -> Outcome:
        """And fills; afterwards the index is what a new one would be."""
        at = Hints(frozenset(TreePath(DOCS, path) for path in hints)) if hints else None
        outcome = self.manager.update(at, **more)
        self.manager.fill()
        return outcome

    def is_as_new(self) -> bool:
        self.manager.prune()
        return held(self.index) == fresh(self.path / f"fresh-{time.monotonic_ns()}", self.tree)

    def paths(self) -> list[str]:
        with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
            return [document.path for document in snapshot.documents()]

    def waiting(self) -> int | None:
        with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
            return snapshot.waiting

    def failures(self) -> dict[str, str]:
        with Reader.open(self.index) as reader, reader.snapshot() as snapshot:
            return {failure.path: failure.kind for failure in snapshot.failures()}


def did(outcome: Outcome) -> dict[str, int]:
    names = ("added", "modified", "unchanged", "removed", "moved")
    counts = {name: getattr(outcome, name) for name in names}
    counts["failed"] = len(outcome.failed)
    return {name: count for name, count in counts.items() if count}
