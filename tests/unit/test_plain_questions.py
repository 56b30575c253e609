"""Natural text is never strict; what it quotes is a wish, and marks do not change what is meant."""

from time import process_time

import pytest

from ragdocs.models import QueryReading
from ragdocs.search.query_language import REASONS, parse_query
from ragdocs.search.understanding import LEAST, strength

PLAIN = {
    'find all "*.txt" files (case insensitive)': QueryReading.MANY_TERMS,
    'list "*.txt" files': QueryReading.LITERAL,
    'open "src/main.rs"': QueryReading.LITERAL,
    "error: cannot open -- why": QueryReading.NO_OPERATOR,
    'git commit -m "msg"': QueryReading.COMMAND,
    'docker run --rm "my image"': QueryReading.COMMAND,
    'grep "foo bar" | wc': QueryReading.COMMAND,
    "C++ vs C#": QueryReading.NO_OPERATOR,
    'what\'s the "best" way': QueryReading.SENTENCE,
    'is "foo bar" supported': QueryReading.SENTENCE,
    '"foo bar" in Rust?': QueryReading.SENTENCE,
    '"foo bar", then baz': QueryReading.SENTENCE,
    '"foo bar" - baz': QueryReading.SENTENCE,
    'error: "foo bar"': QueryReading.SENTENCE,
    '"How do I install plugins?"': QueryReading.SENTENCE,
    'warum ist "foo bar" leer': QueryReading.SENTENCE,
    "¿Dónde está title:guide": QueryReading.SENTENCE,
    "path:docs is empty. Why": QueryReading.SENTENCE,
    "which is faster, SQL OR files": QueryReading.SENTENCE,
    "how does tag:foo work": QueryReading.SENTENCE,
    "what is left -here": QueryReading.SENTENCE,
    "sort cats OR dogs by the weight of their food": QueryReading.MANY_TERMS,
    "a long sentence that has tag:foo in its very middle": QueryReading.MANY_TERMS,
    'quote "foo bar" beside four other words': QueryReading.MANY_TERMS,
    "a power written as two^10 in a text of many words": QueryReading.MANY_TERMS,
    'one two three four five six seven "eight nine" OR ten': QueryReading.MANY_TERMS,
    "(rust async)": QueryReading.NO_OPERATOR,
    '("foo bar") baz': QueryReading.LITERAL,
    '"foo bar" in Rust': QueryReading.FUNCTION_WORDS,
    'shortcuts "and hotkeys"': QueryReading.FUNCTION_WORDS,
    '"The foo" bar': QueryReading.FUNCTION_WORDS,
    "title: foo": QueryReading.NO_OPERATOR,
    "http://host:80/a": QueryReading.NO_OPERATOR,
    "12:30": QueryReading.NO_OPERATOR,
    "C:\\temp\\x": QueryReading.NO_OPERATOR,
    "x ^ y": QueryReading.NO_OPERATOR,
    "-40 degrees": QueryReading.NO_OPERATOR,
    "**bold** [[wikilink]] `code`": QueryReading.NO_OPERATOR,
}
STRICT = {
    "title:setup": QueryReading.OPERATORS,
    "tag:how-to release notes": QueryReading.OPERATORS,
    "title:what": QueryReading.OPERATORS,
    "path:docs/intro.md -draft": QueryReading.OPERATORS,
    "rust^2 async": QueryReading.OPERATORS,
    "cats OR dogs": QueryReading.OPERATORS,
    "will OR would": QueryReading.OPERATORS,
    "rust -deprecated": QueryReading.OPERATORS,
    'one two three four five six "seven eight" OR nine': QueryReading.OPERATORS,
    "one two three four five six seven -eight": QueryReading.OPERATORS,
    '"foo bar"': QueryReading.PHRASES,
    '"foo bar" "baz qux" one two three': QueryReading.PHRASES,
    "\u201cfoo bar\u201d baz": QueryReading.PHRASES,
    '"node.js" setup': QueryReading.PHRASES,
    '"end of file" reader': QueryReading.PHRASES,
    '"to be or not to be"': QueryReading.PHRASES,
}


@pytest.mark.parametrize("query", PLAIN)
def test_natural_text_is_never_strict(query):
    parsed = parse_query(query)
    assert parsed.reading is PLAIN[query]
    assert not parsed.is_strict
    assert REASONS[parsed.reading]


