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

# The parts of an identifier: `getUserById` → get, User, By, Id.

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
"""If the parts are shorter on average (a hash, `h2`, `x86`), the name is not split: such parts are
noise to every other query."""

# Names that look like two words and are one: a query for Java does not mean JavaScript.
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
    """The ranges of the parts, in order; for a single word, the word itself."""
    found: list[Range] = []
    for segment in _SEGMENT.finditer(name):
        start, text = segment.start(), segment.group()
        if text.isascii() and text.isalnum():
            # Every character has a shape. This takes a fraction of the time, which matters: a file
            # may have a million distinct names.
            shapes, at = text.translate(_ASCII_SHAPES), None
        else:
            shapes = "".join(map(_shape_of, text))
            # A part ends at the next character with a shape: marks go with their letter.
            at = [index for index, char in enumerate(text) if _shape_of(char)] + [len(text)]
        parts = [match.span() for match in _PART.finditer(shapes)]
        is_crumbled = len(shapes) < MIN_MEAN_PART * len(parts)
        if not parts or is_crumbled or text.casefold() in _ONE_WORD:
            found.append(segment.span())
        elif at is None:
            found += [(start + first, start + end) for first, end in parts]
        else:
            found += [(start + at[first], start + at[end]) for first, end in parts]
    return found


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


# Where words begin and end in a text, and their parts.
#
# A word consists of letters, digits and marks, with `_` inside. Names joined by `.` or `::`
# (`Node.js`, `std::vector`, `3.11`), with a leading dot (`.NET`) or with their own symbols (`C++`,
# `C#`) are one word too. Text in scripts without spaces comes in runs. Every pattern is linear.

MAX_WORD_CHARS = 200
"""A longer word is dropped; a longer chain is read name by name. Combining marks count here, so
this is more than the longest term; normalising takes quadratic time in the marks on one letter."""

_MARKED = r"(?<!\w)(?i:(?:(?:lib(?:std)?)?c|g|clang|notepad)\+\+|[cfjq]\#)(?![^\W\d]|[+\#])"
_JOINT = r"(?:\.|::)"
_IS_MARKED = re.compile(_MARKED)
_MARKS_PER_LETTER = 8


class Piece(NamedTuple):
    """One token of a word: its range and its position within the word.

    A whole consists of the pieces that follow it, and has the position of the first. A tuple,
    because a file may have a million distinct words.
    """

    start: int
    end: int
    position: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class WordPatterns:
    """Patterns that find words and runs (group `run`) in a text, and names in a word."""

    word: Pattern[str]
    name: Pattern[str]


@cache
def word_patterns(*, is_ascii: bool, is_code: bool) -> WordPatterns:
    """Code keeps the underscores around a name; in prose they are emphasis."""
    letter = "[A-Za-z0-9]" if is_ascii else rf"[^\W_{UNSPACED}]"
    joined = "_" if is_ascii else f"_{marks()}"
    before, after = ("_*", f"[{joined}]*") if is_code else ("", "" if is_ascii else f"[{marks()}]*")
    name = rf"{before}{letter}+(?:[{joined}]+{letter}+)*{after}"
    word = rf"{_MARKED}|(?:(?<![\w.])\.)?{name}(?:{_JOINT}{name})*"
    if not is_ascii:
        word = rf"(?P<run>[{UNSPACED}][{UNSPACED}{marks()}]*)|{word}"
    return WordPatterns(re.compile(word), re.compile(name))


def is_spaced(text: str) -> bool:
    """Whether `\\w+` finds the words of a text: it has no marks and no scripts without spaces."""
    return text.isascii() or all(map(_is_spaced_character, set(text)))


@lru_cache(4096)
def _is_spaced_character(character: str) -> bool:
    return not re.match(f"[{UNSPACED}{marks()}]", character)


def is_simple(word: str) -> bool:
    """Most words: letters only, with no capital after the first."""
    return word.isalpha() and word[1:].islower()


def split_word(word: str, name: Pattern[str]) -> list[Piece]:
    """The word, its names and their parts: each whole before its parts."""
    if word[-1] in "+#" and _IS_MARKED.fullmatch(word):
        return [Piece(0, len(word), 0)]
    names = [match.span() for match in name.finditer(word)]
    pieces: list[Piece] = []
    if names != [(0, len(word))]:
        pieces.append(Piece(0, len(word), 0, is_whole=True))
    position = 0
    for start, end in names:
        parts = identifier_parts(word[start:end])
        if parts != [(0, end - start)]:
            pieces.append(Piece(start, end, position, is_whole=True))
        for first, last in parts:
            pieces.append(Piece(start + first, start + last, position))
            position += 1
    return pieces


