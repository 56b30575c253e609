"""Every setting that the design names is there, with its default, and refuses what it must."""

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from ragdocs.config.choices import EmbeddingProvider, Fusion, KeywordEngineName, Pooling, Stemmer
from ragdocs.config.problems import ANY, Setting, key_text, settings, tables
from ragdocs.config.settings import (
    ChunkingConfig,
    ContextConfig,
    EmbeddingConfig,
    IndexingConfig,
    SearchConfig,
    Settings,
)

THREE_KINDS = ("**/*.md", "**/*.markdown", "**/*.mdx", "**/*.canvas", "**/*.txt")

# Written out, so that a changed default is a change that someone meant.
DEFAULTS = {
    "root": False,
    "indexing.documents_path": ".",
    "indexing.index_path": "None",
    "indexing.include": THREE_KINDS,
    "indexing.exclude": (),
    "indexing.respect_gitignore": True,
    "indexing.max_file_bytes": 10_000_000,
    "indexing.debounce_seconds": 0.5,
    "indexing.rescan_interval_seconds": 300.0,
    "indexing.watch": True,
    "context.terms": 50,
    "context.min_term_frequency": 2,
    "context.min_word_length": 4,
    "context.max_word_length": 30,
    "context.rules": (),
    "chunking.min_leaf_chars": 250,
    "chunking.max_leaf_chars": 1000,
    "chunking.min_document_chars": 1200,
    "chunking.overlap_chars": 100,
    "chunking.parent_retrieval_enabled": False,
    "chunking.parent_chunk_min_chars": 1500,
    "chunking.parent_chunk_max_chars": 2000,
    "chunking.parent_overlap_chars": 200,
    "chunking.child_chunk_min_chars": 400,
    "chunking.child_chunk_max_chars": 600,
    "search.semantic_weight": 1.0,
    "search.keyword_weight": 1.0,
    "search.balance_enabled": True,
    "search.document_weight": 0.5,
    "search.closeness_weight": 0.5,
    "search.resemblance_weight": 0.15,
    "search.filter": "",
    "search.graph_weight": 1.0,
    "search.code_search_enabled": True,
    "search.code_search_weight": 0.3,
    "search.fusion": Fusion.SCORE,
    "search.rrf_k_constant": 60,
    "search.recency_bias": 0.5,
    "search.min_confidence": 0.0,
    "search.score_calibration_threshold": 0.446,
    "search.score_calibration_steepness": 12.83,
    "search.max_chunks_per_doc": 2,
    "search.dedup_enabled": False,
    "search.dedup_similarity_threshold": 0.85,
    "search.ngram_dedup_enabled": True,
    "search.ngram_dedup_threshold": 0.85,
    "search.mmr_enabled": False,
    "search.mmr_lambda": 0.7,
    "search.rerank_enabled": False,
    "search.rerank_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
    "search.rerank_top_n": 10,
    "search.rerank_weight": 0.05,
    "search.adaptive_weights_enabled": True,
    "search.query_expansion_enabled": True,
    "search.query_expansion_max_words": 2,
    "search.query_expansion_max_terms": 10_000,
    "search.synonyms_enabled": False,
    "search.keyword_engine": KeywordEngineName.FTS5,
    "search.stemmer": Stemmer.ENGLISH,
    "search.fuzzy_distance": 1,
    "search.merge_threshold": 2,
    "search.merge_bonus": 0.02,
    "search.max_merge_depth": 2,
    "search.max_merge_bytes": 4000,
    "search.first_result_tokens": 500,
    "search.result_tokens": 120,
    "search.cutoff_ratio": 0.3,
    "search.candidate_limit": 0,
    "search.local_boost": 1.5,
    "search.tree_normalisation": 0.0,
    "search.graph_depth": 1,
    "search.graph_neighbor_weight": 0.5,
    "search.boosts.title": 3.0,
    "search.boosts.headers": 2.5,
    "search.boosts.keywords": 2.5,
    "search.boosts.description": 2.0,
    "search.boosts.tags": 2.0,
    "search.boosts.path": 2.0,
    "search.boosts.aliases": 1.5,
    "search.boosts.author": 1.0,
    "search.boosts.content": 1.0,
    "search.advanced.community_detection_enabled": True,
    "search.advanced.community_boost_factor": 1.1,
    "search.advanced.dynamic_weights_enabled": False,
    "search.advanced.variance_threshold": 0.1,
    "search.advanced.min_weight_factor": 0.5,
    "search.advanced.hyde_enabled": True,
    "embedding.provider": EmbeddingProvider.BUILTIN,
    "embedding.model": "all-MiniLM-L6-v2",
    "embedding.model_file": "auto",
    "embedding.pooling": Pooling.AUTO,
    "embedding.query_prefix": "auto",
    "embedding.passage_prefix": "auto",
    "embedding.batch_size": 32,
    "embedding.threads": 0,
    "embedding.device": "auto",
    "embedding.cache_folder": "None",
    "embedding.local_files_only": False,
    "embedding.url": "",
    "embedding.allow_remote": False,
    "embedding.timeout_seconds": 20.0,
    "embedding.retries": 2,
    "embedding.class_name": "",
    "embedding.arguments": {},
    "lint.select": (),
    "lint.ignore": (),
    "lint.stale_days": 0,
    "lint.near_copy_threshold": 0.9,
    "terminal.links": "auto",
}


