"""The application as the server's backend."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragdocs.app import App
from ragdocs.errors import IndexStoreError

if TYPE_CHECKING:
    from ragdocs.diagnosis.status import Status
    from ragdocs.library.library import Library
    from ragdocs.lint.findings import LintReport, LintRequest
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import IndexState, SearchResponse


FIRST_SECONDS = 2.0
"""In which a small folder has its first documents in the index."""
_PAUSE = 0.05


class ServedApp:
    """An application whose index is being kept up to date.

    For its first `patience` seconds, who asks waits for the first documents of an index that has
    none yet; later it is said at once that there are none.
    """

    def __init__(self, app: App, patience: float = 0.0) -> None:
        self._app = app
        self._patient_until = time.monotonic() + patience

    @property
    def hyde_enabled(self) -> bool:
        return self._app.config.search.advanced.hyde_enabled

    def search(self, request: "QueryRequest") -> "SearchResponse":
        self._wait_for_documents()
        return self._app.search(request)

    @property
    def library(self) -> "Library":
        self._wait_for_documents()
        return self._app.library

    def index_state(self) -> "IndexState":
        return self._app.index_state()

    def status(self) -> "Status":
        from ragdocs.diagnosis.gathering import gather_status

        return gather_status(self._app, self._app.service.state)

    def lint(self, request: "LintRequest") -> "LintReport":
        self._wait_for_documents()
        return self._app.lint(request)

    def changed_settings(self) -> Mapping[str, str]:
        from ragdocs.config.problems import OriginKind
        from ragdocs.text import toml_value

        return {
            one.key: toml_value(one.value)
            for one in self._app.config.in_force()
            if one.origin.kind is not OriginKind.DEFAULT
        }

    def document_ids(self) -> Sequence[str]:
        try:
            with self._app.reader.snapshot() as snapshot:
                return snapshot.document_ids()
        except IndexStoreError:
            return ()

    def activity(self) -> str:
        progress = self._app.service.state.progress
        return f"{progress.phase}: {progress.done:,} of {progress.total:,}" if progress else ""

    def close(self) -> None:
        self._app.close()

    def _wait_for_documents(self) -> None:
        """As long as there is patience."""
        while time.monotonic() < self._patient_until:
            state = self._app.index_state()
            if state.documents or state.complete:
                self._patient_until = 0.0
            else:
                time.sleep(_PAUSE)
