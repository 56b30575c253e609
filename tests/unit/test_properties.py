"""Properties of a document: every front-matter key and inline field, within limits."""

from itertools import pairwise

import pytest

from ragdocs.limits import MAX_PROPERTIES, MAX_PROPERTY_CHARS, MAX_PROPERTY_VALUES
from ragdocs.models import WarningKind
from ragdocs.parsers.properties import inline_fields
from tests.support.documents import parse
from tests.support.machine import takes_less_than


def properties(text):
    return dict(parse(text).properties)


def front(block):
    return properties(f"---\n{block}\n---\nText.\n")


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("status: Active", {"status": ("Active",)}),
        ("Due Date: 2026-01-31", {"due-date": ("2026-01-31",)}),
        ("priority: 2.5\ndraft: true", {"priority": ("2.5",), "draft": ("true",)}),
        ("list: [a, b]\nother:\n- c", {"list": ("a", "b"), "other": ("c",)}),
        ("author:\n  name: Jane\n  of: {x: 1}", {"author.name": ("Jane",), "author.of.x": ("1",)}),
        ("people:\n- name: A\n- name: B", {"people.name": ("A", "B")}),
        ("empty:\nnull_too: ~\nkept: 0", {"kept": ("0",)}),
        ("Key: 1\nkey: 2", {"key": ("1", "2")}),
        ("title: a: b\nstatus: ok", {"title": ("a: b",), "status": ("ok",)}),  # bad YAML
        ("t: !!python/object/apply:os.system [echo]", {"t": ("echo",)}),
    ],
)
def test_front_matter(block, expected):
    assert front(block) == expected


def test_toml():
    text = '+++\nstatus = "active"\nn = 2\ndone = false\nday = 2026-01-31\n[a]\nb = [1, 2]\n+++\n'
    assert properties(text) == {
        "status": ("active",),
        "n": ("2",),
        "done": ("false",),
        "day": ("2026-01-31",),
        "a.b": ("1", "2"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rating:: 5", {"rating": ("5",)}),
        ("first line\nRating:: 5 of 6", {"rating": ("5 of 6",)}),
        ("- mood:: good\n- [ ] due:: 2026-01-31", {"mood": ("good",), "due": ("2026-01-31",)}),
        ("> quoted:: yes", {"quoted": ("yes",)}),
        ("**Bold key**:: x", {"bold-key": ("x",)}),
        ("snake_case:: x", {"snake_case": ("x",)}),
        ("größe:: 5 m", {"grösse": ("5 m",)}),
        ("Call [due:: 2026-01-31] and (who:: Jane).", {"due": ("2026-01-31",), "who": ("Jane",)}),
        ("[who:: [[Jane Doe]]] [n:: 1][n:: 2]", {"who": ("[[Jane Doe]]",), "n": ("1", "2")}),
        ("| a |\n|---|\n| [cell:: 1] |", {"cell": ("1",)}),
        ("# A heading [state:: done]", {"state": ("done",)}),
        ("std::vector<int> and a :: b", {}),
        ("`code:: no` and `[in:: code]`", {}),
        ("```\nfenced:: no\n[also:: no]\n```", {}),
        ("    indented:: no", {}),
        ("%% hidden:: no %% <!-- hidden:: no -->", {}),
        ("a sentence. With words:: no", {}),
        ("[never:: closed", {}),
    ],
)
def test_inline_fields(text, expected):
    assert properties(f"Text.\n\n{text}\n") == expected


def test_front_matter_and_inline_fields_of_one_name_are_one_list():
    assert properties("---\nstatus: a\n---\nStatus:: b\n") == {"status": ("a", "b")}


def left_out(document):
    kinds = {warning.kind: warning.count for warning in document.warnings}
    return kinds.get(WarningKind.TOO_MANY_PROPERTIES, 0)


def test_what_is_over_a_limit_is_counted():
    many = "".join(f"k{n}: v\n" for n in range(MAX_PROPERTIES + 7))
    document = parse(f"---\n{many}---\n")
    assert (len(document.properties), left_out(document)) == (MAX_PROPERTIES, 7)
    document = parse(f"---\na: {'x' * (MAX_PROPERTY_CHARS + 1)}\n---\n")
    assert (len(document.properties[0].values[0]), left_out(document)) == (MAX_PROPERTY_CHARS, 1)
    document = parse("a:: b\n" * (MAX_PROPERTY_VALUES + 9))
    assert (len(document.properties[0].values), left_out(document)) == (MAX_PROPERTY_VALUES, 9)
    assert left_out(parse("---\na: b\n---\nc:: d\n")) == 0


def bomb():
    names = "abcdefghij"
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for below, name in pairwise(names):
        lines.append(f"{name}: &{name} [{','.join([f'*{below}'] * 9)}]")
    return "\n".join(lines)


HOSTILE = {
    "an alias bomb": f"---\n{bomb()}\n---\n",
    "a wide bomb": f"---\na: &a [{','.join('x' * 5000)}]\nb: [{','.join(['*a'] * 5000)}]\n---\n",
    "30,000 keys": "---\n" + "".join(f"k{n}: v\n" for n in range(30_000)) + "---\n",
    "7,000 keys and a mistake": "---\n"
    + "".join(f"k{n}: v\n" for n in range(7_000))
    + "a: b: c\n---\n",
    "open brackets": "[a:: " * 200_000,
    "open round brackets": "(a:: " * 200_000,
    "nested brackets": "[a:: [x [x " * 100_000,
    "colons": ":: " * 300_000,
    "quotes": ">" * 500_000 + "::",
    "words before colons": "a " * 300_000 + "::",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_bounded_and_costs_little(name):
    found = []
    assert takes_less_than(2, lambda: found.append(parse(HOSTILE[name])))
    document = found[0]
    assert len(document.properties) <= MAX_PROPERTIES
    values = [value for each in document.properties for value in each.values]
    assert len(values) <= MAX_PROPERTY_VALUES


@pytest.mark.parametrize("opening", ["[a::", "(a::", "a::"])
def test_very_many_blanks_behind_the_colons_survive(opening):
    """The blanks were tried in every division: 300,000 of them took hours."""
    text = opening + " " * 300_000
    assert list(inline_fields(text, 0, len(text), ())) == []


def test_a_toml_number_too_long_to_write_costs_only_itself():
    text = "+++\nbig = 0x" + "f" * 5_000 + "\nstatus = 'open'\n+++\n# Title\n\nBody.\n"
    assert [each.key for each in parse(text).properties] == ["status"]


def test_a_sentence_before_a_field_is_not_part_of_its_key():
    assert properties("Planted forty bulbs. mood:: good\n") == {}
    assert properties("mood:: good\n") == {"mood": ("good",)}