def value_at(whole: Settings, key: str) -> object:
    value: object = whole
    for part in key.split("."):
        value = getattr(value, part)
    return value


def nested(setting: Setting, value: object) -> dict[str, object]:
    for part in reversed(setting.path):
        value = {str(part): value}
    return value  # type: ignore[return-value]


def refused(setting: Setting, value: object) -> bool:
    try:
        Settings.model_validate(nested(setting, value), context={"partial": True})
    except ValidationError:
        return True
    return False


def plain_settings() -> list[Setting]:
    return [one for one in settings().values() if ANY not in one.path]


def with_type(kind: type) -> list[Setting]:
    return [one for one in plain_settings() if type(one.default) is kind]


def named(setting: Setting) -> str:
    return key_text(setting.path)


def test_the_settings_are_exactly_these():
    assert {key_text(one.path) for one in plain_settings()} == set(DEFAULTS)


@pytest.mark.parametrize(("key", "default"), DEFAULTS.items())
def test_default(key, default):
    value = value_at(Settings(), key)

    assert (
        str(value) if isinstance(default, str) and default in (".", "None") else value
    ) == default


def test_every_setting_has_one_line_that_says_what_it_does():
    for one in settings().values():
        assert one.description.endswith("."), one.path
        assert "\n" not in one.description
        assert one.allowed


def test_every_table_says_what_it_is_for():
    assert all(table.description for table in tables())


@pytest.mark.parametrize("setting", with_type(int) + with_type(float), ids=named)
def test_numbers_have_a_range_that_holds(setting):
    lowest, highest = (float(text) for text in setting.allowed.split("from ")[1].split(" to "))
    step = 1 if isinstance(setting.default, int) else 0.001
    kind = type(setting.default)

    assert not refused(setting, kind(lowest))
    assert not refused(setting, kind(highest))
    assert refused(setting, kind(lowest - step) if kind is int else lowest - step)
    assert refused(setting, kind(highest + step) if kind is int else highest + step)


@pytest.mark.parametrize("setting", with_type(int), ids=named)
@pytest.mark.parametrize("value", [True, 2.0, "2", [2], {}, math.nan])
def test_a_whole_number_is_nothing_else(setting, value):
    assert refused(setting, value)


@pytest.mark.parametrize("setting", with_type(float), ids=named)
@pytest.mark.parametrize("value", [True, "0.5", [0.5], math.nan, math.inf, -math.inf, 10**400])
def test_a_number_is_finite_and_nothing_else(setting, value):
    assert refused(setting, value)


