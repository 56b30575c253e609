"""Whether a file that is worked on is itself a document of the index: told by its path alone."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from ragdocs.config.resolved import Tree
from ragdocs.models import DocId
from ragdocs.parsers.identity import document_id
from ragdocs.store.holdings import documents_called
from ragdocs.store.link_resolution import match_key
from ragdocs.store.rows import clean
from ragdocs.store.snapshot import Snapshot


class OwnDocuments:
    """Knows the trees' folders; asks the index, never the file system."""

    def __init__(self, snapshot: Snapshot, trees: Sequence[Tree]) -> None:
        self._snapshot = snapshot
        self._trees = trees

    def of(self, name: str) -> DocId | None:
        """The document at this path: from a tree's folder, from a folder above it, or absolute.
        A path that could be several documents is none.
        """
        parts = _parts(name)
        if not parts or ".." in parts:
            return None
        exact = [document_id(tree.name, "/".join(parts)) for tree in self._trees]
        found = list(self._snapshot.documents_by_id(exact)) or self._below(parts)
        return found[0] if len(found) == 1 else None

    def _below(self, parts: tuple[str, ...]) -> list[DocId]:
        """Those whose whole path, with their tree's folder, ends so."""
        roots = {tree.name: _parts(tree.root.as_posix()) for tree in self._trees}
        called = documents_called(self._snapshot, match_key(parts[-1]))
        found: list[DocId] = []
        for document in called:
            whole = (*roots.get(document.tree, ()), *_parts(document.path))
            if whole[-len(parts) :] == parts:
                found.append(document.id)
        return found


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in PurePosixPath(clean(path)).parts if part != "/")
