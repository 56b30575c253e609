"""A first build beside embedding its texts alone, and a rebuild beside the first build.

By the real model. Embedding alone is one call with all texts, sorted by length: the best case for
it; in each round before the first build and after it, of which the mean counts, because the
machine's pace changes from second to second. The vocabulary's vectors, for query expansion, are
shown apart.
"""

import shutil
from functools import partial
from pathlib import Path

from ratios import Rounds
from synthetic_notes import NoteWriter, config_of

from ragdocs.app import App
from ragdocs.embedding.builtin import BuiltinEmbedder

LENGTHS = (30, 150)
OTHER_SETTINGS = {"chunking": {"min_document_chars": 1201}}
"""They give the same chunks, but the store is rebuilt for them: only vectors are kept."""


def run(folder: Path, model: BuiltinEmbedder, chunks: int, rounds: int) -> None:
    docs = folder / "docs"
    NoteWriter(model, seed=5).write(docs, chunks, LENGTHS)
    without_terms: dict[str, object] = {"query_expansion_enabled": False}
    app = App(config_of(folder, search=without_terms), model)
    other = App(config_of(folder, search=without_terms, **OTHER_SETTINGS), model)
    show_parts(folder, model)
    with app.manager() as manager:
        manager.update()
    texts = stored_texts(app)
    taken, embed = Rounds(), partial(model.embed_documents, texts)
    for _ in range(rounds):
        shutil.rmtree(folder / "index")
        taken.measure("before", embed)
        taken.measure("first build", lambda: build(app))
        taken.measure("after", embed)
        taken.measure("rebuild", lambda: build(app, rebuild=True))
        taken.measure("rebuild, nothing but vectors left", lambda: build(other, rebuild=True))
    app.close()
    taken.mean("embedding alone", "before", "after")
    print(
        f"(a, b) {len(texts)} texts of {sum(map(len, texts)) // len(texts)} characters on average"
    )
    taken.show()
    taken.show_ratio("first build", "embedding alone", "at most 1.2")
    taken.show_ratio("rebuild", "first build", "at most 0.15")
    taken.show_ratio("rebuild, nothing but vectors left", "first build", "at most 0.15")
    shutil.rmtree(folder)


def build(app: App, *, rebuild: bool = False) -> None:
    with app.manager() as manager:
        outcome = manager.update(rebuild=rebuild)
        manager.fill()
    assert not outcome.failed


def stored_texts(app: App) -> list[str]:
    """What was embedded, the shortest first."""
    with app.reader.snapshot() as snapshot:
        pending = snapshot.missing_embeddings("no model", limit=10**6)
    app.close()
    return sorted((text.text for text in pending), key=len)


def show_parts(folder: Path, model: BuiltinEmbedder) -> None:
    """Once: files and texts without vectors, then the vocabulary's vectors."""
    taken = Rounds()
    app = App(config_of(folder, search={"query_expansion_enabled": False}), model)
    with app.manager() as manager:
        taken.measure("update: files to texts", manager.update)
        taken.measure("fill: texts to vectors", manager.fill)
    expanding: dict[str, object] = {"query_expansion_enabled": True}
    with App(config_of(folder, search=expanding), model).manager() as manager:
        manager.update()
        filled = taken.measure("vocabulary's vectors", manager.fill)
    print(f"(a) parts of one first build; the vocabulary has {filled.stored} words")
    taken.show()
