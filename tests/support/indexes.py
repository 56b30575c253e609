"""An index of a real folder, kept by its manager or by the application, with a tiny real model."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ragdocs.app import App
from ragdocs.config.loading import read_config
from ragdocs.config.resolved import Tree, TreeScope
from ragdocs.diagnosis.case import Case, Finding, Machine
from ragdocs.diagnosis.doctor import CHECKS, examine, open_case
from ragdocs.indexing.changes import Hints, Outcome, TreePath
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control, IndexSetup
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeIndex
from ragdocs.indices.signatures import SignatureIndex
from ragdocs.indices.term_vectors import TermVectors
from ragdocs.indices.vocabulary import Vocabulary, VocabularyIndex
from ragdocs.models import DocId, FileState, TreeName
from ragdocs.store.folder import claim_folder
from ragdocs.store.integrity import seal
from ragdocs.store.reader import Reader
from tests.support.documents import SEED_SIZES
from tests.support.models import CountingEmbedder
from tests.support.processes import python_process, read_line
from tests.support.stores import ENGLISH, keyword_tables

DOCS = TreeName("docs")


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
    """A time long after any edit, so that no file counts as just edited."""
    return time.time_ns() + 60 * 10**9


def settled() -> Control:
    return Control(clock_ns=later)


def write(root: Path, path: str, text: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def write_all(root: Path, texts: Mapping[str, str | bytes], time: float | None = None) -> Path:
    """Returns the folder. With `time`, every file gets this modification time."""
    for path, text in texts.items():
        file = write(root, path, text)
        if time is not None:
            os.utime(file, (time, time))
    return root


def held(directory: Path) -> tuple[object, ...]:
    """Everything in a store except when its files were read; also verifies the store."""
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        snapshot.verify(deep=True)
        states: dict[DocId, FileState | None] = {
            doc_id: entry.state for doc_id, entry in snapshot.manifest().items()
        }
        sums = json.loads(snapshot.ledger.encode())
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
        """Also embeds, so that afterwards the index equals a new one."""
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


NOTES = {
    "auth.md": "# Authentication\n\nHow to sign in. See [the garden](garden.md).\n",
    "garden.md": "---\ntags: [plants]\n---\n# Garden\n\nTomatoes need sun.\n",
    "code.md": "# Code\n\nRun it:\n\n```python\nprint('sunrise')\n```\n",
    "empty.md": "",
}


class Bench:
    """Folders for documents, index and home, and an application over them."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.docs = self.base / "docs"
        self.index = self.base / "index"
        self.home = self.base / "home"
        self.temporary = self.base / "tmp"
        for folder in (self.docs, self.home, self.temporary):
            folder.mkdir(exist_ok=True)

    @property
    def store(self) -> Path:
        return self.index / "store.db"

    def machine(self, **more) -> Machine:
        given = {
            "environ": {"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            "home": self.home,
            "folder": self.docs,
            "temporary": self.temporary,
            "proc": self.base / "proc",
        }
        return Machine(**{**given, **more})

    def reading(self, **sections):
        places = {"documents_path": str(self.docs), "index_path": str(self.index)}
        cache = {"cache_folder": str(self.base / "cache"), **sections.pop("embedding", {})}
        indexing = {**places, **sections.pop("indexing", {})}
        flags = {"indexing": indexing, "embedding": cache, **sections}
        return read_config(cwd=self.docs, environ={"HOME": str(self.home)}, flags=flags)

    def app(self, embedder=None, **sections) -> App:
        config = self.reading(**sections).config
        assert config is not None
        return App(config, embedder or CountingEmbedder())

    def case(self, embedder=None, machine=None, **sections) -> Case:
        app = self.app(embedder, **sections)
        return open_case(self.reading(**sections), machine or self.machine(), app)

    def build(self, texts=None, *, vectors: bool = True, **sections) -> None:
        write_all(self.docs, NOTES if texts is None else texts)
        with self.app(**sections) as app, app.manager() as manager:
            manager.update()
            if vectors:
                manager.fill()

    def reseal(self) -> None:
        """Seals the store as it is, as if a commit had left it so."""
        with Reader.open(self.index) as reader:
            seal(self.index, reader.position())

    def copy_to(self, base: Path) -> "Bench":
        """Copies the index, to be damaged, but not the documents."""
        other = Bench(base)
        shutil.copytree(self.index, other.index)
        other.reseal()
        other.docs = self.docs
        return other


def only(case: Case, *names: str) -> list[Finding]:
    """What these checks find."""
    return list(examine(case, [check for check in CHECKS if check.name in names]))


def levels(findings: list[Finding]) -> list[str]:
    return [found.level.value for found in findings]


@contextmanager
def holding(bench: Bench, function: str) -> Iterator[int]:
    """Another process holds a lock, taken by this function of `store.lock`."""
    code = (
        f"import sys\nfrom pathlib import Path\nfrom ragdocs.store.lock import {function}\n"
        f"held = {function}(Path(sys.argv[1]))\nprint(held is not None, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with python_process(code, bench.index) as process:
        assert read_line(process) == "True"
        yield process.pid


def index_is_a_file(bench):
    bench.index.write_text("a file", encoding="utf-8")


def index_is_a_pipe(bench):
    os.mkfifo(bench.index)


def index_is_a_broken_link(bench):
    bench.index.symlink_to("nowhere")


def store_is_a_pipe(bench):
    claim_folder(bench.index)
    os.mkfifo(bench.store)


def store_is_a_folder(bench):
    claim_folder(bench.index)
    bench.store.mkdir()


def store_is_a_loop(bench):
    claim_folder(bench.index)
    bench.store.symlink_to(bench.store)


def locks_are_pipes(bench):
    claim_folder(bench.index)
    for name in ("write.lock", "watch.lock"):
        os.mkfifo(bench.index / name)


def logs_are_pipes(bench):
    bench.build()
    for name in ("store.db-wal", "store.db-shm"):
        (bench.index / name).unlink(missing_ok=True)
        os.mkfifo(bench.index / name)


ODD = [
    index_is_a_file,
    index_is_a_pipe,
    index_is_a_broken_link,
    store_is_a_pipe,
    store_is_a_folder,
    store_is_a_loop,
    locks_are_pipes,
    logs_are_pipes,
]
"""What may be in the place of an index directory or its files."""
