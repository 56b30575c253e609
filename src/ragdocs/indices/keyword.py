"""What every keyword engine is asked and returns, and the figures by which their scores agree."""

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import log
from typing import NamedTuple, Protocol, assert_never

from ragdocs.indices.analysis import Analyzer, Streams
from ragdocs.indices.view import Hit, Scope, few_left_out
from ragdocs.models import (
    And,
    Boost,
    Chunk,
    DocId,
    Field,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryExpression,
    QueryField,
    Term,
)
from ragdocs.parsers.ids import encode_path
from ragdocs.store.records import ChunkKey, StoredDocument
from ragdocs.store.snapshot import Snapshot

# The figures of BM25, the same in every keyword engine: so their scores agree.

K1, B = 1.2, 0.75
"""Fixed inside FTS5's bm25(), and inside tantivy."""
MOST = K1 + 1
"""What a unit's share of a score, without its idf, stays below however often a row has it."""


def idf(total: int, frequency: int) -> float:
    """Never negative, so that five files rank sensibly too."""
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


# Keyword search: what every engine is asked, what it answers, and what it indexes of a chunk.
#
# A query is compiled once, by the one analysis, into units that score and an expression that must
# hold; the engines know nothing of analysis, and so agree.

FIELDS = (
    QueryField.TITLE,
    QueryField.HEADERS,
    QueryField.KEYWORDS,
    QueryField.DESCRIPTION,
    QueryField.TAGS,
    QueryField.PATH,
    QueryField.ALIASES,
    QueryField.AUTHOR,
    QueryField.CONTENT,
)

MAX_FIELD_CHARS = 4_000
"""Of what belongs to the document: each of its passages has it, so that a long one counts as often
as there are passages. No path is longer."""

COUNTED = 4
"""So many times as many units are counted as are kept: of more, some from all over the query."""
FEW_UNITS, FEWEST_UNITS = 32, 8
"""So many are looked for however common they are, more than a question has; and for each of
several queries."""
ROWS = 2
"""So many times as many entries of the index are read for the others as there are chunks."""
MAX_PHRASE_TERMS = 32
"""Of a quotation in a plain question: what has so many one after the other has the rest."""
COUNTED_TERMS = 8
"""Of a phrase: it is as rare as its rarest term, or rarer."""

_FILTERS = (QueryField.TREE, QueryField.PATH)
_ALSO_IN = {QueryField.TITLE: QueryField.HEADERS}
"""A section has a title too: its heading."""


class Unit(NamedTuple):
    """A term, or several that must follow one another; in one field, or in any.

    A tuple, because units are looked up in dictionaries for every match that is marked.
    """

    terms: tuple[str, ...]
    field: QueryField | None = None
    weight: float = 1.0


class Quotation(NamedTuple):
    """A phrase of a plain question, and how many of its words tell something: those that are no
    stop words, or half of them where all are."""

    unit: Unit
    words: int


@dataclass(frozen=True, slots=True)
class All:
    """Every part must match."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part must match."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Without:
    """What must not match."""

    part: "Condition"


@dataclass(frozen=True, slots=True)
class InTree:
    """The document is in this tree."""

    name: str


@dataclass(frozen=True, slots=True)
class UnderPath:
    """The document's path begins so."""

    prefix: str


Condition = Unit | All | Some | Without | InTree | UnderPath


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """Units rank; the condition, when there is one, decides what may be ranked at all.

    Weaker units were not typed, only guessed from what was. Engines do not know of them:
    `tiers.search_in_tiers` sees to it that they never outrank the others.
    """

    units: tuple[Unit, ...]
    condition: Condition | None = None
    weaker: tuple[Unit, ...] = ()
    allowed: frozenset[int] | None = None
    """The chunks that fulfil the condition, once that was worked out."""
    wishes: tuple[Quotation, ...] = ()
    """What a plain question quotes. Engines do not know of them either: who searches looks them up
    apart."""


ScoresOf = Callable[[Collection[ChunkKey]], Mapping[ChunkKey, float]]
"""What a query gives these very chunks, as long as its snapshot is open; one that has nothing of it
may be left out."""


@dataclass(frozen=True, slots=True)
class KeywordHits:
    """Hits best first; the most that this query could score; how many chunks have each unit; and
    what it gives chunks that are not among the hits.
    """

    hits: tuple[Hit, ...]
    ideal: float
    frequencies: Mapping[Unit, int]
    scores_of: ScoresOf = field(compare=False)


