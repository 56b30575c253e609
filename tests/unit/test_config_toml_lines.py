"""The lines of keys: exact for valid TOML, never an exception for anything else."""

import tomllib
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragdocs.config.layers import key_lines, line_of

DOCUMENT = '''\
# a comment with [brackets] and "quotes"
root = true
a.b = 1
"quoted.key" = """
x = 1
["not a table"]
""""
[table]  # a comment
list = [ 1, # one
  2,
  { inner = 3, deeper = { still = 4 } },
]
inline = { a = 1, b.c = "x" }
empty = {}
after = 'x # no comment'

[[rules]]
match = "q"
[[rules]]
match = 2
[rules.sub]
k = 1
[a2."b c".'d']
when = 1979-05-27T07:32:00Z
number = 1.5
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("root",), 2),
        (("a", "b"), 3),
        (("quoted.key",), 4),
        (("table",), 8),
        (("table", "list"), 9),
        (("table", "list", 1), 10),
        (("table", "list", 2, "inner"), 11),
        (("table", "list", 2, "deeper", "still"), 11),
        (("table", "inline", "b", "c"), 13),
        (("table", "empty"), 14),
        (("table", "after"), 15),
        (("rules", 0), 17),
        (("rules", 0, "match"), 18),
        (("rules", 1), 19),
        (("rules", 1, "match"), 20),
        (("rules", 1, "sub", "k"), 22),
        (("a2", "b c", "d"), 23),
        (("a2", "b c", "d", "number"), 25),
    ],
)
def test_a_key_is_found_on_its_line(path, line):
    assert key_lines(DOCUMENT)[path] == line


def test_the_document_is_valid():
    assert tomllib.loads(DOCUMENT)["table"]["after"] == "x # no comment"


def test_what_is_inside_a_multi_line_string_is_no_key():
    assert ("x",) not in key_lines(DOCUMENT)


def test_an_unknown_path_gets_the_line_of_what_is_around_it():
    assert line_of(key_lines(DOCUMENT), ("table", "nothing", "here")) == 8
    assert line_of(key_lines(DOCUMENT), ("nowhere",)) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends(end):
    assert key_lines(end.join(["a = 1", "[t]", "b = 2"]))[("t", "b")] == 3


def test_a_key_of_many_dots_is_not_followed_to_its_end():
    lines = key_lines(".".join("a" * 100_000) + " = 1")

    assert max(map(len, lines)) < 20


PIECES = [
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    '"',
    "'",
    '"""',
    "'''",
    "\\",
    "\n",
    "\r",
    " ",
    "a",
    "1",
]


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
@example("[[")
@example('"""')
@example("a = {")
@example("a = {}\n}")
@example("\\\n=")
def test_no_text_breaks_it(text):
    lines = key_lines(text)

    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


KEYS = st.text(alphabet="abcdefgh_-0123456789", min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(KEYS, KEYS), min_size=1, unique_by=lambda pair: pair[0]))
def test_every_key_of_generated_tables_is_found(pairs):
    text = "".join(f"[{table}]\n\n{key} = [\n1,\n]\n" for table, key in pairs)

    lines = key_lines(text)

    found = [lines[pair] for pair in pairs]
    assert found == [3 + 5 * number for number in range(len(pairs))]
    assert all(after - before == 5 for before, after in pairwise(found))
