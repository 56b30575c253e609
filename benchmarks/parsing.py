"""How much parsing and chunking cost beside the bare block parse of the same files.

Each file is measured both ways in turn, round after round, so that whatever else the machine
does falls on both; the figure is the ratio of the summed CPU times.

    python benchmarks/parsing.py [DIRECTORY] [--rounds 5]

Without a directory: a large set of pages that lies beside this clone, or else the project's own
documentation and the texts of its tests.
"""

import argparse
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from markdown_it import MarkdownIt
from places import PROJECT, shared_set
from readings import Reading, note

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.models import TreeName
from ragdocs.parsers.markdown import Origin, parse_document

SIZES = ChunkSizes(leaf=Limits(250, 1000), small_document=1200, overlap=100)


def measure(files: list[tuple[str, bytes, str]]) -> tuple[float, float, int]:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    clock = time.process_time_ns
    bare = ours = chunks = 0
    for path, data, text in files:
        start = clock()
        parser.parse(text)
        middle = clock()
        document = parse_document(data, Origin(TreeName("docs"), path, 0))
        chunks += len(chunk_document(document, SIZES))
        end = clock()
        bare += middle - start
        ours += end - middle
    return bare / 1e9, ours / 1e9, chunks


def usual_directory() -> Path:
    found = shared_set("mdn-anchors-small")
    return found / "corpus" if found else PROJECT


def markdown_of(directory: Path) -> list[Path]:
    """Not those of hidden folders, such as an environment's."""
    return sorted(
        path
        for path in directory.rglob("*.md")
        if not any(part.startswith(".") for part in path.relative_to(directory).parts)
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("directory", type=Path, nargs="?", default=usual_directory())
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    files = [
        (str(path.relative_to(options.directory)), data := path.read_bytes(), data.decode())
        for path in markdown_of(options.directory)
    ]
    size = sum(len(data) for _, data, _ in files)
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {options.rounds} rounds")
    print(
        f"Python {platform.python_version()}, markdown-it-py {version('markdown-it-py')}, "
        f"{platform.machine()}"
    )
    measure(files[:100])  # imports, caches, warm-up
    ratios: list[float] = []
    speeds: list[float] = []
    for number in range(1, options.rounds + 1):
        bare, ours, chunks = measure(files)
        ratios.append(ours / bare)
        speeds.append(size / 1e6 / ours)
        print(
            f"round {number}: block parse {bare:.2f} s, parse + chunk {ours:.2f} s, "
            f"{chunks} nodes, ratio {ratios[-1]:.2f}"
        )
    print(f"ratio: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f} (at most 2)")
    note(
        Reading(
            what="ratio",
            of="parse + chunk / block parse",
            value=statistics.median(ratios),
            unit="x",
            at="CPU",
            size=len(files),
            low=min(ratios),
            high=max(ratios),
        ),
        Reading(
            what="throughput",
            of="parse + chunk",
            value=statistics.median(speeds),
            unit="MB/s",
            at="CPU",
            size=len(files),
        ),
    )


if __name__ == "__main__":
    main()