class KeywordEngine(Protocol):
    """BM25F over the fields of chunks, within one snapshot of the store."""

    def catch_up(self, snapshot: Snapshot) -> None:
        """Brings what the engine keeps beside the store, if anything, to the snapshot."""
        ...

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, scope: Scope = None
    ) -> KeywordHits: ...

    def matching(self, snapshot: Snapshot, condition: Condition) -> Set[int]:
        """The chunks, by number, that fulfil a strict query's condition."""
        ...

    def frequencies(self, snapshot: Snapshot, terms: Sequence[str]) -> Mapping[str, int]:
        """How many chunks have each of these terms, nearly: enough to tell which is rarer."""
        ...

    def count(self, snapshot: Snapshot) -> int:
        """How many chunks are searched: passages, not the headings above them."""
        ...


def field_texts(document: StoredDocument, chunk: Chunk) -> dict[QueryField, str]:
    """What is searched of a leaf; what belongs to its document is searched with each."""
    metadata = document.front_matter
    texts = {
        QueryField.TITLE: document.title,
        QueryField.HEADERS: "\n".join(dict.fromkeys((*chunk.breadcrumb[1:], *chunk.headings))),
        QueryField.KEYWORDS: "\n".join(metadata.keywords),
        QueryField.DESCRIPTION: metadata.description,
        QueryField.TAGS: "\n".join(document.tags),
        QueryField.PATH: document.path,
        QueryField.ALIASES: "\n".join(metadata.aliases),
        QueryField.AUTHOR: metadata.author,
    }
    shared = {field: text[:MAX_FIELD_CHARS] for field, text in texts.items()}
    return {**shared, QueryField.CONTENT: chunk.text or ""}


def compile_query(parsed: ParsedQuery, analyzer: Analyzer) -> KeywordQuery:
    """Plain words are analysed together and any may match; what a strict query says binds."""
    compiler = _Compiler(analyzer)
    if not parsed.is_strict or parsed.expression is None:
        words = _distinct(Unit((token.term,)) for token in analyzer.query(parsed.text))
        wishes = _distinct_quotations(compiler.quotation(text) for text in parsed.wishes)
        # Who quotes nothing but stop words means them.
        return KeywordQuery(words or tuple(wish.unit for wish in wishes), wishes=wishes)
    units = _distinct(compiler.units(parsed.expression, None, 1.0))
    return KeywordQuery(units, compiler.condition(parsed.expression, None))


def token_unit(token: str, analyzer: Analyzer) -> Unit | None:
    """A name or code that must stand as it was typed: its whole, or its parts side by side."""
    parts = analyzer.tokens(token)
    whole = next((part for part in parts if part.end - part.start == len(token)), None)
    if whole is not None:
        return Unit((whole.term,))
    terms = tuple(part.term for part in parts if not part.is_whole)
    return Unit(terms) if terms else None


