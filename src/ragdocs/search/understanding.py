"""How a query is understood: its operators, quotations, corrections, synonyms and related words."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log
from typing import TYPE_CHECKING, Protocol

from ragdocs.config.settings import SearchConfig
from ragdocs.errors import ConfigError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Condition, Unit
from ragdocs.indices.hits import NearTerm
from ragdocs.indices.keyword import (
    KeywordQuery,
    Quotation,
    compile_query,
)
from ragdocs.indices.languages import fold
from ragdocs.indices.view import View
from ragdocs.limits import MAX_GUESSES
from ragdocs.models import And, Not, Or, ParsedQuery, QueryExpression, QueryReading, Term
from ragdocs.search.candidates import Candidate, best_first
from ragdocs.search.classifier import classify_query
from ragdocs.search.fusion import Fused
from ragdocs.search.requests import QueryType
from ragdocs.search.spelling import (
    Correction,
    Spelling,
    SpellingCheck,
    allow_misspellings,
    did_you_mean,
)
from ragdocs.store.records import ChunkKey
from ragdocs.text import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

# A query with the words added to it.
#
# Added words are weaker than typed ones, wherever they come from: they find more passages and
# change the order of those that the typed words found, but never put others above them.

FUZZY_WEIGHT = 0.5
"""The weight of a word, once for each error that separates it from the typed one."""
MAX_ADDED = 48
"""For one query: three for each of sixteen words."""
TOO_MANY_WORDS = (
    "this query has {count:,} different words: the {left_out:,} most common ones are searched by "
    "meaning only"
)


class WordOrigin(StrEnum):
    """Why a word was added."""

    FUZZY = "fuzzy"
    EXPANSION = "expansion"
    SYNONYM = "synonym"


@dataclass(frozen=True, slots=True)
class AddedWord:
    """A word that was not typed. `distance` (in errors) is to the word it stands for, `similarity`
    (a cosine) is to the whole query.
    """

    word: str
    term: str
    origin: WordOrigin
    weight: float
    stands_for: str = ""
    distance: int | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Understanding:
    """A query that is ready to be searched, and everything that explains it."""

    parsed: ParsedQuery
    query: KeywordQuery
    added: tuple[AddedWord, ...] = ()
    did_you_mean: str | None = None
    is_all_mistyped: bool = False
    """No document has any of the typed words, and each is near a word that some have."""
    left_out: tuple[str, ...] = ()
    """Typed terms that are not searched, because rarer ones are enough."""
    nearest_terms: tuple[str, ...] = ()
    """Words of the documents similar to the typed ones, if they have none of these."""
    notes: tuple[str, ...] = ()
    """For the user: what may have been read differently than it was meant."""

    @property
    def own_terms(self) -> frozenset[str]:
        """The terms that were typed."""
        return frozenset(term for unit in self.query.units for term in unit.terms)

    def with_units(self, units: tuple[Unit, ...]) -> "Understanding":
        """With only these of its units; a note counts those left out."""
        kept = set(units)
        left_out = tuple(" ".join(unit.terms) for unit in self.query.units if unit not in kept)
        note = TOO_MANY_WORDS.format(count=len(self.query.units), left_out=len(left_out))
        query = replace(self.query, units=units)
        return replace(self, query=query, left_out=left_out, notes=(*self.notes, note))

    def with_words(self, words: Iterable[AddedWord]) -> "Understanding":
        """With the words that are neither typed nor already added."""
        known = self.own_terms | {added.term for added in self.added}
        new = tuple({word.term: word for word in words if word.term not in known}.values())
        new = new[: MAX_ADDED - len(self.added)]
        units = tuple(Unit((word.term,), None, word.weight) for word in new)
        query = replace(self.query, weaker=(*self.query.weaker, *units))
        return replace(self, query=query, added=(*self.added, *new))


def understand(
    text: str, parsed: ParsedQuery, analyzer: Analyzer, spelled: SpellingCheck
) -> Understanding:
    """`text` is the query as typed, to which the corrections refer."""
    corrections = spelled.corrections
    understood = Understanding(parsed, compile_query(parsed, analyzer), notes=parsed.notes)
    if not corrections:
        return replace(understood, nearest_terms=spelled.nearest)
    # A proposal with words that no document has would be only half corrected.
    meant = did_you_mean(text, corrections) if spelled.is_all_known else None
    understood = replace(understood, is_all_mistyped=spelled.is_all_mistyped)
    # A word near a stop word is that stop word mistyped, not one of the rare words as near.
    useful = [each for each in corrections if not analyzer.is_stop_word(each.near[0].word)]
    added = _fuzzy_words(useful)
    if parsed.is_strict and parsed.expression is not None:
        alternatives = {each.word: each.near for each in useful}
        looser = replace(
            parsed, expression=allow_misspellings(parsed.expression, alternatives, analyzer)
        )
        query = _loosen(understood.query, compile_query(looser, analyzer), added)
        used = {term for unit in query.weaker for term in unit.terms}
        kept = tuple(word for word in added if word.term in used)
        return replace(understood, query=query, added=kept, did_you_mean=meant)
    return replace(understood.with_words(added), did_you_mean=meant)


def _fuzzy_words(corrections: Sequence[Correction]) -> list[AddedWord]:
    found = [
        AddedWord(
            word=near.word,
            term=near.term,
            origin=WordOrigin.FUZZY,
            weight=FUZZY_WEIGHT**near.distance,
            stands_for=each.word,
            distance=near.distance,
        )
        for each in corrections
        for near in each.near
    ]
    return list({word.term: word for word in reversed(found)}.values())[::-1]


def _loosen(typed: KeywordQuery, looser: KeywordQuery, added: Sequence[AddedWord]) -> KeywordQuery:
    """With the looser condition; the added units are the weaker ones."""
    weights = {word.term: word.weight for word in added}
    weaker = tuple(
        unit._replace(weight=unit.weight * weights.get(unit.terms[0], FUZZY_WEIGHT))
        for unit in looser.units
        if unit not in typed.units
    )
    return KeywordQuery(typed.units, looser.condition, weaker)


# Expansion by words of the documents near the whole query: `auth` also searches `authentication`.
#
# The query's vector is compared with the stored vectors of words, so the model runs only once. The
# nearest words are mixed into the vector and searched as weaker words. A model that does not know a
# word goes by its letters (`creds` is near `cron`), so a near word must also differ in its letters,
# and either be very near or occur in the nearest passages (specs/0084).

MAX_TERMS = 3
MIN_SIMILARITY = 0.5
"""The seeds' figures."""
LOOKED_AT = 50
"""Forms of the query's own words come first and are skipped."""
MIXED = 0.3
"""The weight of the words in the mixed vector; the query has 1."""
EXPANSION_WEIGHT = 0.3
"""The weight of an added word relative to a typed one, times its similarity."""

