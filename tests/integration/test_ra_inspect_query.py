"""`inspect query`: how a query is read, before anything is searched."""

import json

import pytest
from click.testing import CliRunner

from ragdocs.app import App
from ragdocs.cli.main import main
from ragdocs.config.loading import load_config
from tests.support.indexes import write
from tests.support.models import CountingEmbedder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspected")
    text = "# Rust guide\n\nReceive async errors and handle the cat.\n"
    docs = write(folder, "docs/guide.md", text).parent
    environ = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache")}
    place = {"documents_path": str(docs), "index_path": str(folder / "index")}
    config = load_config(cwd=docs, environ=environ, flags={"indexing": place})
    with App(config, CountingEmbedder()) as app, app.manager() as manager:
        manager.update()
    runner = CliRunner(env=environ)

    def invoke(*words, index="index"):
        where = ["--docs", str(docs), "--index", str(folder / index), "--no-update"]
        arguments = ["inspect", "query", *words, *where]
        return runner.invoke(main, arguments, catch_exceptions=False)

    return invoke


def test_a_strict_query_is_drawn_as_a_tree(run):
    lines = run('(rust async) OR title:guide^2 -"old one" tree:docs').stdout.splitlines()
    assert [line[12:] for line in lines[1:13]] == [
        "AND",
        "├─ OR",
        "│  ├─ AND",
        "│  │  ├─ TERM rust",
        "│  │  └─ TERM async",
        "│  └─ BOOST 2",
        "│     └─ FIELD title",
        "│        └─ TERM guide",
        "├─ NOT",
        "│  └─ PHRASE old one",
        "└─ FIELD tree",
        "   └─ TERM docs",
    ]
    assert lines[0].endswith("(strict: every operator binds)")
    assert "meaning     rust async guide" in lines


def test_the_query_construction_of_seed_004(run):
    """Each term in every field, with the field's weight: title 3, tags 2, path 2, text 1."""
    found = json.loads(run("rust async", "--json").stdout)
    assert [unit["terms"] for unit in found["looked_for"]] == [["rust"], ["async"]]
    for unit in found["looked_for"]:
        weights = unit["weights"]
        assert (weights["title"], weights["path"], weights["content"]) == pytest.approx(
            (3.0, 2.0, 1.0)
        )
        assert weights["tags"] == pytest.approx(2.0)  # the settled default; seed 004 has 2.5
        assert set(weights) == {
            *("title", "headers", "keywords", "description", "tags", "path", "aliases"),
            *("author", "content"),
        }


def test_a_field_alone_is_looked_for_in_that_field_only(run):
    [unit] = json.loads(run("tags:guide^2", "--json").stdout)["looked_for"]
    assert (unit["field"], unit["weight"]) == pytest.approx(("tags", 2.0))
    assert unit["weights"] == pytest.approx({"tags": 4.0})


def test_a_title_is_looked_for_in_headings_too(run):
    units = json.loads(run("title:guide^2", "--json").stdout)["looked_for"]
    assert [unit["field"] for unit in units] == ["title", "headers"]
    assert [unit["weight"] for unit in units] == pytest.approx([2.0, 2.0])
    assert units[0]["weights"] == pytest.approx({"title": 6.0})
    assert units[1]["weights"] == pytest.approx({"headers": 5.0})


def test_the_analysis_shows_stems_and_what_is_left_out(run):
    found = json.loads(run("how", "is", "it", "handled", "--json").stdout)
    words = [(word["word"], word["term"], word["is_looked_for"]) for word in found["analysis"]]
    assert words == [
        ("how", "how", False),
        ("is", "is", False),
        ("it", "it", False),
        ("handled", "handl", True),
    ]
    assert "handled → handl" in run("handled").stdout
    assert "how → how  (dropped)" in run("how handled").stdout


def test_a_misspelt_word_shows_what_is_added_for_it(run):
    found = json.loads(run("recieve errors", "--json").stdout)
    assert [(w["word"], w["origin"], w["stands_for"]) for w in found["added"]] == [
        ("receive", "fuzzy", "recieve")
    ]
    assert found["did_you_mean"] == "receive errors"
    shown = run("recieve errors").stdout
    assert "receive (fuzzy, x0.5, for recieve, 1 away)" in shown
    assert "meant       receive errors?" in shown


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("parse_query", "factual"),
        ("the guide to herons", "navigational"),
        ("why do herons wait", "exploratory"),
    ],
)
def test_the_kind_of_query_is_told(run, query, kind):
    found = json.loads(run(query, "--json").stdout)
    assert found["query_type"] == kind
    assert set(found["weights"]) == {"semantic", "keyword", "code", "graph"}


def test_without_an_index_all_is_shown_that_needs_none(run):
    found = run("recieve -errors", index="nowhere")
    assert found.exit_code == 0
    assert "NOT" in found.stdout
    assert "there is no index" in found.stdout


def test_half_an_operator_is_noted_and_an_empty_query_refused(run):
    assert "note " in run('"half a phrase').stdout
    refused = run("  ")
    assert refused.exit_code == 2
    assert "empty" in refused.output


def test_a_query_cannot_speak_to_the_terminal(run):
    assert "\x1b[31m" not in run("red\x1b[31mtext").stdout
