"""Each mistake is told with file, line, key, what is allowed and the nearest name."""

import os
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.config.layers import DEEP_KEY
from ragdocs.config.loading import read_config
from tests.support.machine import bound_by_permissions, takes_less_than


def problems(tmp_path: Path, text: str | bytes, **environ: str) -> list[str]:
    path = tmp_path / ".ragdocs.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reading = read_config(cwd=tmp_path, environ={"HOME": str(tmp_path / "home"), **environ})
    assert (reading.config is None) == bool(reading.problems)
    return [str(one).removeprefix(f"{tmp_path}/") for one in reading.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[search]\nfusion = 'scores'\n",
            '.ragdocs.toml:2: search.fusion: "scores" is not a valid choice; did you mean "score"? '
            'Allowed: one of "score", "rrf"',
        ),
        (
            "\n\n[search]\nmin_confidence = 1.5\n",
            ".ragdocs.toml:4: search.min_confidence: 1.5 is out of range; "
            "allowed: a number from 0 to 1",
        ),
        (
            "[search]\nmin_confidence = nan\n",
            ".ragdocs.toml:2: search.min_confidence: nan is out of range; "
            "allowed: a number from 0 to 1",
        ),
        (
            "[search]\nrerank_top_n = 10.0\n",
            ".ragdocs.toml:2: search.rerank_top_n: 10.0 is a decimal number; "
            "allowed: a whole number from 1 to 100",
        ),
        (
            "[search]\nrerank_top_n = true\n",
            ".ragdocs.toml:2: search.rerank_top_n: true is a boolean; "
            "allowed: a whole number from 1 to 100",
        ),
        (
            "[search]\nmmr_enabled = 'yes'\n",
            '.ragdocs.toml:2: search.mmr_enabled: "yes" is a string; allowed: true or false',
        ),
        (
            "[indexing]\nexclude = 'x'\n",
            '.ragdocs.toml:2: indexing.exclude: "x" is a string; allowed: a list of strings',
        ),
        (
            "[indexing]\nexclude = [\n'x',\n3]\n",
            ".ragdocs.toml:4: indexing.exclude[1]: 3 is a whole number; allowed: a list of strings",
        ),
        (
            "[indexing]\nindex_path = 2020-01-01\n",
            ".ragdocs.toml:2: indexing.index_path: 2020-01-01 is a date or time; allowed: a path",
        ),
        (
            '[indexing]\nindex_path = "a\\u0000b"\n',
            ".ragdocs.toml:2: indexing.index_path: a path cannot contain a NUL character; "
            "allowed: a path",
        ),
        (
            "search = 3\n",
            ".ragdocs.toml:1: search: 3 is a whole number; allowed: a table, [search]",
        ),
        (
            "[tree]\npath = 'docs'\n",
            '.ragdocs.toml:2: tree.path: "docs" is a string; allowed: a table, [tree.NAME]',
        ),
        ("[tree.a]\n", ".ragdocs.toml:1: tree.a.path: is missing; allowed: a path"),
        (
            "[tree.'a:b']\npath = 'x'\n",
            ".ragdocs.toml:1: tree.a:b: a tree name has only letters, digits, '-', '_' and '.'",
        ),
        (
            "[[context.rules]]\nmatch = 'x'\n[[context.rules]]\nmatch = []\n",
            ".ragdocs.toml:4: context.rules[1].match: must not be empty; "
            "allowed: a pattern or a list of patterns",
        ),
        (
            "[search.boosts]\ntitel = 1\n",
            ".ragdocs.toml:2: search.boosts.titel: there is no such setting; did you mean title? "
            "`ragdocs config --defaults` lists all settings",
        ),
        (
            "[search.boosts]\nqqqqqqqq = 1\n",
            ".ragdocs.toml:2: search.boosts.qqqqqqqq: there is no such setting; allowed: aliases, "
            "author, content, description, headers, keywords, path, tags, title in "
            "[search.boosts]; `ragdocs config --defaults` lists all settings",
        ),
        (
            "serch.mmr_lambda = 1\n",
            ".ragdocs.toml:1: serch: there is no such section; did you mean search? "
            "`ragdocs config --defaults` lists all settings",
        ),
        (
            "search = { boosts = { title = -1 } }\n",
            ".ragdocs.toml:1: search.boosts.title: -1 is out of range; "
            "allowed: a number from 0 to 100",
        ),
        (
            "[chunking]\nmin_leaf_chars = 1200\n",
            ".ragdocs.toml:2: chunking.min_leaf_chars: min_leaf_chars must not be greater than "
            "max_leaf_chars: min_leaf_chars = 1200 (HERE:2), max_leaf_chars = 1000 (default)",
        ),
    ],
)
def test_the_whole_message(tmp_path, text, expected):
    (found,) = problems(tmp_path, text)

    assert found.replace(f"{tmp_path}/.ragdocs.toml", "HERE") == expected


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("[search]\nmin_confidnce = 1\n", "min_confidence"),
        ("[search]\nMMR-Enabled = true\n", "mmr_enabled"),
        ("[search]\nmax_leaf_chars = 900\n", "chunking.max_leaf_chars"),
        ("mmr_lambda = 0.1\n", "search.mmr_lambda"),
        ("[search]\nhyde_enabled = true\n", "search.advanced.hyde_enabled"),
        ("[chunking]\nmax_chunk_char = 900\n", "max_leaf_chars"),
        ("[embeding]\n", "embedding"),
        ("[tree.a]\npath = 'x'\nexlude = []\n", "exclude"),
        ("[search]\nstemmer = 'englsh'\n", '"english"'),
    ],
)
def test_the_nearest_name(tmp_path, text, suggestion):
    (found,) = problems(tmp_path, text)

    """It came after a dozen names."""
    said = r"there is no such (setting|section)|\"\w+\" is not a valid choice"
    assert re.search(rf": ({said}); did you mean {suggestion}\? ", found), found


