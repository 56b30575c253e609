"""The keyword engine on whoosh, with our own ranking; the only module that imports it."""

import pickle
import threading
import warnings
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, Protocol

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Condition, Unit
from ragdocs.indices.engine_folder import (
    Changes,
    Damaged,
    DerivedIndex,
    Entry,
    is_bookkeeping,
    positions,
)
from ragdocs.indices.hits import Hit, KeywordHits
from ragdocs.indices.keyword import (
    FIELDS,
    K1,
    MOST,
    B,
    KeywordQuery,
    Weights,
    idf,
    weights_version,
)
from ragdocs.indices.scopes import Conditions, Scope, existing_chunks
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The part of whoosh that we use: it writes segments of posting lists, and reads them from memory.
#
# whoosh neither analyses nor ranks here. Our posting has the term's weighted count, which whoosh
# stores as a float, and its positions; the engine computes scores from them.

_LAYOUT_VERSION = 1
_INDEX_NAME = "MAIN"
_MEMORY_MB = 64
PLACE_BITS = 27
"""A place has the position within the field in these low bits, and the field's number above."""
PLACE_CODE = "I"

_UNPICKLED = frozenset(
    {
        "whoosh.codec.whoosh3.W3Segment",
        "whoosh.codec.whoosh3.W3Codec",
        "collections.defaultdict",
        "builtins.int",
    }
)
"""The classes that whoosh's own files name; all of them only hold values."""

Posting = tuple[bytes, int, float, bytes]


class Matcher(Protocol):
    """The part of whoosh's matchers that we use: a cursor in a posting list."""

    def is_active(self) -> bool: ...
    def next(self) -> bool: ...
    def id(self) -> int: ...
    def weight(self) -> float: ...
    def value(self) -> bytes: ...
    def all_ids(self) -> Iterator[int]: ...


class _Column(Protocol):
    def load(self) -> list[int]: ...


class WhooshReader(Protocol):
    """The part of whoosh's readers that we use."""

    def __contains__(self, term: tuple[str, bytes]) -> bool: ...
    def postings(self, fieldname: str, text: bytes) -> Matcher: ...
    def doc_frequency(self, fieldname: str, text: bytes) -> int: ...
    def column_reader(self, fieldname: str) -> _Column: ...
    def all_doc_ids(self) -> Iterator[int]: ...
    def close(self) -> None: ...


class _PickleStream(Protocol):
    """The part of whoosh's `StructFile` that we use."""

    file: BinaryIO


class _Writer(Protocol):
    def reader(self) -> WhooshReader: ...
    def delete_document(self, docnum: int) -> None: ...
    def add_document(self, **fields: object) -> None: ...


def library(name: str) -> ModuleType:
    """A module of whoosh. Newer Pythons warn about escapes and comparisons in its source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("whoosh.filedb.structfile").StructFile.read_pickle = _read_pickle
        return import_module(f"whoosh.{name}")


class _Unpickler(pickle.Unpickler):
    """whoosh stores its list of segments as a pickle, and an index folder may come from a stranger:
    reads only whoosh's own segments and plain values, and refuses everything else."""

    def find_class(self, module_name: str, global_name: str) -> object:
        name = f"{module_name}.{global_name}"
        if name not in _UNPICKLED:
            raise Damaged(f"it asks for {name}")
        return super().find_class(module_name, global_name)


def _read_pickle(stream: _PickleStream) -> object:
    return _Unpickler(stream.file).load()


def prepared(value: list[Posting]) -> list[Posting]:
    """Replaces whoosh's analysis of a field's text: the postings are ready."""
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

    def __init__(self, reader: WhooshReader) -> None:
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
    """Reads and writes the files; see `engine_folder.EngineLibrary`."""

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
            for place, term in positions(streams):
                found[term].append((number << PLACE_BITS) + place)
                weights[term] += self._weights[number]
        for term, where in found.items():
            yield term.encode(), len(where), weights[term], where.tobytes()


# The units of a query in whoosh's segments: the chunks that have them, with weighted counts.

