"""Every TOML block printed in the documents that the project was born from loads as it stands."""

from pathlib import Path
from typing import Any

import pytest

from ragdocs.config.loading import load_config
from ragdocs.text import toml_value

SETTINGS: list[dict[str, dict[str, Any]]] = [
    {
        "search": {
            "semantic_weight": 1.0,
            "keyword_weight": 1.0,
            "recency_bias": 0.5,
            "rrf_k_constant": 60,
            "min_confidence": 0.3,
            "max_chunks_per_doc": 0,
            "dedup_enabled": False,
            "dedup_similarity_threshold": 0.85,
            "rerank_enabled": False,
            "rerank_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
            "rerank_top_n": 10,
        }
    },
    {"search": {"adaptive_weights_enabled": True}},
    {"search": {"code_search_enabled": True, "code_search_weight": 1.0}},
    {
        "search": {
            "rerank_enabled": True,
            "rerank_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
            "rerank_top_n": 10,
        }
    },
    {"search": {"advanced": {"community_detection_enabled": True, "community_boost_factor": 1.1}}},
    {"search": {"advanced": {"dynamic_weights_enabled": True, "variance_threshold": 0.1}}},
    {"search": {"advanced": {"hyde_enabled": True}}},
    {
        "search": {
            "score_calibration_threshold": 0.035,
            "score_calibration_steepness": 150.0,
            "min_confidence": 0.3,
        }
    },
    {"search": {"semantic_weight": 1.0, "keyword_weight": 1.0, "recency_bias": 0.5}},
    {"search": {"semantic_weight": 0.8, "keyword_weight": 1.5, "recency_bias": 0.3}},
    {"search": {"semantic_weight": 1.3, "keyword_weight": 0.7, "recency_bias": 0.8}},
    {"search": {"semantic_weight": 1.5, "keyword_weight": 0.5, "recency_bias": 0.0}},
    {"search": {"ngram_dedup_enabled": True, "ngram_dedup_threshold": 0.7}},
    {"search": {"mmr_enabled": True, "mmr_lambda": 0.7}},
    {
        "chunking": {
            "parent_retrieval_enabled": True,
            "parent_chunk_min_chars": 1500,
            "parent_chunk_max_chars": 2000,
        }
    },
    {
        "search": {
            "mmr_enabled": False,
            "mmr_lambda": 0.7,
            "ngram_dedup_enabled": True,
            "ngram_dedup_threshold": 0.7,
            "parent_retrieval_enabled": False,
        },
        "chunking": {
            "parent_chunk_min_chars": 1500,
            "parent_chunk_max_chars": 2000,
            "child_chunk_min_chars": 400,
            "child_chunk_max_chars": 600,
        },
    },
    {"search": {"merge_threshold": 2, "merge_bonus": 0.1, "max_merge_depth": 2}},
]
"""What those documents set, block by block: keys and values alone."""
MOVED = {("search", "parent_retrieval_enabled"): "chunking"}
"""Settings that may stand in another section than the one they are in."""


def load(folder: Path, text: str):
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, cwd=folder, environ={})


def written(settings: dict[str, Any], section: str) -> str:
    """As TOML, subsections last."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    lines = [f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in plain.items())]
    inner = (written(settings[key], f"{section}.{key}") for key in settings if key not in plain)
    return "\n".join([*lines, *inner, ""])


def in_force(config: object, settings: dict[str, Any]) -> dict[str, Any]:
    """The same keys, as they are in the configuration."""
    return {
        key: in_force(getattr(config, key), value)
        if isinstance(value, dict)
        else getattr(config, key)
        for key, value in settings.items()
    }


@pytest.mark.parametrize("block", SETTINGS, ids=range(len(SETTINGS)))
def test_the_printed_blocks_are_in_force_as_they_stand(tmp_path, block):
    config = load(tmp_path, "".join(written(block[section], section) for section in block))
    for section, settings in block.items():
        for key, value in settings.items():
            place = getattr(config, MOVED.get((section, key), section))
            assert in_force(place, {key: value}) == {key: value}


# The same keys with other values.
FORMS = {
    "weights": "[search]\nsemantic_weight = 1.3\nkeyword_weight = 0.7\nrecency_bias = 0.8\n",
    "fusion": "[search]\nrrf_k_constant = 50\nmin_confidence = 0.25\n",
    "clusters": "[search]\nmax_chunks_per_doc = 2\ndedup_enabled = true\n"
    "dedup_similarity_threshold = 0.9\n",
    "rerank": '[search]\nrerank_enabled = true\nrerank_model = "a/b"\nrerank_top_n = 5\n',
    "kinds of query": "[search]\nadaptive_weights_enabled = false\n",
    "code": "[search]\ncode_search_enabled = true\ncode_search_weight = 1.0\n",
    "communities": "[search.advanced]\ncommunity_detection_enabled = true\n"
    "community_boost_factor = 1.2\n",
    "spread": "[search.advanced]\ndynamic_weights_enabled = true\nvariance_threshold = 0.2\n",
    "hyde": "[search.advanced]\nhyde_enabled = false\n",
    "calibration": "[search]\nscore_calibration_threshold = 0.03\n"
    "score_calibration_steepness = 100.0\n",
    "n-grams": "[search]\nngram_dedup_enabled = true\nngram_dedup_threshold = 0.6\n",
    "diversity": "[search]\nmmr_enabled = true\nmmr_lambda = 0.5\n",
    "parents": "[chunking]\nparent_retrieval_enabled = true\nparent_chunk_min_chars = 1600\n"
    "parent_chunk_max_chars = 1800\n",
    "parents, switched in [search]": "[search]\nparent_retrieval_enabled = true\n[chunking]\n"
    "child_chunk_min_chars = 300\nchild_chunk_max_chars = 500\n",
    "merging": "[search]\nmerge_threshold = 3\nmerge_bonus = 0.2\nmax_merge_depth = 1\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_forms_of_those_blocks_load(tmp_path, text):
    assert load(tmp_path, text).files


def test_both_places_of_parent_retrieval_mean_the_same(tmp_path):
    here = load(tmp_path, "[chunking]\nparent_retrieval_enabled = true\n")
    there = load(tmp_path, "[search]\nparent_retrieval_enabled = true\n")

    assert here.chunking == there.chunking