@pytest.mark.parametrize("setting", with_type(float), ids=named)
def test_a_number_may_be_written_without_a_point(setting):
    assert not refused(setting, 1)


@pytest.mark.parametrize("setting", with_type(bool), ids=named)
@pytest.mark.parametrize("value", [0, 1, "true", "yes", None])
def test_a_switch_is_true_or_false(setting, value):
    assert refused(setting, value)


@pytest.mark.parametrize(
    "key", ["search.fusion", "search.keyword_engine", "search.stemmer", "embedding.provider"]
)
def test_a_choice_takes_each_of_its_words_and_no_other(key):
    setting = next(one for one in plain_settings() if key_text(one.path) == key)
    words = setting.allowed.split('"')[1::2]

    assert len(words) >= 2
    assert not any(refused(setting, word) for word in words)
    assert refused(setting, "something else")
    assert refused(setting, words[0].upper())


def test_the_stemmers_are_the_eighteen_of_the_design():
    assert len(Stemmer) == 18


def test_lists_hold_strings_that_are_not_empty():
    assert IndexingConfig(include=["a"]).include == ("a",)  # type: ignore[arg-type]
    for wrong in ("a", [1], [""], ["  "], ["a\nb"], {"a": 1}):
        with pytest.raises(ValidationError):
            IndexingConfig(exclude=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["docs", "a", "notes-2024", "my_notes", "v1.2", "Ελληνικά", "_x"])
def test_tree_names_that_are_fine(name):
    whole = Settings.model_validate({"tree": {name: {"path": Path("x")}}})

    assert list(whole.tree) == [name]


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "a b", "#", "-a", ".", "..", "a\n", "x" * 101])
def test_tree_names_that_would_break_an_id(name):
    with pytest.raises(ValidationError, match="a tree name"):
        Settings.model_validate({"tree": {name: {"path": Path("x")}}})


@pytest.mark.parametrize(
    ("section", "values", "why"),
    [
        (ChunkingConfig, {"min_leaf_chars": 1001}, "min_leaf_chars must not be greater"),
        (ChunkingConfig, {"parent_chunk_max_chars": 1499}, "parent_chunk_min_chars must not be"),
        (ChunkingConfig, {"child_chunk_min_chars": 601}, "child_chunk_min_chars must not be"),
        (ChunkingConfig, {"overlap_chars": 1000}, "overlap_chars must be less than max_leaf_chars"),
        (
            ChunkingConfig,
            {"overlap_chars": 600, "parent_retrieval_enabled": True},
            "overlap_chars must be less than child_chunk_max_chars",
        ),
        (
            ChunkingConfig,
            {"child_chunk_max_chars": 2001, "parent_retrieval_enabled": True},
            "child_chunk_max_chars must not be greater than parent_chunk_max_chars",
        ),
        (ContextConfig, {"min_word_length": 31}, "min_word_length must not be greater"),
    ],
)
def test_settings_that_contradict_each_other(section, values, why):
    with pytest.raises(ValidationError, match=why):
        section(**values)


def test_sizes_of_parent_retrieval_do_not_bind_while_it_is_off():
    assert ChunkingConfig(overlap_chars=700).overlap_chars == 700


@pytest.mark.parametrize("device", ["auto", "cpu", "mps", "cuda", "cuda:0", "cuda:12"])
def test_devices(device):
    assert EmbeddingConfig(device=device).device == device


@pytest.mark.parametrize("device", ["", "gpu", "cuda:", "cuda:x", "cpu:0", "CPU"])
def test_invalid_device_names(device):
    with pytest.raises(ValidationError):
        EmbeddingConfig(device=device)


def test_sections_are_frozen():
    with pytest.raises(ValidationError):
        SearchConfig().mmr_lambda = 0.1  # type: ignore[misc]


def test_sections_have_no_unknown_key():
    with pytest.raises(ValidationError):
        SearchConfig(nothing=1)  # type: ignore[call-arg]
