"""From text to terms: one analysis for every engine, for documents and queries alike.

Text keeps every word, common ones too, so that phrases are exact; a query drops stop words when
it has others. A token knows the characters it came from. Those that are not a whole have each a
position of their own: they are what a phrase is matched by. Wholes (`getUserById` beside get, user,
by, id; pairs of Chinese characters) lie over them, for ranking.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import add
from typing import NamedTuple

from ragdocs.bounded_cache import BoundedCache
from ragdocs.config.choices import Stemmer
from ragdocs.indices.stemming import (
    MAX_TERM_CHARS,
    Fold,
    fold,
    fold_for,
    snowball_version,
    stem_for,
)
from ragdocs.indices.stop_words import stop_words
from ragdocs.indices.words import (
    MAX_WORD_CHARS,
    Piece,
    WordPatterns,
    cluster_texts,
    clusters,
    is_pair,
    is_simple,
    is_spaced,
    names,
    pieces,
    word_patterns,
)

ANALYSIS_VERSION = 1
"""Raise it when the same text gives other terms: indices made with the old ones are rebuilt."""

TEXT_WORDS_BYTES, CODE_WORDS_BYTES = 20 << 20, 4 << 20
"""Some 30,000 words, and 6,000: more than most folders have."""
TERMS_BYTES = 8 << 20
QUERIES_BYTES = 256 << 10
TYPED_BYTES = 4 << 20
"""Of what was typed last: the five longest queries of a request, without spaces, fit together, so
that each is analysed once. The longest hypothesis may take all of it."""
PASSAGES_BYTES = 1 << 20
"""What is ranked by where its words stand is shown with them marked a moment later."""
CHARACTERS_BYTES = 1 << 20
_PLAIN = re.compile(r"\w+")
_INK = re.compile(r"\S+")
_JOINTS = re.compile(r"\.|::")


class Token(NamedTuple):
    """A term, and the characters [start, end) of the analysed text that it stands for.

    A tuple, because hundreds are made for every query.
    """

    term: str
    start: int
    end: int
    position: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Streams:
    """The terms of a text for an engine that counts positions itself: the plain ones follow one
    another as in the text, so that phrases match; the wholes belong behind them or beside them.
    """

    plain: list[str]
    wholes: list[str]


class _Part(NamedTuple):
    """A token of a word, relative to the word; a query does without the minor ones. A tuple:
    two are made for every character of a text without spaces.
    """

    term: str
    start: int
    end: int
    position: int
    is_whole: bool
    is_minor: bool


class _Word(NamedTuple):
    """What a word gives, wherever it stands; `places` counts also what was too long to keep."""

    parts: tuple[_Part, ...]
    places: int
    terms: frozenset[str]


_DROPPED = _Word((), 1, frozenset())
_WORD_BYTES, _PART_BYTES, _TOKEN_BYTES, _KEY_BYTES = 400, 240, 160, 100
_Sought = tuple[str, frozenset[str]]
"""A text, and the terms wanted of it."""


class Analyzer:
    """Turns text into tokens: stemmed in one language, or, for code, as it is written."""

    def __init__(self, stemmer: Stemmer | None) -> None:
        self._is_code = stemmer is None
        self._fold: Fold = fold if stemmer is None else fold_for(stemmer)
        self._stem: Fold = str if stemmer is None else stem_for(stemmer)
        self._stop_words = frozenset[str]() if stemmer is None else stop_words(stemmer)
        words_bytes = TEXT_WORDS_BYTES if stemmer else CODE_WORDS_BYTES
        self._word = BoundedCache(self._analyse_word, words_bytes, _word_bytes)
        # Its terms are the word's own.
        self._terms_of = BoundedCache(self._find_terms, TERMS_BYTES, _key_bytes)
        self._plain_parts = BoundedCache(self._find_plain_parts, QUERIES_BYTES)
        self._scattered = BoundedCache(self._find_scattered, PASSAGES_BYTES, _scattered_bytes)
        self._query = BoundedCache(
            self._find_query, TYPED_BYTES, _tokens_bytes, largest=TYPED_BYTES
        )
        self._typed = BoundedCache(self._find_words, TYPED_BYTES, _typed_bytes, largest=TYPED_BYTES)

    def tokens(self, text: str) -> list[Token]:
        """Every token of a text, in order; a whole before what it is made of."""
        return _in_order(self._words(text))

    def tokens_of(self, text: str, wanted: frozenset[str]) -> list[Token]:
        """Those of `tokens` that stand in words which have a wanted term."""
        found: list[Token] = []
        place = 0
        for start, word in self._words(text):
            if not wanted.isdisjoint(word.terms):
                found.extend(_tokens(word, start, place))
            place += word.places
        return found

    def scattered_tokens_of(self, text: str, wanted: frozenset[str]) -> Sequence[Token]:
        """As `tokens_of`, several times as fast where few words are wanted; but the positions of
        different words do not follow one another, and so tell nothing of phrases.
        """
        return self._scattered[text, wanted]

    def _find_scattered(self, sought: _Sought) -> Sequence[Token]:
        text, wanted = sought
        parts = self._plain_parts[wanted] if is_spaced(text) else None
        if parts is None:
            return self.tokens_of(text, wanted)
        words = set(_PLAIN.findall(text))
        is_other = map(parts.isdisjoint, map(self._terms_of.__getitem__, words))
        known = [word for word, skip in zip(words, is_other, strict=True) if not skip]
        # The same few words again and again: each is analysed once.
        analysed: dict[str, list[Token]] = {}
        found: list[Token] = []
        end = 0
        for at in sorted(at for word in known for at in _places(text, word)):
            if at >= end:
                # A name may be part of a longer word, which has no blank in it.
                start, end = _between_blanks(text, at)
                stretch = text[start:end]
                if stretch not in analysed:
                    analysed[stretch] = self.tokens_of(stretch, wanted)
                found += [_moved(token, start) for token in analysed[stretch]]
        return found

    def _find_terms(self, word: str) -> frozenset[str]:
        return self._word[word].terms if len(word) <= MAX_WORD_CHARS else _DROPPED.terms

    def _find_plain_parts(self, wanted: frozenset[str]) -> frozenset[str] | None:
        """The terms, and those of what a chain such as `node.js` joins; None when a text need not
        have them as words of `_PLAIN`.
        """
        if not all(map(_is_plain, wanted)):
            return None
        names = [name for term in wanted for name in _JOINTS.split(term) if name]
        return wanted.union(*(self._word[name].terms for name in names))

    def terms(self, text: str) -> list[str]:
        """The terms of `tokens`, twice as fast: for counting."""
        return [part.term for _, word in self._words(text) for part in word.parts]

    def streams(self, text: str) -> Streams:
        """The terms of `tokens`, twice as fast: for indexing."""
        parts = [part for _, word in self._words(text) for part in word.parts]
        return Streams(
            [part.term for part in parts if not part.is_whole],
            [part.term for part in parts if part.is_whole],
        )

    def query(self, text: str) -> list[Token]:
        """The tokens to look for: no stop words, unless there is nothing else; of a run of
        characters without spaces the pairs, not every single one.
        """
        return list(self._query[text])

    def _find_query(self, text: str) -> tuple[Token, ...]:
        words = self._typed[text]
        found = _in_order(words)
        minor = [part.is_minor for _, word in words for part in word.parts]
        return tuple(token for token, skip in zip(found, minor, strict=True) if not skip) or (
            tuple(found)
        )

    def written(self, text: str) -> Counter[str]:
        """How often each word is written, and each pair of characters without spaces between
        them, in order of their first use. Several times as fast as to analyse them; of the few
        that matter, `terms_of_word` gives the same terms as `query` of the whole text does.
        """
        patterns = word_patterns(is_ascii=text.isascii(), is_code=self._is_code)
        if text.isascii():
            counts = Counter(patterns.word.findall(text))
        else:
            counts = Counter(
                chain.from_iterable(
                    _pairs(match.group()) if match.lastgroup else (match.group(),)
                    for match in patterns.word.finditer(text)
                )
            )
        for long in [word for word in counts if len(word) > MAX_WORD_CHARS]:
            times = counts.pop(long)
            for first, last in names(long, patterns.name):
                if last - first <= MAX_WORD_CHARS:
                    counts[long[first:last]] += times
        return counts

    def terms_of_word(self, word: str) -> list[tuple[str, str]]:
        """The terms of `query`, each with the part of the word that it stands for."""
        if is_pair(word):
            # Of text without spaces these are nearly all there is.
            return [("".join(map(_character.__getitem__, cluster_texts(word))), word)]
        words = ((0, self._word[word]),) if is_simple(word) else tuple(self._words(word))
        found = [(start, part) for start, each in words for part in each.parts]
        return [
            (part.term, word[start + part.start : start + part.end])
            for start, part in [each for each in found if not each[1].is_minor] or found
        ]

    def _find_words(self, text: str) -> tuple[tuple[int, _Word], ...]:
        return tuple(self._words(text))

    def typed_tokens(self, text: str) -> list[Token]:
        """As `tokens`, of a query: several ask for them."""
        return _in_order(self._typed[text])

    def is_stop_word(self, word: str) -> bool:
        return self._fold(word) in self._stop_words

    def _words(self, text: str) -> Iterator[tuple[int, _Word]]:
        """Each word with its start."""
        patterns = word_patterns(is_ascii=text.isascii(), is_code=self._is_code)
        for match in patterns.word.finditer(text):
            word = match.group()
            if match.lastgroup:
                yield match.start(), _analyse_run(word)
            elif len(word) <= MAX_WORD_CHARS:
                yield match.start(), self._word[word]
            else:
                yield from self._names(word, match.start(), patterns)

    def _names(self, chain: str, start: int, patterns: WordPatterns) -> Iterator[tuple[int, _Word]]:
        for first, last in names(chain, patterns.name):
            is_short = last - first <= MAX_WORD_CHARS
            yield start + first, self._word[chain[first:last]] if is_short else _DROPPED

    def _analyse_word(self, text: str) -> _Word:
        if is_simple(text) or (text.isascii() and text.isdecimal()):
            # Nearly every word: as `_word_of` with one piece, in half the time.
            folded = self._fold(text)
            if not 0 < len(folded) <= MAX_TERM_CHARS:
                return _DROPPED
            term = self._stem(folded)
            part = _Part(term, 0, len(text), 0, False, folded in self._stop_words)
            return _Word((part,), 1, frozenset((term,)))
        pattern = word_patterns(is_ascii=text.isascii(), is_code=self._is_code).name
        return self._word_of(text, pieces(text, names(text, pattern)))

    def _word_of(self, text: str, cut: Iterable[Piece]) -> _Word:
        parts: list[_Part] = []
        places = 0
        for piece in cut:
            places = max(places, piece.position + 1)
            folded = self._fold(text[piece.start : piece.end])
            if 0 < len(folded) <= MAX_TERM_CHARS:
                parts.append(self._part(piece, folded))
        return _word(parts, places)

    def _part(self, piece: Piece, folded: str) -> _Part:
        return _Part(
            self._stem(folded),
            piece.start,
            piece.end,
            piece.position,
            piece.is_whole,
            folded in self._stop_words,
        )


def _pairs(run: str) -> Iterable[str]:
    characters = cluster_texts(run)
    return map(add, characters, characters[1:]) if len(characters) > 1 else characters


def _analyse_run(text: str) -> _Word:
    """Each character, and before it the pair that it begins: the pairs are what queries seek."""
    found = clusters(text)
    terms = [_character[text[start:end]] for start, end in found]
    parts: list[_Part] = []
    for place, (start, end) in enumerate(found):
        if place + 1 < len(found):
            pair, pair_end = terms[place] + terms[place + 1], found[place + 1][1]
            parts.append(_Part(pair, start, pair_end, place, is_whole=True, is_minor=False))
        parts.append(
            _Part(terms[place], start, end, place, is_whole=False, is_minor=len(found) > 1)
        )
    return _word(parts, len(found))


def _places(text: str, word: str) -> Iterator[int]:
    """Where a word of `_PLAIN` stands by itself. To search for it takes a tenth of the time that
    it takes to go through all words.
    """
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not _PLAIN.match(text, end) and not (at and _PLAIN.match(text, at - 1)):
            yield at
        at = text.find(word, end)


def _between_blanks(text: str, at: int) -> tuple[int, int]:
    """The stretch without blanks around a character that is none."""
    start = at
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    found = _INK.match(text, at)
    return start, found.end() if found else at


def _moved(token: Token, by: int) -> Token:
    return Token(token.term, token.start + by, token.end + by, token.position, token.is_whole)


def _is_plain(term: str) -> bool:
    """Whether a term shows in a text as a word of `_PLAIN`, or has parts that do."""
    return all(map(_PLAIN.fullmatch, _JOINTS.split(term.lstrip("."))))


def _word(parts: Sequence[_Part], places: int) -> _Word:
    return _Word(tuple(parts), places, frozenset(part.term for part in parts))


def _word_bytes(text: str, word: _Word) -> int:
    """As `bytes_of` has it, about, in a tenth of the time."""
    return _key_bytes(text) + _WORD_BYTES + _PART_BYTES * len(word.parts)


def _key_bytes(text: str, _: object = None) -> int:
    return sys.getsizeof(text)


def _tokens_bytes(text: str, found: Sequence[Token]) -> int:
    return _key_bytes(text) + _TOKEN_BYTES * len(found)


def _typed_bytes(text: str, words: Sequence[tuple[int, _Word]]) -> int:
    return _key_bytes(text) + sum(_word_bytes("", word) for _, word in words)


def _scattered_bytes(sought: _Sought, found: Sequence[Token]) -> int:
    text, wanted = sought
    return _key_bytes(text) + _KEY_BYTES * len(wanted) + _TOKEN_BYTES * len(found)


_character = BoundedCache(fold, CHARACTERS_BYTES)


def _in_order(words: Iterable[tuple[int, _Word]]) -> list[Token]:
    found: list[Token] = []
    place = 0
    for start, word in words:
        found.extend(_tokens(word, start, place))
        place += word.places
    return found


def _tokens(word: _Word, start: int, place: int) -> list[Token]:
    return [
        Token(part.term, start + part.start, start + part.end, place + part.position, part.is_whole)
        for part in word.parts
    ]


@cache
def text_analyzer(stemmer: Stemmer) -> Analyzer:
    """The analysis of prose and of queries: shared, because it remembers words."""
    return Analyzer(stemmer)


@cache
def code_analyzer() -> Analyzer:
    """The analysis of code: no stems, no stop words, underscores kept."""
    return Analyzer(None)


def analysis_version() -> str:
    """What an index of code must remember of its terms."""
    return str(ANALYSIS_VERSION)


def analysis_fingerprint(stemmer: Stemmer) -> str:
    """What an index must remember of its terms: another value means a rebuild."""
    return f"{ANALYSIS_VERSION}/{stemmer.value}/{snowball_version()}"
