"""How good the search is on labelled sets: the product, each of its two halves alone, plain RRF.

Sets are folders as `ragdocs eval` takes them (docs/evaluation.md). Each corpus is indexed once, in
the user's cache. Without arguments: the project's own benchmark, and the smaller of the sets that
lie beside this clone, where there are any.

    python benchmarks/quality.py [SET ...] [--metric nDCG@10] [--plot FILE.svg]
"""

import argparse
import platform
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ragdocs import __version__
from ragdocs.app import App
from ragdocs.cli.index_run import Orders, run
from ragdocs.cli.progress import display
from ragdocs.config.choices import Fusion
from ragdocs.config.resolved import Config
from ragdocs.evaluation.evaluating import settings_for
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.measuring import Judge, Measured
from ragdocs.evaluation.metrics import METRICS
from ragdocs.evaluation.pictures import bars
from ragdocs.evaluation.running import ask_all
from ragdocs.lifecycle import Ending

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared" / "eval"
SMALL = ("obsidian-help", "anthropic-docs-sections", "codebase-qa")
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "product": {},
    "keywords alone": {"semantic_weight": 0.0},
    "vectors alone": {"keyword_weight": 0.0},
    "rank fusion": {"fusion": Fusion.RRF},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Search quality on labelled sets.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--metric", default="nDCG@10", choices=METRICS)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    folders = given.sets or [PROJECT / "tests" / "fixtures" / "benchmark", *shared_sets()]
    print(f"ragdocs {__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"{given.metric} with its 95 % interval; p50 of a query's time\n")
    print("| set | queries | " + " | ".join(VARIANTS) + " | ms |")
    print("|---|--:|" + "--:|" * (len(VARIANTS) + 1))
    groups = {}
    for folder in folders:
        measured = measure(read_set(folder))
        found = groups[folder.name] = [one.metrics[given.metric] for one in measured]
        cells = [f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in found]
        latency = measured[0].latency
        assert latency
        queries = len(read_set(folder).labels)
        print(f"| {folder.name} | {queries} | " + " | ".join(cells) + f" | {latency.p50_ms:.0f} |")
    if given.plot:
        given.plot.write_text(bars(given.metric, list(VARIANTS), groups), encoding="utf-8")


def shared_sets() -> list[Path]:
    return [SHARED / name for name in SMALL if (SHARED / name).is_dir()]


def measure(labelled: LabelledSet) -> list[Measured]:
    config = settings_for(labelled.folder, None)
    index(config)
    embedder = App(config).embedder
    judge = Judge(labelled)
    measured: list[Measured] = []
    for label, settings in VARIANTS.items():
        search = config.search.model_copy(update=dict(settings))
        with App(replace(config, search=search), embedder) as app:
            measured.append(judge.measured(label, ask_all(app, labelled.queries)))
    return measured


def index(config: Config) -> None:
    with Ending(watch_parent=False) as ending, closing(display(quiet=False)) as shown:
        run(config, Orders(rebuild=False), ending, shown)


if __name__ == "__main__":
    main()
