"""Turns text and queries into the same terms for every index."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from operator import add
from re import Pattern
from typing import NamedTuple

from ragdocs.config.choices import Stemmer
from ragdocs.indices.languages import (
    HANGUL_TAILS,
    MAX_TERM_CHARS,
    UNSPACED,
    Fold,
    fold,
    fold_for,
    marks,
    snowball_version,
    stem_for,
    stop_words,
)
from ragdocs.memory import BoundedCache

# What an identifier is made of: `getUserById` → get, User, By, Id.

Range = tuple[int, int]

_SEGMENT = re.compile("[^_]+")
# Shapes: U upper, l lower or caseless, s the letter s, d digit.
_PART = re.compile(
    r"U{2,}s(?![ls])"  # APIs, IDs: a plural, not I + Ds
    r"|U+(?![ls])"  # HTTP of HTTPResponse
    r"|U?[ls]+"
    r"|d+"
)
MIN_MEAN_PART = 2
"""Shorter parts on average are crumbs (a hash, `h2`, `x86`): noise to every other query."""

# Names of one thing, written like two: who looks for Java does not mean JavaScript.
_ONE_WORD = frozenset(
    {
        "applescript",
        "coffeescript",
        "github",
        "gitlab",
        "icloud",
        "javascript",
        "latex",
        "linkedin",
        "mathjax",
        "onedrive",
        "onenote",
        "paypal",
        "powerpoint",
        "typescript",
        "wordpress",
        "youtube",
    }
)


def identifier_parts(name: str) -> list[Range]:
    """The ranges of the parts, in order: of one word, the word itself."""
    return [
        (match.start() + start, match.start() + end)
        for match in _SEGMENT.finditer(name)
        for start, end in _humps(match.group())
    ]


def _humps(segment: str) -> list[Range]:
    if segment.isascii() and segment.isalnum():
        return _ascii_humps(segment)
    shapes = [(index, shape) for index, char in enumerate(segment) if (shape := _shape_of(char))]
    parts = [match.span() for match in _PART.finditer("".join(shape for _, shape in shapes))]
    is_crumbled = len(shapes) < MIN_MEAN_PART * len(parts)
    if not parts or is_crumbled or segment.casefold() in _ONE_WORD:
        return [(0, len(segment))]
    # A part ends where the next character that has a shape begins: marks go with their letter.
    at = [index for index, _ in shapes] + [len(segment)]
    return [(at[start], at[end]) for start, end in parts]


def _ascii_humps(segment: str) -> list[Range]:
    """The same where every character has a shape, in a fraction of the time: a file may have a
    million names of its own."""
    parts = [match.span() for match in _PART.finditer(segment.translate(_ASCII_SHAPES))]
    is_crumbled = len(segment) < MIN_MEAN_PART * len(parts)
    if not parts or is_crumbled or segment.lower() in _ONE_WORD:
        return [(0, len(segment))]
    return parts


def _shape_of(char: str) -> str:
    """Empty for marks and invisible controls, which belong to the character before."""
    if char == "s":
        return "s"
    if char.isupper() or char.istitle():
        return "U"
    if char.isdecimal():
        return "d"
    return "l" if char.isalnum() else ""


_ASCII_SHAPES = {code: _shape_of(chr(code)) for code in range(128) if chr(code).isalnum()}


# Where words begin and end in a text, and what each is made of.
#
# A word is letters, digits and marks, with `_` inside; names joined by `.` or `::` (`Node.js`,
# `std::vector`, `3.11`), with a leading dot (`.NET`), and a few with marks of their own (`C++`,
# `C#`) are one word too. Text of scripts without spaces comes in runs. Every pattern is linear.

MAX_WORD_CHARS = 200
"""A longer word is dropped unread (a long chain: read name by name). Marks count here, so this is
more than the longest term; normalising takes quadratic time in the marks on one letter."""

_MARKED = r"(?<!\w)(?i:(?:(?:lib(?:std)?)?c|g|clang|notepad)\+\+|[cfjq]\#)(?![^\W\d]|[+\#])"
_JOINT = r"(?:\.|::)"
_IS_MARKED = re.compile(_MARKED)
_MARKS_PER_LETTER = 8


class Piece(NamedTuple):
    """One token of a word: its range within the word, and its place among the word's own places.

    A whole is made of the pieces that follow it, and stands at the first one's place. A tuple,
    because a file may have a million words of its own.
    """

    start: int
    end: int
    position: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class WordPatterns:
    """How to find words and runs (group `run`) in text, and names in a word."""

    word: Pattern[str]
    name: Pattern[str]


@cache
def word_patterns(*, is_ascii: bool, is_code: bool) -> WordPatterns:
    """Code keeps the underscores around a name; in prose they are emphasis."""
    letter = "[A-Za-z0-9]" if is_ascii else rf"[^\W_{UNSPACED}]"
    joined = "_" if is_ascii else f"_{marks()}"
    before, after = ("_*", f"[{joined}]*") if is_code else ("", _trailing(is_ascii))
    name = rf"{before}{letter}+(?:[{joined}]+{letter}+)*{after}"
    word = rf"{_MARKED}|(?:(?<![\w.])\.)?{name}(?:{_JOINT}{name})*"
    if not is_ascii:
        word = rf"(?P<run>[{UNSPACED}][{UNSPACED}{marks()}]*)|{word}"
    return WordPatterns(re.compile(word), re.compile(name))


def _trailing(is_ascii: bool) -> str:
    return "" if is_ascii else f"[{marks()}]*"


def is_spaced(text: str) -> bool:
    """Whether `\\w+` finds the words of a text: it has no marks, and no scripts without spaces."""
    return text.isascii() or all(map(_is_spaced_character, set(text)))


@lru_cache(4096)
def _is_spaced_character(character: str) -> bool:
    return not re.match(f"[{UNSPACED}{marks()}]", character)


def is_simple(word: str) -> bool:
    """Most words: letters only, with no capital after the first."""
    return word.isalpha() and word[1:].islower()


def _is_marked(name: str) -> bool:
    return name[-1] in "+#" and _IS_MARKED.fullmatch(name) is not None


def names(word: str, pattern: Pattern[str]) -> list[Range]:
    """The names of a chain; a marked name is one of its own."""
    if _is_marked(word):
        return [(0, len(word))]
    return [match.span() for match in pattern.finditer(word)]


def pieces(word: str, found: list[Range]) -> list[Piece]:
    """The word, its names, their parts: each whole before what it is made of."""
    cut: list[Piece] = []
    if found != [(0, len(word))]:
        cut.append(Piece(0, len(word), 0, is_whole=True))
    position = 0
    for start, end in found:
        name = word[start:end]
        parts = [(0, len(name))] if _is_marked(name) else identifier_parts(name)
        if parts != [(0, end - start)]:
            cut.append(Piece(start, end, position, is_whole=True))
        for first, last in parts:
            cut.append(Piece(start + first, start + last, position))
            position += 1
    return cut


def clusters(run: str) -> list[Range]:
    """The characters of a run as readers see them: with their marks, syllables put together."""
    return [match.span() for match in _cluster().finditer(run)]


def cluster_texts(run: str) -> Sequence[str]:
    """As `clusters`, their texts; most runs have a character for each."""
    return _cluster().findall(run) if _joined().search(run) else run


def is_pair(word: str) -> bool:
    """Whether it is two characters of a script without spaces, as `cluster_texts` has them."""
    return _pair().fullmatch(word) is not None


@cache
def _pair() -> Pattern[str]:
    return re.compile(f"(?:{_cluster().pattern}){{2}}")


@cache
def _joined() -> Pattern[str]:
    return re.compile(f"[{HANGUL_TAILS}{marks()}]")


@cache
def _cluster() -> Pattern[str]:
    return re.compile(f"[{UNSPACED}][{HANGUL_TAILS}{marks()}]{{0,{_MARKS_PER_LETTER}}}")


# From text to terms: one analysis for every engine, for documents and queries alike.
#
# Text keeps every word, common ones too, so that phrases are exact; a query drops stop words when
# it has others. A token knows the characters it came from. Those that are not a whole have each a
# position of their own: they are what a phrase is matched by. Wholes (`getUserById` beside get,
# user, by, id; pairs of Chinese characters) lie over them, for ranking.

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
