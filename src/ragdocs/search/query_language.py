"""The query language: from typed text to tokens to an expression, and back."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import assert_never

from ragdocs.limits import MAX_CONDITIONS
from ragdocs.models import (
    STRICT_READINGS,
    And,
    Boost,
    Field,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryExpression,
    QueryField,
    QueryReading,
    Term,
)

# The marks of the query language, distinguished from text that only looks like them.
#
# A mark counts where a person would put it on purpose: a quote, bracket or minus at the beginning
# of a word, a known field directly before its value, `^2` directly after a name. `C++`, `foo-bar`,
# `--flag`, `-m`, `x^2`, `print(x)`, `24" screen`, `12:30` are words. Linear in the query's length.

MAX_DEPTH = 20
"""Deeper brackets are text, so that functions over an expression may recurse."""

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

QUOTE_IS_TEXT = "A quotation mark without its pair was read as text."
BRACKET_IS_TEXT = "An unmatched bracket was read as text."
TOO_DEEP = f"Brackets more than {MAX_DEPTH} deep were all read as text."
OR_IS_IDLE = "OR without a term on both sides was ignored."

_BLANK = re.compile(r"\s*")
# Brackets within a word belong to it if they close within it, up to two deep: f(x), f(g(x)).
_WORD = re.compile(r'[^\s"()](?:[^\s"()]|\((?:[^\s"()]|\([^\s"()]*\))*\))*')
_FIELD = re.compile(rf"({'|'.join(FIELD_NAMES)}):(?=[^\s)])")
# Not a flag (-m), a number (-1), another minus (--force), nor the x of x^2.
_NAME = re.compile(r"\.?[^\W\d_][\w+#]|[^\W\d_a-zA-Z]")
_FIGURE = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_BOOST = re.compile(rf"\^({_FIGURE.pattern})(?=[\s)]|\Z)")
_SEARCHABLE = re.compile(r"[^\W_]")
_BRACKETS_TO_BLANKS = str.maketrans("()", "  ")


class Mark(Enum):
    """The kind of a token."""

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
    """A mark or a word; `text` is the word, the phrase, the field's name or the boost's number."""

    mark: Mark
    text: str = ""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The tokens of a query: brackets are paired, and each prefix is before its operand."""

    tokens: list[QueryToken]
    notes: list[str]
    loose: list[str]
    """Pieces without a letter or digit: `-`, `?`, `|`."""


def is_name(text: str) -> bool:
    """Whether a minus before the text, or a boost after it, is read as an operator."""
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
        # Open brackets: the index of their token, or None for one that is text.
        self.open: list[int | None] = []

    def read(self) -> bool:
        """False if brackets are nested too deep."""
        self._skip_blanks()
        while self.at < len(self.text):
            self._read_one()
            if len(self.open) > MAX_DEPTH:
                return False
            self._skip_blanks()
        for index in reversed(self.open):
            self._drop_unmatched(index)
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
            self._drop_unmatched(index, is_noted=False)
            return None
        self._add(Mark.CLOSE)
        return self._read_boost()

    def _read_prefix(self) -> bool:
        """A prefix is read only if its operand follows; a field's value has no prefix."""
        if self._follows(Mark.FIELD):
            return False
        if field := _FIELD.match(self.text, self.at):
            self._add(Mark.FIELD, field[1])
            self.at = field.end()
            return True
        if not self._is_dash_before_operand():
            return False
        # A dash directly after something, as in `"a"-b`, is skipped and excludes nothing.
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

    def _drop_unmatched(self, index: int | None, *, is_noted: bool = True) -> None:
        if is_noted:
            self.note(BRACKET_IS_TEXT)
        if index is not None:
            rest = self.tokens[index + 1 :]
            del self.tokens[index:]
            self._drop_prefixes()
            self.tokens += rest

    def _drop_prefixes(self) -> None:
        """Drops prefixes without an operand; a field's name then becomes a word."""
        names: list[QueryToken] = []
        while self._follows(*PREFIXES):
            prefix = self.tokens.pop()
            if prefix.mark is Mark.FIELD:
                names.insert(0, QueryToken(Mark.WORD, prefix.text))
        self.tokens += names


