"""The keyword engine on tantivy; the only module that imports it."""

import json
import shutil
import tempfile
import weakref
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import floor, fsum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, assert_never, cast

from ragdocs.errors import ConfigError, IndexStoreError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import All, Comparison, Condition, Some, Unit, Without
from ragdocs.indices.engine_folder import (
    Changes,
    Damaged,
    DerivedIndex,
    Entry,
    extent,
    positions,
)
from ragdocs.indices.hits import Hit, KeywordHits
from ragdocs.indices.keyword import (
    FIELDS,
    K1,
    MOST,
    KeywordQuery,
    Weights,
    idf,
    weights_version,
)
from ragdocs.indices.scopes import Scope, existing_chunks, few_left_out, where_of
from ragdocs.models import DocId, QueryField
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import tantivy
    from tantivy import Query

# Private copies of files, for a library that maps files into memory.
#
# Truncating a mapped file kills the process. tantivy maps the files that it opens, and one of its
# threads opens them again shortly after, whatever the settings.


class PrivateFiles:
    """A folder of copies; it is removed with the last reference to this object, or at exit."""

    def __init__(self, original: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ragdocs-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        for file in original.iterdir():
            if file.is_file():
                shutil.copyfile(file, self.path / file.name)

    def give_back(self, original: Path) -> None:
        """Copies the files back to the original folder. Its files may be hard links that older
        states share, so a changed file is replaced and never written to.
        """
        mine = {file.name for file in self.path.iterdir()}
        for file in list(original.iterdir()):
            if file.name not in mine:
                file.unlink()
        for name in mine:
            target = original / name
            if not target.exists() or target.read_bytes() != (self.path / name).read_bytes():
                target.unlink(missing_ok=True)
                shutil.copyfile(self.path / name, target)


# The part of tantivy that we use: it writes and searches segments on disk, without its analysis.
#
# tantivy counts a term by its tokens, so a term is repeated by the weight of its field, all at the
# same position: then a phrase counts by the weight too, and never matches from one copy to the
# next. `text` has the terms of all fields; `tagged` has them again, each with a letter for its
# field in front, so that a query in one field is counted and normalised in the same way.

_LAYOUT_VERSION = 1
_MEMORY_BYTES = 30_000_000
_MAX_SCALE = 10.0
LEAST_WEIGHT = 0.5
"""A term cannot be repeated less than once: fields with a lower weight are only in `tagged`."""
_TAGS = {field: chr(ord("a") + number) for number, field in enumerate(FIELDS)}

TEXT, TAGGED, KEY, DOC = "text", "tagged", "key", "doc"


def require_tantivy() -> None:
    """Does not import it: that can wait until the first query."""
    if find_spec("tantivy") is None:
        raise ConfigError(
            'keyword_engine is "tantivy", which is not installed: run '
            'pip install \'mcp-markdown-ragdocs[tantivy]\', or choose "fts5" or "whoosh"'
        )


def scale_weights(weights: Weights) -> dict[QueryField, float]:
    """Scales all weights until that of the text is at least 1."""
    content = weights[QueryField.CONTENT]
    factor = min(1 / content, _MAX_SCALE) if 0 < content < 1 else 1.0
    return {field: weight * factor for field, weight in weights.items()}


def tag(field: QueryField, term: str) -> str:
    return _TAGS[field] + term


@dataclass(frozen=True, slots=True)
class TantivyIndex:
    """One opened state of the files. tantivy's own statistics still count removed chunks."""

    files: PrivateFiles
    searcher: "tantivy.Searcher"
    schema: "tantivy.Schema"
    live: int
    dead: int


class TantivyLibrary:
    """Reads and writes the files; see `engine_folder.EngineLibrary`."""

    def __init__(self, weights: Weights, analysis: str) -> None:
        self._weights = scale_weights(weights)
        self.version = f"tantivy;{_LAYOUT_VERSION};{weights_version(weights)};{analysis}"

    def open(self, directory: Path) -> TantivyIndex:
        import tantivy

        try:
            meta = json.loads((directory / "meta.json").read_bytes())
            total = sum(segment["max_doc"] for segment in meta["segments"])
            files = PrivateFiles(directory)
            with _translate_errors():
                index = tantivy.Index.open(str(files.path))
                # Its files do not change, so they need not be watched.
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

        with _translate_errors():
            if changes.is_new:
                index = tantivy.Index(_schema(), path=str(directory), reuse=False)
            else:
                index = tantivy.Index.open(str(directory))
            writer = index.writer(_MEMORY_BYTES, 1)
            for doc_id in sorted(changes.removed):
                writer.delete_documents_by_term(DOC, doc_id)
        for entry in changes.entries:
            document = self._document(entry)
            with _translate_errors():
                writer.add_document(document)
        with _translate_errors():
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
            tantivy.Token(tag(field, term), place, 0, 0)
            for field, place, term, copies in tokens
            for _ in range(copies)
        ]
        document.add_pre_tokenized_text(TAGGED, tantivy.PreTokenizedString("", apart))
        return document

    def _tokens(self, entry: Entry) -> Iterator[tuple[QueryField, int, str, int]]:
        """Each term with its field, its position and its number of copies."""
        start = 0
        for field, streams in zip(FIELDS, entry.fields, strict=True):
            weight = self._weights[field]
            for number, (place, term) in enumerate(positions(streams)):
                yield field, start + place, term, _copies(weight, number)
            start += extent(streams)


