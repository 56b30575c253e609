"""The text of a first configuration: the settings people really change, said by the settings.

Whatever is commented out has its default, so that the file changes nothing but the documents.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.cli.place import named
from ragdocs.config.notation import toml_key, toml_string, toml_value

if TYPE_CHECKING:
    from ragdocs.config.catalogue import KeyPath

_WIDTH = 98

_CHOSEN: tuple[KeyPath, ...] = (
    ("indexing", "include"),
    ("indexing", "exclude"),
    ("indexing", "respect_gitignore"),
    ("indexing", "index_path"),
    ("chunking", "parent_retrieval_enabled"),
    ("search", "stemmer"),
    ("search", "min_confidence"),
    ("search", "max_chunks_per_doc"),
    ("search", "recency_bias"),
    ("search", "query_expansion_enabled"),
    ("search", "rerank_enabled"),
    ("search", "rerank_model"),
    ("embedding", "threads"),
)
_FOR_EXAMPLE: dict[KeyPath, str] = {
    ("indexing", "exclude"): 'For example ["drafts/", "CHANGELOG.md"].',
    ("search", "stemmer"): "One of eighteen, for example german.",
}
_HEAD = """\
# Settings of mcp-markdown-ragdocs for {whom}. What is commented out
# shows its default: take away the `#` and change it. `ragdocs config` lists all settings there are,
# `ragdocs check-config` says what is wrong with this file.
"""
_TREES = """\
# Folders that are searched in every project, each with a name. A project's own documents are
# searched besides them where it has a file of its own (`ragdocs init`).
"""


def project_starter(folder: Path, docs: tuple[Path, ...]) -> str:
    """For `folder`, which is where its documents are unless others are given."""
    parts = [_HEAD.format(whom="this folder and all below it")]
    documents: list[str] = []
    if docs:
        parts += ["# The folders that are searched, each with a name.", *_trees(docs, folder), ""]
    else:
        about = "# Where the documents are, seen from this file's folder."
        documents = [about, f"documents_path = {_path(folder, folder)}"]
    return _text([*parts, *_sections(documents)])


def user_starter(docs: tuple[Path, ...]) -> str:
    trees = list(_trees(docs, None)) or ["#[tree.notes]", '#path = "~/notes"']
    head = _HEAD.format(whom="all of your projects")
    return _text([head, _TREES.rstrip(), *trees, "", *_sections([])])


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _trees(docs: tuple[Path, ...], folder: Path | None) -> Iterator[str]:
    for name, place in named(docs).items():
        yield f"[tree.{toml_key(name)}]"
        yield f"path = {_path(place, folder)}"


def _path(place: Path, folder: Path | None) -> str:
    """Short where it is inside of the folder, unless it would be taken for somebody's home."""
    text = os.fspath(place)
    if folder is not None and place.is_relative_to(folder):
        inside = os.fspath(place.relative_to(folder))
        text = text if inside.startswith("~") else inside
    return toml_string(text)


def _sections(documents: list[str]) -> Iterator[str]:
    """Those that something was chosen from; `documents` begin the first."""
    from ragdocs.config.catalogue import tables

    for table in tables():
        chosen = [path for path in _CHOSEN if path[:-1] == table.path]
        if not chosen:
            continue
        yield f"# {' '.join(table.description.split())}"
        yield table.header
        yield from documents if table.path == ("indexing",) else ()
        for path in chosen:
            yield from _setting(path)
        yield ""


def _setting(path: KeyPath) -> Iterator[str]:
    from ragdocs.config.catalogue import settings

    one = settings()[path]
    yield from (f"# {line}" for line in textwrap.wrap(one.description, _WIDTH))
    yield from [f"# {_FOR_EXAMPLE[path]}"] if path in _FOR_EXAMPLE else []
    yield f"#{one.name} = {toml_value(one.default)}"
