"""For any query: it is read, and what was understood can be printed and read again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.models import And, Boost, Field, Not, Or, Phrase, QueryField, Term
from ragdocs.search.query_language import BRACKET_IS_TEXT, TOO_DEEP, format_expression, parse_query

WORDS = st.sampled_from(
    ["rust", "foo-bar", "C++", "x", "été", "語", "a/b.md", "12:30", "f(x)", "no:a"]
)
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join).map(Phrase)


def members(of):
    return st.lists(of, min_size=2, max_size=3).map(tuple)


def not_a(kind, of):
    return of.filter(lambda expression: not isinstance(expression, kind))


def larger(smaller):
    return st.one_of(
        smaller.map(Not),
        st.builds(Field, st.sampled_from(QueryField), smaller),
        st.builds(Boost, smaller, st.sampled_from([0.001, 0.5, 1.0, 2.0, 12.125, 100.0])),
        members(not_a(And, smaller)).map(And),
        members(not_a(Or, smaller)).map(Or),
    )


EXPRESSIONS = st.recursive(WORDS.map(Term) | PHRASES, larger, max_leaves=8)

MARKS = ["-", '"', "(", ")", " ", "OR", "AND", " OR ", "title:", "tree:", "^2", "^", "^0", "\u201c"]
LETTERS = [
    "a",
    "foo",
    "C++",
    "m",
    "f(x)",
    "語",
    "1",
    "--",
    ":",
    "no:",
    "\0",
    "\ud800",
    "é",
    "_",
    ".",
]
PIECES = st.sampled_from([*MARKS, *LETTERS])
QUERIES = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=40)


def depth(expression) -> int:
    inner = getattr(expression, "expressions", ()) or getattr(expression, "expression", None)
    if inner is None:
        return 0
    return 1 + max(map(depth, inner if isinstance(inner, tuple) else (inner,)))


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_what_is_printed_is_read_back(expression):
    assert parse_query(format_expression(expression), strict=True).expression == expression


@settings(max_examples=500, deadline=None)
@given(QUERIES)
def test_what_was_understood_is_understood_again(query):
    parsed = parse_query(query, strict=True)
    if parsed.expression is None:
        assert not parsed.is_strict
        return
    again = parse_query(format_expression(parsed.expression), strict=True)
    assert again.expression == parsed.expression
    assert BRACKET_IS_TEXT not in again.notes
    assert TOO_DEEP not in again.notes


@settings(max_examples=200, deadline=None)
@given(QUERIES)
def test_every_query_gives_a_proper_answer(query):
    parsed = parse_query(query)
    parsed.text.encode()
    assert parsed == parse_query(query)
    if not parsed.is_strict:
        assert isinstance(parsed.expression, Term | Or | None)
    assert depth(parsed.expression) < 60


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["how", "a", "I", "it's", "well-known,", "work?", "or", "and."])))
def test_plain_sentences_are_never_strict(sentence):
    parsed = parse_query(" ".join(sentence))
    assert not parsed.is_strict
    assert parsed.notes == ()