def _copies(weight: float, number: int) -> int:
    """For a weight of 2.5, alternately three and two copies."""
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
def _translate_errors() -> Generator[None]:
    """tantivy raises ValueError for a full disk, and a Rust panic is not an Exception."""
    try:
        yield
    except ValueError as error:
        raise IndexStoreError(f"tantivy cannot use its files: {error}") from error
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise IndexStoreError(f"tantivy failed: {error}") from error


# Turns units and conditions into tantivy's queries, and its statistics into ours.

DocumentsOf = Callable[[Comparison], frozenset[DocId]]
"""Reads from the store which documents satisfy a comparison."""


class _Counted(Protocol):
    """Missing in tantivy's type stubs."""

    count: int


class Queries:
    """Makes queries for one state of the files, with the weights that it was written with."""

    def __init__(self, index: TantivyIndex, weights: Mapping[QueryField, float]) -> None:
        self._index = index
        self._faint = {field: weights[field] for field in FIELDS if weights[field] < LEAST_WEIGHT}

    def count(self, query: "Query") -> int:
        found = self._index.searcher.search(query, 1, count=True)
        return cast("_Counted", found).count

    def frequency(self, unit: Unit) -> int:
        """How many chunks have the unit, without removed ones."""
        is_plain = len(unit.terms) == 1 and not self._faint and not self._index.dead
        if is_plain and unit.field is None:
            return self._index.searcher.doc_freq(TEXT, unit.terms[0])
        return self.count(self.unit(unit))

    def unit(self, unit: Unit) -> "Query":
        """Matches the chunks that have the unit, without our scores."""
        field = unit.field
        if field is not None:
            return self._occurrence(TAGGED, [tag(field, term) for term in unit.terms])
        return self._some(
            [
                self._occurrence(TEXT, unit.terms),
                *(self.unit(Unit(unit.terms, faint)) for faint in self._faint),
            ]
        )

    def scored(self, unit: Unit, frequency: int) -> "Query":
        """Scores `weight · idf · count · (k1 + 1) / (count + k1 · norm)`, with our idf."""
        from tantivy import Query

        wanted = unit.weight * idf(self._index.live, frequency)
        if unit.field is not None:
            return self._weight(TAGGED, [tag(unit.field, term) for term in unit.terms], wanted)
        faint = [
            Query.const_score_query(
                self.unit(Unit(unit.terms, field)), wanted * MOST * weight / (weight + K1)
            )
            for field, weight in self._faint.items()
        ]
        return self._some([self._weight(TEXT, unit.terms, wanted), *faint])

    def condition(self, condition: Condition, documents_of: DocumentsOf) -> "Query":
        from tantivy import Occur, Query

        match condition:
            case Unit():
                return self.unit(condition)
            case All(parts):
                return Query.boolean_query(
                    [(Occur.Must, self.condition(part, documents_of)) for part in parts]
                )
            case Some(parts):
                return self._some([self.condition(part, documents_of) for part in parts])
            case Without(part):
                excluded = self.condition(part, documents_of)
                return Query.boolean_query(
                    [(Occur.Must, Query.all_query()), (Occur.MustNot, excluded)]
                )
            case Comparison():
                return self.within(documents_of(condition))
            case _:
                assert_never(condition)

    def within(self, doc_ids: Iterable[DocId]) -> "Query":
        from tantivy import Query

        return Query.term_set_query(self._index.schema, DOC, sorted(doc_ids))

    def _some(self, queries: "list[Query]") -> "Query":
        from tantivy import Occur, Query

        if len(queries) == 1:
            return queries[0]
        return Query.boolean_query([(Occur.Should, query) for query in queries])

    def _occurrence(self, field: str, terms: "Iterable[str]") -> "Query":
        from tantivy import Query

        words = list(terms)
        if len(words) == 1:
            return Query.term_query(self._index.schema, field, words[0], "freq")
        return Query.phrase_query(self._index.schema, field, list[str | tuple[int, str]](words))

    def _weight(self, field: str, terms: "Iterable[str]", wanted: float) -> "Query":
        """Replaces tantivy's idf, which counts removed chunks and adds up a phrase's terms."""
        from tantivy import Query

        words = list(terms)
        total = self._index.live + self._index.dead
        theirs = fsum(idf(total, self._index.searcher.doc_freq(field, word)) for word in words)
        return Query.boost_query(self._occurrence(field, words), wanted / theirs)