def _is_boost(figure: str) -> bool:
    return _FIGURE.fullmatch(figure) is not None and 0 < float(figure) <= MAX_BOOST


# ra's query language: from text to an expression, and back.
#
# Phrases, fields, minus, brackets, OR and adjacency bind in this order: `a b OR c` is a (b OR c),
# and `-title:x` excludes x in titles. Several topics need several queries, not several phrases,
# because two phrases must both match. A query that only excludes finds nothing, because nothing can
# be ranked.
#
# Natural text is never strict (specs/0075): operators bind in a short query without question words
# or sentence marks, in one of phrases and at most three words, or if the request asks for it.
# Otherwise any word may match, and a quotation is a wish.

TOO_MANY = (
    "The operators of this query were ignored: they apply to more than {most} words and phrases."
)
ONLY_EXCLUDES = "The query only excludes: add words to search for."

FILTERS = (QueryField.TREE, QueryField.PATH)

MOST_TERMS = 8
"""In a query with an operator; one with more terms is a sentence."""
MOST_TERMS_BESIDE_PHRASES = 3

REASONS = {
    QueryReading.REQUESTED: "the request asks for it",
    QueryReading.OPERATORS: f"it has operators and at most {MOST_TERMS} terms, and is no sentence",
    QueryReading.PHRASES: f"it has phrases and at most {MOST_TERMS_BESIDE_PHRASES} other words",
    QueryReading.NO_OPERATOR: "it has no operator",
    QueryReading.SENTENCE: "it has a question word or punctuation",
    QueryReading.FUNCTION_WORDS: "it has words such as `the` or `in` beside or around its phrases",
    QueryReading.COMMAND: "it looks like a command line",
    QueryReading.MANY_TERMS: "it has too many terms for a query in the query language: more than "
    f"{MOST_TERMS}, or {MOST_TERMS_BESIDE_PHRASES} beside phrases",
    QueryReading.LITERAL: "the quoted text is a pattern or code, or is next to brackets",
    QueryReading.UNFULFILLED: "no passage has its phrases and all its other words, or a phrase "
    "consists of two common words",
    QueryReading.MANY_CONDITIONS: "its operators apply to too many words and phrases",
}
"""Why a query is strict, or plain."""

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f", '"'))

# Of the larger languages, without those that are often another word.
_QUESTIONS = """
    what which who whom whose why when where how
    wie warum wieso weshalb wann welche welcher welches
    pourquoi quel quelle quels quelles quand où
    qué cómo cuándo dónde cuál cuáles quién
    quando quais porquê perché quale waarom wanneer welke
"""
_QUESTION_WORDS = frozenset(_QUESTIONS.split())
# At the beginning they make a question.
_BEFORE_A_SUBJECT = """
    is are was were am do does did can could may might must shall should will would has have
"""
_AUXILIARIES = frozenset(_BEFORE_A_SUBJECT.split())
# Nobody who writes in the query language requires these, or begins or ends a phrase with them.
_OF_SENTENCES = """
    a an the this that these those of to in on at by for from with without into as and or but not if
    it its i me my we our you your he she they their there be been being
"""
_FUNCTION_WORDS = _AUXILIARIES.union(_OF_SENTENCES.split())
_SENTENCE_MARKS = "?!.,;:…。\uff1f\uff01\uff0c、\uff1b\uff1a"
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015"
_OF_COMMANDS = frozenset({"|", "||", "&&", ">", ">>", "<", "2>", "2>&1"})
_FLAG = re.compile(r"--?[A-Za-z]")
# A glob, a path, a regular expression or code, not a sequence of words.
_LITERAL = re.compile(r"[*?$<>|\\{}\[\]=~/;()]")
_OPERATOR_LETTERS = {*_DASHES, "^", ":"}
_OPERATORS = (Mark.FIELD, Mark.BOOST, Mark.OR, Mark.MINUS)

