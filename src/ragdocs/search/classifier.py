"""Classifies a query: its type, which index that favours, its exact tokens, and its language."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from ragdocs.config.choices import Stemmer
from ragdocs.indices.languages import is_english, stop_words
from ragdocs.search.candidates import Strategy, TokenKind, Weights
from ragdocs.search.requests import QueryType

# The type of a query, by its form, and the index that this favours (P3).

# Seed 000, P3: the favoured index and by how much.
FAVOURED = {
    QueryType.FACTUAL: (Strategy.KEYWORD, 1.5),
    QueryType.NAVIGATIONAL: (Strategy.GRAPH, 1.5),
    QueryType.EXPLORATORY: (Strategy.SEMANTIC, 1.3),
}

# Plurals of acronyms (APIs, IDs) are words, not names.
_CAMEL_CASE = r"[a-z][A-Z] | [A-Z]{2,}(?!s\b)[a-z]"
_SNAKE_CASE = r"[A-Za-z0-9]_[A-Za-z0-9]"
_BACKTICKS = r"`[^`]+`"
_VERSION = r"\b[vV]?\d+\.\d+(?:\.\d+)?(?:-\w+)?\b"
_NAMES = re.compile("|".join((_CAMEL_CASE, _SNAKE_CASE, _BACKTICKS, _VERSION)), re.VERBOSE)
_QUOTED = re.compile(r'"[^"]+"|“[^”]+”')
_QUESTION = re.compile(r"\?|\b(?:what|how|why|when|where|which|who)\b", re.IGNORECASE)
_TOKEN = re.compile(
    # A capital within a word, marks between its parts, or a digit.
    r"[a-z][A-Z] | \w(?:_|::)\w | [^\W\d_]\.[^\W\d_] | \d | \b[A-Z]{4,}\b",
    re.VERBOSE,
)
_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?")
"""As in `e.g.`"""
DIGITS_OF_A_CODE = 5
"""A shorter number is a year, a price or a count."""
_MARKS = "\"'`()[]{}<>,;:!?.*“”‘’„«»"  # noqa: RUF001
MOST_TOKENS, SHORTEST_TOKEN = 8, 3
"""The most tokens of a query that are looked up; a shorter number may be a count of anything."""
_NAVIGATIONAL = re.compile(
    r"\[\[ | \b(?:section|chapter|guide|tutorial|manual|handbook|appendix|readme)s?\b"
    r" | \b(?:docs|documentation)\b",
    re.VERBOSE | re.IGNORECASE,
)


def classify_query(query: str) -> QueryType:
    """The first type that fits; a question, and a query without any sign, is exploratory."""
    if _NAMES.search(query) or _is_quotation(query):
        return QueryType.FACTUAL
    if _NAVIGATIONAL.search(query):
        return QueryType.NAVIGATIONAL
    return QueryType.EXPLORATORY


def _is_quotation(query: str) -> bool:
    """Whether at least half of the words are quoted. A question that quotes a few words or a
    pattern is still searched by its meaning.
    """
    quoted = sum(len(match.split()) for match in _QUOTED.findall(query))
    rest = len(_QUOTED.sub(" ", query).split())
    return quoted > 0 and quoted >= rest and not _QUESTION.search(query)


def exact_tokens(query: str) -> list[str]:
    """The names, file names, versions, codes and numbers in a query: they are typed on purpose, and
    no embedding model knows them.
    """
    typed = dict.fromkeys(piece.strip(_MARKS) for piece in query.split())
    is_loud = query.isupper()
    found = [
        each
        for each in typed
        if len(each) >= SHORTEST_TOKEN
        and _TOKEN.search(each)
        and not _ABBREVIATION.fullmatch(each)
        and not (is_loud and each.isalpha() and len(typed) > 1)
    ]
    return found[:MOST_TOKENS]


def token_kind(token: str) -> TokenKind:
    has_digit = any(letter.isdigit() for letter in token)
    if has_digit and any(letter.isalpha() for letter in token):
        return TokenKind.CODE
    is_number = sum(letter.isdigit() for letter in token) < DIGITS_OF_A_CODE
    return TokenKind.NUMBER if has_digit and is_number else TokenKind.NAME


def adaptive_weights(weights: Weights, query_type: QueryType) -> dict[Strategy, float]:
    """Raises the weight of the favoured index, if it has one."""
    favoured, factor = FAVOURED[query_type]
    return {
        strategy: weight * factor if strategy is favoured else weight
        for strategy, weight in weights.items()
    }


# Whether a question is in a language other than English, for models that know only English.
#
# Decided by its letters, or by the commonest words of seventeen languages, without a model or a
# dictionary. In doubt it is English, because names and code look like anything.

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# Text in backticks, or with digits or marks inside, is not a word of a language. Tried only where a
# word begins: a long word would otherwise be read again from each of its letters.
_NOT_WORDS = re.compile(r"`[^`]*`|(?<![^\s`])\S*(?:[_/\\@=<>{}$#]|\w\.\w|\d)\S*|--?\w\S*")
_CODE = re.compile(r"[={};]|\w\(")
_LETTERS_OF = {
    "CYRILLIC": "Russian or a language with the same letters",
    "GREEK": "Greek",
    "ARABIC": "Arabic or a language with the same letters",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Hindi or a language with the same letters",
    "TAMIL": "Tamil",
    "THAI": "Thai",
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese or Japanese",
}
_ANOTHER = "a language other than English"
_LEAST_LETTERS = 2
_LETTERS_SHARE = 0.25
"""The least share of letters of another script; fewer are a symbol or name in an English text."""
_SPOKEN_SHARE = 0.05
"""The share of passages that have a common word of their language."""
_KNOWN_SHARE = 1 / 3
"""The share of a question's words that a corpus in its language has; some are always new."""
_LEAST_WORDS = 2
_MANY_UNKNOWN = 3
_CHARS_READ = 500


