"""Keeps one index in step with its files. Thin: each step is a module of its own.

For one thread: the one that first updates also fills and closes. Any number of managers, in any
number of processes, may work on one index directory.
"""

import time

from ragdocs.closable import Closable
from ragdocs.embedding.base import Embedder
from ragdocs.errors import EmbeddingError, IndexLocked
from ragdocs.indexing.filling import Filled, Filler
from ragdocs.indexing.hints import Hints
from ragdocs.indexing.index_access import LOST, IndexAccess
from ragdocs.indexing.index_setup import Control, IndexSetup
from ragdocs.indexing.outcome import Outcome
from ragdocs.indexing.survey import paths_of
from ragdocs.indexing.updating import Update
from ragdocs.indices.term_vectors import TermVectors

MAX_RESTARTS = 3
"""A store that is lost again and again, while it is written, is not to be had now."""

SPARE_VECTORS = 20_000
"""About 30 MB."""


class IndexManager(Closable):
    """Files into the index (`update`), then vectors for their texts (`fill_some`)."""

    def __init__(
        self,
        setup: IndexSetup,
        embedder: Embedder | None = None,
        terms: TermVectors | None = None,
        control: Control | None = None,
    ) -> None:
        self._setup = setup
        self._control = control or Control()
        self._access = IndexAccess(setup, self._control)
        self._filler = Filler(self._access, self._control, embedder, terms)

    def open(self) -> None:
        """Opens the store for writing now, with its checks, instead of at the first change."""
        self._access.open()

    def check_ours(self) -> None:
        """Raises OthersIndex when another program has made the index in a folder that the user has
        named; nothing is locked or written for that."""
        self._access.check_ours()

    def is_continued(self) -> bool:
        """Whether the store has only gone on since this was asked last; LOST when it is gone."""
        return self._access.retried(self._access.is_continued)

    @property
    def is_compared(self) -> bool:
        """Whether, when that was asked, the files were known to have been looked at, all of them,
        since the store was made or found changed by something else."""
        return self._access.is_compared

    def lose(self, error: Exception) -> None:
        """The store was found gone or damaged: the next update opens, checks and repairs it."""
        self._access.lose(error)

    def update(self, hints: Hints | None = None, *, rebuild: bool = False) -> Outcome:
        """Brings the index in step with the files: with all of them, or where hints say.

        A rebuild checks the whole store first, then reads every file again; search goes on, and
        what has a vector keeps it. In a folder that the user has named, it also takes over what a
        program with other settings has made. May be called again whenever it raises.

        Raises:
            IndexLocked: others kept the write lock for too long.
            OthersIndex: another program has made the index in a folder that the user has named.
            IndexStoreError: the directory cannot be written.
        """
        began = time.monotonic()
        update = Update(self._setup, self._access, self._control)
        try:
            self._run(update, hints, rebuild)
        except IndexLocked:
            if not self._control.stop.is_set():
                raise
        return self._outcome(update, time.monotonic() - began)

    def fill_some(self) -> Filled:
        """One short piece of embedding; call it again while it `has_more`."""
        return self._filler.fill_some()

    def fill(self) -> Filled:
        """All of it, until there is no more, it fails, or it is stopped."""
        stored = 0
        while True:
            filled = self.fill_some()
            stored += filled.stored
            if not filled.has_more or self._control.stop.is_set():
                return Filled(filled.phase, stored, filled.has_more, filled.error)

    @property
    def vectors_taken(self) -> int:
        """Of those that were filled in: how many came from another variant of the index."""
        return self._filler.taken

    def prune(self) -> int:
        """Forgets vectors that nothing uses any more; after an update that saw every tree."""
        return self._filler.prune()

    def tidy(self) -> int:
        """Prunes when much is unused, or made by another model: a little is kept, for files that
        go and come back."""
        with self._access.reader.snapshot() as snapshot:
            vectors, chunks = (snapshot.ledger.count(table) for table in ("embeddings", "chunks"))
            ((models,),) = snapshot.select("SELECT count(*) FROM models")
        if vectors <= 2 * chunks + SPARE_VECTORS and models <= 1:
            return 0
        try:
            return self.prune()
        except EmbeddingError:  # without its model it is not known which vectors are its own
            return 0

    def close(self) -> None:
        self._access.close()

    def _run(self, update: Update, hints: Hints | None, rebuild: bool) -> None:
        must_examine = rebuild
        for restarts in range(MAX_RESTARTS + 1):
            try:
                if must_examine:
                    self._access.examine()
                    must_examine = False
                # What was emptied, by us or by others, is filled from all files.
                is_whole = self._access.ready() and restarts == 0
                paths = paths_of(hints) if is_whole else None
                update.run(paths, anew=rebuild)
                if paths is None:
                    self._access.settle()
                return
            except LOST as error:
                self._access.lose(error)
                if not rebuild:
                    self.check_ours()
                if restarts == MAX_RESTARTS:
                    raise

    def _outcome(self, update: Update, seconds: float) -> Outcome:
        applied = update.applied
        documents = chunks = 0
        try:
            with self._access.reader.snapshot() as snapshot:
                documents = snapshot.ledger.count("documents")
                chunks = snapshot.ledger.count("chunks")
        except (IndexLocked, *LOST):
            pass
        return Outcome(
            added=applied.added,
            modified=applied.modified,
            unchanged=update.unchanged + applied.unchanged,
            removed=applied.removed,
            moved=applied.moved,
            failed=tuple(applied.failures.values()),
            kept=update.kept,
            skipped=update.skipped,
            unsettled=update.unsettled,
            documents=documents,
            chunks=chunks,
            seconds=seconds,
            taken_over=self._access.took_over,
            rebuilt=self._access.take_rebuilt(),
            stopped=self._control.stop.is_set(),
        )
