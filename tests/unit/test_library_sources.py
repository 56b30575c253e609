"""What source files and diffs say they are about."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import text_analyzer
from ragdocs.library.answers import ContextTerm
from ragdocs.library.context import query_text
from ragdocs.library.requests import EditedFile
from ragdocs.library.source_code import (
    WEIGHTS,
    TermPlace,
    changed_files,
    comments,
    definitions,
    read_diff,
    read_source,
    read_sources,
)
from ragdocs.library.terms import TermCounter
from ragdocs.models import Boost, Or
from ragdocs.search.query_language import parse_query
from tests.support.machine import takes_less_than

CODE = '''"""Retries of failed requests."""
import os  # for the environment

# ---- Backoff ----
class RetryPolicy:
    def next_delay(self, attempt):
        url = "http://example.org"  # not // a comment of C
        return attempt

/* Block
 * of C */
func (p *Pool) Acquire() {} // trailing words
-- a query
'''


def test_comments_of_many_languages_are_found_without_their_marks():
    found = " | ".join(" ".join(text.split()) for text in comments(CODE))
    for words in (
        "Retries of failed requests.",
        "for the environment",
        "Backoff",
        "Block of C",
        "trailing words",
        "a query",
    ):
        assert words in found
    assert "example.org" not in found
    assert "----" not in found


def test_names_that_are_defined_are_found():
    code = "class RetryPolicy:\n  def next_delay(self): ...\nfn acquire() {}\ninterface Pool {}"
    assert definitions(code) == ["RetryPolicy", "next_delay", "acquire", "Pool"]


def test_a_word_weighs_by_where_it_stands():
    code = "# thunder\ndef make_lightning():\n    return wind\n"
    notes = "# Hail\n\nAnd rain.\n"
    counter = TermCounter(text_analyzer(Stemmer.ENGLISH))
    for name, text in (("storm/front.py", code), ("storm.md", notes)):
        for piece in read_source(EditedFile(name, text.encode())).pieces:
            counter.add(piece.text, WEIGHTS[piece.place], piece.place, repeats=piece.repeats)
    counter.analyse()
    weights = {term: counter.weights[term] for term in ("front", "hail", "lightn", "thunder")}
    assert weights == pytest.approx({"front": 4.0, "hail": 4.0, "lightn": 3.0, "thunder": 2.0})
    assert counter.weights["wind"] == pytest.approx(1.0)
    assert counter.places["front"] == {TermPlace.PATH}
    assert counter.places["hail"] == {TermPlace.HEADING, TermPlace.BODY}
    assert counter.places["lightn"] == {TermPlace.NAME, TermPlace.BODY}
    assert counter.places["thunder"] == {TermPlace.COMMENT, TermPlace.BODY}


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 300_000,
        '"""' * 100_000,
        "# " * 300_000,
        "def " * 200_000,
        "<!--" * 200_000,
        "-" * 900_000,
    ],
)
def test_hostile_code_takes_no_longer_than_it_is_long(text):
    read = text[:400_000]
    assert takes_less_than(2, lambda: (comments(read), definitions(read)))


DIFF = """diff --git a/src/retry.py b/src/retry.py
index 1..2 100644
--- a/src/retry.py
+++ b/src/retry.py
@@ -1,3 +1,4 @@ class RetryPolicy:
 around
-removed words
+added words
+--- not a header
 last
diff --git a/old.md b/old.md
deleted file mode 100644
--- a/old.md
+++ /dev/null
@@ -1 +0,0 @@
-gone
--- "a/\\303\\274ber.md"\t2024-01-01
+++ "b/\\303\\274ber.md"\t2024-01-01
@@ -0,0 +1 @@
+new
\\ No newline at end of file
"""


def test_a_diff_is_the_files_it_changes():
    retry, old, umlaut = changed_files(DIFF)
    assert (retry.name, old.name, umlaut.name) == ("src/retry.py", "old.md", "über.md")
    assert retry.changed == ["removed words", "added words", "--- not a header"]
    assert retry.around == ["around", "last"]
    assert retry.headings == ["class RetryPolicy:"]
    assert (old.changed, umlaut.changed) == (["gone"], ["new"])


