"""The marks of the query language, told apart from text that only looks like them.

A mark counts where a person would have put it on purpose: a quote, bracket or minus at a word's
beginning, a known field directly before its value, `^2` directly after a name. `C++`, `foo-bar`,
`--flag`, `-m`, `x^2`, `print(x)`, `24" screen`, `12:30` are words. Linear in the query's length.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from ragdocs.models import QueryField

MAX_DEPTH = 20
"""Brackets nested deeper than anyone means are text: whoever walks an expression may recurse."""

MAX_BOOST = 100.0

FIELD_NAMES = {name.value: name for name in QueryField} | {
    "header": QueryField.HEADERS,
    "heading": QueryField.HEADERS,
    "headings": QueryField.HEADERS,
    "keyword": QueryField.KEYWORDS,
    "summary": QueryField.DESCRIPTION,
    "tag": QueryField.TAGS,
    "alias": QueryField.ALIASES,
    "body": QueryField.CONTENT,
}

QUOTE_IS_TEXT = "A quotation mark that encloses nothing was read as text."
BRACKET_IS_TEXT = "A bracket without its other half was read as text."
TOO_DEEP = f"Brackets more than {MAX_DEPTH} deep were all read as text."
OR_IS_IDLE = "OR without a term on both sides was ignored."

_BLANK = re.compile(r"\s*")
# Brackets within a word belong to it when they close within it, two deep: f(x), f(g(x)).
_WORD = re.compile(r'[^\s"()](?:[^\s"()]|\((?:[^\s"()]|\([^\s"()]*\))*\))*')
_FIELD = re.compile(rf"({'|'.join(FIELD_NAMES)}):(?=[^\s)])")
# Not a flag (-m), a number (-1), another minus (--force), nor the x of x^2.
_NAME = re.compile(r"\.?[^\W\d_][\w+#]|[^\W\d_a-zA-Z]")
_FIGURE = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_BOOST = re.compile(rf"\^({_FIGURE.pattern})(?=[\s)]|\Z)")
_SEARCHABLE = re.compile(r"[^\W_]")
_BRACKETS_TO_BLANKS = str.maketrans("()", "  ")


class Mark(Enum):
    """What a token of a query is."""

    WORD = auto()
    PHRASE = auto()
    AND = auto()
    OR = auto()
    MINUS = auto()
    FIELD = auto()
    BOOST = auto()
    OPEN = auto()
    CLOSE = auto()


PREFIXES = (Mark.MINUS, Mark.FIELD)
OPENINGS = (*PREFIXES, Mark.WORD, Mark.PHRASE, Mark.OPEN)
ENDINGS = (Mark.WORD, Mark.PHRASE, Mark.BOOST, Mark.CLOSE)


@dataclass(frozen=True, slots=True)
class QueryToken:
    """A mark or a word; `text` is the word, the phrase, the field's name, the boost's figure."""

    mark: Mark
    text: str = ""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A query cut up: its brackets pair, each prefix stands before what it belongs to."""

    tokens: list[QueryToken]
    notes: list[str]
    loose: list[str]
    """What stands alone and has neither letter nor digit: `-`, `?`, `|`."""


def is_name(text: str) -> bool:
    """Whether a minus before the text, or a boost after it, would be taken for one."""
    return _NAME.match(text) is not None


def is_searchable(text: str) -> bool:
    return _SEARCHABLE.search(text) is not None


def cut_query(text: str) -> QueryTokens:
    reader = _Reader(text)
    if reader.read():
        return QueryTokens(_without_idle_or(reader), reader.notes, reader.loose)
    flat = _Reader(text.translate(_BRACKETS_TO_BLANKS))
    flat.read()
    flat.notes.append(TOO_DEEP)
    return QueryTokens(_without_idle_or(flat), flat.notes, flat.loose)


def _without_idle_or(reader: "_Reader") -> list[QueryToken]:
    kept: list[QueryToken] = []
    for index, token in enumerate(reader.tokens):
        if token.mark is not Mark.OR or _joins(kept, reader.tokens[index + 1 : index + 2]):
            kept.append(token)
        else:
            reader.note(OR_IS_IDLE)
    return kept


def _joins(before: list[QueryToken], after: list[QueryToken]) -> bool:
    return bool(before and after and before[-1].mark in ENDINGS and after[0].mark in OPENINGS)


