"""How good the search is on labelled sets: the product, each of its two halves alone, plain RRF.

Sets are folders as `ragdocs eval` takes them (docs/evaluation.md). Each corpus is indexed once, in
the user's cache. Without arguments: the project's own benchmark, and those of the usual sets that
lie beside this clone; `--all` asks the large ones too. `--ablate` names sets for which every part
of the search is switched off in turn. The product is asked twice on the first set: the rankings
must be the same.

    python benchmarks/quality.py [SET ...] [--all] [--metric nDCG@10] [--ablate NAME ...]
"""

import argparse
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from places import OWN_SET, shared_set
from published import REFERENCE, TOOLS_LEVEL, TOOLS_SET
from readings import Reading, note

from ragdocs import __version__
from ragdocs.app import App
from ragdocs.cli.index_run import IndexingOptions, run
from ragdocs.cli.progress import display
from ragdocs.config.choices import Fusion
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.metrics import METRICS, Estimate
from ragdocs.evaluation.run import Answers, Judge, Measured, ask_all, settings_for, without_each
from ragdocs.shutdown import Ending

SMALL = (
    "obsidian-help",
    "anthropic-docs-sections",
    "codebase-qa",
    "mdn-anchors-small",
    "cranfield",
)
LARGE = ("cosqa", "scifact", "mdn-anchors")
"""The last takes half an hour to embed."""
PRODUCT, KEYWORDS, VECTORS = "product", "keywords alone", "vectors alone"
VARIANTS: Mapping[str, Mapping[str, object]] = {
    PRODUCT: {},
    KEYWORDS: {"semantic_weight": 0.0},
    VECTORS: {"keyword_weight": 0.0},
    "rank fusion": {"fusion": Fusion.RRF},
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One set with its index, and the answers of the product to it."""

    labelled: LabelledSet
    config: Config
    embedder: Embedder
    product: Answers

    @property
    def name(self) -> str:
        return self.labelled.folder.name


def main() -> None:
    parser = argparse.ArgumentParser(description="Search quality on labelled sets.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="the large sets too")
    parser.add_argument("--metric", default="nDCG@10", choices=METRICS)
    parser.add_argument("--ablate", nargs="*", default=())
    given = parser.parse_args()
    print(f"ragdocs {__version__}, Python {platform.python_version()}, {platform.machine()}\n")
    folders = given.sets or usual_sets(everything=given.all)
    print(f"{given.metric} with its 95 % interval; p50 of a query's time\n")
    print("| set | queries | " + " | ".join(VARIANTS) + " | ms |")
    print("|---|--:|" + "--:|" * (len(VARIANTS) + 1))
    asked: list[Asked] = []
    ahead: list[float] = []
    for folder in folders:
        one = ask(read_set(folder))
        found = measure(one)
        asked.append(one)
        note_all(one.name, found)
        print(row(one, given.metric, found), flush=True)
        if one.name in REFERENCE:
            ahead.append(found[0].metrics["nDCG@10"].mean - REFERENCE[one.name])
    if len(ahead) == len(REFERENCE):
        mean = sum(ahead) / len(ahead)
        note(_difference("product - reference", "mean of seven sets", mean))
        print(f"\nBeside the reference hybrid, mean of {len(ahead)} sets: {mean:+.3f} nDCG@10.")
    for one in asked:
        show_further(one, is_first=one is asked[0], ablated=one.name in given.ablate)


def usual_sets(*, everything: bool) -> list[Path]:
    names = SMALL + LARGE if everything else SMALL
    there = [found for name in names if (found := shared_set(name))]
    if len(there) < len(names):
        print(f"{len(names) - len(there)} sets are not beside this clone and are left out.\n")
    return [OWN_SET, *there]


def ask(labelled: LabelledSet) -> Asked:
    config = settings_for(labelled.folder, None)
    index(config)
    embedder = App(config).embedder
    return Asked(labelled, config, embedder, answers(labelled, config, embedder))


def answers(labelled: LabelledSet, config: Config, embedder: Embedder) -> Answers:
    with App(config, embedder) as app:
        return ask_all(app, labelled.queries)


def measure(one: Asked) -> list[Measured]:
    judge = Judge(one.labelled)
    measured = [judge.measure(PRODUCT, one.product)]
    for label, settings in list(VARIANTS.items())[1:]:
        search = one.config.search.model_copy(update=dict(settings))
        config = replace(one.config, search=search)
        measured.append(judge.measure(label, answers(one.labelled, config, one.embedder)))
    return measured


def row(one: Asked, metric: str, measured: Sequence[Measured]) -> str:
    found = [each.metrics[metric] for each in measured]
    cells = [f"{each.mean:.3f} [{each.low:.3f}, {each.high:.3f}]" for each in found]
    latency = measured[0].latency
    assert latency
    queries = len(one.labelled.labels)
    return f"| {one.name} | {queries} | " + " | ".join(cells) + f" | {latency.p50_ms:.0f} |"


def note_all(name: str, measured: Sequence[Measured]) -> None:
    for one in measured:
        note(*(_quality(one.label, name, at, found) for at, found in one.metrics.items()))
    product, *others = (one.metrics["nDCG@10"].mean for one in measured)
    better = max(others[: len((KEYWORDS, VECTORS))])
    note(_difference("product - better part", name, product - better))
    if name in REFERENCE:
        note(_difference("product - reference", name, product - REFERENCE[name]))


def show_further(one: Asked, *, is_first: bool, ablated: bool) -> None:
    if is_first:
        again = answers(one.labelled, one.config, one.embedder)
        changed = sum(again.ranked[query] != one.product.ranked[query] for query in again.ranked)
        print(f"\nAsked again, {changed} of {len(again.ranked)} rankings differ.")
        note(Reading(what="repeated", of="changed rankings", value=changed, unit="queries"))
    if one.name == TOOLS_SET:
        strict = Judge(one.labelled, TOOLS_LEVEL).measure(PRODUCT, one.product)
        found = ", ".join(f"{at} {each.mean:.3f}" for at, each in strict.metrics.items())
        print(f"\n{one.name}, relevant from grade {TOOLS_LEVEL:g}: {found}")
        where = f"{one.name}, grade {TOOLS_LEVEL:g}"
        note(*(_quality(PRODUCT, where, at, each) for at, each in strict.metrics.items()))
    if ablated:
        print(f"\n{one.name}: nDCG@10 without a part, less that of the product")
        print("\n| without | difference |\n|---|--:|")
        for line in ablation(one):
            print(line, flush=True)


def ablation(one: Asked) -> Iterator[str]:
    judge = Judge(one.labelled)
    for variant in without_each(one.config):
        index(variant.config)
        found = answers(one.labelled, variant.config, one.embedder)
        measured = judge.measure(variant.part, found)
        difference = judge.difference(measured, found.ranked, one.product.ranked)
        change = difference.metrics["nDCG@10"]
        note(_estimated("ablation", variant.part, one.name, "nDCG@10", change))
        interval = f"[{change.low:+.4f}, {change.high:+.4f}]{' *' if change.is_clear else ''}"
        yield f"| {variant.part} | {change.mean:+.4f} {interval} |"


def index(config: Config) -> None:
    with Ending(watch_parent=False) as ending, closing(display(quiet=True)) as shown:
        run(config, IndexingOptions(rebuild=False), ending, shown)


def _quality(of: str, where: str, at: str, found: Estimate) -> Reading:
    return _estimated("quality", of, where, at, found)


def _estimated(what: str, of: str, where: str, at: str, found: Estimate) -> Reading:
    low, high = found.low, found.high
    return Reading(what=what, of=of, where=where, at=at, value=found.mean, low=low, high=high)


def _difference(of: str, where: str, value: float) -> Reading:
    return Reading(what="difference", of=of, where=where, at="nDCG@10", value=value)


if __name__ == "__main__":
    main()
