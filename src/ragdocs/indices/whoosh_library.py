"""What we use of whoosh: segments of posting lists, written by it and read by it from memory.

whoosh neither analyses nor ranks here. A posting of ours carries the term's weighted count, which
whoosh keeps as a fraction, and the places where it stands; the engine makes scores of them.
"""

import pickle
import threading
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Protocol

from ragdocs.indices.derived_index import Changes
from ragdocs.indices.derived_state import Damaged, is_bookkeeping
from ragdocs.indices.keyword import FIELDS
from ragdocs.indices.keyword_entries import Entry, Weights, places, weights_version

_LAYOUT_VERSION = 1
_INDEX_NAME = "MAIN"
_MEMORY_MB = 64
PLACE_BITS = 27
"""A place is the field's number above, and the place within the field below these bits."""
PLACE_CODE = "I"

_UNPICKLED = frozenset(
    {
        "whoosh.codec.whoosh3.W3Segment",
        "whoosh.codec.whoosh3.W3Codec",
        "collections.defaultdict",
        "builtins.int",
    }
)
"""What whoosh's own files name; none of it can do anything but hold values."""

Posting = tuple[bytes, int, float, bytes]


class Matcher(Protocol):
    """What we use of whoosh's matchers: a place in a list of postings."""

    def is_active(self) -> bool: ...
    def next(self) -> bool: ...
    def id(self) -> int: ...
    def weight(self) -> float: ...
    def value(self) -> bytes: ...
    def all_ids(self) -> Iterator[int]: ...


class _Column(Protocol):
    def load(self) -> list[int]: ...


class Reader(Protocol):
    """What we use of whoosh's readers."""

    def __contains__(self, term: tuple[str, bytes]) -> bool: ...
    def postings(self, fieldname: str, text: bytes) -> Matcher: ...
    def doc_frequency(self, fieldname: str, text: bytes) -> int: ...
    def column_reader(self, fieldname: str) -> _Column: ...
    def all_doc_ids(self) -> Iterator[int]: ...
    def close(self) -> None: ...


class _PickleStream(Protocol):
    """What we use of whoosh's `StructFile`."""

    file: BinaryIO


class _Writer(Protocol):
    def reader(self) -> Reader: ...
    def delete_document(self, docnum: int) -> None: ...
    def add_document(self, **fields: object) -> None: ...


def library(name: str) -> ModuleType:
    """A module of whoosh. Its source has escapes and comparisons that newer Pythons warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("whoosh.filedb.structfile").StructFile.read_pickle = _read_pickle
        return import_module(f"whoosh.{name}")


class _Unpickler(pickle.Unpickler):
    """whoosh keeps its list of segments as a pickle, and an index folder may come from a stranger:
    only whoosh's own segments and plain values are read, whatever else a pickle asks for."""

    def find_class(self, module_name: str, global_name: str) -> object:
        name = f"{module_name}.{global_name}"
        if name not in _UNPICKLED:
            raise Damaged(f"it asks for {name}")
        return super().find_class(module_name, global_name)


def _read_pickle(stream: _PickleStream) -> object:
    return _Unpickler(stream.file).load()


def prepared(value: list[Posting]) -> list[Posting]:
    """Stands in for whoosh's own way from a field's text to postings."""
    return value


def _schema() -> object:
    fields, formats, columns = library("fields"), library("formats"), library("columns")
    text = fields.FieldType(formats.Positions(), None)
    text.index = prepared
    return fields.Schema(
        text=text,
        doc=fields.ID(),
        key=fields.COLUMN(columns.NumericColumn("Q")),
        size=fields.COLUMN(columns.NumericColumn("I")),
    )


class Segment:
    """A part of the index: whoosh's reader, and the number and length of each chunk in it."""

    def __init__(self, reader: Reader) -> None:
        import numpy as np

        self.reader = reader
        self.keys = np.asarray(reader.column_reader("key").load(), np.int64)
        self.sizes = np.asarray(reader.column_reader("size").load(), np.float64)
        self.is_live = np.zeros(len(self.keys), np.bool_)
        self.is_live[list(reader.all_doc_ids())] = True


class WhooshIndex:
    """The segments of one state, held in memory; read by one thread at a time."""

    def __init__(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.lock = threading.Lock()
        self.live = sum(int(segment.is_live.sum()) for segment in segments)
        self.dead = sum(len(segment.keys) for segment in segments) - self.live
        terms = sum(float(segment.sizes[segment.is_live].sum()) for segment in segments)
        self.average_size = terms / self.live if terms else 1.0


class WhooshLibrary:
    """Reads and writes the files; see `derived_index.Library`."""

    def __init__(self, weights: Weights, analysis: str) -> None:
        self._weights = [weights[field] for field in FIELDS]
        self.version = f"whoosh;{_LAYOUT_VERSION};{weights_version(weights)};{analysis}"

    def open(self, directory: Path) -> WhooshIndex:
        storage = library("filedb.filestore").RamStorage()
        for path in directory.iterdir():
            if path.is_file() and not is_bookkeeping(path.name):
                storage.files[path.name] = path.read_bytes()
        try:
            index = library("index").FileIndex(storage, schema=_schema(), indexname=_INDEX_NAME)
            leaves = [reader for reader, _ in index.reader().leaf_readers()]
            return WhooshIndex([Segment(reader) for reader in leaves if reader.doc_count_all()])
        except Exception as error:
            raise Damaged(f"whoosh cannot open it: {error}") from error

    def write(self, directory: Path, changes: Changes) -> None:
        storage = library("filedb.filestore").FileStorage(str(directory), supports_mmap=False)
        index_type = library("index").FileIndex
        if changes.is_new:
            index_type.create(storage, _schema(), _INDEX_NAME)
        index = index_type(storage, schema=_schema(), indexname=_INDEX_NAME)
        writer = library("writing").SegmentWriter(index, compound=False, limitmb=_MEMORY_MB)
        try:
            self._remove(writer, changes)
            for entry in changes.entries:
                self._add(writer, entry)
        except BaseException:
            writer.cancel()
            raise
        writer.commit()

    def _remove(self, writer: _Writer, changes: Changes) -> None:
        if not changes.removed:
            return
        reader = writer.reader()
        for doc_id in changes.removed:
            term = doc_id.encode()
            if ("doc", term) in reader:
                for number in list(reader.postings("doc", term).all_ids()):
                    writer.delete_document(number)
        reader.close()

    def _add(self, writer: _Writer, entry: Entry) -> None:
        postings = list(self._postings(entry))
        size = sum(count for _, count, _, _ in postings)
        writer.add_document(text=postings, doc=entry.doc_id, key=entry.key, size=size)

    def _postings(self, entry: Entry) -> Iterator[Posting]:
        found: defaultdict[str, array[int]] = defaultdict(lambda: array(PLACE_CODE))
        weights: defaultdict[str, float] = defaultdict(float)
        for number, streams in enumerate(entry.fields):
            for place, term in places(streams):
                found[term].append((number << PLACE_BITS) + place)
                weights[term] += self._weights[number]
        for term, where in found.items():
            yield term.encode(), len(where), weights[term], where.tobytes()
