"""What we use of tantivy: segments on disk, written and searched by it, without its analysis.

tantivy counts a term by its tokens, so a term is repeated by the weight of its field, all at the
same place: a phrase then counts by the weight as well, and never matches from one copy to the next.
`text` has the terms of all fields; `tagged` the same again, each behind a letter for its field, so
that what is asked of one field is counted and normed alike.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.errors import ConfigError, IndexStoreError
from ragdocs.indices.derived_index import Changes
from ragdocs.indices.derived_state import Damaged
from ragdocs.indices.keyword import FIELDS
from ragdocs.indices.keyword_entries import Entry, Weights, extent, places, weights_version
from ragdocs.indices.private_files import PrivateFiles
from ragdocs.models import QueryField

if TYPE_CHECKING:
    import tantivy

_LAYOUT_VERSION = 1
_MEMORY_BYTES = 30_000_000
_MAX_SCALE = 10.0
LEAST_WEIGHT = 0.5
"""A term cannot be repeated less than once: fields that weigh less are in `tagged` alone."""
_TAGS = {field: chr(ord("a") + number) for number, field in enumerate(FIELDS)}

TEXT, TAGGED, KEY, DOC = "text", "tagged", "key", "doc"


def require_tantivy() -> None:
    """Without importing it, which can wait for the first query."""
    if find_spec("tantivy") is None:
        raise ConfigError(
            'keyword_engine is "tantivy", which is not installed: '
            'pip install \'mcp-markdown-ragdocs[tantivy]\', or choose "fts5" or "whoosh"'
        )


def scaled(weights: Weights) -> dict[QueryField, float]:
    """Raised together until the text itself counts at least once."""
    content = weights[QueryField.CONTENT]
    factor = min(1 / content, _MAX_SCALE) if 0 < content < 1 else 1.0
    return {field: weight * factor for field, weight in weights.items()}


def tagged(field: QueryField, term: str) -> str:
    return _TAGS[field] + term


@dataclass(frozen=True, slots=True)
class TantivyIndex:
    """One state of the files, opened. tantivy's own statistics still count what was removed."""

    files: PrivateFiles
    searcher: "tantivy.Searcher"
    schema: "tantivy.Schema"
    live: int
    dead: int


class TantivyLibrary:
    """Reads and writes the files; see `derived_index.Library`."""

    def __init__(self, weights: Weights, analysis: str) -> None:
        self._weights = scaled(weights)
        self.version = f"tantivy;{_LAYOUT_VERSION};{weights_version(weights)};{analysis}"

    def open(self, directory: Path) -> TantivyIndex:
        import tantivy

        try:
            meta = json.loads((directory / "meta.json").read_bytes())
            total = sum(segment["max_doc"] for segment in meta["segments"])
            files = PrivateFiles(directory)
            with _panics():
                index = tantivy.Index.open(str(files.path))
                # Its files do not change: nobody needs to watch them.
                index.config_reader("manual")
                index.reload()
                searcher = index.searcher()
        except (OSError, ValueError, KeyError, TypeError, IndexStoreError) as error:
            raise Damaged(f"tantivy cannot open it: {error}") from error
        live = searcher.num_docs
        return TantivyIndex(files, searcher, index.schema, live, total - live)

    def write(self, directory: Path, changes: Changes) -> None:
        files = PrivateFiles(directory)
        self._write(files.path, changes)
        files.give_back(directory)

    def _write(self, directory: Path, changes: Changes) -> None:
        import tantivy

        with _panics():
            if changes.is_new:
                index = tantivy.Index(_schema(), path=str(directory), reuse=False)
            else:
                index = tantivy.Index.open(str(directory))
            writer = index.writer(_MEMORY_BYTES, 1)
            for doc_id in sorted(changes.removed):
                writer.delete_documents_by_term(DOC, doc_id)
        for entry in changes.entries:
            document = self._document(entry)
            with _panics():
                writer.add_document(document)
        with _panics():
            writer.commit()
            writer.wait_merging_threads()

    def _document(self, entry: Entry) -> "tantivy.Document":
        import tantivy

        document = tantivy.Document()
        document.add_unsigned(KEY, entry.key)
        document.add_text(DOC, entry.doc_id)
        tokens = list(self._tokens(entry))
        joined = [
            tantivy.Token(term, place, 0, 0)
            for field, place, term, copies in tokens
            if self._weights[field] >= LEAST_WEIGHT
            for _ in range(copies)
        ]
        document.add_pre_tokenized_text(TEXT, tantivy.PreTokenizedString("", joined))
        apart = [
            tantivy.Token(tagged(field, term), place, 0, 0)
            for field, place, term, copies in tokens
            for _ in range(copies)
        ]
        document.add_pre_tokenized_text(TAGGED, tantivy.PreTokenizedString("", apart))
        return document

    def _tokens(self, entry: Entry) -> Iterator[tuple[QueryField, int, str, int]]:
        """Each term with its field, its place and how often it counts there."""
        start = 0
        for field, streams in zip(FIELDS, entry.fields, strict=True):
            weight = self._weights[field]
            for number, (place, term) in enumerate(places(streams)):
                yield field, start + place, term, _copies(weight, number)
            start += extent(streams)


def _copies(weight: float, number: int) -> int:
    """A weight of 2.5 is three and two copies by turns."""
    return max(1, floor(weight * (number + 1) + 0.5) - floor(weight * number + 0.5))


def _schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT, tokenizer_name="raw", index_option="position")
    builder.add_text_field(TAGGED, tokenizer_name="raw", index_option="position")
    builder.add_unsigned_field(KEY, fast=True)
    builder.add_text_field(DOC, tokenizer_name="raw", index_option="basic")
    return builder.build()


@contextmanager
def _panics() -> Generator[None]:
    """tantivy says ValueError for a full disk, and a panic of Rust is no Exception of Python's."""
    try:
        yield
    except ValueError as error:
        raise IndexStoreError(f"tantivy cannot use its files: {error}") from error
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise IndexStoreError(f"tantivy failed: {error}") from error