def test_a_hunk_ends_where_its_counts_say():
    (file,) = changed_files("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n+a\n-b\n-c\n-- not of the hunk\n")
    assert file.changed == ["a", "b", "c"]


def test_a_text_that_is_no_diff_is_read_as_text_and_said_so():
    sources, problem = read_diff("just some words")
    assert "not a unified diff" in problem
    assert sources[0].gist == "just some words"


def test_of_many_or_long_files_each_has_its_share():
    (long,) = read_sources([EditedFile("a.txt", "word " * 100_000)])
    assert "first 100,000 characters" in long.problem
    many = read_sources([EditedFile("a.txt", "word " * 10_000)] * 50)
    assert all("first 2,000 characters" in each.problem for each in many)
    sources, problem = read_diff("".join(f"--- a/{n}\n+++ b/{n}\n" for n in range(150)))
    assert len(sources) == 50
    assert "100 more files" in problem
    _, problem = read_diff("--- a/1\n+++ b/1\n" * 10_000)
    assert "first 100,000 characters" in problem


def pieces(name, content):
    return {piece.place: piece.text for piece in read_source(EditedFile(name, content)).pieces}


def test_a_path_gives_its_parts_without_the_suffix():
    assert pieces("src/http/retryPolicy.py", "")[TermPlace.PATH] == "src\nhttp\nretryPolicy"


def test_markdown_gives_its_headings_and_not_those_in_code():
    found = pieces("a.md", "---\ntitle: About\n---\n# Real\n\n```\n# not real\n```\n")
    assert found[TermPlace.HEADING] == "Real\nAbout"
    assert "title:" not in found[TermPlace.BODY]


def test_words_of_the_language_itself_do_not_count():
    assert "return" not in pieces("a.py", "return token\n")[TermPlace.BODY]
    assert "return" in pieces("a.txt", "return token\n")[TermPlace.BODY]


def test_any_bytes_are_survived():
    chance = random.Random(11)
    for size in (0, 1, 100, 5_000):
        for name in ("a.py", "a.md", "", "a\ud800\0.md", "x/" * 50, "../../etc/passwd"):
            data = chance.randbytes(size)
            source = read_source(EditedFile(name, data))
            source.gist.encode()
            source.name.encode()
            read_diff(data)
            read_source(EditedFile(name, data.decode("utf-8", "surrogateescape")))
    assert "not text" in read_source(EditedFile("a.md", b"\0\1\2" * 1000)).problem


@settings(max_examples=50)
@given(st.text(max_size=300), st.text(max_size=20))
def test_a_gist_is_never_read_as_operators(text, name):
    gist = read_source(EditedFile(name + ".py", "# " + text)).gist
    assert not parse_query(gist).is_strict
    assert len(gist) <= 1_000


@given(st.text(max_size=500))
def test_any_text_is_survived_as_a_diff(text):
    for prefix in ("", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n"):
        changed_files(prefix + text)


WORDS = st.text(st.characters(categories=["L", "N", "M", "P"]), min_size=1, max_size=30)


@settings(max_examples=30)
@given(st.lists(st.tuples(WORDS, st.floats(0.1, 1.0)), min_size=1, max_size=120))
def test_terms_become_a_query_that_reads_back_as_them(words):
    terms = [
        ContextTerm(word=w, origins=(), frequency=1, documents=1, score=1, weight=round(x, 2))
        for w, x in words
        if any(char.isalnum() for char in w)
    ]
    text, count = query_text(terms)
    assert len(text) <= 2_000
    assert (count > 0) == bool(terms)
    if not terms:
        return
    expression = parse_query(text, strict=True).expression
    parts = expression.expressions if isinstance(expression, Or) else (expression,)
    assert all(isinstance(part, Boost) for part in parts)
    assert [part.factor for part in parts] == [term.weight for term in terms[:count]]