KNOWN_SHARE = 0.1
"""A word in a larger share of the documents is known and not expanded."""
PASSAGES = 10
"""How many of the nearest passages are searched for the words that may be meant."""
ENOUGH_PASSAGES = 2
CLOSE = 0.6
"""A word this near need not occur in them, unless it is short: codes are near one another."""
SHORTEST, SHORTEST_CLOSE = 4, 5
ALIKE_LETTERS = 0.6
"""With this share of common letters, in order, two words may be near by their letters alone."""


def choose_terms(
    near: Sequence[NearTerm],
    own_terms: frozenset[str],
    passages: Mapping[str, int] | None = None,
) -> list[NearTerm]:
    """The nearest terms that are not forms of a typed word, nor of one another. With `passages`
    (how many of the nearest passages have each term), only those near in more than their letters.
    """
    best: dict[str, NearTerm] = {}
    for each in near:
        if each.similarity < MIN_SIMILARITY or each.term in own_terms or each.term in best:
            continue
        if passages is None or _is_meant(each, own_terms, passages.get(each.term, 0)):
            best[each.term] = each
    return sorted(best.values(), key=lambda each: -each.similarity)[:MAX_TERMS]


def _is_meant(near: NearTerm, own_terms: Collection[str], passages: int) -> bool:
    word = near.word
    if not word.isalpha() or any(_is_alike_in_letters(term, near) for term in own_terms):
        return False
    is_supported = passages >= ENOUGH_PASSAGES and len(word) >= SHORTEST
    return is_supported or (near.similarity >= CLOSE and len(word) >= SHORTEST_CLOSE)


def _is_alike_in_letters(typed: str, near: NearTerm) -> bool:
    """Whether the two have similar letters and one is not short for the other. They are compared
    without their endings, which many words have in common."""
    from rapidfuzz.distance import Indel

    if _is_short_for(typed, near.word):
        return False
    is_alike = Indel.normalized_similarity(typed, near.term) >= ALIKE_LETTERS
    return is_alike or typed[:2] == near.term[:2] or typed[-2:] == near.term[-2:]


