"""The query of every keyword engine, and the numbers by which the scores of all engines agree."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import log
from typing import NamedTuple

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import (
    All,
    Comparison,
    Condition,
    FilterField,
    Operator,
    Some,
    Unit,
    Without,
    in_tree,
)
from ragdocs.indices.hits import Hit, KeywordHits
from ragdocs.models import (
    And,
    Boost,
    Chunk,
    Field,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryExpression,
    QueryField,
    Term,
)
from ragdocs.store.records import ChunkKey, StoredDocument

# The parameters of BM25, the same in every keyword engine, so that their scores agree.

K1, B = 1.2, 0.75
"""Fixed inside FTS5's bm25(), and inside tantivy."""
MOST = K1 + 1
"""A unit's share of a score, without its idf, is always below this, however often a row has it."""


def idf(total: int, frequency: int) -> float:
    """Never negative, so that a folder of five files is ranked sensibly too."""
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


# The query that every engine gets, and the fields of a chunk that it indexes.
#
# A query is compiled once into units that score and a condition that must hold. The engines do no
# analysis of their own, and so agree.

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

Weights = Mapping[QueryField, float]

MAX_FIELD_CHARS = 4_000
"""For each of the document's own fields: every passage has them, so a long one would count once for
each passage. No path is longer."""

COUNTED = 4
"""How many units are counted for each one kept; in a longer query, some from all over it."""
FEW_UNITS, FEWEST_UNITS = 32, 8
"""How many units are always searched for, however common they are: more than a question has; and
how many for each of several queries."""
ROWS = 2
"""How many index entries may be read for the other units, as a multiple of the chunks."""
MAX_PHRASE_TERMS = 32
"""Of a quotation in a plain question: a passage with this many in sequence has the rest too."""
COUNTED_TERMS = 8
"""Of a phrase: it is at least as rare as its rarest term."""

_FILTERS = (QueryField.TREE, QueryField.PATH)
_ALSO_IN = {QueryField.TITLE: QueryField.HEADERS}
"""A section has a title too: its heading."""


class Quotation(NamedTuple):
    """A phrase of a plain question, and how many of its words are significant: those that are not
    stop words, or half of them if all are."""

    unit: Unit
    words: int


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """Units rank; the condition, if there is one, decides which passages are ranked at all.

    Weaker units were not typed but guessed. Engines do not know them: `search_in_tiers` makes sure
    that they never outrank the others.
    """

    units: tuple[Unit, ...]
    condition: Condition | None = None
    weaker: tuple[Unit, ...] = ()
    wishes: tuple[Quotation, ...] = ()
    """The quotations of a plain question. Engines do not know them either: the search looks them up
    separately."""


def weights_version(weights: Weights) -> str:
    return ",".join(f"{weights[field]:.6g}" for field in FIELDS)


def field_texts(document: StoredDocument, chunk: Chunk) -> dict[QueryField, str]:
    """The searched fields of a leaf; those of its document are searched with every leaf."""
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
    """Plain words are analysed together and any may match; a strict query is a condition."""
    compiler = _Compiler(analyzer)
    if not parsed.is_strict or parsed.expression is None:
        words = _add_weights(Unit((token.term,)) for token in analyzer.query(parsed.text))
        wishes = _unique_quotations(compiler.quotation(text) for text in parsed.wishes)
        # If only stop words are quoted, they are meant.
        return KeywordQuery(words or tuple(wish.unit for wish in wishes), wishes=wishes)
    units = _add_weights(compiler.units(parsed.expression, None, 1.0))
    return KeywordQuery(units, compiler.condition(parsed.expression, None))


def token_unit(token: str, analyzer: Analyzer) -> Unit | None:
    """A name or code exactly as it was typed: its whole, or its parts in sequence."""
    parts = analyzer.tokens(token)
    whole = next((part for part in parts if part.end - part.start == len(token)), None)
    if whole is not None:
        return Unit((whole.term,))
    terms = tuple(part.term for part in parts if not part.is_whole)
    return Unit(terms) if terms else None


def _add_weights(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Adds up the weights of equal units."""
    weights: dict[tuple[tuple[str, ...], QueryField | None], float] = {}
    for unit in dict.fromkeys(units):
        sought = unit.terms, unit.field
        weights[sought] = weights.get(sought, 0.0) + unit.weight
    return tuple(Unit(*sought, weight) for sought, weight in weights.items())


def _unique_quotations(quotations: Iterable[Quotation]) -> tuple[Quotation, ...]:
    first = {wish.unit: wish for wish in quotations if wish.unit.terms}
    return tuple(first.values())


def rarest(
    units: Sequence[Unit],
    count: Callable[[Sequence[str]], Mapping[str, int]],
    most: int,
    total: int,
    queries: int = 1,
) -> tuple[Unit, ...]:
    """The units that can score most, in their order: at most `most`, and beyond the first few only
    as many as have a few times `total` index entries together. Keeps as many units that no chunk
    has: they cost nothing, and an answer that lacks them is worth less.
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
    """Turns a parsed query into terms. A word of several tokens becomes a phrase."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def units(
        self, expression: QueryExpression, field: QueryField | None, weight: float
    ) -> Iterator[Unit]:
        """The units that rank: every wanted word, but none that is excluded or filters."""
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
        """None if nothing can be required: for stop words, or without any word."""
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
            return in_tree(text)
        if field is QueryField.PATH:
            return Comparison(FilterField.PATH, Operator.BEGINS, text)
        # In a field even a stop word is significant: an author may be called Will.
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


# Guessed words never outrank typed ones: one search for each, merged into one list.
#
# BM25F is a sum over units, so the scores of the two searches add up. This works with any engine.

BELOW = 0.99
"""The best passage with guessed words only gets this part of the score of the last passage with a
typed word."""
DEPTH = 4
"""How much longer the list for guessed words is, so that most passages with typed words are in it
and gain by it."""


Search = Callable[[KeywordQuery, int], KeywordHits]
"""Searches an engine with a query and a limit."""


def search_in_tiers(search: Search, query: KeywordQuery, limit: int) -> KeywordHits:
    """Passages with a typed word first, by all words they match; then those with guessed words.

    The ideal counts typed words only: a guessed word does not replace a missing one. Without weaker
    units this is a single search of the engine.
    """
    typed = search(replace(query, weaker=()), limit)
    if not query.weaker or limit <= 0:
        return typed
    guessed = search(KeywordQuery(query.weaker, query.condition), limit * DEPTH)
    hits = _merge(typed.hits, guessed.hits)[:limit]

    def scores_of(keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """A passage with guessed words only scores no more than the last hit."""
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


def _merge(typed: tuple[Hit, ...], guessed: tuple[Hit, ...]) -> tuple[Hit, ...]:
    extra: dict[ChunkKey, float] = {hit.key: hit.score for hit in guessed}
    first = [Hit(hit.key, hit.score + extra.pop(hit.key, 0.0)) for hit in typed]
    first.sort(key=lambda hit: (-hit.score, hit.key))
    rest = [hit for hit in guessed if hit.key in extra]
    if first and rest:
        factor = min(1.0, BELOW * first[-1].score / rest[0].score) if rest[0].score > 0 else 1.0
        rest = [Hit(hit.key, hit.score * factor) for hit in rest]
    return (*first, *rest)
