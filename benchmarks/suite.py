"""The list of benchmarks, with the arguments of each by how long you are ready to wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

STORES = "{stores}"
"""Stands for a folder in which the benchmarks of one run share stores."""


class Extent(StrEnum):
    """How much is measured."""

    TINY = "tiny"
    USUAL = "usual"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A program with its arguments; `size` is said of numbers that do not say it themselves.

    `needs`: sets that must lie beside this clone, and are given to it first; not in a tiny run.
    `only_full`: otherwise it must be asked for by its name.
    """

    name: str
    program: str
    tiny: str
    usual: str = ""
    full: str | None = None
    size: Mapping[Extent, int] | None = None
    needs: tuple[str, ...] = ()
    only_full: bool = False

    def arguments(self, extent: Extent) -> str:
        if extent is Extent.TINY:
            return self.tiny
        return self.full if extent is Extent.FULL and self.full is not None else self.usual

    def size_at(self, extent: Extent) -> int:
        return (self.size or {}).get(extent, 0)


CALIBRATED = (
    "obsidian-help",
    "anthropic-docs-sections",
    "codebase-qa",
    "mdn-anchors-small",
    "cranfield",
)
PLANNED = ("obsidian-help", "anthropic-docs-sections", "codebase-qa")
# The longest last: an interrupted run is kept up to there.
SUITE = (
    Benchmark(
        name="parsing",
        program="parsing.py",
        tiny="tests/fixtures/markdown_docs --rounds 1",
        usual="--rounds 3",
        full="--rounds 7",
    ),
    Benchmark(
        name="heavy-files",
        program="heavy_files.py",
        tiny='--sizes 0.05 0.1 --kinds prose headings wikilinks "different words"',
        usual='--sizes 1 9 --kinds prose headings sections "lists, short" wikilinks '
        '"different words" "table, rows" cjk "mixture 1"',
        full="--sizes 1 9",
    ),
    Benchmark(
        name="embedding",
        program="embedding.py",
        tiny="--texts 4 --rounds 1",
        usual="--texts 64 --rounds 4",
    ),
    Benchmark(
        name="indexing-build",
        program="indexing.py",
        tiny="--parts build --build-chunks 20 --build-rounds 1",
        usual="--parts build --build-chunks 300 --build-rounds 7",
        full="--parts build --build-chunks 800 --build-rounds 5",
        size={Extent.TINY: 20, Extent.USUAL: 300, Extent.FULL: 800},
    ),
    Benchmark(
        name="indexing-start",
        program="indexing.py",
        tiny="--parts start --files 50 --rounds 1",
        usual="--parts start --files 10000 --rounds 15",
        size={Extent.TINY: 50, Extent.USUAL: 10_000, Extent.FULL: 10_000},
    ),
    Benchmark(
        name="vector-index",
        program="vector_index.py",
        tiny="--sizes 100 --rounds 3",
        usual="--sizes 10000",
        full="--sizes 1000 10000 100000",
    ),
    Benchmark(
        name="query-latency",
        program="query_latency.py",
        tiny=f"--chunks 100 200 --rounds 1 --folder {STORES}",
        usual=f"--chunks 1000 10000 100000 --rounds 2 --folder {STORES}",
        full=f"--chunks 1000 10000 100000 --rounds 5 --folder {STORES}",
    ),
    Benchmark(
        name="keyword-latency",
        program="keyword_latency.py",
        tiny=f"--chunks 100 200 --rounds 1 --folder {STORES}",
        usual=f"--chunks 1000 10000 --rounds 2 --folder {STORES}",
        full=f"--chunks 1000 10000 100000 --rounds 2 --folder {STORES}",
    ),
    Benchmark(
        name="keyword-latency-large",
        program="keyword_latency.py",
        tiny=f"--chunks 200 --engines fts5 --rounds 1 --folder {STORES}",
        usual=f"--chunks 100000 --engines fts5 --rounds 1 --folder {STORES}",
    ),
    Benchmark(
        name="starvation",
        program="starvation.py",
        tiny="--chunks 50 --pending 1000 --rounds 1 --questions 2",
        usual="--chunks 4000 --pending 4000 --rounds 3",
        full="--chunks 4000 --pending 8000 --rounds 9",
        size={Extent.TINY: 50, Extent.USUAL: 4000, Extent.FULL: 4000},
    ),
    Benchmark(
        name="worst-requests",
        program="worst_requests.py",
        tiny="--passages 200 --rounds 0 --only ideographs --fuzz 2",
        usual="--passages 10000 --rounds 1 --fuzz 20",
        full="--passages 10000 --rounds 3 --fuzz 100 --engines fts5 whoosh tantivy",
        size={Extent.TINY: 200, Extent.USUAL: 10_000, Extent.FULL: 10_000},
    ),
    Benchmark(
        name="startup",
        program="startup.py",
        tiny="--chunks 50 --rounds 1",
        usual="--chunks 10000 --rounds 9",
        full="--chunks 10000 --rounds 21",
        size={Extent.TINY: 50, Extent.USUAL: 10_000, Extent.FULL: 10_000},
    ),
    Benchmark(
        name="own-heading",
        program="own_heading.py",
        tiny="tests/fixtures/benchmark --headings 20",
    ),
    Benchmark(
        name="quality",
        program="quality.py",
        tiny="tests/fixtures/benchmark",
        usual="--ablate benchmark obsidian-help",
        full="--all --ablate benchmark obsidian-help anthropic-docs-sections codebase-qa",
    ),
    Benchmark(
        name="plain-questions",
        program="plain_questions.py",
        tiny="tests/fixtures/benchmark",
        full="--all",
    ),
    Benchmark(
        name="answer-size",
        program="answer_size.py",
        tiny="",
        needs=("obsidian-help",),
    ),
    Benchmark(
        name="named-packages",
        program="named_packages.py",
        tiny="",
        usual="--rounds 3",
        needs=PLANNED,
    ),
    Benchmark(
        name="phases",
        program="phases.py",
        tiny="",
        needs=PLANNED,
        only_full=True,
    ),
    Benchmark(
        name="quality-large",
        program="quality.py",
        tiny="",
        needs=(*CALIBRATED, "cosqa", "scifact"),
        only_full=True,
    ),
    Benchmark(
        name="rare-words",
        program="rare_words.py",
        tiny="tests/fixtures/benchmark --documents 5 --tokens 3 --notes 10",
        usual="--documents 50 --tokens 40 --notes 150",
        full="--documents 100 --tokens 60 --notes 300",
    ),
    Benchmark(
        name="wheel",
        program="../scripts/check_wheel.py",
        tiny="",
        only_full=True,
    ),
    Benchmark(
        name="calibration",
        program="../scripts/fit_calibration.py",
        tiny="",
        needs=CALIBRATED,
    ),
    Benchmark(
        name="confidence",
        program="confidence.py",
        tiny="tests/fixtures/benchmark --copies 2",
    ),
    Benchmark(
        name="indexing-large",
        program="indexing.py",
        tiny="--parts edits memory --chunks 1000 --rounds 1",
        usual="--parts edits memory --chunks 100000 --rounds 11",
        full="--parts edits memory --chunks 100000 --rounds 21",
        size={Extent.TINY: 1000, Extent.USUAL: 100_000, Extent.FULL: 100_000},
    ),
)