# The keyword engine, for very large folders: its files are mapped into memory, not read.

_GROWTH = 4
"""How many more hits are requested than wanted, and again on a tie at the last place."""


class TantivyEngine(DerivedIndex[TantivyIndex]):
    """Searches a folder of tantivy's files, which it keeps up to date with the store."""

    def __init__(self, path: Path, analyzer: Analyzer, weights: Weights, analysis: str) -> None:
        require_tantivy()
        super().__init__(path, TantivyLibrary(weights, analysis), analyzer)
        self._weights = scale_weights(weights)

    def search(
        self,
        snapshot: Snapshot,
        query: KeywordQuery,
        limit: int,
        scope: Scope = None,
        allowed: Set[int] | None = None,  # noqa: ARG002 tantivy evaluates the condition itself
    ) -> KeywordHits:
        index = self.current(snapshot)
        queries = Queries(index, self._weights)
        frequencies = {unit: queries.frequency(unit) for unit in query.units}
        ideal = sum(
            unit.weight * idf(index.live, count) * MOST for unit, count in frequencies.items()
        )
        hits: tuple[Hit, ...] = ()
        if limit > 0 and any(frequencies.values()):
            ranked = _restrict(queries, query, frequencies, snapshot, scope)
            is_of_it = self.position == snapshot.position
            hits = _best(index, ranked, limit, None if is_of_it else snapshot)
        scores_of = partial(_scores, snapshot, index, queries, frequencies)
        return KeywordHits(hits, ideal, frequencies, scores_of)

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        index = self.current(snapshot)
        queries = Queries(index, self._weights)
        wanted = queries.condition(condition, lambda part: _documents(snapshot, part))
        found = index.searcher.search(wanted, max(index.live, 1), False, order_by_field=KEY)
        keys = {int(key) for key, _ in found.hits}
        return keys if self.position == snapshot.position else keys & existing_chunks(snapshot)

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
        searcher = self.current(snapshot).searcher
        return {term: searcher.doc_freq(TEXT, term) for term in terms}

    def count(self, snapshot: Snapshot) -> int:
        return self.current(snapshot).live


