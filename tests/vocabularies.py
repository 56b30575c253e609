"""A store whose only index is the vocabulary, and what it holds."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ragdocs.indices.vocabulary import TABLE, VocabularyIndex
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer
from tests.corpus import ENGLISH, indexed


@contextmanager
def vocabulary_store(folder: Path, texts: Mapping[str, str]) -> Iterator[tuple[Writer, Reader]]:
    with Writer.open(folder, "test", indices=[VocabularyIndex(ENGLISH)]) as writer:
        put(writer, texts)
        with Reader.open(folder) as reader:
            yield writer, reader


def put(writer: Writer, texts: Mapping[str, str], removed: tuple[str, ...] = ()) -> None:
    with writer.transaction() as transaction:
        for path, text in texts.items():
            transaction.put(indexed(path, text), time.time_ns())
        for path in removed:
            transaction.remove(DocId(f"docs:{path}"))


def entries(reader: Reader) -> dict[str, tuple[str, int]]:
    """Every word with its term and its number of documents."""
    with reader.snapshot() as snapshot:
        rows = snapshot.select(f"SELECT word, term, documents FROM {TABLE}")
    return {word: (term, documents) for word, term, documents in rows}