def _is_short_for(typed: str, word: str) -> bool:
    """`config` for configuration, `img` for image: its letters in their order, from the first."""
    rest = iter(word)
    is_longer = len(word) >= len(typed) + 2 or word.startswith(typed)
    return is_longer and word[:1] == typed[:1] and all(letter in rest for letter in typed)


def move_vector(vector: "Vector", terms: Sequence[NearTerm]) -> "Vector":
    """Moves the query's vector towards the words, by their similarity; it keeps unit length."""
    import numpy as np

    if not terms:
        return vector
    weights = np.array([each.similarity for each in terms], dtype=np.float32)
    direction = weights @ np.stack([each.vector for each in terms]) / weights.sum()
    moved = vector + MIXED * direction
    return (moved / np.linalg.norm(moved)).astype(np.float32)


def added_words(terms: Sequence[NearTerm]) -> list[AddedWord]:
    return [
        AddedWord(
            word=each.word,
            term=each.term,
            origin=WordOrigin.EXPANSION,
            weight=EXPANSION_WEIGHT * each.similarity,
            similarity=each.similarity,
        )
        for each in terms
    ]


# Synonyms (P5): weaker than typed words, and found without a model.

MAX_SYNONYMS = 3
SYNONYM_WEIGHT = 0.3
"""The weight of a synonym relative to a typed word: most words have several meanings."""


class Thesaurus(Protocol):
    """Finds single words that can replace a word, best first."""

    def related(self, word: str) -> Sequence[str]:
        """Empty for an unknown word. Raises ConfigError if its data is missing."""
        ...


def synonyms(text: str, analyzer: Analyzer, thesaurus: Thesaurus) -> Iterator[AddedWord]:
    """At most three for each word of a query, as one term each."""
    for token in analyzer.query(text):
        word = fold(text[token.start : token.end])
        if token.is_whole or not word.isalpha():
            continue
        for related in thesaurus.related(word)[:MAX_SYNONYMS]:
            terms = analyzer.query(related)
            if len(terms) == 1:
                yield AddedWord(
                    related, terms[0].term, WordOrigin.SYNONYM, SYNONYM_WEIGHT, stands_for=word
                )


class Interpreter:
    """Interprets queries by the settings, with the words of the documents as its dictionary."""

    def __init__(
        self, analyzer: Analyzer, thesaurus: Thesaurus | None, settings: SearchConfig
    ) -> None:
        self._analyzer = analyzer
        self._is_expanding = settings.query_expansion_enabled
        self._max_words = settings.query_expansion_max_words
        self._thesaurus = thesaurus if settings.synonyms_enabled else None
        self._spelling = Spelling(analyzer, settings.fuzzy_distance)

    def read(
        self,
        view: View,
        text: str,
        parsed: ParsedQuery,
        most_guesses: int = MAX_GUESSES,
        most_errors: int | None = None,
    ) -> Understanding:
        """Does everything that does not need the query's vector. `text` is the query as typed."""
        typed = without_surrogates(text).replace("\0", " ").strip()
        spelled = self._spelling.read(view, typed, most_guesses, most_errors)
        understood = understand(typed, parsed, self._analyzer, spelled)
        if self._thesaurus is None:
            return understood
        try:
            return understood.with_words(synonyms(parsed.text, self._analyzer, self._thesaurus))
        except ConfigError as error:
            note = f"searched without synonyms: {error}"
            return replace(understood, notes=(*understood.notes, note))

    def may_expand(self, view: View, understood: Understanding) -> bool:
        """Whether it is worth waiting for the query's vector."""
        if not self._is_expanding:
            return False
        if self._max_words and not self._is_short_and_unknown(view, understood):
            return False
        return view.has_term_vectors()

    def expand(
        self,
        view: View,
        understood: Understanding,
        vector: "NDArray[np.float32] | None",
    ) -> tuple[Understanding, Sequence[NearTerm]]:
        """Adds the words that are near the whole query in meaning; returns their vectors too."""
        if not self._is_expanding or vector is None:
            return understood, ()
        scale = view.cosine_scale
        near = [
            replace(each, similarity=scale.of(each.similarity))
            for each in view.near_terms(vector, scale.inverse(MIN_SIMILARITY), LOOKED_AT)
        ]
        passages = None
        if self._max_words and near:
            passages = self._terms_nearby(view, vector)
        chosen = choose_terms(near, understood.own_terms, passages)
        return understood.with_words(added_words(chosen)), chosen

    def _is_short_and_unknown(self, view: View, understood: Understanding) -> bool:
        """A few plain words, none mistyped, each in hardly any document."""
        parsed, terms = understood.parsed, understood.own_terms
        if parsed.is_strict or parsed.wishes or understood.added:
            return False
        if not terms:
            return False
        if len(parsed.text.split()) > self._max_words:
            return False
        if classify_query(parsed.text) is QueryType.FACTUAL:
            return False
        documents = view.count_documents_with(terms)
        return documents <= max(1, KNOWN_SHARE * view.count_documents())

    def _terms_nearby(self, view: View, vector: "NDArray[np.float32]") -> Counter[str]:
        """How many of the nearest passages have each term; the very nearest alone is enough."""
        found = Counter[str]()
        keys = [hit.key for hit in view.vector_recall(PASSAGES)(vector)]
        stored = view.chunks_by_key(keys)
        for key in (*keys[:1] * (ENOUGH_PASSAGES - 1), *keys):
            if key in stored:
                found.update(set(self._analyzer.terms(stored[key].chunk.text or "")))
        return found


