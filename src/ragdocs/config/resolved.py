"""The effective configuration: sections, trees with absolute roots, the origin of each value."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ragdocs.config.layers import Assigned, Layer
from ragdocs.config.locations import IndexPlace
from ragdocs.config.problems import KeyPath, OriginKind, SettingOrigin, key_text, settings
from ragdocs.config.settings import (
    ChunkingConfig,
    ContextConfig,
    EmbeddingConfig,
    IndexingConfig,
    LintConfig,
    SearchConfig,
    Settings,
    TerminalConfig,
    TreeConfig,
)
from ragdocs.config.trust import Ignored
from ragdocs.models import TreeName
from ragdocs.text import plain_value

DOCUMENTS_PATH: KeyPath = ("indexing", "documents_path")
NAMELESS = "docs"
"""The tree of a folder without a usable name of its own, such as the root of a disk."""
_MAX_NAME = 60
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def name_tree(folder: Path, taken: Collection[str] = ()) -> str:
    """A tree's name, made from its folder's, and different from those that are taken."""
    stem = _NOT_IN_NAMES.sub("-", folder.name).strip("-._")[:_MAX_NAME].rstrip("-._") or NAMELESS
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


class TreeScope(StrEnum):
    """Whether the tree belongs to the project, or to the user, and so to every project."""

    LOCAL = "local"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of documents: `root` is absolute, the patterns are relative to it.

    `within` is the project whose file named it: links between there and `root` are not followed.
    `description` is for agents.
    """

    name: TreeName
    root: Path
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    scope: TreeScope
    within: Path | None = field(default=None, compare=False)
    description: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class InForce:
    """The effective value of one setting, and where it was set."""

    key: str
    value: object
    origin: SettingOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration. Only the entry points and app.py see this; a module gets a section.

    `index_place` is where indices are kept (`assembly.index_directory` returns the one of this
    program), `origins` maps each key to its origin, `ignored` are the settings of project files
    that are not in force because the files are not trusted.
    """

    indexing: IndexingConfig
    context: ContextConfig
    chunking: ChunkingConfig
    search: SearchConfig
    embedding: EmbeddingConfig
    lint: LintConfig
    terminal: TerminalConfig
    trees: tuple[Tree, ...]
    index_place: IndexPlace
    files: tuple[Path, ...]
    origins: Mapping[str, SettingOrigin]
    ignored: tuple[Ignored, ...] = ()

    def in_force(self) -> Iterator[InForce]:
        """Every setting except the trees, in the order of the reference page."""
        for path in settings():
            key = key_text(path)
            if key in self.origins:
                yield InForce(key, self.value_of(key), self.origins[key])

    def tree_origin(self, tree: Tree) -> SettingOrigin:
        """Where the tree was set; for the default tree, where `documents_path` was."""
        key = f"tree.{tree.name}"
        return self.origins[key if key in self.origins else key_text(DOCUMENTS_PATH)]

    def value_of(self, key: str) -> object:
        """The value of a setting, by its key; the key `trees` returns the trees."""
        value: object = self
        for part in key.split("."):
            value = getattr(value, part)
        return value

    def fingerprint_settings(self) -> dict[str, object]:
        """The settings that decide what the store contains, by key: if they differ, so does the
        store.

        - tree: which folder a document's id refers to, and which files are in it
        - indexing: which of those files are skipped
        - chunking: where passages begin and end
        - stemmer: the tokens of the keyword index and the vocabulary
        - embedding: which vectors belong to which text; a text's prefix is part of it

        Weights, thresholds and boosts only affect queries. An engine or an index outside the store
        is a view, which checks its own dependencies.
        """
        embedding = self.embedding
        trees = {
            tree.name: {
                "path": plain_value(tree.root),
                "include": list(tree.include),
                "exclude": list(tree.exclude),
            }
            for tree in self.trees
        }
        return {
            "chunking": dict(sorted(self.chunking.model_dump(mode="json").items())),
            "embedding": {
                "model": embedding.model,
                "passage_prefix": embedding.passage_prefix,
                "provider": embedding.provider.value,
                "query_prefix": embedding.query_prefix,
            },
            "indexing": {
                "max_file_bytes": self.indexing.max_file_bytes,
                "respect_gitignore": self.indexing.respect_gitignore,
            },
            "search": {"stemmer": self.search.stemmer.value},
            "tree": dict(sorted(trees.items())),
        }


def trees_of(
    merged: Layer, whole: Settings, common: Callable[[Path, SettingOrigin], IndexingConfig]
) -> tuple[Tree, ...]:
    """The configured trees by name; and the tree of `documents_path`, with the name of its folder,
    if there are no others, or if it was set and no other tree has this folder.

    `common` returns the shared patterns that apply to a tree with that root and origin: not every
    project file affects every tree.
    """

    def make_tree(name: str, given: Assigned, own: TreeConfig) -> Tree:
        patterns = common(own.path, given.origin)
        include = patterns.include if own.include is None else own.include
        exclude = (*patterns.exclude, *own.exclude)
        scope = _scope(given.origin)
        within, about = given.within, own.description
        return Tree(TreeName(name), own.path, include, exclude, scope, within, about)

    trees = [make_tree(name, merged[("tree", name)], tree) for name, tree in whole.tree.items()]
    documents = merged[DOCUMENTS_PATH]
    folder = whole.indexing.documents_path
    is_new = all(tree.root != folder for tree in trees)
    if not trees or (is_new and documents.origin.kind is not OriginKind.DEFAULT):
        name = name_tree(folder, whole.tree)
        trees.append(make_tree(name, documents, TreeConfig(path=folder)))
    return tuple(sorted(trees, key=lambda tree: tree.name))


def _scope(origin: SettingOrigin) -> TreeScope:
    return TreeScope.GLOBAL if origin.kind is OriginKind.USER else TreeScope.LOCAL
