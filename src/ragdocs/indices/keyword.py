"""What every keyword engine is asked and returns, and the figures by which their scores agree."""

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

Weights = Mapping[QueryField, float]

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


class Quotation(NamedTuple):
    """A phrase of a plain question, and how many of its words tell something: those that are no
    stop words, or half of them where all are."""

    unit: Unit
    words: int


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """Units rank; the condition, when there is one, decides what may be ranked at all.

    Weaker units were not typed, only guessed from what was. Engines do not know of them:
    `search_in_tiers` makes sure that they never outrank the others.
    """

    units: tuple[Unit, ...]
    condition: Condition | None = None
    weaker: tuple[Unit, ...] = ()
    wishes: tuple[Quotation, ...] = ()
    """What a plain question quotes. Engines do not know of them either: who searches looks them up
    apart."""


def weights_version(weights: Weights) -> str:
    return ",".join(f"{weights[field]:.6g}" for field in FIELDS)


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
            return in_tree(text)
        if field is QueryField.PATH:
            return Comparison(FilterField.PATH, Operator.BEGINS, text)
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


# What was guessed never outranks what was typed: one search for each, and one list of both.
#
# BM25F adds up over units, so the two searches together are one. Any engine can be asked so.

BELOW = 0.99
"""The best passage found by guesses alone has this part of the score of the last one that has a
typed word."""
DEPTH = 4
"""Guessed words are looked up this many times deeper than results are wanted, so that most of the
passages with typed words, wherever they stand in that list, get what they gain by it."""


Search = Callable[[KeywordQuery, int], KeywordHits]
"""Asks an engine for so many hits."""


def search_in_tiers(search: Search, query: KeywordQuery, limit: int) -> KeywordHits:
    """Passages with a typed word first, by all that they match; then those with guessed ones.

    The ideal is that of the typed words: a word that nothing has stays a word not found. Without
    weaker units this is one search of the engine, and nothing else.
    """
    typed = search(replace(query, weaker=()), limit)
    if not query.weaker or limit <= 0:
        return typed
    guessed = search(KeywordQuery(query.weaker, query.condition), limit * DEPTH)
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
