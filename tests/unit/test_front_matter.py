"""RELIABILITY's row on front matter: cleaned or dropped with a warning, the body always kept."""

from datetime import UTC, datetime

import frontmatter
import pytest

from ragdocs.dates import parse_date
from ragdocs.models import DateSource
from ragdocs.parsers.front_matter import MAX_TRIES, read_front_matter
from tests.support.documents import chunk, leaves, parse
from tests.support.machine import record_calls, takes_less_than


def read(yaml: str):
    return read_front_matter(f"---\n{yaml}\n---\nBody.\n")


def body_of(text: str) -> str:
    return text[read_front_matter(text).body_start :]


def test_every_known_field_is_read():
    found = read(
        "title: The Title\ndescription: What it is\nkeywords: [a, b]\ntags: [x, y]\n"
        "aliases: [Other]\nauthor: Ada\ncategory: guide\ncreated: 2024-01-02\n"
        "date: 2024-02-03\nmodified: 2024-03-04\nrelated: [other.md]"
    )
    metadata = found.metadata
    assert found.warnings == ()
    assert metadata.title == "The Title"
    assert metadata.description == "What it is"
    assert metadata.keywords == ("a", "b")
    assert metadata.tags == ("x", "y")
    assert metadata.aliases == ("Other",)
    assert metadata.author == "Ada"
    assert metadata.category == "guide"
    assert metadata.related == ("other.md",)
    assert metadata.dates == {
        DateSource.CREATED: datetime(2024, 1, 2, tzinfo=UTC),
        DateSource.DATE: datetime(2024, 2, 3, tzinfo=UTC),
        DateSource.MODIFIED: datetime(2024, 3, 4, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    ("yaml", "field", "value"),
    [
        ("summary: Short", "description", "Short"),
        ("type: note", "category", "note"),
        ("tags: a, b ,c", "tags", ("a", "b", "c")),
        ("tags: '#one'", "tags", ("one",)),
        ("tags:\n- 1\n- yes\n- null", "tags", ("1", "yes")),
        ("title: 2024", "title", "2024"),
        ("title: [a, b]", "title", "a, b"),
        ("title: .nan", "title", ".nan"),
        ("aliases: 3", "aliases", ("3",)),
        ("author: [Ada, Bob]", "author", "Ada, Bob"),
        ("related: [[Note]]", "related", ("Note",)),
        ('related: "[[Note#Part|shown]]"', "related", ("Note#Part",)),
        ("TITLE: Loud", "title", "Loud"),
        ("aliases:\n  - Smith, John", "aliases", ("Smith, John",)),
        ('aliases: ["Smith, John"]', "aliases", ("Smith, John",)),
        ("aliases: Smith, John", "aliases", ("Smith", "John")),
        ("related: '[[Smith, John]], b.md'", "related", ("Smith, John", "b.md")),
        ("related:\n  - [[Note|Alias]]", "related", ("Note",)),
        ("related: ['[text](other.md#x)']", "related", ("other.md#x",)),
        ("related: [https://example.org/#x, a.md]", "related", ("a.md",)),
        ("tags: foo bar", "tags", ("foo", "bar")),
        ("tags: '#foo #bar'", "tags", ("foo", "bar")),
        ("tags: [machine learning]", "tags", ("machine learning",)),
        ("categories: [a, b]", "category", "a, b"),
        ("title: |\n  two\n  lines", "title", "two lines"),
    ],
)
def test_odd_types_are_normalised(yaml, field, value):
    assert getattr(read(yaml).metadata, field) == value


@pytest.mark.parametrize(
    ("yaml", "title"),
    [
        ("title: a: b", "a: b"),
        ("title: ok\ntags: [unclosed", "ok"),
        ("title: ok\nother: *undefined", "ok"),
        ("title: ok\nother: {a: 1", "ok"),
        ("title: ok\n%bad: @x", "ok"),
        ("title: ok\ntitle: again", "ok"),
        ("title: ok\ntags: {a: 1}", "ok"),
        ("title: ok\ndate: 2024-13-45", "ok"),
        ("title: ok\ndate: yesterday", "ok"),
        ("title: ok\nauthor:\n  - name: X", "ok"),
    ],
)
def test_an_unreadable_file_costs_one_warning(yaml, title):
    found = read(yaml)
    assert found.metadata.title == title
    assert found.warnings


def test_tabs_are_taken_as_indentation():
    assert read("tags:\n\t- a\n\t- b\ntitle: x").metadata.tags == ("a", "b")


def test_non_string_keys_are_passed_over():
    assert read("1: a\n[x]: b\n? {q: r}\n: c\ntitle: ok").metadata.title == "ok"


def test_python_tags_run_no_code(tmp_path):
    marker = tmp_path / "ran"
    read(f"title: !!python/object/apply:os.system ['touch {marker}']")
    assert not marker.exists()


def test_recursive_aliases_end():
    assert read("a: &a [*a, x]\ntags: *a").metadata.tags == ("x",)


@pytest.mark.parametrize(
    "yaml",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "\n".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + "\ntags: *i\ntitle: ok",
        "a: " + "[" * 5_000 + "]" * 5_000 + "\ntitle: ok",
        "a: " + "[" * 60_000 + "\ntitle: ok",
        "a:\n" + "- " * 5_000 + "x\ntitle: ok",
        "\n".join(" " * depth + f"k{depth}:" for depth in range(3_000)) + "\ntitle: ok",
        "\n".join(f"key{number}: {number}" for number in range(30_000)) + "\ntitle: ok",
        "title: ok\n" + "tags: a\n" * 300_000,
        "title: ok\n" * 6_000,
        "title:\n" * 300_000 + "title: ok",
    ],
    ids=[
        "alias bomb",
        "5,000 deep",
        "unclosed deep",
        "compact deep",
        "indented deep",
        "30,000 keys",
        "300,000 tags",
        "6,000 titles",
        "300,000 empty titles",
    ],
)
def test_hostile_front_matter_is_read_within_a_second(yaml):
    found = []
    assert takes_less_than(1, lambda: found.append(read(yaml)))
    assert found[0].metadata.title == "ok"