def test_nothing_near_is_no_suggestion(tmp_path):
    (found,) = problems(tmp_path, "[search]\nqqqqqqqq = 1\n")

    assert "did you mean" not in found
    assert "more in [search]" in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\nb = \n", ".ragdocs.toml:2: is not TOML: Invalid value"),
        ("\n\nx = 'open\n", ".ragdocs.toml:3: is not TOML: "),
        ("[a]\n[a]\n", ".ragdocs.toml:2: is not TOML: "),
        ("x = [1,\n2,\n", ".ragdocs.toml:2: is not TOML: "),
        ("x = " + "[" * 5000, ".ragdocs.toml: is not usable: its values are nested too deeply"),
        ("x = " + "1" * 5000, ".ragdocs.toml: is not TOML: "),
        (b"a = 1\nb = '\xff'\n", ".ragdocs.toml:2: is not UTF-8 text"),
        (b"\xff\xfea\x00", ".ragdocs.toml:1: is not UTF-8 text"),
        (b"#" * 10_000_000, ".ragdocs.toml: is larger than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_not_toml(tmp_path, text, expected):
    (found,) = problems(tmp_path, text)

    assert found.startswith(expected)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    assert problems(tmp_path, b"\xef\xbb\xbf[search]\r\nmmr_lambda = 0.1\r\n") == []


def test_a_value_of_any_size_is_shown_short(tmp_path):
    for value in ("'" + "x" * 100_000 + "'", "[" * 300 + "]" * 300, "0x" + "f" * 50_000):
        (found,) = problems(tmp_path, f"[search]\nmmr_enabled = {value}\n")
        assert found.startswith(".ragdocs.toml:2: search.mmr_enabled: ")
        assert len(found) < 250


def test_a_file_of_nothing_but_mistakes_is_still_told_quickly(tmp_path):
    found = problems(tmp_path, "".join(f"key_{number} = 1\n" for number in range(50_000)))

    assert len(found) == 101
    assert found[-1] == ".ragdocs.toml: there are 49900 more problems"


def test_a_key_of_any_length_is_shown_short(tmp_path):
    (found,) = problems(tmp_path, "[search]\n" + "x" * 900_000 + " = 1\n")

    assert len(found) < 500


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RAGDOCS_SEARCH__DEDUP_THRESHOLD", "RAGDOCS_SEARCH__DEDUP_SIMILARITY_THRESHOLD"),
        ("RAGDOCS_SEARCH__MMR_LAMBDA", "RAGDOCS_search__mmr_lambda"),
    ],
)
def test_two_variables_for_one_setting_are_an_error(tmp_path, one, other):
    (found,) = problems(tmp_path, "", **{one: "0.5", other: "0.5"})

    assert "keep one" in found
    assert one in found
    assert other in found


def test_a_variable_of_too_many_digits(tmp_path):
    (found,) = problems(tmp_path, "", RAGDOCS_SEARCH__RERANK_TOP_N="1" * 5000)

    assert "allowed: a whole number" in found


