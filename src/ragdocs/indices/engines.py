"""The configured keyword engine, and the tables that it needs inside the store."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragdocs.config.choices import KeywordEngineName
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import Analyzer, analysis_fingerprint
from ragdocs.indices.conditions import Condition
from ragdocs.indices.fts5 import Fts5Engine, Fts5Index
from ragdocs.indices.hits import KeywordHits
from ragdocs.indices.keyword import FIELDS, KeywordQuery, Weights, weights_version
from ragdocs.indices.scopes import Scope
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.stored_index import StoredIndex


class KeywordEngine(Protocol):
    """BM25F over the fields of chunks, within one snapshot of the store."""

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings the engine's files beside the store, if any, up to date with the snapshot."""
        ...

    def search(
        self,
        snapshot: Snapshot,
        query: KeywordQuery,
        limit: int,
        scope: Scope = None,
        allowed: Set[int] | None = None,
    ) -> KeywordHits:
        """`allowed`: the chunks that satisfy the query's condition, if already known."""
        ...

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        """The numbers of the chunks that satisfy a strict query's condition."""
        ...

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> Mapping[str, int]:
        """How many chunks have each term, approximately: enough to tell which is rarer."""
        ...

    def count(self, snapshot: Snapshot) -> int:
        """How many chunks are searched: passages, not the sections around them."""
        ...


@dataclass(frozen=True, slots=True)
class KeywordSetup:
    """The engine for queries, and the tables that the store's writer must update for it."""

    engine: KeywordEngine
    tables: tuple[StoredIndex, ...]


def keyword_folder(directory: Path, choice: KeywordEngineName) -> Path:
    """The folder of an engine that keeps files beside the store."""
    return directory / f"keyword-{choice.value}"


def keyword_tables(settings: SearchConfig, analyzer: Analyzer) -> tuple[StoredIndex, ...]:
    """The engine's tables inside the store; none for an engine with files beside it."""
    if settings.keyword_engine is not KeywordEngineName.FTS5:
        return ()
    return (Fts5Index(analyzer, analysis_fingerprint(settings.stemmer)),)


def folder_version(settings: SearchConfig) -> str:
    """The settings that an engine's files beside the store depend on; empty without files."""
    if settings.keyword_engine is KeywordEngineName.FTS5:
        return ""
    return f"{settings.keyword_engine.value};{weights_version(_weights(settings))}"


def keyword_setup(settings: SearchConfig, analyzer: Analyzer, directory: Path) -> KeywordSetup:
    """Raises ConfigError if the engine's library is an extra that is not installed."""
    analysis = analysis_fingerprint(settings.stemmer)
    weights = _weights(settings)
    folder = keyword_folder(directory, settings.keyword_engine)
    match settings.keyword_engine:
        case KeywordEngineName.FTS5:
            return KeywordSetup(Fts5Engine(weights), keyword_tables(settings, analyzer))
        case KeywordEngineName.WHOOSH:
            from ragdocs.indices.whoosh_engine import WhooshEngine

            return KeywordSetup(WhooshEngine(folder, analyzer, weights, analysis), ())
        case KeywordEngineName.TANTIVY:
            from ragdocs.indices.tantivy_engine import TantivyEngine

            return KeywordSetup(TantivyEngine(folder, analyzer, weights, analysis), ())


def _weights(settings: SearchConfig) -> Weights:
    return {field: float(getattr(settings.boosts, field)) for field in FIELDS}
