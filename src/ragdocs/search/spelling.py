"""Typing errors: words of a query that no document has, and the words that may be meant.

Only such words are corrected: `cat` never finds `car` if a document has `cat`. English words and
their forms are correct even if no document has them; numbers, versions, names with digits and the
values of filters are never corrected.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ragdocs.indices.analysis import Analyzer, Token
from ragdocs.indices.hits import MIDDLE, SHORT, NearWord
from ragdocs.indices.languages import fold, is_english
from ragdocs.indices.view import View
from ragdocs.limits import MAX_GUESSES
from ragdocs.models import And, Boost, Field, Or, QueryExpression, QueryField, Term
from ragdocs.search.query_language import FIELD_NAMES

MAX_ALTERNATIVES = 3
MAX_COMPARED = 5
"""How many unknown words are compared with less similar ones."""
FILTERS = (QueryField.TREE, QueryField.PATH)

# The values of tree and path, and the names of fields, are not words of the query.
_FILTER_VALUE = r'(?:tree|path):(?:"[^"]*"|\([^()]*\)|\S+)'
_NO_WORDS = re.compile(rf"(?<!\w)(?:{_FILTER_VALUE}|(?:{'|'.join(FIELD_NAMES)}):)")


@dataclass(frozen=True, slots=True)
class Correction:
    """A word that no document has, its place in the query, and the words near it."""

    word: str
    start: int
    end: int
    near: tuple[NearWord, ...]


@dataclass(frozen=True, slots=True)
class SpellingCheck:
    """The words of a query that may be mistyped, whether all of them are, and whether the documents
    have every word once these are corrected. `nearest`: the documents' nearest words, if they have
    none of the query's and none is a typing error.
    """

    corrections: tuple[Correction, ...] = ()
    is_all_mistyped: bool = False
    is_all_known: bool = False
    nearest: tuple[str, ...] = ()


class Spelling:
    """Compares queries with the vocabulary; allows up to `most` errors in a word, unless a query
    has a number of its own."""

    def __init__(self, analyzer: Analyzer, most: int) -> None:
        self._analyzer = analyzer
        self._most = most

    def read(
        self,
        view: View,
        text: str,
        most_guesses: int = MAX_GUESSES,
        most_errors: int | None = None,
    ) -> SpellingCheck:
        """`text` is the query as typed. Only its first `most_guesses` unknown words are compared
        with the documents' words.
        """
        words = {token: fold(text[token.start : token.end]) for token in self._words(text)}
        known = view.known_terms({token.term for token in words})
        unknown = {token: word for token, word in words.items() if token.term not in known}
        is_all_unknown = len(unknown) == len(words)
        corrections = self._find_corrections(
            view,
            unknown,
            most_guesses,
            self._most if most_errors is None else most_errors,
            is_all_unknown=is_all_unknown,
        )
        if corrections or not is_all_unknown:
            return SpellingCheck(
                corrections,
                is_all_mistyped=len(corrections) == len(words),
                is_all_known=len(corrections) == len(unknown),
            )
        compared = min(MAX_COMPARED, most_guesses)
        return SpellingCheck(nearest=self._find_nearest(view, unknown.values(), compared))

    def _find_corrections(
        self,
        view: View,
        unknown: Mapping[Token, str],
        most_guesses: int,
        most_errors: int,
        *,
        is_all_unknown: bool,
    ) -> tuple[Correction, ...]:
        if most_errors < 1:
            return ()
        # A word of three letters is near too many others; it is corrected only if no word is known.
        least = SHORT if is_all_unknown else MIDDLE
        found: list[Correction] = []
        compared: dict[str, tuple[NearWord, ...]] = {}
        for token, word in unknown.items():
            if not word.isalpha() or len(word) < least or is_english(word):
                continue
            if word not in compared and len(compared) < most_guesses:
                near = view.near_words(word, token.term, most_errors)
                compared[word] = tuple(near[:MAX_ALTERNATIVES])
            if best := compared.get(word):
                found.append(Correction(word, token.start, token.end, best))
        return tuple(found)

    def _find_nearest(self, view: View, unknown: Iterable[str], most: int) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for word in islice(dict.fromkeys(filter(str.isalpha, unknown)), most):
            # A correct English word is not compared by its letters: a similar one means something
            # else.
            by_letters = not is_english(word)
            alike = view.similar_words(word, MAX_ALTERNATIVES, by_letters=by_letters)
            found.update(dict.fromkeys(alike))
        return tuple(found)

    def _words(self, text: str) -> Iterator[Token]:
        skipped = {at for match in _NO_WORDS.finditer(text) for at in range(*match.span())}
        for token in self._analyzer.typed_tokens(text):
            is_word = not token.is_whole and not self._analyzer.is_stop_word(
                text[token.start : token.end]
            )
            if is_word and token.start not in skipped:
                yield token


def did_you_mean(text: str, corrections: Sequence[Correction]) -> str | None:
    """The query as typed, with each unknown word replaced by the nearest one."""
    if not corrections:
        return None
    parts: list[str] = []
    at = 0
    for each in sorted(corrections, key=lambda each: each.start):
        typed = text[each.start : each.end]
        parts += [text[at : each.start], _in_case_of(typed, each.near[0].word)]
        at = each.end
    return "".join([*parts, text[at:]])


def _in_case_of(typed: str, word: str) -> str:
    if typed.isupper():
        return word.upper()
    return word.capitalize() if typed[0].isupper() else word


def allow_misspellings(
    expression: QueryExpression, alternatives: Mapping[str, Sequence[NearWord]], analyzer: Analyzer
) -> QueryExpression:
    """An expression that accepts known words in place of unknown ones.

    Phrases and filters stay exact, and a guess never excludes anything.
    """
    match expression:
        case Term(text):
            texts = dict.fromkeys((text, *_variants(text, alternatives, analyzer)))
            return _any_of([Term(each) for each in texts])
        case And(members):
            return And(tuple(allow_misspellings(each, alternatives, analyzer) for each in members))
        case Or(members):
            return _any_of([allow_misspellings(each, alternatives, analyzer) for each in members])
        case Field(name, inner) if name not in FILTERS:
            return Field(name, allow_misspellings(inner, alternatives, analyzer))
        case Boost(inner, factor):
            return Boost(allow_misspellings(inner, alternatives, analyzer), factor)
        case _:
            return expression


def _any_of(members: Sequence[QueryExpression]) -> QueryExpression:
    """An Or without an Or among its members."""
    flat = list(
        chain.from_iterable(
            each.expressions if isinstance(each, Or) else (each,) for each in members
        )
    )
    return Or(tuple(flat)) if len(flat) > 1 else flat[0]


def _variants(
    text: str, alternatives: Mapping[str, Sequence[NearWord]], analyzer: Analyzer
) -> Iterator[str]:
    """The term with its unknown words replaced: all by their best, all by their second best."""
    tokens = [token for token in analyzer.tokens(text) if not token.is_whole]
    unknown = [
        Correction(word, token.start, token.end, tuple(alternatives[word]))
        for token in tokens
        if (word := fold(text[token.start : token.end])) in alternatives
    ]
    for rank in range(max((len(each.near) for each in unknown), default=0)):
        chosen = [
            Correction(each.word, each.start, each.end, each.near[min(rank, len(each.near) - 1) :])
            for each in unknown
        ]
        yield did_you_mean(text, chosen) or text
