"""All that the server asks of the rest of the program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ragdocs.diagnosis.status import Status
    from ragdocs.search.index_state import IndexState
    from ragdocs.search.library.library import Library
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResponse


class Backend(Protocol):
    """One index that is being kept in step; every method may be called by several threads."""

    @property
    def hyde_enabled(self) -> bool:
        """Whether `search_with_hypothesis` is offered."""
        ...

    def search(self, request: "QueryRequest") -> "SearchResponse": ...

    @property
    def library(self) -> "Library":
        """Raises IndexStoreError when there is no index to read."""
        ...

    def index_state(self) -> "IndexState":
        """As it is told with a list; never raises."""
        ...

    def status(self) -> "Status":
        """Never raises."""
        ...

    def changed_settings(self) -> Mapping[str, str]:
        """The settings that have not their default, as they would be written in a file."""
        ...

    def document_ids(self) -> Sequence[str]:
        """Of all that is indexed, in order; none while there is no index."""
        ...

    def activity(self) -> str:
        """What is being indexed at this moment, in words; empty when nothing is. Never waits."""
        ...

    def close(self) -> None: ...