# A quotation in a plain question is a wish: passages with the phrase come before the others.
#
# How far depends on the phrase (specs/0076). A name, which few passages have and whose rarest word
# hardly occurs elsewhere, is what was meant, wherever the words alone would rank it; so are three
# words and more. Two common words in quotation marks say little: they raise a passage only partly.

FEW, FEW_PART = 2, 0.001
"""Up to this many passages, or this share of all, a phrase has the highest rarity."""
MANY, MANY_PART = 20, 0.01
"""From this many on it changes nothing."""
LEAST, SMALL, LARGE = 0.3, 50, 1000
"""How far two common words raise their passages in a folder of LARGE or more passages. In one of
SMALL or fewer they raise them all the way; between the two the logarithm decides."""
HARDLY_TELLING = 0.2
"""The share of that for one word beside stop words, or two stop words, which any text has side by
side."""
NAME = 0.9
"""A phrase is a name if it has this share of the passages with its rarest word."""
LONG = 3
"""This many words, without stop words, are side by side on purpose."""
ROOM = 0.5
"""The share of the room between the best score and 1, or 0, that wishes use: little enough that the
passages behind them are not cut off."""
REASON = "phrase"


@dataclass(frozen=True, slots=True)
class Wish:
    """A quoted phrase, how many passages have it, and how far it raises them, in [0, 1]; `is_name`:
    nobody writes it by chance.
    """

    unit: Unit
    passages: int
    strength: float
    is_name: bool
    keys: Set[ChunkKey] = frozenset()
    """The passages found that have it."""


def look_up(quotations: Sequence[Quotation], view: View) -> tuple[Wish, ...]:
    total = view.count_matching()
    wishes: list[Wish] = []
    for unit, words in quotations:
        passages = view.count_matching(unit)
        # The engines' counts of words are inexact: one may be less than that of the phrase.
        rarest = max(passages, min(view.term_frequencies(unit.terms).values()))
        by_chance = total > SMALL and words < LONG and passages < NAME * rarest
        far = strength(passages, rarest, words, total)
        if words < 2 <= len(unit.terms):  # "into the", "access the"
            far *= HARDLY_TELLING
        wishes.append(Wish(unit, passages, far, is_name=passages > 0 and not by_chance))
    return tuple(wishes)


def find_wished(wishes: Sequence[Wish], view: View, keys: Collection[ChunkKey]) -> tuple[Wish, ...]:
    """Adds to each wish the passages that have its phrase."""
    return tuple(
        replace(wish, keys=view.matching(wish.unit, keys)) if wish.strength > 0 else wish
        for wish in wishes
    )


def strength(passages: int, rarest: int, words: int, total: int) -> float:
    """By the number of passages with the phrase, and with its rarest word."""
    if not passages:
        return 0.0
    few, many = max(FEW, FEW_PART * total), max(MANY, MANY_PART * total)
    rarity = _fall_off(passages, few, many)
    if words >= LONG:
        return rarity
    least = LEAST + (1.0 - LEAST) * _fall_off(total, SMALL, LARGE)
    return rarity * max(least, passages / rarest)


def _fall_off(count: int, most: float, none: float) -> float:
    """Falls from 1 at `most` to 0 at `none`."""
    return min(1.0, max(0.0, log(none / count) / log(none / most)))


