"""The Python API: opens an index of a folder, updates it, searches it and closes it.

It uses the same parts as the command line and the server, and returns the same types.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from re import sub
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.config.trust import in_words
from ragdocs.errors import (
    ConfigError,
    EmbeddingError,
    IndexLocked,
    IndexStoreError,
    OtherSettings,
    QueryError,
)
from ragdocs.models import Closable
from ragdocs.places import working_directory
from ragdocs.search.requests import Filters, QueryRequest, QueryType, Uniqueness

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.embedding.base import Embedder
    from ragdocs.indexing.changes import Outcome
    from ragdocs.library.answers import DocumentText
    from ragdocs.library.library import Library
    from ragdocs.search.responses import IndexState, SearchResponse

_log = logging.getLogger(__name__)
WAIT_SECONDS = 2.0
"""A program that writes the index also updates it, so opening need not wait for it any longer."""


class SearchOptions(TypedDict, total=False):
    """The options of a search; see `QueryRequest` for their limits."""

    hypothesis: str
    top_n: int
    min_score: float | None
    strict: bool
    filters: Filters
    query_type: QueryType | None
    uniqueness: Uniqueness | None
    similarity_threshold: float | None
    max_tokens: int | None
    explain: bool
    metadata: bool


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did to the text of the files and to their vectors.

    `problem`: why some texts have no vectors; search then finds them by keywords only.
    """

    files: "Outcome"
    vectors_made: int
    problem: str


def open_index(
    documents: str | Path | None = None,
    *,
    config_file: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    update: bool = True,
    embedder: "Embedder | None" = None,
) -> "Index":
    """Opens the index of a folder; without one, of the trees in the configuration.

    Settings in project files that are not trusted are ignored: they are logged as warnings, and
    listed in `config.ignored` of the index.

    `settings` are tables as in a configuration file, and override all files. `config_file` replaces
    the project's and the user's file. With `update`, the index is built or updated, including its
    vectors, unless a server does that already.

    Raises:
        ConfigError: the settings, or the folder, cannot be used.
        IndexStoreError: the index cannot be written.
    """
    flags = dict(settings or {})
    if documents is not None:
        flags["indexing"] = {**_table(flags, "indexing"), "documents_path": _folder(documents)}
    index = Index(_config(config_file, flags), embedder)
    if update:
        try:
            index.update_unless_watched()
        except BaseException:
            index.close()
            raise
    return index


class Index(Closable):
    """An open index, safe to use from several threads. Close it, or use it in a `with`."""

    def __init__(self, config: "Config", embedder: "Embedder | None" = None) -> None:
        self._app = App(config, embedder)
        self._app.places = self._app.places.based_on(working_directory())
        self._is_closed = False

    @property
    def config(self) -> "Config":
        """The effective settings."""
        return self._app.config

    @property
    def directory(self) -> Path:
        """The folder of this index; `config.index_place` is the folder of all its variants."""
        return self._app.directory

    @property
    def state(self) -> "IndexState":
        """How complete an answer would be now."""
        return self._opened.index_state()

    @property
    def library(self) -> "Library":
        """Lists, relations and context. Raises IndexMissing when nothing is indexed yet."""
        return self._opened.library

    def search(
        self, query: str | Sequence[str] = (), **options: Unpack[SearchOptions]
    ) -> "SearchResponse":
        """The best passages for a query, or for several queries, whose results are merged.

        Raises QueryError for a request that cannot be answered.
        """
        return self.ask(QueryRequest(queries=_questions(query), **options))

    def ask(self, request: QueryRequest) -> "SearchResponse":
        """Like `search`, for a ready request."""
        return self._opened.search(request)

    def get(self, reference: str) -> "DocumentText":
        """A document, section or lines: `guide.md`, `guide.md#set-up`, `guide.md:10-40`, an id.

        Raises QueryError when it does not exist, IndexMissing when there is no index.
        """
        from ragdocs.library.requests import DocumentRequest

        return self._opened.library.get(DocumentRequest(reference=reference))

    def update(self, *, rebuild: bool = False) -> Updated:
        """Updates the index to match the files, including its vectors. A rebuild also takes over an
        index that a program with other settings built in a folder of your choice.

        Raises:
            IndexLocked: another program is writing; try again.
            IndexStoreError: the index cannot be written.
        """
        from ragdocs.indexing.session import Control

        with self._opened.manager(Control(lock_seconds=WAIT_SECONDS)) as manager:
            outcome = manager.update(rebuild=rebuild)
            manager.update_communities(rebuild=rebuild)
            filled = manager.fill()
            if not outcome.kept and not filled.error:
                with suppress(EmbeddingError):
                    is_pruned = rebuild and not outcome.taken_over
                    _ = manager.prune() if is_pruned else manager.tidy()
            manager.shrink()
        return Updated(outcome, filled.stored, filled.error)

    def update_unless_watched(self) -> Updated | None:
        """Like `update`; but None if another program already does that."""
        from ragdocs.store.lock import is_looked_after

        if is_looked_after(self._app.directory):
            return None
        try:
            return self.update()
        except (IndexLocked, OtherSettings):  # read the index as it is; `state` gives the reason
            return None

    def close(self) -> None:
        """Later calls raise IndexStoreError."""
        self._is_closed = True
        self._app.close()

    @property
    def _opened(self) -> App:
        if self._is_closed:
            raise IndexStoreError("this index is closed: open it again with open_index")
        return self._app


def _questions(query: object) -> tuple[str, ...]:
    if isinstance(query, str):
        return (query,)
    if not isinstance(query, Sequence):
        raise QueryError(f"a query is {query!r}: it must be a text, or a list of texts")
    return tuple(cast("Sequence[str]", query))


def _config(file: str | Path | None, settings: Mapping[str, object]) -> "Config":
    try:
        config = load_config(Path(file) if file else None, flags=settings)
    except ConfigError as error:  # these settings did not come from a command line
        raise ConfigError(sub("(?m)^command line: ", "settings: ", str(error))) from None
    for line in in_words(config.ignored):
        _log.warning("%s", line)
    return config


def _table(flags: Mapping[str, object], name: str) -> dict[str, object]:
    found = flags.get(name, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"settings[{name!r}] is {type(found).__name__}: it must be a table")
    return dict(cast("Mapping[str, object]", found))


def _folder(documents: str | Path) -> str:
    folder = Path(os.path.expanduser(documents))  # keeps the name of an unknown user
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(f"{documents} {what}: give the folder that contains the documents")
    return str(folder)