Places = dict[int, set[int]]
"""The places of a term, by the chunk's number within the segment."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks of a segment that have a unit, and its weighted count in each."""

    numbers: "NDArray[np.int64]"
    counts: "NDArray[np.float64]"


def postings(segment: Segment, unit: Unit, weights: Sequence[float]) -> Postings:
    import numpy as np

    if len(unit.terms) == 1 and unit.field is None:
        found = [(matcher.id(), matcher.weight()) for matcher in _matches(segment, unit.terms[0])]
    else:
        found = list(_count_by_places(segment, unit, weights))
    numbers = np.array([number for number, _ in found], np.int64)
    return Postings(numbers, np.array([count for _, count in found], np.float64))


def _count_by_places(
    segment: Segment, unit: Unit, weights: Sequence[float]
) -> Iterator[tuple[int, float]]:
    """For phrases and for units in one field."""
    only = None if unit.field is None else FIELDS.index(unit.field)
    for number, starts in _starts(segment, unit.terms).items():
        fields = [start >> PLACE_BITS for start in starts]
        wanted = [field for field in fields if only is None or field == only]
        if wanted:
            yield number, sum(weights[field] for field in wanted)


def _starts(segment: Segment, terms: Sequence[str]) -> Places:
    """The places of the first term where the others follow it."""
    found = _places(segment, terms[0])
    for distance, term in enumerate(terms[1:], 1):
        later = _places(segment, term) if found else {}
        joined = {
            number: starts & {place - distance for place in later[number]}
            for number, starts in found.items()
            if number in later
        }
        found = {number: starts for number, starts in joined.items() if starts}
    return found


def _places(segment: Segment, term: str) -> Places:
    return {
        matcher.id(): set(array(PLACE_CODE, matcher.value())) for matcher in _matches(segment, term)
    }


def _matches(segment: Segment, term: str) -> Iterator[Matcher]:
    """whoosh's matcher at each of the term's postings in turn; without removed chunks."""
    text = term.encode()
    if ("text", text) not in segment.reader:
        return
    matcher = segment.reader.postings("text", text)
    while matcher.is_active():
        yield matcher
        matcher.next()


# The keyword engine: whoosh's posting lists in memory, with the ranking of the default engine.
#
# whoosh's own ranking adds up the scores of fields and stores lengths in a byte; ours is BM25F over
# one weighted count, with exact lengths, and agrees with FTS5.

Found = Mapping[Unit, list[Postings]]


class WhooshEngine(DerivedIndex[WhooshIndex]):
    """Searches a folder of whoosh's files, which it keeps up to date with the store."""

    def __init__(self, path: Path, analyzer: Analyzer, weights: Weights, analysis: str) -> None:
        super().__init__(path, WhooshLibrary(weights, analysis), analyzer)
        self._weights = [weights[field] for field in FIELDS]

    def search(
        self,
        snapshot: Snapshot,
        query: KeywordQuery,
        limit: int,
        scope: Scope = None,
        allowed: Set[int] | None = None,
    ) -> KeywordHits:
        index = self.current(snapshot)
        found = {unit: self._postings(index, unit) for unit in query.units}
        frequencies = {unit: _frequency(parts) for unit, parts in found.items()}
        factors = {
            unit: unit.weight * idf(index.live, count) * MOST for unit, count in frequencies.items()
        }
        hits: tuple[Hit, ...] = ()
        ranking = _Ranking(index, found, factors)
        if limit > 0 and any(frequencies.values()):
            only = self._allowed(snapshot, index, query.condition, scope, allowed)
            hits = ranking.best(limit, only)
            if len(existing_chunks(snapshot, [hit.key for hit in hits])) < len(hits):
                # The files are ahead of this snapshot, or behind it.
                everything = existing_chunks(snapshot)
                hits = ranking.best(limit, everything if only is None else only & everything)
        return KeywordHits(hits, sum(factors.values()), frequencies, ranking.scores_of)

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        index = self.current(snapshot)
        found = self._conditions(snapshot, index).matching(condition)
        return found if self.position == snapshot.position else found & existing_chunks(snapshot)

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
        index = self.current(snapshot)
        with index.lock:
            return {
                term: sum(
                    segment.reader.doc_frequency("text", term.encode())
                    for segment in index.segments
                )
                for term in terms
            }

    def count(self, snapshot: Snapshot) -> int:
        return self.current(snapshot).live

    def _postings(self, index: WhooshIndex, unit: Unit) -> list[Postings]:
        with index.lock:
            return [postings(segment, unit, self._weights) for segment in index.segments]

    def _conditions(self, snapshot: Snapshot, index: WhooshIndex) -> "_WhooshConditions":
        return _WhooshConditions(snapshot, index, lambda unit: self._postings(index, unit))

    def _allowed(
        self,
        snapshot: Snapshot,
        index: WhooshIndex,
        condition: Condition | None,
        scope: Scope,
        known: Set[int] | None,
    ) -> set[int] | None:
        """The chunks that may be ranked, or None for all."""
        if scope is None and condition is None:
            return None
        conditions = self._conditions(snapshot, index)
        allowed = conditions.within(scope)
        if condition is None:
            return allowed
        return allowed & (conditions.matching(condition) if known is None else known)