@pytest.mark.parametrize("query", STRICT)
def test_what_is_plainly_written_in_the_language_is_strict(query):
    parsed = parse_query(query)
    assert parsed.reading is STRICT[query]
    assert parsed.is_strict
    assert not parsed.wishes


@pytest.mark.parametrize("query", [*PLAIN, *STRICT])
def test_everything_is_strict_where_the_request_says_so(query):
    assert parse_query(query, strict=True).reading is QueryReading.REQUESTED


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ('how do I "rotate tokens" now?', "how do I rotate tokens now?"),
        ('how do I rotate "all tokens"?', "how do I rotate all tokens?"),
        ("how do I (safely) rotate tokens?", "how do I safely rotate tokens?"),
        ("how do I rotate tokens (of users)?", "how do I rotate tokens of users?"),
        ("how do I: rotate tokens", "how do I rotate tokens"),
        ("how do I rotate - tokens", "how do I rotate tokens"),
        ("how do I rotate \u2014 tokens", "how do I rotate tokens"),
        ("how do I rotate -- tokens", "how do I rotate tokens"),
        ("how do I rotate \u00aball tokens\u00bb", "how do I rotate all tokens"),
        ("how do I 'rotate tokens' now", "how do I rotate tokens now"),
        ("it's the users' guide, isn't it", "it's the users' guide, isn't it"),
        ("what does f(g(x)) do in (?:a+)+", "what does f(g(x)) do in (?:a+)+"),
        ("is std::vector at 12:30 a foo-bar", "is std::vector at 12:30 a foo-bar"),
    ],
)
def test_marks_do_not_change_what_is_meant(query, text):
    assert parse_query(query).text == text


@pytest.mark.parametrize(
    ("query", "wishes"),
    [
        ('where does "foo bar" stand beside "baz"?', ("foo bar", "baz")),
        ("where does \u201cfoo bar\u201d stand?", ("foo bar",)),
        ("where does \u201efoo bar\u201c stand?", ("foo bar",)),
        ("where does \u00abfoo bar\u00bb stand?", ("foo bar",)),
        ("\u95a2\u6570\u300cfoo bar\u300d\u3068\u306f", ("foo bar",)),
        ("where does 'foo bar' stand?", ("foo bar",)),
        ("where does \u2018don\u2019t do\u2019 stand?", ("don\u2019t do",)),
        ("it's the users' guide's page, isn't it?", ()),
        ("what are the '90s?", ()),
        ('which 24" or 27" screen?', ()),
        ('what is "" or "!?" for?', ()),
        ('what is "half a quotation?', ()),
    ],
)
def test_a_quotation_in_a_question_is_a_preference(query, wishes):
    parsed = parse_query(query)
    assert parsed.wishes == wishes
    assert not parsed.is_strict


def test_operators_that_did_not_bind_are_told():
    parsed = parse_query("what is title:foo OR bar^2 (or -baz) here: now - then?")
    assert parsed.as_text == ("title:", "OR", "^2", "( )", "-", "here:")
    assert parse_query("title:foo OR bar").as_text == ()


@pytest.mark.parametrize("piece", ["'a", "' ", "\u2018a\u2019a", "\u00ab", "( a) ", ": ", "- "])
def test_long_questions_take_linear_time(piece):
    # A liveness deadline, not a speed: quadratic time would be minutes.
    before = process_time()
    parse_query(piece * 20_000)
    assert process_time() - before < 10


def test_a_name_decides_and_common_words_say_little():
    """Passages with the phrase, with its rarest word; how many words; all passages."""
    assert strength(0, 5, 2, 1000) == 0
    name = strength(2, 2, 2, 1000)
    half = strength(2, 4, 2, 1000)
    common = strength(2, 200, 2, 1000)
    assert name == pytest.approx(1.0)
    assert half == pytest.approx(0.5)
    assert common == pytest.approx(LEAST)
    # Three words are no chance, and in a small folder two are none.
    assert strength(2, 200, 3, 1000) == pytest.approx(1.0)
    assert strength(2, 40, 2, 50) == pytest.approx(1.0)
    assert LEAST < strength(2, 200, 2, 300) < 1.0
    assert 0 < strength(8, 8, 2, 1000) < name
    assert strength(30, 30, 2, 1000) == 0
    # Of many more passages more are few.
    assert strength(30, 30, 2, 100_000) == pytest.approx(1.0)