# Quotation marks that the language does not know. An apostrophe, which follows a letter, is not
# one.
_OTHER_QUOTATIONS = re.compile(
    r"«[^«»]+»|»[^«»]+«|\u2039[^\u2039\u203a]+\u203a|「[^「」]+」|『[^『』]+』|\u2018[^\u2018]+?\u2019(?!\w)"
    r"|(?<!\w)'(?=\S)(?:[^']|(?<=\w)'(?=\w))+(?<=\S)'(?!\w)"
)
_QUOTATION_MARKS = re.compile(r"[\"\u201c\u201d\u201e\u201f«»\u2039\u203a「」『』]")
_COLON_AT_THE_END = re.compile(r"(?<![:\uff1a])[:\uff1a](?=\s|\Z)")
_BEFORE_A_CLAUSE = re.compile(r"[\s(\"']?\([^\s?*+^|\\)]")
_BEHIND_A_CLAUSE = re.compile(r"[\s.,;:?!)\"']|\Z")
_DASH_ALONE = re.compile(rf"(?<!\S)[{_DASHES}]+(?!\S)")


def parse_query(
    text: str, most_conditions: int = MAX_CONDITIONS, *, strict: bool = False
) -> ParsedQuery:
    """Any text is a query: what is not in the query language is read as words, and so is a query
    with more binding words and phrases than may be looked up. `strict`: it is in the query
    language.
    """
    clean = _clean(text).strip()
    cut = cut_query(clean.translate(_QUOTES))
    expression = _Parser(cut.tokens).parse()
    if expression is None:
        return _parse_plain(clean, cut, QueryReading.NO_OPERATOR)
    reading = QueryReading.REQUESTED if strict else _choose_reading(cut)
    if reading not in STRICT_READINGS:
        return _parse_plain(clean, cut, reading)
    wanted = list(_find_words(expression))
    notes = list(cut.notes)
    if _count_leaves(expression) > most_conditions:
        notes.append(TOO_MANY.format(most=most_conditions))
        words = _join(Or, [Term(text) for text in wanted])
        many = QueryReading.MANY_CONDITIONS
        return ParsedQuery(" ".join(wanted), words, many, notes=tuple(notes))
    if _only_excludes(expression):
        notes.append(ONLY_EXCLUDES)
    return ParsedQuery(" ".join(wanted), expression, reading, notes=tuple(notes))


# Properties in a query's text: `status:active sync errors`.
#
# They are not operands of an expression: each stands beside the words, binds the whole query, and
# is cut out of its text. So only a property between blanks counts, outside brackets, quotations
# and OR, in a query that would be read as the language with an operator in its place.


@dataclass(frozen=True, slots=True)
class TypedProperty:
    """`status:active` in a query's text; it may turn out to be words. `is_place`: a path or tree,
    which is otherwise a field of the query language."""

    text: str
    start: int
    end: int
    is_place: bool = False


_TYPED_PROPERTY = re.compile(
    r"""(?<!\S)-?([^\W\d_][\w.\-]*):(?!//|:)(?:"[^"\n]*"|[^\s"()])+(?=\s|\Z)""", re.VERBOSE
)
_OR_BEHIND = re.compile(r"\s*OR(?=\s|\Z)")
_OR_BEFORE = re.compile(r"(?:\A|.*\s)OR\s+", re.DOTALL)


def typed_properties(text: str) -> list[TypedProperty]:
    """What may be properties, and paths and trees; other fields of the query language are not."""
    found: list[TypedProperty] = []
    for match in _TYPED_PROPERTY.finditer(text):
        before = text[: match.start()]
        is_quoted = before.count('"') % 2 == 1
        is_in_brackets = before.count("(") > before.count(")")
        is_operand = _OR_BEHIND.match(text, match.end()) or _OR_BEFORE.fullmatch(before)
        field = FIELD_NAMES.get(match[1])
        is_place = field in FILTERS
        may_bind = field is None or is_place
        if may_bind and not (is_quoted or is_in_brackets or is_operand):
            found.append(TypedProperty(match[0], *match.span(), is_place))
    return found[:MOST_TERMS]


