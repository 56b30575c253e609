"""What is done while the file system fails: a commit, or a keyword engine that follows one."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragdocs.config.settings import SearchConfig
from ragdocs.errors import EmbeddingError
from ragdocs.indexing import update
from ragdocs.indexing.manager import IndexManager
from ragdocs.indexing.session import Control
from ragdocs.indices.engines import KeywordSetup, keyword_setup
from ragdocs.indices.keyword import compile_query
from ragdocs.search.query_language import parse_query
from ragdocs.store.reader import Reader
from tests.support.indexes import held, later, setup, tables, tree, write
from tests.support.models import CountingEmbedder
from tests.support.stores import ANALYZER

NOTE = "# {0}\n\nSee [[{1}]] and [more]({1}.md#{1}).\n\n```python\ndef {0}(): ...\n```\n"
WORDS = ("lark", "owls", "stirs", "text")


@dataclass(frozen=True, slots=True)
class Stage:
    """What the index holds after one of the commits."""

    generation: int
    content: tuple[object, ...]


def write_first(docs: Path) -> None:
    names = ["dawn", "morning", "noon", "evening", "dusk", "night"]
    for name, following in zip(names, names[1:] + names[:1], strict=True):
        write(docs, f"{name}.md", NOTE.format(name, following) + f"A lark at {name}.\n" * 20)
    write(docs, "binary.md", b"\x89PNG\r\n\x1a\n\0\0\0\0")


def write_changes(docs: Path) -> None:
    """An edit, two new files, a deletion, a move, and a file that can be read now."""
    write(docs, "dawn.md", NOTE.format("dawn", "night") + "Owls hunt.\n" * 30)
    write(docs, "midnight.md", NOTE.format("midnight", "dawn"))
    write(docs, "sub/late.md", "# Late\n\nNothing stirs.\n")
    (docs / "noon.md").unlink()
    (docs / "dusk.md").rename(docs / "sub" / "twilight.md")
    write(docs, "binary.md", "# Text\n\nIt is text now.\n")


def manager_of(docs: Path, index: Path, control: Control | None = None) -> IndexManager:
    control = control or Control(clock_ns=later, lock_seconds=2.0)
    return IndexManager(setup(index, tree(docs)), CountingEmbedder(), control=control)


@contextmanager
def unhurried() -> Generator[None]:
    """However slow the machine is, what fits into one commit goes into one."""
    usual, update.SECONDS_PER_BATCH = update.SECONDS_PER_BATCH, math.inf
    try:
        yield
    finally:
        update.SECONDS_PER_BATCH = usual


def bring_in_step(manager: IndexManager) -> None:
    with unhurried():
        manager.update()
    manager.update_communities()
    if error := manager.fill().error:
        raise EmbeddingError(error)
    manager.prune()


def made(docs: Path, index: Path) -> Path:
    with manager_of(docs, index) as manager:
        bring_in_step(manager)
    return index


def stage(index: Path) -> Stage:
    with Reader.open(index) as reader:
        generation = reader.position().generation
    return Stage(generation, held(index))


def stages(docs: Path, index: Path, *, communities: bool = True) -> list[Stage]:
    """What the index holds after each of the commits when nothing fails, the one before first.
    Without `communities`: when they alone could not be stored, and are left for the next time.
    """
    found = [stage(index)] if (index / "store.db").exists() else []

    def look(*_: object) -> None:
        if (index / "store.db").exists() and (now := stage(index)) not in found:
            found.append(now)

    with manager_of(docs, index, Control(clock_ns=later, on_progress=look)) as manager:
        manager.open()
        look()
        with unhurried():
            manager.update()
        look()
        if communities:
            manager.update_communities()
            look()
        while manager.fill_some().has_more:
            look()
        manager.prune()
        look()
    return found


class Keywords:
    """One engine beside a store, asked for words."""

    def __init__(self, index: Path, engine: str) -> None:
        self._index = index
        settings = SearchConfig.model_validate({"keyword_engine": engine})
        self._setup: KeywordSetup = keyword_setup(settings, ANALYZER, index)

    def found(self) -> dict[str, list[str]]:
        """By word, the documents that have it."""
        engine = self._setup.engine
        with Reader.open(self._index) as reader, reader.snapshot() as snapshot:
            engine.catch_up(snapshot)
            answer: dict[str, list[str]] = {}
            for word in WORDS:
                query = compile_query(parse_query(word), ANALYZER)
                keys = [hit.key for hit in engine.search(snapshot, query, 100).hits]
                chunks = snapshot.chunks_by_key(keys)
                assert len(chunks) == len(keys)
                answer[word] = sorted({str(found.chunk.doc_id) for found in chunks.values()})
            return answer


@contextmanager
def engines_behind(docs: Path, index: Path, engine: str) -> Generator[None]:
    """Makes an index whose keyword engine has yet to follow what the block does to the files."""
    given = setup(index, tree(docs), tables=tables()[1:])
    with IndexManager(given, None, control=Control(clock_ns=later)) as manager:
        manager.update()
        Keywords(index, engine).found()
        yield
        manager.update()
