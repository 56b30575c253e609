"""What each phase of the source documents' plan brings: the table that their appendix leaves empty.

Every phase has the settings that are printed there, on top of those of the phase before; the last
row is the program with its defaults. The baseline embeds passages without their headings, knows
neither titles nor headings as fields, and fuses ranks. Each set is asked of its own index, one for
each way of cutting and embedding. Latency is CPU time, which other work on the machine disturbs
less than the clock.

    python benchmarks/phases.py [SET ...] [--rerank-model DIR]

A cross-encoder does not come with the install: phase 2 has it only with `--rerank-model`.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from places import shared_set
from readings import Reading, note

from ragdocs.app import App
from ragdocs.config.choices import Fusion
from ragdocs.config.locations import IndexPlace
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.run import Judge, ask_all, results_for, settings_for
from ragdocs.search.requests import QueryRequest

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETS = ("obsidian-help", "anthropic-docs-sections", "codebase-qa")
METRICS = ("nDCG@5", "nDCG@10", "MRR@10")
DOCUMENTS = 10

Settings = Mapping[str, Mapping[str, Any]]
"""Section → setting → value."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Settings on top of those of the phase before; `has_headings` is P2."""

    name: str
    settings: Settings
    has_headings: bool = True


PLAIN_FIELDS = {"content": 1.0, "tags": 1.0, "aliases": 1.0}
ALL_FIELDS = ("title", "headers", "keywords", "description", "tags", "path", "aliases", "author")
BASELINE: Settings = {
    "chunking": {"min_leaf_chars": 200, "max_leaf_chars": 1500, "min_document_chars": 200},
    "search": {
        "fusion": Fusion.RRF,
        "balance_enabled": False,
        "document_weight": 0.0,
        "closeness_weight": 0.0,
        "resemblance_weight": 0.0,
        "code_search_enabled": False,
        "adaptive_weights_enabled": False,
        "query_expansion_enabled": False,
        "ngram_dedup_enabled": False,
        "max_chunks_per_doc": 0,
        "merge_threshold": 0,
        "cutoff_ratio": 0.0,
        "fuzzy_distance": 0,
    },
    "search.boosts": dict.fromkeys(ALL_FIELDS, 0.0) | PLAIN_FIELDS,
    "search.advanced": {"community_detection_enabled": False},
}
BOOSTED = {
    "title": 3.0,
    "headers": 2.5,
    "keywords": 2.5,
    "description": 2.0,
    "tags": 2.0,
    "aliases": 1.5,
    "author": 1.0,
}
CALIBRATED = {
    "score_calibration_threshold": 0.035,
    "score_calibration_steepness": 150.0,
    "min_confidence": 0.3,
}


def phases(rerank_model: Path | None) -> Iterator[Phase]:
    yield Phase("baseline", BASELINE, has_headings=False)
    limits = {"max_chunks_per_doc": 2, "dedup_enabled": True, "dedup_similarity_threshold": 0.85}
    yield Phase("phase 1 (P2, P4, P8, P9, P10)", {"search": limits, "search.boosts": BOOSTED})
    every = {"query_expansion_enabled": True, "query_expansion_max_words": 0}
    yield Phase("phase 2 (P1)", {"search": every})
    if rerank_model:
        rerank = {"rerank_enabled": True, "rerank_model": rerank_model}
        yield Phase("phase 2 (P1, P6)", {"search": rerank})
    adaptive = {"adaptive_weights_enabled": True, "code_search_enabled": True}
    yield Phase("phase 3 (P3, P7)", {"search": adaptive | {"code_search_weight": 1.0}})
    diverse = {"mmr_enabled": True, "mmr_lambda": 0.7, "dedup_enabled": False}
    ngram = {"ngram_dedup_enabled": True, "ngram_dedup_threshold": 0.7}
    parents = {"parent_retrieval_enabled": True}
    yield Phase("phase 4 (P11, P12, P13)", {"search": diverse | ngram, "chunking": parents})


class WithoutHeadings:
    """An embedder that is given passages without the headings above them."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.name, self.dimension = f"{model.name} without headings", model.dimension
        self.max_tokens, self.counts, self.notes = model.max_tokens, model.counts, model.notes

    @property
    def identity(self) -> str:
        return f"{self._model.identity} without headings"

    def load(self) -> None:
        self._model.load()

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._model.embed_documents([text.partition("\n\n")[2] or text for text in texts])

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        return self._model.embed_query(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="What each phase of the plan brings.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--rerank-model", type=Path)
    given = parser.parse_args()
    for folder in given.sets or [found for name in SETS if (found := shared_set(name))]:
        labelled = read_set(folder)
        print(f"{folder.name}: {len(labelled.labels)} questions\n")
        print(f"| | {' | '.join(METRICS)} | CPU p50, ms | p95 |\n|---|" + "--:|" * 5)
        for name, config, model in variants(labelled, given.rerank_model):
            show(name, labelled, config, model)
        print()


def variants(
    labelled: LabelledSet, rerank_model: Path | None
) -> Iterator[tuple[str, Config, Embedder]]:
    product = settings_for(labelled.folder, None)
    model = App(product).embedder
    config = product
    for phase in phases(rerank_model):
        config = changed(config, phase.settings)
        embedder = model if phase.has_headings else WithoutHeadings(model)
        yield phase.name, beside(config, phase), embedder
        if phase.name.startswith("phase 1"):
            printed = changed(config, {"search": CALIBRATED})
            yield "… with `min_confidence` 0.3 as printed", beside(printed, phase), embedder
    yield "defaults", product, model


def changed(config: Config, settings: Settings) -> Config:
    for section, values in settings.items():
        outer, _, inner = section.partition(".")
        chosen = getattr(config, outer)
        part = getattr(chosen, inner).model_copy(update=dict(values)) if inner else None
        update = {inner: part} if inner else dict(values)
        config = replace(config, **{outer: chosen.model_copy(update=update)})
    return config


def beside(config: Config, phase: Phase) -> Config:
    """Uses a separate index for passages without headings, because another embedder writes it."""
    if phase.has_headings:
        return config
    folder = config.index_place.folder
    return replace(config, index_place=IndexPlace(folder.with_name(f"{folder.name}-bare")))


def show(name: str, labelled: LabelledSet, config: Config, model: Embedder) -> None:
    with App(config, model) as app:
        with app.manager() as manager:
            manager.update()
            manager.fill()
        found = Judge(labelled).measure(name, ask_all(app, labelled.queries)).metrics
        taken = [spent(app, query.text) for query in labelled.queries]
    p50, p95 = (float(np.quantile(taken, part)) for part in (0.5, 0.95))
    where = labelled.folder.name
    for at in METRICS:
        note(Reading(what="quality", of=name, where=where, at=at, value=found[at].mean))
    for at, value in (("p50, CPU", p50), ("p95, CPU", p95)):
        note(Reading(what="latency", of=name, where=where, at=at, value=value, unit="ms"))
    figures = " | ".join(f"{found[at].mean:.3f}" for at in METRICS)
    print(f"| {name} | {figures} | {p50:.1f} | {p95:.1f} |", flush=True)


def spent(app: App, text: str) -> float:
    """Milliseconds of CPU, all threads."""
    top_n = results_for(DOCUMENTS, app.config.search.max_chunks_per_doc)
    began = time.process_time()
    app.search(QueryRequest(queries=(text,), top_n=top_n))
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    main()