def without_properties(text: str, properties: Sequence[TypedProperty]) -> str:
    for each in reversed(properties):
        text = text[: each.start] + text[each.end :]
    return " ".join(text.split())


def is_plainly_written(rest: str, properties: int) -> bool:
    """Whether a query with so many properties beside the rest is written in the language: short,
    and no sentence or command line."""
    cut = cut_query(rest.translate(_QUOTES))
    words = [token.text for token in cut.tokens if token.mark in (Mark.WORD, Mark.PHRASE)]
    is_command = any(map(_FLAG.match, words)) or not _OF_COMMANDS.isdisjoint(cut.loose)
    return len(words) + properties <= MOST_TERMS and not is_command and not _is_sentence(cut)


def read_as_plain(text: str) -> ParsedQuery:
    """For a query of phrases and words that no document has together."""
    clean = _clean(text).strip()
    return _parse_plain(clean, cut_query(clean.translate(_QUOTES)), QueryReading.UNFULFILLED)


def _choose_reading(cut: QueryTokens) -> QueryReading:
    """Decides whether a query is clearly written in the query language."""
    tokens = cut.tokens
    marks = {token.mark for token in tokens}
    has_operator = not marks.isdisjoint(_OPERATORS)
    if not has_operator and Mark.PHRASE not in marks:
        return QueryReading.NO_OPERATOR
    if _is_sentence(cut):
        return QueryReading.SENTENCE
    words = [token.text for token in tokens if token.mark is Mark.WORD]
    if any(map(_FLAG.match, words)) or not _OF_COMMANDS.isdisjoint(cut.loose):
        return QueryReading.COMMAND
    phrases = [token.text for token in tokens if token.mark is Mark.PHRASE]
    if has_operator:
        is_short = len(words) + len(phrases) <= MOST_TERMS
        return QueryReading.OPERATORS if is_short else QueryReading.MANY_TERMS
    if len(words) > MOST_TERMS_BESIDE_PHRASES:
        return QueryReading.MANY_TERMS
    if Mark.OPEN in marks or any(map(_LITERAL.search, phrases)):
        return QueryReading.LITERAL
    edges = (word for phrase in phrases for word in (phrase.split()[0], phrase.split()[-1]))
    if words and not _FUNCTION_WORDS.isdisjoint(map(str.casefold, (*words, *edges))):
        return QueryReading.FUNCTION_WORDS
    return QueryReading.PHRASES


def _is_sentence(cut: QueryTokens) -> bool:
    """By its marks and words outside quotations, or by a quoted question."""
    if any(set(loose) <= {*_SENTENCE_MARKS, *_DASHES} for loose in cut.loose):
        return True
    before: Mark | None = None
    for at, token in enumerate(cut.tokens):
        mark, text = token.mark, token.text
        if mark is Mark.PHRASE and text.endswith(("?", "\uff1f")):
            return True
        if mark is Mark.WORD and before is not Mark.FIELD:
            first = re.split(r"['\u2019]", text.casefold(), maxsplit=1)[0]
            is_first = at == 0 and len(cut.tokens) > 1 and cut.tokens[1].mark is not Mark.OR
            if first in _QUESTION_WORDS or (is_first and first in _AUXILIARIES):
                return True
        if mark is Mark.WORD and (text[-1] in _SENTENCE_MARKS or text[0] in "¿¡"):
            return True
        before = mark
    return False


def _parse_plain(text: str, cut: QueryTokens, reading: QueryReading) -> ParsedQuery:
    quoted = [token.text for token in cut.tokens if token.mark is Mark.PHRASE]
    others = (found.group()[1:-1] for found in _OTHER_QUOTATIONS.finditer(text))
    wishes = dict.fromkeys([*quoted, *(" ".join(each.split()) for each in others)])
    return ParsedQuery(
        text=_without_marks(text),
        expression=_join(Or, [Term(word) for word in _plain_words(cut.tokens, text)]),
        reading=reading,
        wishes=tuple(filter(is_searchable, wishes)),
        as_text=tuple(dict.fromkeys(_read_as_text(cut))),
        notes=tuple(cut.notes),
    )