def _restrict(
    queries: Queries,
    query: KeywordQuery,
    frequencies: Mapping[Unit, int],
    snapshot: Snapshot,
    scope: Scope,
) -> "Query":
    """The units as a query, restricted by the condition and the scope."""
    from tantivy import Occur, Query

    ranked = _any_of(queries, frequencies)
    left_out = few_left_out(scope)
    limits: list[Query] = []
    if query.condition is not None:
        limits.append(queries.condition(query.condition, lambda part: _documents(snapshot, part)))
    if scope is not None and left_out is None:
        limits.append(queries.within(scope))
    filters = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in limits]
    if left_out:
        filters.append((Occur.MustNot, queries.within(left_out)))
    return Query.boolean_query([(Occur.Must, ranked), *filters]) if filters else ranked


def _any_of(queries: Queries, frequencies: Mapping[Unit, int]) -> "Query":
    """A scoring query for the units that any chunk has."""
    from tantivy import Occur, Query

    units = [queries.scored(unit, count) for unit, count in frequencies.items() if count]
    return Query.boolean_query([(Occur.Should, unit) for unit in units])


def _scores(
    snapshot: Snapshot,
    index: TantivyIndex,
    queries: Queries,
    frequencies: Mapping[Unit, int],
    keys: Collection[ChunkKey],
) -> dict[ChunkKey, float]:
    """Searches the documents of these chunks: tantivy cannot find a chunk by its number."""
    from tantivy import Occur, Query

    rows = snapshot.select(
        """SELECT DISTINCT d.id, (SELECT count(*) FROM chunks WHERE doc = d.key)
        FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(keys)),),
    )
    most = min(index.live, sum(count for _, count in rows))
    if not most or not any(frequencies.values()):
        return {}
    within = Query.const_score_query(queries.within(DocId(doc_id) for doc_id, _ in rows), 0.0)
    ranked = _any_of(queries, frequencies)
    wanted = Query.boolean_query([(Occur.Must, ranked), (Occur.Must, within)])
    found = index.searcher.search(wanted, most, False).hits
    numbers = index.searcher.fast_field_values(KEY, [address for _, address in found])
    scores = {int(key or 0): score for (score, _), key in zip(found, numbers, strict=True)}
    return {key: scores[key] for key in keys if key in scores}


def _best(
    index: TantivyIndex, query: "Query", limit: int, ahead_of: Snapshot | None
) -> tuple[Hit, ...]:
    """Best first, equal scores by number; only chunks of the snapshot, if the files differ from it.

    Requests many more than wanted: equal scores are common, and tantivy takes no longer.
    """
    asked = limit * _GROWTH
    while True:
        found = index.searcher.search(query, min(asked, index.live), False).hits
        keys = index.searcher.fast_field_values(KEY, [address for _, address in found])
        hits = [(score, int(key or 0)) for (score, _), key in zip(found, keys, strict=True)]
        if ahead_of is not None:
            there = existing_chunks(ahead_of, [key for _, key in hits])
            hits = [hit for hit in hits if hit[1] in there]
        least = hits[limit - 1][0] if len(hits) >= limit else None
        # While the last hit found ties with the last place, there may be more such hits.
        if len(found) < asked or (least is not None and found[-1][0] < least):
            kept = [hit for hit in hits if least is None or hit[0] >= least]
            kept.sort(key=lambda hit: (-hit[0], hit[1]))
            return tuple(Hit(ChunkKey(key), score) for score, key in kept[:limit])
        asked *= _GROWTH


def _documents(snapshot: Snapshot, part: Comparison) -> frozenset[DocId]:
    where, values = where_of(part)
    rows = snapshot.select(f"SELECT id FROM documents WHERE {where}", values)
    return frozenset(doc_id for (doc_id,) in rows)