class Sign(StrEnum):
    """How the language was recognised; it decides when a corpus counts as being in it too."""

    COMMON_WORDS = "common words"
    LETTERS = "letters"
    ACCENTS = "accents"


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """`language` is for people; `words` are those that show it."""

    language: str
    sign: Sign
    words: tuple[str, ...]

    def is_spoken(self, counts: Mapping[str, int], passages: int) -> bool:
        """Whether the documents are in that language; `counts`: in how many passages each of the
        words' terms occurs."""
        known = sum(count > 0 for count in counts.values())
        match self.sign:
            case Sign.COMMON_WORDS:
                return max(counts.values(), default=0) >= _SPOKEN_SHARE * passages
            case Sign.LETTERS:
                return known >= _KNOWN_SHARE * len(counts)
            case Sign.ACCENTS:
                return known > 0

    def note(self, model: str) -> str:
        return (
            f"this question seems to be in {self.language}, but {model} only knows English: "
            "translate the question into English, or use a multilingual model"
        )


def foreign_question(text: str) -> ForeignQuestion | None:
    """None for English, for too short a text, and in doubt. Reads only the beginning of a long
    text, which is enough to recognise a language."""
    text = text[:_CHARS_READ]
    natural = unicodedata.normalize("NFC", _NOT_WORDS.sub(" ", text))
    found = None if natural.isascii() else _by_letters(natural)
    if found is not None or _CODE.search(text):
        return found
    return _by_common_words(natural) or _by_accents(natural)


def _by_letters(text: str) -> ForeignQuestion | None:
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter(script for letter in letters if (script := _script(letter)))
    # Japanese has Chinese letters too.
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if not scripts or scripts.total() < max(_LEAST_LETTERS, _LETTERS_SHARE * len(letters)):
        return None
    script = "HIRAGANA" if kana else scripts.most_common(1)[0][0]
    words = (word for word in _WORD.findall(text) if any(map(_script, word)))
    return ForeignQuestion(_LETTERS_OF[script], Sign.LETTERS, tuple(dict.fromkeys(words)))


def _script(letter: str) -> str:
    """Empty for Latin letters and for those that are also scientific symbols."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return name if name in _LETTERS_OF else ""


def _by_common_words(text: str) -> ForeignQuestion | None:
    words = tuple(_words(text))
    found: defaultdict[Stemmer, list[str]] = defaultdict(list)
    for word in words:
        for language in _telling_words().get(word, ()):
            found[language].append(word)
    if not found:
        return None
    language, telling = max(found.items(), key=lambda item: len(item[1]))
    if any(word in stop_words(Stemmer.ENGLISH) - stop_words(language) for word in words):
        return None
    others = [word for word in words if word not in telling]
    english = sum(map(is_english, others))
    unknown = len(others) - english
    # One common word is enough beside several that English does not have, and none that it has.
    is_enough = len(telling) >= _LEAST_WORDS or (unknown >= _MANY_UNKNOWN and not english)
    if not is_enough or len(telling) + unknown <= english:
        return None
    is_one = sum(len(each) == len(telling) for each in found.values()) == 1
    name = language.value.capitalize() if is_one else _ANOTHER
    return ForeignQuestion(name, Sign.COMMON_WORDS, tuple(telling))


def _by_accents(text: str) -> ForeignQuestion | None:
    words = tuple(_words(text))
    if len(words) < _LEAST_WORDS or all(word.isascii() for word in words):
        return None
    if any(map(is_english, words)):
        return None
    return ForeignQuestion(_ANOTHER, Sign.ACCENTS, words)


def _words(text: str) -> Iterator[str]:
    """Each word once, and the article of `l'application` and `dell'utente` too."""
    folded = text.casefold().replace("\u2019", "'")
    found = [word for match in _WORD.findall(folded) for word in (match, *match.split("'"))]
    return iter(dict.fromkeys(word for word in found if word))


@cache
def _telling_words() -> Mapping[str, tuple[Stemmer, ...]]:
    """The common words of each language that are not common in English too."""
    languages: defaultdict[str, list[Stemmer]] = defaultdict(list)
    for language in Stemmer:
        if language is not Stemmer.ENGLISH:
            for word in stop_words(language) - stop_words(Stemmer.ENGLISH):
                languages[word].append(language)
    return {word: tuple(each) for word, each in languages.items()}