def test_a_message_has_no_control_characters(tmp_path):
    (found,) = problems(tmp_path, '[search]\n"a\\u001b[31m\\n" = 1\n')

    assert found.isprintable()


def test_all_files_and_variables_report_at_once(tmp_path):
    user = tmp_path / "home/.config/mcp-markdown-ragdocs/config.toml"
    user.parent.mkdir(parents=True)
    user.write_text("[search]\nx = 1\n", encoding="utf-8")

    found = problems(
        tmp_path,
        "y = 1\n[search]\nmmr_lambda = 2\nz = 1\n",
        RAGDOCS_SEARCH__MMR_LAMBDA="many",
        RAGDOCS_SERCH__MIN_CONFIDENCE="0.5",
    )

    assert [line.split(": there")[0].split(": 2 is")[0] for line in found] == [
        "home/.config/mcp-markdown-ragdocs/config.toml:2: search.x",
        ".ragdocs.toml:1: y",
        ".ragdocs.toml:3: search.mmr_lambda",
        ".ragdocs.toml:4: search.z",
        'RAGDOCS_SEARCH__MMR_LAMBDA: search.mmr_lambda: "many" is a string; '
        "allowed: a number from 0 to 1",
        "RAGDOCS_SERCH__MIN_CONFIDENCE: serch.min_confidence",
    ]
    assert "; did you mean RAGDOCS_SEARCH__MIN_CONFIDENCE? " in found[-1]


def test_a_bad_value_is_told_even_where_a_nearer_one_hides_it(tmp_path):
    found = problems(tmp_path, "[search]\nmmr_lambda = 2\n", RAGDOCS_SEARCH__MMR_LAMBDA="0.5")

    assert len(found) == 1


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_configuration_that_is_not_a_file(tmp_path, make):
    make(tmp_path / ".ragdocs.toml")

    (problem,) = read_config(cwd=tmp_path, environ={}).problems

    assert str(problem) == f"{tmp_path}/.ragdocs.toml: is not a regular file"


def test_a_broken_link(tmp_path):
    (tmp_path / ".ragdocs.toml").symlink_to(tmp_path / "gone")

    (problem,) = read_config(cwd=tmp_path, environ={}).problems

    assert "cannot be read: No such file" in str(problem)


@pytest.mark.parametrize("name", ["missing.toml", "nul\0.toml", "~nobody-here/x.toml", "x" * 300])
def test_a_named_file_that_cannot_be_read(tmp_path, name):
    (problem,) = read_config(Path(name), cwd=tmp_path, environ={}).problems

    assert "cannot be read" in str(problem)
    assert str(problem).isprintable()


def test_a_file_without_permission(tmp_path):
    path = tmp_path / ".ragdocs.toml"
    path.touch(mode=0o000)

    with bound_by_permissions():
        (problem,) = read_config(cwd=tmp_path, environ={}).problems

    assert "Permission denied" in str(problem)


def test_a_path_that_goes_round_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")

    assert problems(tmp_path, '[tree.a]\npath = "a"\n') == []


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.dates(),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    ["search", "indexing", "tree", "context", "chunking", "rules", "match", "path"]
)


@settings(deadline=None)
@given(st.dictionaries(st.one_of(KNOWN, st.text(max_size=5)), VALUES, max_size=4))
def test_no_table_breaks_it(flags):
    reading = read_config(cwd=Path("/"), environ={"HOME": "/"}, flags=flags)

    assert (reading.config is None) == bool(reading.problems)
    assert all(str(problem) for problem in reading.problems)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 20_000) + " = 1\n",
        "[" + ".".join(["a"] * 20_000) + "]\n",
        "x = {" + ".".join(["a"] * 20_000) + " = 1}\n",
        ".".join(['"a b"'] * 20_000) + " = 1\n",
        ".".join([r'"a\"b"', "'c d'"] * 10_000) + " = 1\n",
        " . ".join(["a"] * 20_000) + " = 1\n",
    ],
)
def test_a_key_of_many_parts_is_refused_before_it_takes_memory(tmp_path, text):
    """40 kB of it took 1.6 GB and 3 seconds, in a file that any repository may bring."""
    tracemalloc.start()
    try:
        (found,) = problems(tmp_path, f"# a comment\n{text}")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ".ragdocs.toml:2: is not usable: a key has more than 32 parts" in found
    assert most < 20_000_000


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a." * 31 + "b = 1\n", '"' * 500_000])
def test_looking_for_such_a_key_takes_no_time(text):
    assert takes_less_than(1, lambda: DEEP_KEY.search(text))
    assert DEEP_KEY.search(text) is None