def put_wished_first(fused: Sequence[Fused], wishes: Sequence[Wish]) -> list[Fused]:
    """Orders by the scores with wishes, but keeps the scores as they were."""
    raised = _WishScores(wishes, max((item.score for item in fused), default=0.0))
    if not raised.wishes:
        return list(fused)
    return sorted(fused, key=lambda item: -raised.score(item.key, item.score))


def with_wishes(candidates: Sequence[Candidate], wishes: Sequence[Wish]) -> Sequence[Candidate]:
    """Raises passages by their wishes, and records that as a boost; best first."""
    raised = _WishScores(wishes, max((item.score for item in candidates), default=0.0))
    if not raised.wishes:
        return candidates
    return best_first(
        [_raise(item, raised.score(item.stored.key, item.score)) for item in candidates]
    )


def _raise(item: Candidate, score: float) -> Candidate:
    if item.score <= 0 or score <= item.score:
        return item
    return item.with_changes(score=score, boosts={**item.boosts, REASON: score / item.score})


class _WishScores:
    """Scores with the wishes that count; `best` is the best score without them."""

    def __init__(self, wishes: Sequence[Wish], best: float) -> None:
        self.wishes = [wish for wish in wishes if wish.strength > 0]
        self._best = best
        self._all = sum(wish.strength for wish in self.wishes)

    def score(self, key: ChunkKey, score: float) -> float:
        had = [wish.strength for wish in self.wishes if key in wish.keys]
        if not had:
            return score
        room = ROOM * min(self._best, 1.0 - self._best)
        # First by the wishes it fulfils, then by its own score.
        place = (2 * sum(had) / self._all + score) / 3
        target = self._best + room * place
        return score + max(had) * max(0.0, target - score)


# A query with an operator is still a question: no passage must have all of its other words.
#
# The operands of operators always bind. The plain words beside them bind too, if some passage has
# them all; otherwise they only rank, with a note. In a strict request all of them bind. Phrases and
# words without an operator are read as plain words if no passage has them all, or if a phrase
# beside words is not a name in these documents (specs/0075).

RELAXED = (
    "no passage has all words of this query: quotations, exclusions and fields were required, "
    "other words only affected the ranking"
)

NOTHING = "no passage matches this query: because of its operators, all of it is required"
NONE_HAS_ALL = "no passage has every word of this query, and strict requires all of them"
NOWHERE = (
    "no passage has all of this query: it was read as plain words, with its quotations preferred"
)

Count = Callable[[Condition], int]
"""How many passages satisfy a condition."""


def make_satisfiable(
    understood: Understanding, analyzer: Analyzer, count: Count
) -> tuple[Understanding, int | None]:
    """Relaxes the query until some passage satisfies it, if possible; also returns how many do,
    None if nothing binds.
    """
    condition = understood.query.condition
    if condition is None:
        return understood, None
    satisfying = count(condition)
    if satisfying or understood.parsed.reading is not QueryReading.OPERATORS:
        return understood, satisfying
    looser = _relax(understood, analyzer)
    if looser is None or looser.query.condition is None:
        return understood, satisfying
    instead = count(looser.query.condition)
    return (looser, instead) if instead else (understood, satisfying)


def is_binding(parsed: ParsedQuery, satisfying: int | None, wishes: Sequence[Wish]) -> bool:
    """Whether a query of phrases, and perhaps a few words, binds in these documents; `wishes` are
    its phrases.
    """
    expression = parsed.expression
    has_words = isinstance(expression, And) and any(
        isinstance(member, Term) for member in expression.expressions
    )
    return bool(satisfying) and (not has_words or all(wish.is_name for wish in wishes))


def _relax(understood: Understanding, analyzer: Analyzer) -> Understanding | None:
    parsed = understood.parsed
    if not isinstance(parsed.expression, And):
        return None
    members = parsed.expression.expressions
    plain = [member for member in members if isinstance(member, Term)]
    binding: list[QueryExpression] = [member for member in members if not isinstance(member, Term)]
    if not plain or not binding:
        return None
    if all(isinstance(member, Not) for member in binding):
        # Something must be looked for.
        binding.append(Or(tuple(plain)) if len(plain) > 1 else plain[0])
    expression = And(tuple(binding)) if len(binding) > 1 else binding[0]
    looser = replace(parsed, expression=expression)
    query = replace(understood.query, condition=compile_query(looser, analyzer).condition)
    return replace(understood, query=query, notes=(*understood.notes, RELAXED))
