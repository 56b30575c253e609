"""ra's query language: from what was typed to an expression, and back.

Phrases, fields, minus, brackets, OR, and what stands side by side, in this order of binding: so
`a b OR c` is a (b OR c), and `-title:x` excludes x in titles. Plain words are not strict: any of
them may match. A bracket with no other operator is an aside ("install (macOS)"), unless it holds
the whole query. Several topics are several queries, not several phrases: two phrases must both
match. A query that only excludes finds nothing: there is nothing to rank.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import assert_never

from ragdocs.models import (
    And,
    Boost,
    Field,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryExpression,
    QueryField,
    Term,
)
from ragdocs.search.query_tokens import FIELD_NAMES, Mark, QueryToken, cut_query, is_name
from ragdocs.search.requests import MAX_CONDITIONS

TOO_MANY = "The operators of this query were ignored: they bind more than {most} words and phrases."
ONLY_EXCLUDES = "Nothing is looked for, only excluded: add what should be found."

FILTERS = (QueryField.TREE, QueryField.PATH)

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f", '"'))


def parse_query(text: str, most_conditions: int = MAX_CONDITIONS) -> ParsedQuery:
    """Any text at all is a query: what cannot be read as the language is words, and so is what has
    more words and phrases that bind than may be looked up.
    """
    clean = _well_formed(text).strip()
    cut = cut_query(clean.translate(_QUOTES))
    notes = list(cut.notes)
    expression = _Parser(cut.tokens).parse()
    is_strict = _is_strict(expression, cut.tokens)
    if not is_strict:
        return ParsedQuery(clean, _plain(cut.tokens, clean), is_strict=False, notes=tuple(notes))
    if expression is not None and _count_leaves(expression) > most_conditions:
        wanted = list(_wanted(expression))
        notes.append(TOO_MANY.format(most=most_conditions))
        words = _joined(Or, [Term(text) for text in wanted])
        return ParsedQuery(" ".join(wanted), words, is_strict=False, notes=tuple(notes))
    if expression is not None and _only_excludes(expression):
        notes.append(ONLY_EXCLUDES)
    wanted = " ".join(_wanted(expression)) if expression else ""
    return ParsedQuery(wanted, expression, is_strict=True, notes=tuple(notes))


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


def _well_formed(text: str) -> str:
    """Without lone surrogates and NUL, which neither the store nor a tokenizer takes."""
    pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return pairs.replace("\0", " ")


class _Parser:
    """Recursive descent; brackets are bounded, so the recursion is."""

    def __init__(self, tokens: list[QueryToken]) -> None:
        self.tokens = tokens
        self.at = 0

    def parse(self) -> QueryExpression | None:
        found: list[QueryExpression] = []
        while self.at < len(self.tokens) and not self._next_is(Mark.CLOSE):
            if self._take(Mark.AND):
                continue
            if (each := self._alternatives()) is not None:
                found.append(each)
        return _joined(And, found)

    def _alternatives(self) -> QueryExpression | None:
        found = [self._negated()]
        while self._take(Mark.OR):
            found.append(self._negated())
        return _joined(Or, [each for each in found if each is not None])

    def _negated(self) -> QueryExpression | None:
        if not self._take(Mark.MINUS):
            return self._boosted()
        excluded = self._boosted()
        return None if excluded is None else Not(excluded)

    def _boosted(self) -> QueryExpression | None:
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


def _joined(kind: type[And] | type[Or], found: list[QueryExpression]) -> QueryExpression | None:
    flat: list[QueryExpression] = []
    for each in found:
        flat.extend(each.expressions if isinstance(each, kind) else (each,))
    if len(flat) < 2:
        return flat[0] if flat else None
    return kind(tuple(flat))


def _is_strict(expression: QueryExpression | None, tokens: list[QueryToken]) -> bool:
    match expression:
        case None | Term():
            return False
        case And(members) if all(isinstance(member, Term) for member in members):
            return _is_one_group(tokens)
        case _:
            return True


def _is_one_group(tokens: list[QueryToken]) -> bool:
    if not tokens or tokens[0].mark is not Mark.OPEN:
        return False
    steps = ((t.mark is Mark.OPEN) - (t.mark is Mark.CLOSE) for t in tokens)
    return 0 not in list(accumulate(steps))[:-1]


def _plain(tokens: list[QueryToken], text: str) -> QueryExpression | None:
    words = [token.text for token in tokens if token.mark is Mark.WORD]
    if not words:
        words = [word.lower() for word in text.split() if word in ("AND", "OR")]
    return _joined(Or, [Term(word) for word in words])


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


def _wanted(expression: QueryExpression) -> Iterator[str]:
    """The words to look for: no exclusions, no filters."""
    match expression:
        case Term(text) | Phrase(text):
            yield text
        case And(members) | Or(members):
            for member in members:
                yield from _wanted(member)
        case Boost(inner):
            yield from _wanted(inner)
        case Field(name, inner) if name not in FILTERS:
            yield from _wanted(inner)
        case _:
            return


def _format(expression: QueryExpression) -> str:
    match expression:
        case Term(text):
            return text
        case Phrase(text):
            return f'"{text}"'
        case And(members):
            return " ".join(_grouped(member) for member in members)
        case Or(members):
            return " OR ".join(_grouped(member) for member in members)
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


def _grouped(expression: QueryExpression) -> str:
    text = _format(expression)
    return f"({text})" if isinstance(expression, And | Or) else text


def _operand(expression: QueryExpression, may_be_bare: Callable[[str], bool]) -> str:
    """A word stands bare where it would be read back as one; everything longer in brackets."""
    text = _format(expression)
    is_bare = isinstance(expression, Phrase) or (
        isinstance(expression, Term) and may_be_bare(expression.text)
    )
    return text if is_bare else f"({text})"