def clusters(run: str) -> list[Range]:
    """The characters of a run as readers see them: with their marks, and whole syllables."""
    return [match.span() for match in _cluster().finditer(run)]


def cluster_texts(run: str) -> Sequence[str]:
    """The texts of `clusters`; in most runs every character is one."""
    return _cluster().findall(run) if _joiner().search(run) else run


def is_pair(word: str) -> bool:
    """Whether the word is exactly two of `cluster_texts`, in a script without spaces."""
    return _pair().fullmatch(word) is not None


@cache
def _pair() -> Pattern[str]:
    return re.compile(f"(?:{_cluster().pattern}){{2}}")


@cache
def _joiner() -> Pattern[str]:
    return re.compile(f"[{HANGUL_TAILS}{marks()}]")


@cache
def _cluster() -> Pattern[str]:
    return re.compile(f"[{UNSPACED}][{HANGUL_TAILS}{marks()}]{{0,{_MARKS_PER_LETTER}}}")


# From text to terms: one analysis for every engine, for documents and queries alike.
#
# Text keeps every word, common ones too, so that phrases are exact; a query drops stop words if it
# has other words. A token knows the characters it came from. Each token that is not a whole has its
# own position, by which phrases match. Wholes (`getUserById` beside get, user, by, id; pairs of
# Chinese characters) share positions with their parts and serve ranking.

ANALYSIS_VERSION = 1
"""Raise it when the same text gives other terms: then indices with the old terms are rebuilt."""

TEXT_WORDS_BYTES, CODE_WORDS_BYTES = 20 << 20, 4 << 20
"""About 30,000 and 6,000 words: more than most folders have."""
TERMS_BYTES = 8 << 20
QUERIES_BYTES = 256 << 10
TYPED_BYTES = 4 << 20
"""Enough for the five longest queries of a request, in a script without spaces, so that each is
analysed once. The longest hypothesis may take all of it."""
PASSAGES_BYTES = 1 << 20
"""Passages that are ranked by the positions of their words are shown right after, with the same
words marked."""
CHARACTERS_BYTES = 1 << 20
_PLAIN = re.compile(r"\w+")
_INK = re.compile(r"\S+")
_JOINTS = re.compile(r"\.|::")


class Token(NamedTuple):
    """A term, and its characters [start, end) in the analysed text.

    A tuple, because every query makes hundreds.
    """

    term: str
    start: int
    end: int
    position: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Streams:
    """The terms of a text for an engine that counts positions itself: the plain ones in the order
    of the text, so that phrases match; the wholes belong after or beside them.
    """

    plain: list[str]
    wholes: list[str]


class _Part(NamedTuple):
    """A token of a word, relative to the word; a query leaves out minor ones. A tuple, because a
    text without spaces has two for every character.
    """

    term: str
    start: int
    end: int
    position: int
    is_whole: bool
    is_minor: bool


class _Word(NamedTuple):
    """The analysis of a word; `positions` also counts parts that were too long to keep."""

    parts: tuple[_Part, ...]
    positions: int
    terms: frozenset[str]


_DROPPED = _Word((), 1, frozenset())
_WORD_BYTES, _PART_BYTES, _TOKEN_BYTES, _KEY_BYTES = 400, 240, 160, 100
_Wanted = tuple[str, frozenset[str]]
"""A text, and the terms to find in it."""