def test_a_key_that_never_has_a_usable_value_is_composed_a_few_times_only():
    found = []
    yaml = "title: {}\n" * 200_000 + "author: Ada"
    assert takes_less_than(1, lambda: found.append(read(yaml)))
    assert (found[0].metadata.title, found[0].metadata.author) == ("", "Ada")
    assert found[0].properties.left_out == 200_000 - MAX_TRIES


PROSE = [
    "\nA paragraph of prose.\n\nNB: not yaml [ at all\n",
    "# Heading\n\n- item\n\nNote: this [ is text\nand more of it\n",
    "Note: one line with a [ in it\n\nProse follows here.\nAnd here.\n",
    "words\n" * 20_000 + "Key: [",
]


@pytest.mark.parametrize("yaml", ["- a\n- b", "just words", "12", *PROSE])
def test_a_block_that_is_not_metadata_stays_in_the_body(yaml):
    text = f"---\n{yaml}\n---\nBody.\n"
    assert body_of(text) == text
    assert read_front_matter(text).warnings


@pytest.mark.parametrize("yaml", ["", "# only a comment", "~", "null"])
def test_empty_front_matter_is_dropped(yaml):
    assert body_of(f"---\n{yaml}\n---\nBody.\n").startswith("Body.") or yaml in ("~", "null")


def test_unclosed_front_matter_is_text():
    text = "---\ntitle: x\n\nBody."
    assert body_of(text) == text
    assert read_front_matter(text).warnings


def test_a_rule_at_the_head_is_no_front_matter():
    found = read_front_matter("---\n\nBody.\n")
    assert (found.body_start, found.warnings) == (0, ())


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\ntitle: x\n---", ""),
        ("---\ntitle: x\n---  ", ""),
        ("---\ntitle: x\n---  \n\n", "\n"),
        ("---\ntitle: x\n---\n\n  Body.\n\n", "\n  Body.\n\n"),
        ("---\n---\n  \n", "  \n"),
        ("+++\ntitle = 'x'\n+++ \n \n", " \n"),
    ],
)
def test_the_body_begins_after_the_closing_line_whatever_blanks_stand_there(text, body):
    """python-frontmatter itself takes the blanks around a text and around its body away."""
    assert body_of(text) == body


def test_a_block_after_a_blank_line_is_text():
    text = "\n---\ntitle: x\n---\nBody."
    assert body_of(text) == text