def _read_as_text(cut: QueryTokens) -> Iterator[str]:
    """The operators that do not bind, as they are written."""
    for token in cut.tokens:
        text = token.text
        match token.mark:
            case Mark.FIELD:
                yield f"{text}:"
            case Mark.BOOST:
                yield f"^{text}"
            case Mark.OR | Mark.AND:
                yield token.mark.name
            case Mark.MINUS:
                yield "-"
            case Mark.OPEN:
                yield "( )"
            case Mark.WORD if text.endswith(":"):
                yield text
            case _:
                pass
    yield from (loose for loose in cut.loose if set(loose) <= _OPERATOR_LETTERS)


def _plain_words(tokens: Sequence[QueryToken], text: str) -> list[str]:
    words: list[str] = []
    for token in tokens:
        match token.mark:
            case Mark.WORD | Mark.FIELD:
                words.append(token.text)
            case Mark.PHRASE:
                words += filter(is_searchable, token.text.split())
            case _:
                pass
    return words or [word.lower() for word in text.split() if word in ("AND", "OR")]


def _without_marks(text: str) -> str:
    """Quotation marks, brackets around a clause, a colon after a word and a dash between words do
    not change the meaning, so the model gets the text without them.
    """
    marks = [match.span() for match in _OTHER_QUOTATIONS.finditer(text)]
    edges = {at for start, end in marks for at in (start, end - 1)} | _brackets_of_asides(text)
    bare = "".join(" " if at in edges else letter for at, letter in enumerate(text))
    bare = _COLON_AT_THE_END.sub("", _QUOTATION_MARKS.sub(" ", bare))
    bare = _DASH_ALONE.sub(" ", bare)
    return text if bare == text else _close_up(bare)


def _close_up(text: str) -> str:
    """Removes the blanks before sentence marks that a bracket or quotation mark left."""
    return re.sub(r"(?<=\w) (?=[?!.,;](?:\s|\Z))", "", " ".join(text.split()))


def _brackets_of_asides(text: str) -> set[int]:
    """The pairs of brackets around whole words, not those of `f(x)` or `(?:a+)+`."""
    found: set[int] = set()
    open_at: list[int] = []
    for at, letter in enumerate(text):
        if letter == "(":
            open_at.append(at)
        elif letter == ")" and open_at:
            start = open_at.pop()
            if _BEFORE_A_CLAUSE.fullmatch(text[max(0, start - 1) : start + 2]) and (
                _BEHIND_A_CLAUSE.match(text, at + 1)
            ):
                found |= {start, at}
    return found


def count_conditions(parsed: ParsedQuery) -> int:
    """How many words and phrases bind."""
    if not parsed.is_strict or parsed.expression is None:
        return 0
    return _count_leaves(parsed.expression)


def format_expression(expression: QueryExpression) -> str:
    """The query that means this expression, with every bracket that helps to read it."""
    if isinstance(expression, And) and all(isinstance(e, Term) for e in expression.expressions):
        return f"({_format(expression)})"
    return _format(expression)


def _clean(text: str) -> str:
    """Replaces lone surrogates and NUL, which neither the store nor a tokenizer accepts."""
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return pairs.replace("\0", " ")


