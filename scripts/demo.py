"""What works today, on the project's own documentation: read, chunk, store, embed, find by meaning.

The search engine, the MCP server and the `query` command are not there yet, and this does not
pretend that they are: it asks the embedder alone, and compares with every passage in the store.
Exits non-zero unless each answer cites the document that it should.
"""

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
from ragdocs.models import Chunk, TreeName
from ragdocs.store.reader import Reader
from ragdocs.store.writer import Writer

PROJECT = Path(__file__).resolve().parents[1]
INDEX = PROJECT / ".demo" / "index"
TREE = TreeName("docs")
QUESTIONS = (
    ("Which files are never indexed, for example private keys?", "trees.md"),
    ("What happens if the database file gets damaged?", "store.md"),
    ("Is a hash sign inside a code fence a heading?", "parsing.md"),
)


@dataclass(frozen=True, slots=True)
class DocsTree:
    """The folder of the project's documentation."""

    root: Path = PROJECT / "docs"
    include: tuple[str, ...] = IndexingConfig().include
    exclude: tuple[str, ...] = ("benchmarks/",)


def read_documents(writer: Writer) -> None:
    scan = discover(DocsTree())
    if isinstance(scan, RootUnavailable):
        sys.exit(f"{scan.root} {scan.problem}")
    settings = IndexingConfig()
    sizes = ChunkSizes.from_settings(ChunkingConfig())
    ingestion = Ingestion(TREE, DocsTree().root, settings.max_file_bytes, sizes)
    with writer.transaction() as transaction:
        for file in scan.files:
            transaction.put(ingestion.take(file.path), time.time_ns())


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
        if path != expected:
            print(f"  expected docs/{expected}")
        yield path == expected


def main() -> None:
    print("Reading the project's own documentation (docs/).")
    embedder = BuiltinEmbedder()
    with Writer.open(INDEX, "demo") as writer, Reader.open(INDEX) as reader:
        read_documents(writer)
        added = embed_pending(writer, reader, embedder)
        with reader.snapshot() as snapshot:
            counts = snapshot.counts()
        print(f"{counts.documents} documents, {counts.leaves} passages, {counts.links} links.")
        print(f"{added} passages embedded now with {embedder.name} ({embedder.precision}),")
        print(f"{counts.leaves - added} were known already.")
        print("\nHow one of them is read (ragdocs inspect doc docs/trees.md):\n")
        command = [sys.executable, "-m", "ragdocs", "inspect", "doc", "docs/trees.md"]
        subprocess.run(command, cwd=PROJECT, check=True)
        print("\nQuestions, by meaning alone (the full search is still to come):")
        if not all(list(answers(reader, embedder))):
            sys.exit("\nAn answer does not cite the expected document.")
    print("\nThe demo's index is in .demo/; `make clean` removes it.")


if __name__ == "__main__":
    try:
        main()
    except RagdocsError as error:
        sys.exit(f"The demo failed: {error}")