class Analyzer:
    """Turns text into tokens: stemmed in one language, or unchanged for code."""

    def __init__(self, stemmer: Stemmer | None) -> None:
        self._is_code = stemmer is None
        self._fold: Fold = fold if stemmer is None else fold_for(stemmer)
        self._stem: Fold = str if stemmer is None else stem_for(stemmer)
        self._stop_words = frozenset[str]() if stemmer is None else stop_words(stemmer)
        words_bytes = TEXT_WORDS_BYTES if stemmer else CODE_WORDS_BYTES
        self._word = BoundedCache(self._analyse_word, words_bytes, _word_bytes)
        # Only the keys count: the terms are shared with `_word`.
        self._terms_of = BoundedCache(self._find_terms, TERMS_BYTES, _key_bytes)
        self._plain_parts = BoundedCache(self._find_plain_parts, QUERIES_BYTES)
        self._scattered = BoundedCache(self._find_scattered, PASSAGES_BYTES, _scattered_bytes)
        self._query = BoundedCache(
            self._find_query, TYPED_BYTES, _tokens_bytes, largest=TYPED_BYTES
        )
        self._typed = BoundedCache(self._find_words, TYPED_BYTES, _typed_bytes, largest=TYPED_BYTES)

    def tokens(self, text: str) -> list[Token]:
        """Every token of a text, in order; a whole before its parts."""
        return _collect_tokens(self._words(text))

    def tokens_of(self, text: str, wanted: frozenset[str]) -> list[Token]:
        """The tokens of all words that have a wanted term."""
        found: list[Token] = []
        position = 0
        for start, word in self._words(text):
            if not wanted.isdisjoint(word.terms):
                found.extend(_place_tokens(word, start, position))
            position += word.positions
        return found

    def scattered_tokens_of(self, text: str, wanted: frozenset[str]) -> Sequence[Token]:
        """Like `tokens_of`, several times as fast for few wanted terms; but positions are only
        valid within a word, so they cannot be used for phrases.
        """
        return self._scattered[text, wanted]

    def _find_scattered(self, key: _Wanted) -> Sequence[Token]:
        text, wanted = key
        parts = self._plain_parts[wanted] if is_spaced(text) else None
        if parts is None:
            return self.tokens_of(text, wanted)
        words = set(_PLAIN.findall(text))
        is_other = map(parts.isdisjoint, map(self._terms_of.__getitem__, words))
        known = [word for word, skip in zip(words, is_other, strict=True) if not skip]
        # The same few words come again and again: each is analysed once.
        analysed: dict[str, list[Token]] = {}
        found: list[Token] = []
        end = 0
        for at in sorted(at for word in known for at in _occurrences(text, word)):
            if at >= end:
                # A name may be part of a longer word, which has no blank in it.
                start, end = _between_blanks(text, at)
                stretch = text[start:end]
                if stretch not in analysed:
                    analysed[stretch] = self.tokens_of(stretch, wanted)
                found += [
                    Token(term, first + start, last + start, position, is_whole)
                    for term, first, last, position, is_whole in analysed[stretch]
                ]
        return found

    def _find_terms(self, word: str) -> frozenset[str]:
        return self._word[word].terms if len(word) <= MAX_WORD_CHARS else _DROPPED.terms

    def _find_plain_parts(self, wanted: frozenset[str]) -> frozenset[str] | None:
        """The terms, and those of the names in a chain such as `node.js`; None if a text can have
        the terms without having them as words of `_PLAIN`.
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
        """The tokens to search for: no stop words, unless there is nothing else; from a run
        without spaces the pairs of characters, not the single ones.
        """
        return list(self._query[text])

    def _find_query(self, text: str) -> tuple[Token, ...]:
        words = self._typed[text]
        found = _collect_tokens(words)
        minor = [part.is_minor for _, word in words for part in word.parts]
        return tuple(token for token, skip in zip(found, minor, strict=True) if not skip) or (
            tuple(found)
        )

    def count_words(self, text: str) -> Counter[str]:
        """How often a text has each word, and each pair of characters in scripts without spaces,
        in order of first use. Several times as fast as analysing them; for the few words that
        matter, `terms_of_word` gives the same terms as `query` for the whole text.
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
            for name in patterns.name.findall(long):
                if len(name) <= MAX_WORD_CHARS:
                    counts[name] += times
        return counts

    def terms_of_word(self, word: str) -> list[tuple[str, str]]:
        """The terms of `query`, each with its part of the word."""
        if is_pair(word):
            # In text without spaces nearly all words are pairs.
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
        """`tokens` of a query, which several callers ask for."""
        return _collect_tokens(self._typed[text])

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
                for name in patterns.name.finditer(word):
                    text = name.group()
                    is_short = len(text) <= MAX_WORD_CHARS
                    yield match.start() + name.start(), self._word[text] if is_short else _DROPPED

    def _analyse_word(self, text: str) -> _Word:
        if is_simple(text) or (text.isascii() and text.isdecimal()):
            # Nearly every word: like the rest with one piece, in half the time.
            folded = self._fold(text)
            if not 0 < len(folded) <= MAX_TERM_CHARS:
                return _DROPPED
            term = self._stem(folded)
            part = _Part(term, 0, len(text), 0, False, folded in self._stop_words)
            return _Word((part,), 1, frozenset((term,)))
        pattern = word_patterns(is_ascii=text.isascii(), is_code=self._is_code).name
        parts: list[_Part] = []
        positions = 0
        for start, end, position, is_whole in split_word(text, pattern):
            positions = max(positions, position + 1)
            folded = self._fold(text[start:end])
            if 0 < len(folded) <= MAX_TERM_CHARS:
                is_minor = folded in self._stop_words
                parts.append(_Part(self._stem(folded), start, end, position, is_whole, is_minor))
        return _Word(tuple(parts), positions, frozenset([part.term for part in parts]))


