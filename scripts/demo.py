"""What works today, on the project's own documentation: read, chunk, store, embed, find by meaning.

The search engine, the MCP server and the `query` command are not there yet, and this does not
pretend that they are: it asks the embedder alone, and compares with every passage in the store.
Exits non-zero unless each answer cites the section that it should.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragdocs.chunking.header_chunker import ChunkSizes
from ragdocs.config.sections import ChunkingConfig, IndexingConfig
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.errors import RagdocsError
from ragdocs.indexing.discovery import RootUnavailable, discover
from ragdocs.indexing.ingestion import Ingestion
from ragdocs.models import Chunk, DocId, TreeName
from ragdocs.parsers.identity import document_id
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer

PROJECT = Path(__file__).resolve().parents[1]
INDEX = PROJECT / ".demo" / "index"
TREE = TreeName("docs")
QUESTIONS = (
    ("Are symbolic links, pipes and private keys indexed?", "docs:trees.md#never-indexed"),
    ("When is a damaged store deleted and built again?", "docs:store.md#when-something-is-wrong"),
    ("Is a hash sign inside a code fence a heading?", "docs:parsing.md#structure"),
)


@dataclass(frozen=True, slots=True)
class DocsTree:
    """The folder of the project's documentation."""

    root: Path = PROJECT / "docs"
    include: tuple[str, ...] = IndexingConfig().include
    exclude: tuple[str, ...] = ("benchmarks/",)


def read_documents(writer: Writer, known: set[DocId]) -> None:
    scan = discover(DocsTree())
    if isinstance(scan, RootUnavailable):
        sys.exit(f"{scan.root} {scan.problem}")
    settings = IndexingConfig()
    sizes = ChunkSizes.from_settings(ChunkingConfig())
    ingestion = Ingestion(TREE, DocsTree().root, settings.max_file_bytes, sizes)
    with writer.transaction() as transaction:
        for file in scan.files:
            transaction.put(ingestion.take(file.path), time.time_ns())
        for doc_id in known - {document_id(TREE, file.path) for file in scan.files}:
            transaction.remove(doc_id)


def embed_pending(writer: Writer, reader: Reader, embedder: BuiltinEmbedder) -> int:
    with reader.snapshot() as snapshot:
        pending = list(snapshot.missing_embeddings(embedder.identity))
    vectors = embedder.embed_documents([text.text for text in pending])
    rows = [
        (text.text_hash, vector.astype("<f4").tobytes())
        for text, vector in zip(pending, vectors, strict=True)
    ]
    with writer.transaction() as transaction:
        return transaction.put_embeddings(embedder.identity, rows)


def nearest(reader: Reader, embedder: BuiltinEmbedder, question: str) -> tuple[float, Chunk]:
    query = embedder.embed_query(question)
    with reader.snapshot() as snapshot:
        scored = [
            (float(score), key)
            for batch in snapshot.vectors(embedder.identity)
            for score, key in zip(batch.array() @ query, batch.keys, strict=True)
        ]
        score, key = max(scored)
        return score, snapshot.chunks_by_key([key])[key].chunk


def answers(reader: Reader, embedder: BuiltinEmbedder) -> Iterator[bool]:
    for question, expected in QUESTIONS:
        score, chunk = nearest(reader, embedder, question)
        path = chunk.doc_id.partition(":")[2]
        print(f"\n? {question}")
        lines = f"{chunk.span.line_start}-{chunk.span.line_end}"
        print(f"  docs/{path}:{lines}  similarity {score:.2f}")
        print(f"  {' > '.join(chunk.breadcrumb)}")
        print(f"  {' '.join((chunk.text or '').split())[:160]}…")
        is_expected = chunk.id.partition("~")[0] == expected
        if not is_expected:
            print(f"  expected {expected}")
        yield is_expected


def main() -> None:
    print("Reading the project's own documentation (docs/).")
    embedder = BuiltinEmbedder()
    with Writer.open(INDEX, "demo") as writer, Reader.open(INDEX) as reader:
        with reader.snapshot() as snapshot:
            known = set(snapshot.manifest())
        read_documents(writer, known)
        added = embed_pending(writer, reader, embedder)
        with reader.snapshot() as snapshot:
            counts = snapshot.counts()
        print(f"{counts.documents} documents, {counts.leaves} passages, {counts.links} links.")
        print(f"{added} passages embedded now with {embedder.name} ({embedder.precision}),")
        print(f"{counts.leaves - added} were known already.")
        print("\nHow one of them is read (ragdocs inspect doc trees.md):\n", flush=True)
        command = [sys.executable, "-m", "ragdocs", "inspect", "doc", "trees.md"]
        done = subprocess.run(command, cwd=PROJECT / "docs", env=_plain_environment(), check=False)
        if done.returncode:
            sys.exit("\n`ragdocs inspect doc` failed.")
        print("\nQuestions, by meaning alone (the full search is still to come):")
        if not all(list(answers(reader, embedder))):
            sys.exit("\nAn answer does not cite the expected section.")
    print("\nTry it on your own notes: .venv/bin/ragdocs inspect doc FILE")
    print("The demo's index is in .demo/; `make clean` removes it.")


def _plain_environment() -> dict[str, str]:
    """Without the user's own settings, which are about other documents."""
    return {key: value for key, value in os.environ.items() if not key.startswith("RAGDOCS_")}


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")
    try:
        main()
    except RagdocsError as error:
        sys.exit(f"The demo failed: {error}")
    except (KeyboardInterrupt, BrokenPipeError):
        # Nothing is left half done: the index changes by whole transactions. What is still in
        # the buffer has nowhere to go.
        os._exit(130)
