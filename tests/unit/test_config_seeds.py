"""Every TOML block printed in the documents that the project was born from loads as it stands."""

import re
from pathlib import Path

import pytest

from ragdocs.config.loading import load_config

SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
_BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [
        (f"{seed.name[:3]}-{number}", found[1])
        for seed in sorted(SEEDS.glob("*.txt"))
        for number, found in enumerate(_BLOCK.finditer(seed.read_text(encoding="utf-8")))
    ]


def load(folder: Path, text: str):
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, cwd=folder, environ={})


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the source documents are not beside this checkout")
def test_the_printed_blocks_load(tmp_path):
    found = blocks()

    assert len(found) >= 15
    for _, text in found:
        assert load(tmp_path, text).files


# The same keys with values of our own, for where those documents are not at hand.
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
