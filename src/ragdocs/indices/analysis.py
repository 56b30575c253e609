"""From text to terms: one analysis for every engine, for documents and queries alike.

Text keeps every word, common ones too, so that phrases are exact; a query drops stop words when
it has others. A token knows the characters it came from. Those that are not a whole have each a
position of their own: they are what a phrase is matched by. Wholes (`getUserById` beside get, user,
by, id; pairs of Chinese characters) lie over them, for ranking.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

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
    clusters,
    is_simple,
    names,
    pieces,
    word_patterns,
)

ANALYSIS_VERSION = 1
"""Raise it when the same text gives other terms: indices made with the old ones are rebuilt."""

REMEMBERED_WORDS = 1 << 15


@dataclass(frozen=True, slots=True)
class Token:
    """A term, and the characters [start, end) of the analysed text that it stands for."""

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


@dataclass(frozen=True, slots=True)
class _Part:
    """A token of a word, relative to the word; a query does without the minor ones."""

    term: str
    start: int
    end: int
    position: int
    is_whole: bool
    is_minor: bool


@dataclass(frozen=True, slots=True)
class _Word:
    """What a word gives, wherever it stands; `places` counts also what was too long to keep."""

    parts: tuple[_Part, ...]
    places: int


_DROPPED = _Word((), 1)


class Analyzer:
    """Turns text into tokens: stemmed in one language, or, for code, as it is written."""

    def __init__(self, stemmer: Stemmer | None) -> None:
        self._is_code = stemmer is None
        self._fold: Fold = fold if stemmer is None else fold_for(stemmer)
        self._stem: Fold = str if stemmer is None else stem_for(stemmer)
        self._stop_words = frozenset[str]() if stemmer is None else stop_words(stemmer)
        self._word = lru_cache(REMEMBERED_WORDS)(self._analyse_word)

    def tokens(self, text: str) -> list[Token]:
        """Every token of a text, in order; a whole before what it is made of."""
        found: list[Token] = []
        place = 0
        for start, word in self._words(text):
            found.extend(_tokens(word, start, place))
            place += word.places
        return found

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
        found = self.tokens(text)
        minor = [part.is_minor for _, word in self._words(text) for part in word.parts]
        return [token for token, skip in zip(found, minor, strict=True) if not skip] or found

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
                yield match.start(), self._word(word)
            else:
                yield from self._names(word, match.start(), patterns)

    def _names(self, chain: str, start: int, patterns: WordPatterns) -> Iterator[tuple[int, _Word]]:
        for first, last in names(chain, patterns.name):
            is_short = last - first <= MAX_WORD_CHARS
            yield start + first, self._word(chain[first:last]) if is_short else _DROPPED

    def _analyse_word(self, text: str) -> _Word:
        if is_simple(text):
            return self._word_of(text, (Piece(0, len(text), 0),))
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
        return _Word(tuple(parts), places)

    def _part(self, piece: Piece, folded: str) -> _Part:
        return _Part(
            self._stem(folded),
            piece.start,
            piece.end,
            piece.position,
            piece.is_whole,
            folded in self._stop_words,
        )


def _analyse_run(text: str) -> _Word:
    """Each character, and before it the pair that it begins: the pairs are what queries seek."""
    found = clusters(text)
    terms = [_character(text[start:end]) for start, end in found]
    parts: list[_Part] = []
    for place, (start, end) in enumerate(found):
        if place + 1 < len(found):
            pair, pair_end = terms[place] + terms[place + 1], found[place + 1][1]
            parts.append(_Part(pair, start, pair_end, place, is_whole=True, is_minor=False))
        parts.append(
            _Part(terms[place], start, end, place, is_whole=False, is_minor=len(found) > 1)
        )
    return _Word(tuple(parts), len(found))


_character = lru_cache(REMEMBERED_WORDS)(fold)


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