def _distinct(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """What is wanted with several weights has all of them together: scores add up."""
    weights: dict[tuple[tuple[str, ...], QueryField | None], float] = {}
    for unit in dict.fromkeys(units):
        sought = unit.terms, unit.field
        weights[sought] = weights.get(sought, 0.0) + unit.weight
    return tuple(Unit(*sought, weight) for sought, weight in weights.items())


def _distinct_quotations(quotations: Iterable[Quotation]) -> tuple[Quotation, ...]:
    first = {wish.unit: wish for wish in quotations if wish.unit.terms}
    return tuple(first.values())


def rarest(
    units: Sequence[Unit],
    count: Callable[[Sequence[str]], Mapping[str, int]],
    most: int,
    total: int,
    queries: int = 1,
) -> tuple[Unit, ...]:
    """Of many units those that can score most, in their order: no more than `most`, nor, beyond the
    first few, more than all of the `total` chunks have together a few times over. As many that no
    chunk has stay beside them: they cost nothing, and an answer without them is worth less.
    """
    few = min(most, max(FEWEST_UNITS, FEW_UNITS // queries))
    if len(units) <= few:
        return tuple(units)
    room = min(len(units), most * COUNTED)
    looked_at = [units[at * len(units) // room] for at in range(room)]
    known = count(list({term: None for unit in looked_at for term in unit.terms[:COUNTED_TERMS]}))
    found = {
        unit: min(known.get(term, 0) for term in unit.terms[:COUNTED_TERMS]) for unit in looked_at
    }
    there = [unit for unit in looked_at if found[unit]]
    there.sort(key=lambda unit: -unit.weight * idf(total, min(total, found[unit])))
    rows = list(accumulate(found[unit] for unit in there))
    affordable = max(few, bisect_right(rows, ROWS * total // queries))
    nowhere = [unit for unit in looked_at if not found[unit]]
    kept = {*there[: min(most, affordable)], *nowhere[:most]}
    return tuple(unit for unit in looked_at if unit in kept)


class _Compiler:
    """From what was typed to terms. A word of several tokens is a phrase of them."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def units(
        self, expression: QueryExpression, field: QueryField | None, weight: float
    ) -> Iterator[Unit]:
        """What ranks: every word that is wanted, and none that is excluded or filters."""
        match expression:
            case Term() | Phrase():
                yield from self._leaf_units(expression, field, weight)
            case And(members) | Or(members):
                for member in members:
                    yield from self.units(member, field, weight)
            case Field(name, inner):
                yield from self.units(inner, name, weight)
                if name in _ALSO_IN:
                    yield from self.units(inner, _ALSO_IN[name], weight)
            case Boost(inner, factor):
                yield from self.units(inner, field, weight * factor)
            case Not():
                return

    def _leaf_units(
        self, leaf: Term | Phrase, field: QueryField | None, weight: float
    ) -> Iterator[Unit]:
        if field in _FILTERS:
            return
        if isinstance(leaf, Term):
            for token in self._analyzer.query(leaf.text):
                yield Unit((token.term,), field, weight)
        elif terms := self._terms(leaf.text):
            yield Unit(terms, field, weight)

    def condition(self, expression: QueryExpression, field: QueryField | None) -> Condition | None:
        """None for what cannot be required: a word that is only stop words, or no word at all."""
        match expression:
            case Term(text) | Phrase(text):
                return self._leaf(expression, text, field)
            case And(members):
                return _join(All, [self.condition(member, field) for member in members])
            case Or(members):
                return _join(Some, [self.condition(member, field) for member in members])
            case Not(inner):
                part = self.condition(inner, field)
                return None if part is None else Without(part)
            case Field(name, inner):
                return self.condition(inner, name)
            case Boost(inner):
                return self.condition(inner, field)

    def _leaf(
        self, expression: Term | Phrase, text: str, field: QueryField | None
    ) -> Condition | None:
        if field is QueryField.TREE:
            return InTree(text)
        if field is QueryField.PATH:
            return UnderPath(text)
        # In a field even a common word says something: somebody is called Will.
        if field is None and isinstance(expression, Term) and self._analyzer.is_stop_word(text):
            return None
        terms = self._terms(text)
        if not terms:
            return None
        own = Unit(terms, field)
        also = None if field is None else _ALSO_IN.get(field)
        return own if also is None else Some((own, Unit(terms, also)))

    def quotation(self, text: str) -> Quotation:
        terms = self._terms(text)
        words = text.split()
        if all(self._analyzer.is_stop_word(word) for word in words):
            telling = len(words) // 2
        else:
            telling = sum(not token.is_whole for token in self._analyzer.query(text))
        return Quotation(Unit(terms[:MAX_PHRASE_TERMS]), telling)

    def _terms(self, text: str) -> tuple[str, ...]:
        return tuple(token.term for token in self._analyzer.tokens(text) if not token.is_whole)


def _join(kind: type[All] | type[Some], parts: list[Condition | None]) -> Condition | None:
    kept = tuple(part for part in parts if part is not None)
    return kept[0] if len(kept) == 1 else kind(kept) if kept else None


# What a strict query requires, worked out as sets of rows inside the store.


class Conditions:
    """Answers conditions within one snapshot; `expression` writes a unit as the table wants it."""

    def __init__(self, snapshot: Snapshot, table: str, expression: Callable[[Unit], str]) -> None:
        self._snapshot = snapshot
        self._table = table
        self._expression = expression
        self._known: dict[Condition, set[int]] = {}

    def matching(self, condition: Condition) -> set[int]:
        """Each part is worked out once, however often it stands in a query."""
        found = self._known.get(condition)
        if found is None:
            found = self._known[condition] = self._matching(condition)
        return found

    def _matching(self, condition: Condition) -> set[int]:
        match condition:
            case Unit():
                return self.having(condition)
            case All(parts):
                return self._all(parts)
            case Some(parts):
                return set[int]().union(*map(self.matching, parts))
            case Without(part):
                return self.everything() - self.matching(part)
            case InTree(name):
                return self._in_documents("tree = ?", name)
            case UnderPath(prefix):
                return self._under(encode_path(prefix))
            case _:
                assert_never(condition)

    def _all(self, parts: Sequence[Condition]) -> set[int]:
        """What is wanted first: once nothing is left, no more is asked for."""
        wanted = [part for part in parts if not isinstance(part, Without)]
        found = self.matching(wanted[0]) if wanted else self.everything()
        for part in wanted[1:]:
            if not found:
                return found
            found = found & self.matching(part)
        for part in parts:
            if isinstance(part, Without) and found:
                found = found - self.matching(part.part)
        return found

    def having(self, unit: Unit) -> set[int]:
        return self._rows(f"{self._table} MATCH ?", self._expression(unit))

    def everything(self) -> set[int]:
        rows = self._snapshot.select(f"SELECT id FROM {self._table}_docsize")
        return {row[0] for row in rows}

    def within(self, scope: Scope) -> set[int]:
        if (left_out := few_left_out(scope)) is not None:
            return self.everything() - self.in_documents(left_out)
        return self.everything() if scope is None else self.in_documents(scope)

    def in_documents(self, doc_ids: frozenset[DocId]) -> set[int]:
        members = json.dumps(sorted(doc_ids))
        return self._in_documents("id IN (SELECT value FROM json_each(?))", members)

    def _under(self, prefix: str) -> set[int]:
        """`path:api` is what begins so, as it was typed: a folder, or the start of a name."""
        return self._in_documents("substr(path, 1, length(?)) = ?", prefix, prefix)

    def _in_documents(self, where: str, *values: str) -> set[int]:
        rows = self._snapshot.select(
            f"SELECT key FROM chunks WHERE doc IN (SELECT key FROM documents WHERE {where})",
            values,
        )
        return {row[0] for row in rows}

    def _rows(self, where: str, value: str) -> set[int]:
        rows = self._snapshot.select(f"SELECT rowid FROM {self._table} WHERE {where}", (value,))
        return {row[0] for row in rows}


class Fts5Conditions(Conditions):
    """Whatever is made of words alone is one expression, which FTS5 works out by itself."""

    def _matching(self, condition: Condition) -> set[int]:
        written = _written(condition, self._expression)
        if written is not None:
            return self._rows(f"{self._table} MATCH ?", written)
        if isinstance(condition, Some):
            # Of those among other parts that are words, one expression.
            words = tuple(part for part in condition.parts if self._is_of_words(part))
            others = [part for part in condition.parts if not self._is_of_words(part)]
            if len(words) > 1:
                return set[int]().union(*map(self.matching, [Some(words), *others]))
        return super()._matching(condition)

    def _all(self, parts: Sequence[Condition]) -> set[int]:
        wanted = [part for part in parts if not isinstance(part, Without)]
        words = [part for part in wanted if self._is_of_words(part)]
        others = [part for part in wanted if not self._is_of_words(part)]
        excluded = [part.part for part in parts if isinstance(part, Without)]
        return super()._all(
            [
                *([All(tuple(words))] if len(words) > 1 else words),
                *others,
                *([Without(Some(tuple(excluded)))] if excluded else []),
            ]
        )

    def _is_of_words(self, condition: Condition) -> bool:
        return _written(condition, self._expression) is not None


def _written(condition: Condition, unit: Callable[[Unit], str]) -> str | None:
    """A condition as FTS5 wants it; None for one that it cannot tell, of documents or by exclusion
    alone.
    """
    match condition:
        case Unit():
            return unit(condition)
        case All(parts) | Some(parts):
            written = [_written(part, unit) for part in parts]
            known = [part for part in written if part is not None]
            joint = " AND " if isinstance(condition, All) else " OR "
            return f"({joint.join(known)})" if len(known) == len(written) else None
        case _:
            return None


# What the engines beside the store index of it: one entry for a chunk, as terms in places.
#
# The terms of a field follow one another, so that phrases match; each of the wholes behind them
# stands alone, and so no phrase reaches them, or from one field into the next.

Weights = Mapping[QueryField, float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk, ready to be indexed: the terms of each of its fields, in the order of FIELDS."""

    key: ChunkKey
    doc_id: DocId
    fields: tuple[Streams, ...]


class Entries:
    """Reads entries from the store. The same chunks as in `Fts5Index`."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def of_all(self, snapshot: Snapshot) -> Iterator[Entry]:
        return self._entries(snapshot, snapshot.documents())

    def of(self, snapshot: Snapshot, doc_ids: Collection[DocId]) -> Iterator[Entry]:
        """Those of these documents that the store still has."""
        found = map(snapshot.document, sorted(doc_ids))
        return self._entries(snapshot, (document for document in found if document is not None))

    def _entries(self, snapshot: Snapshot, documents: Iterable[StoredDocument]) -> Iterator[Entry]:
        for document in documents:
            chunks = snapshot.chunks(document.id)
            leaves = [stored for stored in chunks if stored.chunk.text is not None] or chunks[:1]
            # What belongs to the document is the same in each of its chunks.
            known: dict[str, Streams] = {}
            for stored in leaves:
                texts = field_texts(document, stored.chunk)
                streams = tuple(self._streams(texts[field], known) for field in FIELDS)
                yield Entry(stored.key, document.id, streams)

    def _streams(self, text: str, known: dict[str, Streams]) -> Streams:
        if text not in known:
            known[text] = self._analyzer.streams(text)
        return known[text]


def places(streams: Streams) -> Iterator[tuple[int, str]]:
    """The terms of a field, each with its place there, in order."""
    yield from enumerate(streams.plain)
    behind = len(streams.plain) + 1
    for number, term in enumerate(streams.wholes):
        yield behind + 2 * number, term


def extent(streams: Streams) -> int:
    """The first place that nothing of a field can be next to."""
    return len(streams.plain) + 1 + 2 * len(streams.wholes)


def weights_version(weights: Weights) -> str:
    return ",".join(f"{weights[field]:.6g}" for field in FIELDS)


def existing(snapshot: Snapshot, keys: Collection[int] | None = None) -> set[int]:
    """Those of these chunks, or of all, that the snapshot has."""
    if keys is None:
        return {key for (key,) in snapshot.select("SELECT key FROM chunks")}
    rows = snapshot.select(
        "SELECT key FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key for (key,) in rows}


# What was guessed never outranks what was typed: one search for each, and one list of both.
#
# BM25F adds up over units, so the two searches together are one. Any engine can be asked so.

BELOW = 0.99
"""The best passage found by guesses alone has this part of the score of the last one that has a
typed word."""
DEPTH = 4
"""Guessed words are looked up this many times deeper than results are wanted, so that most of the
passages with typed words, wherever they stand in that list, get what they gain by it."""


def search_in_tiers(
    engine: KeywordEngine,
    snapshot: Snapshot,
    query: KeywordQuery,
    limit: int,
    scope: Scope = None,
) -> KeywordHits:
    """Passages with a typed word first, by all that they match; then those with guessed ones.

    The ideal is that of the typed words: a word that nothing has stays a word not found. Without
    weaker units this is one search of the engine, and nothing else.
    """
    typed = engine.search(snapshot, replace(query, weaker=()), limit, scope)
    if not query.weaker or limit <= 0:
        return typed
    guesses = KeywordQuery(query.weaker, query.condition)
    guessed = engine.search(snapshot, guesses, limit * DEPTH, scope)
    hits = _merged(typed.hits, guessed.hits)[:limit]

    def scores_of(keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """By guesses alone no more than the last of the hits."""
        known, extra = typed.scores_of(keys), guessed.scores_of(keys)
        most = hits[-1].score if hits else 0.0
        return {
            key: known[key] + extra.get(key, 0.0) if key in known else min(most, extra[key])
            for key in {*known, *extra}
        }

    return KeywordHits(
        hits=hits,
        ideal=typed.ideal,
        frequencies={**guessed.frequencies, **typed.frequencies},
        scores_of=scores_of,
    )


def _merged(typed: tuple[Hit, ...], guessed: tuple[Hit, ...]) -> tuple[Hit, ...]:
    extra: dict[ChunkKey, float] = {hit.key: hit.score for hit in guessed}
    first = [Hit(hit.key, hit.score + extra.pop(hit.key, 0.0)) for hit in typed]
    first.sort(key=lambda hit: (-hit.score, hit.key))
    rest = [hit for hit in guessed if hit.key in extra]
    if first and rest:
        factor = min(1.0, BELOW * first[-1].score / rest[0].score) if rest[0].score > 0 else 1.0
        rest = [Hit(hit.key, hit.score * factor) for hit in rest]
    return (*first, *rest)