@pytest.mark.parametrize("text", ["---\ntitle: x\n---\n", "+++\ntitle = 'x'\n+++\n"])
def test_the_block_is_read_by_python_frontmatter(text, monkeypatch):
    calls = record_calls(monkeypatch, frontmatter, "parse")
    assert read_front_matter(text).metadata.title == "x"
    assert [given[0] for given in calls] == [text]


@pytest.mark.parametrize(
    "yaml",
    [
        "title: The Title\ntags: [x, y]\nauthor: Ada",
        "title: 'Quoted: yes'\ntags:\n- x\n- y z",
        'title: "An \\"escaped\\" one"\nauthor: Ada Lovelace # and a comment',
        "title: >-\n  folded\n  text\ntags: []",
    ],
)
def test_good_metadata_is_what_python_frontmatter_reads_by_itself(yaml):
    text = f"---\n{yaml}\n---\n\nBody.\n"
    reference, found = frontmatter.loads(text), read_front_matter(text)
    assert found.warnings == ()
    assert found.metadata.title == reference["title"]
    assert list(found.metadata.tags) == reference.get("tags", [])
    assert found.metadata.author == reference.get("author", "")
    assert text[found.body_start :].strip() == reference.content


def test_only_the_first_of_several_documents_is_metadata():
    assert body_of("---\ntitle: a\n---\ntitle: b\n---\n") == "title: b\n---\n"


def test_dots_may_close_front_matter():
    assert body_of("---\ntitle: a\n...\nBody.") == "Body."


def test_toml_front_matter_is_read():
    found = read_front_matter('+++\ntitle = "T"\ntags = ["a"]\ndate = 2024-01-02\n+++\nBody.')
    assert (found.metadata.title, found.metadata.tags) == ("T", ("a",))
    assert found.metadata.dates[DateSource.DATE] == datetime(2024, 1, 2, tzinfo=UTC)


def test_bad_toml_is_dropped_with_a_warning():
    found = read_front_matter("+++\ntitle = [\n+++\nBody.")
    assert found.warnings
    assert found.metadata.title == ""


def test_front_matter_behind_a_bom_is_read():
    assert parse(b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\nBody.\r\n").title == "T"


def test_front_matter_only_makes_a_document_without_leaves():
    chunks = chunk("---\ntitle: Only\n---\n")
    assert [node.title for node in chunks] == ["Only"]
    assert leaves(chunks) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-05-06T07:08:09Z", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06 07:08:09+02:00", datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)),
        ("2024/5/6", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-05", datetime(2024, 5, 1, tzinfo=UTC)),
        ("May 6, 2024", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-5-6", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-05-06 9:30", datetime(2024, 5, 6, 9, 30, tzinfo=UTC)),
        ("2024-05-06 10:00:00 UTC", datetime(2024, 5, 6, 10, tzinfo=UTC)),
        ("2024-05-06, 10:00", datetime(2024, 5, 6, 10, tzinfo=UTC)),
        ("2024-05-06T10:00:00.123+0200", datetime(2024, 5, 6, 8, tzinfo=UTC)),
        ("Mon, 06 May 2024 10:00:00 GMT", datetime(2024, 5, 6, 10, tzinfo=UTC)),
        ("[[2024-05-06]]", datetime(2024, 5, 6, tzinfo=UTC)),
        ("1714989600", datetime(2024, 5, 6, 10, tzinfo=UTC)),
        ("9" * 100, None),
        ("2024-02-30", None),
        ("soon", None),
        ("", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_dates_as_people_write_them(text, expected):
    assert parse_date(text) == expected


def test_warnings_about_one_file_are_few():
    found = read("title: a\n" * 1_000)
    assert len(found.warnings) <= 11
    assert found.warnings[-1].endswith("more problems")


def test_a_deep_toml_key_is_left_out_at_once():
    text = "+++\na" + ".a" * 25_000 + " = 1\n+++\nBody."
    assert takes_less_than(1, lambda: read_front_matter(text))
    assert read_front_matter(text).warnings


def test_a_dotted_key_inside_a_toml_value_is_left_out_too():
    """Only keys before the first `=` were counted: 60 kB took gigabytes."""
    inner = ".".join(["a"] * 25_000)
    found = read_front_matter(f"+++\nx = {{{inner} = 1}}\n+++\n# Body\n")
    assert found.warnings == ("front matter: TOML too large or nested too deeply, ignored",)
