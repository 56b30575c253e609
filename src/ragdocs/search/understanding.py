"""How a query was understood: what was typed, what was added to it, and what may have been meant.

Added words are weaker than typed ones, wherever they come from: they find more, and change the
order among what the typed words found, but nothing is put above it by them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import KeywordQuery, Unit, compile_query
from ragdocs.models import ParsedQuery
from ragdocs.search.spelling import Correction, Spelled, did_you_mean, forgiving

FUZZY_WEIGHT = 0.5
"""What a word counts for each error it is away from the typed one, once for each."""
MAX_ADDED = 48
"""Words for one query: three for each of sixteen."""
TOO_MANY_WORDS = (
    "this query has {count:,} different words: {left_out:,} of them, the commonest, only count by "
    "their meaning"
)


class Origin(StrEnum):
    """Why a word was added."""

    FUZZY = "fuzzy"
    EXPANSION = "expansion"
    SYNONYM = "synonym"


@dataclass(frozen=True, slots=True)
class AddedWord:
    """A word that was not typed; `distance` in errors or `similarity` as cosine says how near it
    is to what was: to the word it stands for, or to the whole query.
    """

    word: str
    term: str
    origin: Origin
    weight: float
    stands_for: str = ""
    distance: int | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Understanding:
    """A query, ready to be looked for, and everything that explains it."""

    parsed: ParsedQuery
    query: KeywordQuery
    added: tuple[AddedWord, ...] = ()
    did_you_mean: str | None = None
    is_all_mistyped: bool = False
    """No document has a word that was typed, and each is near one that some have."""
    left_out: tuple[str, ...] = ()
    """Typed terms that are not looked for, because rarer ones were enough."""
    nearest_terms: tuple[str, ...] = ()
    """Words of the documents that are like the typed ones, of which they have none."""
    notes: tuple[str, ...] = ()
    """What the user should know: what was read in another way than it may have been meant."""

    @property
    def own_terms(self) -> frozenset[str]:
        """The terms that were typed."""
        return frozenset(term for unit in self.query.units for term in unit.terms)

    def looking_for(self, units: tuple[Unit, ...]) -> "Understanding":
        """Only these of its units; a note tells what is left out."""
        kept = set(units)
        left_out = tuple(" ".join(unit.terms) for unit in self.query.units if unit not in kept)
        note = TOO_MANY_WORDS.format(count=len(self.query.units), left_out=len(left_out))
        query = replace(self.query, units=units)
        return replace(self, query=query, left_out=left_out, notes=(*self.notes, note))

    def adding(self, words: Iterable[AddedWord]) -> "Understanding":
        """With those of the words that are neither typed nor added already."""
        known = self.own_terms | {added.term for added in self.added}
        new = tuple({word.term: word for word in words if word.term not in known}.values())
        new = new[: MAX_ADDED - len(self.added)]
        units = tuple(Unit((word.term,), None, word.weight) for word in new)
        query = replace(self.query, weaker=(*self.query.weaker, *units))
        return replace(self, query=query, added=(*self.added, *new))


def understand(
    text: str, parsed: ParsedQuery, analyzer: Analyzer, spelled: Spelled
) -> Understanding:
    """`text` is the query as typed, in which the corrections stand."""
    corrections = spelled.corrections
    understood = Understanding(parsed, compile_query(parsed, analyzer), notes=parsed.notes)
    if not corrections:
        return replace(understood, nearest_terms=spelled.nearest)
    # A proposal of which some words are in no document would be corrected only by half.
    meant = did_you_mean(text, corrections) if spelled.is_all_known else None
    understood = replace(understood, is_all_mistyped=spelled.is_all_mistyped)
    # Who mistypes a stop word has not mistyped one of the rare words that are as near.
    useful = [each for each in corrections if not analyzer.is_stop_word(each.near[0].word)]
    added = _fuzzy_words(useful)
    if parsed.is_strict and parsed.expression is not None:
        alternatives = {each.word: each.near for each in useful}
        looser = replace(parsed, expression=forgiving(parsed.expression, alternatives, analyzer))
        query = _loosened(understood.query, compile_query(looser, analyzer), added)
        used = {term for unit in query.weaker for term in unit.terms}
        kept = tuple(word for word in added if word.term in used)
        return replace(understood, query=query, added=kept, did_you_mean=meant)
    return replace(understood.adding(added), did_you_mean=meant)


def _fuzzy_words(corrections: Sequence[Correction]) -> list[AddedWord]:
    found = [
        AddedWord(
            word=near.word,
            term=near.term,
            origin=Origin.FUZZY,
            weight=FUZZY_WEIGHT**near.distance,
            stands_for=each.word,
            distance=near.distance,
        )
        for each in corrections
        for near in each.near
    ]
    return list({word.term: word for word in reversed(found)}.values())[::-1]


def _loosened(
    typed: KeywordQuery, looser: KeywordQuery, added: Sequence[AddedWord]
) -> KeywordQuery:
    """The looser condition; of the looser units those that were added are the weaker ones."""
    weights = {word.term: word.weight for word in added}
    weaker = tuple(
        unit._replace(weight=unit.weight * weights.get(unit.terms[0], FUZZY_WEIGHT))
        for unit in looser.units
        if unit not in typed.units
    )
    return KeywordQuery(typed.units, looser.condition, weaker)