class _Reader:
    """Reads marks and words from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[QueryToken] = []
        self.notes: list[str] = []
        self.loose: list[str] = []
        # Open brackets: the index of their token, or None for one that is part of the text.
        self.open: list[int | None] = []

    def read(self) -> bool:
        """False when brackets are too deep to go on."""
        self._skip_blanks()
        while self.at < len(self.text):
            self._read_one()
            if len(self.open) > MAX_DEPTH:
                return False
            self._skip_blanks()
        for index in reversed(self.open):
            self._unmatched(index)
        return True

    def note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _skip_blanks(self) -> None:
        blanks = _BLANK.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at

    def _read_one(self) -> None:
        match self.text[self.at]:
            case '"':
                self._read_quote()
            case "(":
                self._read_open()
            case ")":
                self._read_close()
            case _:
                if not self._read_prefix():
                    self._read_word()

    def _read_quote(self) -> None:
        end = self.text.find('"', self.at + 1)
        if end < 0 or self._follows_letter():
            return self._skip_mark(QUOTE_IS_TEXT)
        phrase = " ".join(self.text[self.at + 1 : end].split())
        if not is_searchable(phrase):
            self.at = end
            return self._skip_mark(QUOTE_IS_TEXT)
        self.at = end + 1
        self._add(Mark.PHRASE, phrase)
        return self._read_boost()

    def _read_open(self) -> None:
        if self._follows_letter():
            self.open.append(None)
        else:
            self.open.append(len(self.tokens))
            self._add(Mark.OPEN)
        self.at += 1

    def _read_close(self) -> None:
        if not self.open:
            return self._skip_mark(BRACKET_IS_TEXT)
        self.at += 1
        index = self.open.pop()
        if index is None:
            return None
        if index == len(self.tokens) - 1:
            self._unmatched(index, is_noted=False)
            return None
        self._add(Mark.CLOSE)
        return self._read_boost()

    def _read_prefix(self) -> bool:
        """A prefix is read only where its operand follows; a field's value has none."""
        if self._follows(Mark.FIELD):
            return False
        if field := _FIELD.match(self.text, self.at):
            self._add(Mark.FIELD, field[1])
            self.at = field.end()
            return True
        if not self._is_dash_before_operand():
            return False
        # A dash that follows something directly, as in `"a"-b`, is skipped: it excludes nothing.
        if self.at == 0 or self.text[self.at - 1].isspace() or self.text[self.at - 1] == "(":
            self._add(Mark.MINUS)
        self.at += 1
        return True

    def _is_dash_before_operand(self) -> bool:
        if self.text[self.at] != "-":
            return False
        return self.text[self.at + 1 : self.at + 2] in ('"', "(") or (
            _NAME.match(self.text, self.at + 1) is not None
        )

    def _read_word(self) -> None:
        found = _WORD.match(self.text, self.at)
        word = found.group() if found else self.text[self.at]
        self.at += len(word)
        if not is_searchable(word):
            self.loose.append(word)
            return self._drop_prefixes()
        if word in ("AND", "OR") and not self._follows(*PREFIXES):
            return self._add(Mark[word])
        base, _, figure = word.partition("^")
        if is_name(base) and _is_boost(figure):
            self._add(Mark.WORD, base)
            return self._add(Mark.BOOST, figure)
        return self._add(Mark.WORD, word)

    def _read_boost(self) -> None:
        boost = _BOOST.match(self.text, self.at)
        if boost and _is_boost(boost[1]):
            self._add(Mark.BOOST, boost[1])
            self.at = boost.end()

    def _add(self, mark: Mark, text: str = "") -> None:
        self.tokens.append(QueryToken(mark, text))

    def _follows(self, *marks: Mark) -> bool:
        return bool(self.tokens) and self.tokens[-1].mark in marks

    def _follows_letter(self) -> bool:
        return self.at > 0 and self.text[self.at - 1].isalnum()

    def _skip_mark(self, note: str) -> None:
        self.note(note)
        self.at += 1
        self._drop_prefixes()

    def _unmatched(self, index: int | None, *, is_noted: bool = True) -> None:
        if is_noted:
            self.note(BRACKET_IS_TEXT)
        if index is not None:
            rest = self.tokens[index + 1 :]
            del self.tokens[index:]
            self._drop_prefixes()
            self.tokens += rest

    def _drop_prefixes(self) -> None:
        """What they belonged to turned out to be nothing: a field's name is then a word."""
        names: list[QueryToken] = []
        while self._follows(*PREFIXES):
            prefix = self.tokens.pop()
            if prefix.mark is Mark.FIELD:
                names.insert(0, QueryToken(Mark.WORD, prefix.text))
        self.tokens += names


def _is_boost(figure: str) -> bool:
    return _FIGURE.fullmatch(figure) is not None and 0 < float(figure) <= MAX_BOOST
