from datetime import UTC, datetime, timedelta, timezone

import pytest

from ragdocs.indices.conditions import Comparison, FilterField, Operator, compile_filter
from ragdocs.search.requests import Filters, to_filter
from ragdocs.search.stages import filter_matching
from tests.support.engine import ParsedCorpus
from tests.support.stores import is_match

NOTE = """---
title: Tokens
author: [Ada Lovelace, Grace Hopper]
category: How-To
tags: [Security, topic/auth/oauth]
date: 2024-05-06T12:00:00+02:00
---
Words.
"""
CORPUS = ParsedCorpus().add("api/v1/tokens.md", NOTE).add("apis.md", "Words.\n")
TOKENS = CORPUS.documents["api/v1/tokens.md"]
APIS = CORPUS.documents["apis.md"]


def test_no_filter_lets_every_document_through():
    assert is_match(Filters(), TOKENS)
    assert is_match(Filters(), APIS)


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [
        ("api", True), ("api/", True), ("./api/v1", True), ("/api/v1/tokens.md", True), ("", True),
        ("ap", False), ("api/v1/tok", False), ("apis.md", False), ("v1", False), ("../api", False),
        ("API", False),
    ],
)  # fmt: skip
def test_paths_are_prefixes_by_whole_components(path, is_inside):
    assert is_match(Filters(paths=(path,)), TOKENS) is is_inside


def test_one_of_several_paths_is_enough():
    assert is_match(Filters(paths=("guides", "apis.md")), APIS)


def test_a_path_typed_composed_finds_a_file_named_decomposed():
    corpus = ParsedCorpus().add("cafe\u0301/menu.md", "Words.\n")
    assert is_match(Filters(paths=("caf\u00e9",)), corpus.documents["cafe\u0301/menu.md"])


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("api/v1/tokens.md", False), ("tokens.md", False), ("api", False),
        ("docs:api/v1/tokens.md", False), ("apis.md", True), ("okens.md", True), ("", True),
    ],
)  # fmt: skip
def test_excluded_files(name, is_kept):
    assert is_match(Filters(excluded_files=(name,)), TOKENS) is is_kept


@pytest.mark.parametrize(
    ("tag", "has"),
    [
        ("security", True), ("#Security", True), ("topic", True), ("topic/auth", True),
        ("Topic/Auth/OAuth", True), ("top", False), ("topic/au", False), ("auth", False),
    ],
)  # fmt: skip
def test_a_tag_stands_for_those_nested_below_it(tag, has):
    assert is_match(Filters(tags=frozenset({tag})), TOKENS) is has


def test_every_tag_must_be_there():
    assert is_match(Filters(tags=frozenset({"security", "topic"})), TOKENS)
    assert not is_match(Filters(tags=frozenset({"security", "other"})), TOKENS)


@pytest.mark.parametrize("author", ["ada lovelace", "GRACE HOPPER", "Ada Lovelace, Grace Hopper"])
def test_an_author_is_matched_without_regard_to_case(author):
    assert is_match(Filters(author=author), TOKENS)
    assert not is_match(Filters(author=author), APIS)


def test_part_of_a_name_is_another_name():
    assert not is_match(Filters(author="Ada"), TOKENS)


def test_category_and_tree():
    assert is_match(Filters(category="how-to", trees=frozenset({"docs"})), TOKENS)
    assert not is_match(Filters(category="reference"), TOKENS)
    assert not is_match(Filters(trees=frozenset({"notes"})), TOKENS)


TEN_UTC = datetime(2024, 5, 6, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "is_after"),
    [
        (TEN_UTC, True),
        (TEN_UTC + timedelta(seconds=1), False),
        (datetime(2024, 5, 6, 19, tzinfo=timezone(timedelta(hours=9))), True),
        (datetime(2024, 5, 6, 10), True),
        (datetime(2024, 5, 6, 12), False),
    ],
)
def test_dates_are_compared_across_time_zones(moment, is_after):
    assert is_match(Filters(modified_after=moment), TOKENS) is is_after


def test_before_and_after_together_are_a_range():
    day = timedelta(days=1)
    within = Filters(modified_after=TEN_UTC - day, modified_before=TEN_UTC)
    assert is_match(within, TOKENS)
    assert not is_match(Filters(modified_before=TEN_UTC - day), TOKENS)


def test_every_filter_given_must_hold():
    assert not is_match(Filters(author="ada lovelace", paths=("guides",)), TOKENS)


def test_candidates_are_judged_by_their_document():
    items = [CORPUS.candidate("apis.md"), CORPUS.candidate("api/v1/tokens.md")]
    assert filter_matching(items, to_filter(Filters(paths=("api",)))) == items[1:]


def test_a_document_is_let_through_by_its_id():
    matches = compile_filter(
        Comparison(FilterField.DOCUMENT, Operator.ONE_OF, frozenset({APIS.id}))
    )
    assert matches is not None
    assert (matches(APIS), matches(TOKENS)) == (True, False)