class _Parser:
    """Recursive descent; the depth of brackets, and so of the recursion, is bounded."""

    def __init__(self, tokens: list[QueryToken]) -> None:
        self.tokens = tokens
        self.at = 0

    def parse(self) -> QueryExpression | None:
        found: list[QueryExpression] = []
        while self.at < len(self.tokens) and not self._next_is(Mark.CLOSE):
            if self._take(Mark.AND):
                continue
            if (each := self._parse_alternatives()) is not None:
                found.append(each)
        return _join(And, found)

    def _parse_alternatives(self) -> QueryExpression | None:
        found = [self._parse_negation()]
        while self._take(Mark.OR):
            found.append(self._parse_negation())
        return _join(Or, [each for each in found if each is not None])

    def _parse_negation(self) -> QueryExpression | None:
        if not self._take(Mark.MINUS):
            return self._parse_boost()
        excluded = self._parse_boost()
        return None if excluded is None else Not(excluded)

    def _parse_boost(self) -> QueryExpression | None:
        boosted = self._operand()
        figure = self._take(Mark.BOOST)
        return Boost(boosted, float(figure.text)) if figure and boosted is not None else boosted

    def _operand(self) -> QueryExpression | None:
        if field := self._take(Mark.FIELD):
            value = self._operand()
            return None if value is None else Field(FIELD_NAMES[field.text], value)
        if self._take(Mark.OPEN):
            inner = self.parse()
            self._take(Mark.CLOSE)
            return inner
        if phrase := self._take(Mark.PHRASE):
            return Phrase(phrase.text)
        word = self._take(Mark.WORD)
        return Term(word.text) if word else self._skip()

    def _skip(self) -> None:
        self.at += 1

    def _next_is(self, mark: Mark) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].mark is mark

    def _take(self, mark: Mark) -> QueryToken | None:
        if not self._next_is(mark):
            return None
        self.at += 1
        return self.tokens[self.at - 1]


def _join(kind: type[And] | type[Or], found: list[QueryExpression]) -> QueryExpression | None:
    flat: list[QueryExpression] = []
    for each in found:
        flat.extend(each.expressions if isinstance(each, kind) else (each,))
    if len(flat) < 2:
        return flat[0] if flat else None
    return kind(tuple(flat))


def _only_excludes(expression: QueryExpression) -> bool:
    match expression:
        case Not():
            return True
        case And(members) | Or(members):
            return all(_only_excludes(member) for member in members)
        case Field(_, inner) | Boost(inner):
            return _only_excludes(inner)
        case _:
            return False


def _count_leaves(expression: QueryExpression) -> int:
    match expression:
        case And(members) | Or(members):
            return sum(map(_count_leaves, members))
        case Not(inner) | Field(_, inner) | Boost(inner):
            return _count_leaves(inner)
        case Term() | Phrase():
            return 1


def _find_words(expression: QueryExpression) -> Iterator[str]:
    """The words to search, without exclusions and filters."""
    match expression:
        case Term(text) | Phrase(text):
            yield text
        case And(members) | Or(members):
            for member in members:
                yield from _find_words(member)
        case Boost(inner):
            yield from _find_words(inner)
        case Field(name, inner) if name not in FILTERS:
            yield from _find_words(inner)
        case _:
            return


def _format(expression: QueryExpression) -> str:
    match expression:
        case Term(text):
            return text
        case Phrase(text):
            return f'"{text}"'
        case And(members):
            return " ".join(_group(member) for member in members)
        case Or(members):
            return " OR ".join(_group(member) for member in members)
        case Not(inner):
            return "-" + (_format(inner) if isinstance(inner, Field) else _operand(inner, is_name))
        case Field(name, inner):
            return f"{name.value}:{_operand(inner, bool)}"
        case Boost(inner, factor):
            return f"{_operand(inner, _may_be_boosted)}^{factor:g}"
        case _:
            assert_never(expression)


def _may_be_boosted(text: str) -> bool:
    return text.isalpha() and is_name(text)


def _group(expression: QueryExpression) -> str:
    text = _format(expression)
    return f"({text})" if isinstance(expression, And | Or) else text


def _operand(expression: QueryExpression, may_be_bare: Callable[[str], bool]) -> str:
    """A word without brackets if it would be read back as one; everything longer in brackets."""
    text = _format(expression)
    is_bare = isinstance(expression, Phrase) or (
        isinstance(expression, Term) and may_be_bare(expression.text)
    )
    return text if is_bare else f"({text})"
