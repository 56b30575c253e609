"""[indexing] and [tree.NAME]: which files are indexed, where the index is, how it stays in step."""

from pathlib import Path
from typing import Any, cast

from pydantic import Field

from ragdocs.config.values import (
    SHORTEST_PAUSE,
    Authority,
    Folder,
    OptionalFolder,
    Patterns,
    Section,
    is_hasty,
    is_more,
    leaves_project,
    setting,
)

DEFAULT_INCLUDE = ("**/*.md", "**/*.markdown", "**/*.txt")
_READS_ELSEWHERE = Authority(
    "reads a folder outside the project, or a hidden folder inside it",
    leaves_project,
    "outside of the project's folder or in a hidden folder of it",
)


class IndexingConfig(Section):
    """Which files are indexed, where the index is kept, and how it stays in step."""

    documents_path: Folder = setting(
        Path(),
        "The folder of the tree `docs`: there when no [tree.NAME] is, or when this is set.",
        authority=_READS_ELSEWHERE,
    )
    index_path: OptionalFolder = setting(
        None,
        'The folder of the index; "" is a folder under the user\'s cache for each set of index '
        "settings.",
        authority=Authority("names a folder to which the text of all documents is written"),
    )
    include: Patterns = setting(
        DEFAULT_INCLUDE, "Files to index, in every tree that has no `include` of its own."
    )
    exclude: Patterns = setting((), "Files to leave out, in every tree, besides its own `exclude`.")
    respect_gitignore: bool = setting(
        True,
        "Leave out what .gitignore files leave out.",
        authority=Authority("decides whether files are read that git leaves out"),
    )
    max_file_bytes: int = setting(
        10_000_000,
        "Larger files are skipped with a warning.",
        within=(1, 1_000_000_000),
        authority=Authority(
            "has larger files read into memory", is_more, "larger than without the file"
        ),
    )
    debounce_seconds: float = setting(
        0.5, "How long files must be quiet before their changes are read.", within=(0, 60)
    )
    rescan_interval_seconds: float = setting(
        300.0,
        "How often all files are compared with the index; 0 is never.",
        within=(0, 86_400),
        authority=Authority(
            "keeps the processor busy with looking at all files again",
            is_hasty,
            f"below {SHORTEST_PAUSE:g}",
        ),
    )
    watch: bool = setting(True, "Follow changes while the server runs.")


class TreeConfig(Section):
    """One folder of documents. A nearer file's table of the same name replaces this one whole."""

    path: Folder = Field(
        description="The folder.",
        json_schema_extra=cast(
            "Any", {"aliases": [], "allowed": "", "authority": _READS_ELSEWHERE}
        ),
    )
    include: Patterns | None = setting(
        None, "Files to index; without it, those of [indexing].", allowed="a list of strings"
    )
    exclude: Patterns = setting((), "Files to leave out, besides those of [indexing].")
