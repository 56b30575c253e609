"""Figures of others, to stand beside ours; none of them was measured here.

`REFERENCE`: nDCG@10 of a plain hybrid of a hundred lines with the same model (passages of up to 800
characters, FTS5's `bm25()`, `½ vector + ½ keyword` scaled for each query), which the project
set out to beat. `TOOLS`: what obsidian-hybrid-search publishes for the set obsidian-help, of
itself and of qmd; a document counts as relevant from grade 2. Both have multilingual models, and
six of the 58 queries are not in English; with so few queries, differences under .06 are noise.
"""

from collections.abc import Mapping

REFERENCE: Mapping[str, float] = {
    "obsidian-help": 0.704,
    "anthropic-docs-sections": 0.827,
    "codebase-qa": 0.928,
    "mdn-anchors-small": 0.821,
    "cosqa": 0.574,
    "cranfield": 0.561,
    "scifact": 0.731,
}
TOOLS_SET, TOOLS_LEVEL = "obsidian-help", 2.0
TOOLS: Mapping[str, Mapping[str, float]] = {
    "obsidian-hybrid-search": {"nDCG@5": 0.733, "MRR@10": 0.788, "Hit@1": 0.724},
    "… with a re-ranker": {"nDCG@5": 0.736, "MRR@10": 0.780, "Hit@1": 0.672},
    "qmd, whole pipeline": {"nDCG@5": 0.659, "MRR@10": 0.665, "Hit@1": 0.500},
}