class _WhooshConditions(Conditions):
    """Reads sets of chunks from whoosh's postings, and conditions on documents from the store."""

    def __init__(
        self, snapshot: Snapshot, index: WhooshIndex, find: Callable[[Unit], list[Postings]]
    ) -> None:
        super().__init__(snapshot, "", repr)
        self._index = index
        self._find = find

    def with_unit(self, unit: Unit) -> set[int]:
        parts = zip(self._index.segments, self._find(unit), strict=True)
        return {key for segment, found in parts for key in segment.keys[found.numbers].tolist()}

    def everything(self) -> set[int]:
        segments = self._index.segments
        return {key for segment in segments for key in segment.keys[segment.is_live].tolist()}


class _Ranking:
    """The scores of all chunks that have any of a query's units."""

    def __init__(self, index: WhooshIndex, found: Found, factors: Mapping[Unit, float]) -> None:
        import numpy as np

        parts = [
            self._segment(index, number, found, factors) for number in range(len(index.segments))
        ] or [(np.zeros(0, np.int64), np.zeros(0))]
        self._keys = np.concatenate([keys for keys, _ in parts])
        self._scores = np.concatenate([scores for _, scores in parts])

    def best(self, limit: int, allowed: Set[int] | None) -> tuple[Hit, ...]:
        """Best first; equal scores by number."""
        import numpy as np

        keys, scores = self._keys, self._scores
        if allowed is not None:
            chosen = np.isin(keys, np.fromiter(allowed, np.int64, len(allowed)))
            keys, scores = keys[chosen], scores[chosen]
        order = np.lexsort((keys, -scores))[:limit]
        pairs = zip(keys[order].tolist(), scores[order].tolist(), strict=True)
        return tuple(Hit(ChunkKey(key), score) for key, score in pairs)

    def scores_of(self, keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """The scores of the chunks that have any of the units."""
        import numpy as np

        chosen = np.isin(self._keys, np.fromiter(keys, np.int64, len(keys)))
        pairs = zip(self._keys[chosen].tolist(), self._scores[chosen].tolist(), strict=True)
        return {ChunkKey(key): score for key, score in pairs}

    def _segment(
        self, index: WhooshIndex, number: int, found: Found, factors: Mapping[Unit, float]
    ) -> "tuple[NDArray[np.int64], NDArray[np.float64]]":
        import numpy as np

        segment = index.segments[number]
        norms = K1 * (1 - B + B * segment.sizes / index.average_size)
        scores = np.zeros(len(segment.keys))
        is_found = np.zeros(len(segment.keys), np.bool_)
        for unit, parts in found.items():
            numbers, counts = parts[number].numbers, parts[number].counts
            scores[numbers] += factors[unit] * counts / (counts + norms[numbers])
            is_found[numbers] = True
        return segment.keys[is_found], scores[is_found]


def _frequency(parts: list[Postings]) -> int:
    return sum(len(found.numbers) for found in parts)
