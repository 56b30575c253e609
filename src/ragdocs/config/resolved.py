"""The configuration in force: sections, trees with absolute roots, and where each value is from."""

from collections.abc import Callable, Iterator, Mapping
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
    SearchConfig,
    Settings,
    TreeConfig,
)
from ragdocs.config.trust import Ignored
from ragdocs.models import TreeName
from ragdocs.text import plain_value

DEFAULT_TREE = TreeName("docs")
DOCUMENTS_PATH: KeyPath = ("indexing", "documents_path")


class TreeScope(StrEnum):
    """Whose tree it is: the project's, or the user's own, which every project sees."""

    LOCAL = "local"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of documents: `root` is absolute, the patterns are relative to it.

    `within` is the project whose file named it: no link on the way from there to it is followed.
    """

    name: TreeName
    root: Path
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    scope: TreeScope
    within: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class InForce:
    """One setting as it is, and where it was given."""

    key: str
    value: object
    origin: SettingOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration. Only the entry points and app.py see this; a module gets a section.

    `index_place` is where indices are kept (`assembly.index_directory` tells which is this
    program's), `origins` has every setting's origin by its key, `ignored` is what
    project files set and is not in force because they are not trusted.
    """

    indexing: IndexingConfig
    context: ContextConfig
    chunking: ChunkingConfig
    search: SearchConfig
    embedding: EmbeddingConfig
    trees: tuple[Tree, ...]
    index_place: IndexPlace
    files: tuple[Path, ...]
    origins: Mapping[str, SettingOrigin]
    ignored: tuple[Ignored, ...] = ()

    def in_force(self) -> Iterator[InForce]:
        """Every setting but the trees, in the order of the reference page."""
        for path in settings():
            key = key_text(path)
            if key in self.origins:
                yield InForce(key, self.value_of(key), self.origins[key])

    def tree_origin(self, tree: Tree) -> SettingOrigin:
        """Where the tree was given; the one made from `documents_path`, where that was."""
        key = f"tree.{tree.name}"
        return self.origins[key if key in self.origins else key_text(DOCUMENTS_PATH)]

    def value_of(self, key: str) -> object:
        """Of a setting, by its key; `trees` are the trees."""
        value: object = self
        for part in key.split("."):
            value = getattr(value, part)
        return value

    def fingerprint_settings(self) -> dict[str, object]:
        """The settings that decide what the store contains, by their keys: with others, there is
        another store.

        - tree: which folder a document's id stands for, and which files are in it
        - indexing: which of those files are left out
        - chunking: where passages begin and end
        - stemmer: the tokens of the keyword index and the vocabulary
        - embedding: which vectors belong to which text; a text's prefix is part of it

        Weights, thresholds, boosts and the like act on the query. An engine or an index outside
        the store is a view, which looks after what it depends on by itself.
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
    """The configured trees by name; and `docs` when there is none, or when its folder was given.

    `common` has the patterns for all trees, as far as they hold for one with that root and origin:
    not every project chooses from it.
    """

    def made(name: str, given: Assigned, own: TreeConfig) -> Tree:
        patterns = common(own.path, given.origin)
        include = patterns.include if own.include is None else own.include
        exclude = (*patterns.exclude, *own.exclude)
        scope = _scope(given.origin)
        return Tree(TreeName(name), own.path, include, exclude, scope, given.within)

    trees = [made(name, merged[("tree", name)], tree) for name, tree in whole.tree.items()]
    documents = merged[DOCUMENTS_PATH]
    is_given = documents.origin.kind is not OriginKind.DEFAULT and DEFAULT_TREE not in whole.tree
    if not trees or is_given:
        trees.append(made(DEFAULT_TREE, documents, TreeConfig(path=whole.indexing.documents_path)))
    return tuple(sorted(trees, key=lambda tree: tree.name))


def _scope(origin: SettingOrigin) -> TreeScope:
    return TreeScope.GLOBAL if origin.kind is OriginKind.USER else TreeScope.LOCAL
