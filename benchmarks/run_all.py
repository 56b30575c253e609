"""Every benchmark, one after the other, kept as one dated run: `make bench`.

The page has for each its command and its raw output, after the versions and the machine; the
picture beside it shows quality by set. What one of them fails with is kept too, and the rest goes
on. The usual sizes can be waited for; `--full` adds those of 100,000 chunks.

    python benchmarks/run_all.py [--only NAME ...] [--full] [--to docs/benchmarks]
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = ("faiss-cpu", "markdown-it-py", "mcp", "numpy", "onnxruntime", "tokenizers")
USUAL: Mapping[str, str] = {
    "parsing": "docs",
    "embedding": "--texts 64 --rounds 4",
    "indexing": "--chunks 10000",
    "vector_index": "--sizes 1000 10000",
    "keyword_latency": "--chunks 1000 10000",
    "query_latency": "--chunks 1000 10000",
    "startup": "--chunks 10000 --rounds 10",
    "quality": "",
}
FULL: Mapping[str, str] = {
    "indexing": "--chunks 100000",
    "vector_index": "--sizes 1000 10000 100000",
    "keyword_latency": "--chunks 1000 10000 100000",
    "query_latency": "--chunks 1000 10000 100000",
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Every benchmark, kept as a dated run.")
    parser.add_argument("--only", nargs="+", choices=USUAL, default=list(USUAL))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--to", type=Path, default=HERE.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    page = given.to / f"{day}-all.md"
    chosen = {**USUAL, **FULL} if given.full else USUAL
    failed: list[str] = []
    with page.open("w", encoding="utf-8") as written:
        written.write(f"# All benchmarks, {day}\n\n{machine()}\n")
        for name in given.only:
            print(f"{name} …", flush=True)
            more = ["--plot", str(given.to / f"{day}-quality.svg")] if name == "quality" else []
            code, lines = run(name, [*shlex.split(chosen[name]), *more])
            failed += [name] if code else []
            written.write("\n".join(section(name, chosen[name], code, lines)) + "\n")
            written.flush()
        if "quality" in given.only:
            written.write(f"\n![Quality by set]({day}-quality.svg)\n")
    print(f"kept in {page}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def machine() -> str:
    """Load says how far the clock can be trusted."""
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"Python {platform.python_version()}, {versions}; {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start.\n"
    )


def run(name: str, arguments: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *arguments],
        cwd=HERE.parent,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout if not done.returncode else done.stdout + done.stderr


def section(name: str, arguments: str, code: int, output: str) -> Iterator[str]:
    yield f"## {name.replace('_', ' ')}"
    yield ""
    yield f"    python benchmarks/{name}.py {arguments}".rstrip()
    yield ""
    if code:
        yield f"**It failed with exit status {code}.**"
        yield ""
    yield from ("```text", output.strip(), "```") if name != "quality" else (output.strip(),)


if __name__ == "__main__":
    sys.exit(main())