def _pairs(run: str) -> Iterable[str]:
    characters = cluster_texts(run)
    return map(add, characters, characters[1:]) if len(characters) > 1 else characters


def _analyse_run(text: str) -> _Word:
    """Each character, and before it the pair that begins with it: queries search for the pairs."""
    found = clusters(text)
    terms = [_character[text[start:end]] for start, end in found]
    parts: list[_Part] = []
    for at, (start, end) in enumerate(found):
        if at + 1 < len(found):
            pair, pair_end = terms[at] + terms[at + 1], found[at + 1][1]
            parts.append(_Part(pair, start, pair_end, at, is_whole=True, is_minor=False))
        parts.append(_Part(terms[at], start, end, at, is_whole=False, is_minor=len(found) > 1))
    return _Word(tuple(parts), len(found), frozenset([part.term for part in parts]))


def _occurrences(text: str, word: str) -> Iterator[int]:
    """Where a text has a word of `_PLAIN` by itself. This takes a tenth of the time of going
    through all words.
    """
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not _PLAIN.match(text, end) and not (at and _PLAIN.match(text, at - 1)):
            yield at
        at = text.find(word, end)


def _between_blanks(text: str, at: int) -> tuple[int, int]:
    """The longest range without blanks around a character that is not blank."""
    start = at
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    found = _INK.match(text, at)
    return start, found.end() if found else at


def _is_plain(term: str) -> bool:
    """Whether a text with the term has it, or its names, as words of `_PLAIN`."""
    return all(map(_PLAIN.fullmatch, _JOINTS.split(term.lstrip("."))))


def _word_bytes(text: str, word: _Word) -> int:
    """About as `bytes_of`, in a tenth of the time."""
    return _key_bytes(text) + _WORD_BYTES + _PART_BYTES * len(word.parts)


def _key_bytes(text: str, _: object = None) -> int:
    return sys.getsizeof(text)


def _tokens_bytes(text: str, found: Sequence[Token]) -> int:
    return _key_bytes(text) + _TOKEN_BYTES * len(found)


def _typed_bytes(text: str, words: Sequence[tuple[int, _Word]]) -> int:
    return _key_bytes(text) + sum(_word_bytes("", word) for _, word in words)


def _scattered_bytes(key: _Wanted, found: Sequence[Token]) -> int:
    text, wanted = key
    return _key_bytes(text) + _KEY_BYTES * len(wanted) + _TOKEN_BYTES * len(found)


_character = BoundedCache(fold, CHARACTERS_BYTES)


def _collect_tokens(words: Iterable[tuple[int, _Word]]) -> list[Token]:
    found: list[Token] = []
    position = 0
    for start, word in words:
        found.extend(_place_tokens(word, start, position))
        position += word.positions
    return found


def _place_tokens(word: _Word, start: int, position: int) -> list[Token]:
    """The tokens of a word at this character and this position of a text."""
    return [
        Token(
            part.term, start + part.start, start + part.end, position + part.position, part.is_whole
        )
        for part in word.parts
    ]


@cache
def text_analyzer(stemmer: Stemmer) -> Analyzer:
    """The analysis of prose and of queries: shared, because it caches words."""
    return Analyzer(stemmer)


@cache
def code_analyzer() -> Analyzer:
    """The analysis of code: no stems, no stop words, underscores kept."""
    return Analyzer(None)


def analysis_version() -> str:
    """Identifies the terms of a code index: with another value it is rebuilt."""
    return str(ANALYSIS_VERSION)


def analysis_fingerprint(stemmer: Stemmer) -> str:
    """Identifies the terms of a text index: with another value it is rebuilt."""
    return f"{ANALYSIS_VERSION}/{stemmer.value}/{snowball_version()}"
