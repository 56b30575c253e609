"""The languages of code blocks: the names that each is written by, and where blocks of it are."""

import json

from ragdocs.models import DocId
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

_NAMES = (
    ("python", "py", "python3", "py3"),
    ("javascript", "js", "node", "mjs", "cjs"),
    ("typescript", "ts"),
    ("shell", "sh", "bash", "zsh", "console", "shell-session"),
    ("c++", "cpp", "cxx", "cc"),
    ("c#", "cs", "csharp"),
    ("go", "golang"),
    ("rust", "rs"),
    ("ruby", "rb"),
    ("kotlin", "kt"),
    ("yaml", "yml"),
    ("markdown", "md"),
    ("powershell", "ps1", "pwsh"),
    ("docker", "dockerfile"),
    ("html", "htm"),
    ("latex", "tex"),
    ("haskell", "hs"),
    ("perl", "pl"),
    ("objective-c", "objc", "objectivec"),
    ("make", "makefile"),
)
_GROUPS = {name: group for group in _NAMES for name in group}


def language_names(language: str) -> tuple[str, ...]:
    """Every name of the language that is called so; an unknown one has only its own."""
    name = language.strip().lower()
    return _GROUPS.get(name, (name,))


def documents_with_language(snapshot: Snapshot, language: str) -> frozenset[DocId]:
    """The documents that have a block in this language, whatever it is called there."""
    rows = snapshot.select(
        """SELECT id FROM documents WHERE key IN (SELECT doc FROM code_blocks
        WHERE language IN (SELECT value FROM json_each(?)))""",
        (json.dumps(language_names(language)),),
    )
    return frozenset(DocId(doc_id) for (doc_id,) in rows)


def chunks_with_language(snapshot: Snapshot, language: str) -> frozenset[ChunkKey]:
    """The chunks in which such a block begins."""
    rows = snapshot.select(
        """SELECT DISTINCT chunk FROM code_blocks WHERE chunk NOT NULL
        AND language IN (SELECT value FROM json_each(?))""",
        (json.dumps(language_names(language)),),
    )
    return frozenset(ChunkKey(chunk) for (chunk,) in rows)
