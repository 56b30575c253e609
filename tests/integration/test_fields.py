"""Headings, titles and front matter count: what an author says a text is about (P2, P4, P9)."""

import re

import pytest

from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.search.requests import Filters, QueryRequest, Uniqueness
from tests.support.documents import distractors, documentation, expected, rank_of
from tests.support.engine import SMALL, Engine
from tests.support.models import MeaningEmbedder

PLAIN = {"graph_weight": 0.0, "merge_threshold": 0, "cutoff_ratio": 0.0}
WORDS_ONLY = {**PLAIN, "semantic_weight": 0.0}
MEANING_ONLY = {**PLAIN, "keyword_weight": 0.0}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    texts = documentation() | distractors()
    with Engine(tmp_path_factory.mktemp("index"), texts, **WORDS_ONLY) as engine:
        yield engine


def ranks(engine, kind, **settings):
    """Of each labelled query; what is not among the first fifty counts as place 51."""
    found = []
    for label in expected(kind):
        request = QueryRequest(queries=(label.query,), top_n=50)
        results = engine.answer(request, **WORDS_ONLY | settings).results
        found.append(rank_of(label.place, results) or 51)
    return found


# P2: the headings above a passage are embedded with it.


def under(heading):
    same = "## Details\n\nIt comes every day, whether one waits for it or not.\n"
    return f"# {heading}\n\nA page.\n\n{same}"


def test_header_context_improves_ranking(tmp_path):
    """The same words below other headings: exchange the headings and the order is exchanged."""
    first = []
    for n, headings in enumerate((("Dawn", "Dusk"), ("Dusk", "Dawn"))):
        texts = dict(zip(("a.md", "b.md"), map(under, headings), strict=True))
        with Engine(
            tmp_path / str(n), texts, MeaningEmbedder(), sizes=SMALL, **MEANING_ONLY
        ) as engine:
            results = engine.ask("sunrise", uniqueness=Uniqueness.OFF).results
        details = [result for result in results if result.id.endswith("#details")]
        assert details[0].text == details[1].text
        first.append(details[0].path)
    assert first == ["a.md", "b.md"]


REFRESH = "It is renewed a little before it would end, in the background, so that nobody waits.\n"


def test_header_context_improves_disambiguation(tmp_path):
    texts = {
        "login.md": f"# Authentication\n\nWho somebody is.\n\n## Refresh\n\n{REFRESH}",
        "cache.md": f"# Caching web pages\n\nKeeping answers.\n\n## Refresh\n\n{REFRESH}",
    }
    with Engine(tmp_path, texts, BuiltinEmbedder(), sizes=SMALL, **MEANING_ONLY) as engine:
        for query, path in (
            ("how is a user's login session renewed?", "login.md"),
            ("when are stored copies of web pages fetched again?", "cache.md"),
        ):
            results = engine.ask(query, uniqueness=Uniqueness.OFF).results
            renewed = [result.path for result in results if result.id.endswith("#refresh")]
            assert renewed[0] == path


# P4: words in titles and headings count more.


def test_field_boost_title_top(engine):
    assert ranks(engine, "title") == [1] * len(expected("title"))


def test_title_match_ranks_higher(engine):
    scattered = {"closeness_weight": 0.0}  # titles stand together in texts too
    usual = ranks(engine, "title", **scattered)
    flat = ranks(engine, "title", **scattered, boosts={"title": 0.0, "headers": 0.0, "path": 0.0})
    assert all(one <= other for one, other in zip(usual, flat, strict=True))
    assert sum(usual) < sum(flat)


# P9: front matter.


def test_title_match_ranks_highest(tmp_path):
    """A title says more than a heading, a tag or the text."""
    filler = "Some other words that say nothing of it at all, for the sake of equal lengths.\n"
    texts = {
        "content.md": f"# Content\n\nPelican. {filler}",
        "tagged.md": f"---\ntags: [pelican]\n---\n# Tagged\n\n{filler}",
        "author.md": f"---\nauthor: Pelican\n---\n# Author\n\n{filler}",
        "titled.md": f"---\ntitle: Pelican\n---\n{filler}",
    }
    with Engine(tmp_path, texts, **WORDS_ONLY) as engine:
        found = engine.paths("pelican", uniqueness=Uniqueness.OFF)
    assert found[:2] == ["titled.md", "tagged.md"]
    assert set(found) == set(texts)


def test_keywords_improve_recall(engine):
    """With the field's weight: every such query finds its page among the first five."""
    usual = ranks(engine, "keyword")
    assert all(rank <= 5 for rank in usual)
    assert sum(usual) < sum(ranks(engine, "keyword", boosts={"keywords": 0.0}))


def test_frontmatter_keywords_improve_recall(engine, tmp_path):
    """The same documents without their `keywords` are not found by them."""
    without = {
        path: re.sub(r"^keywords: .*\n", "", text, count=1, flags=re.MULTILINE)
        for path, text in (documentation() | distractors()).items()
    }
    with Engine(tmp_path, without, **WORDS_ONLY) as bare:
        lost = [rank for rank in ranks(bare, "keyword", fuzzy_distance=0) if rank > 50]
    assert len(lost) >= 4
    assert max(ranks(engine, "keyword", fuzzy_distance=0)) <= 5


def test_category_filtering(engine):
    of_operations = {
        path for path, text in documentation().items() if "\ncategory: operations\n" in text
    }
    assert len(of_operations) == 3
    found = engine.paths("server job", top_n=50, filters=Filters(category="Operations"))
    assert set(found) == of_operations
    assert set(engine.paths("server job", top_n=50)) > of_operations
