"""From one model to another and back: each has an index, and none answers by another's vectors."""

import random

import numpy as np
import pytest

from ragdocs import open_index
from ragdocs.chunking.splitting import embedding_text
from ragdocs.search.candidates import Strategy
from ragdocs.search.responses import Readiness
from tests.support.model_files import BERT_WORDS

PASSAGES_ALONE = {"search": {"query_expansion_enabled": False}}
"""Words of the vocabulary would get vectors too."""
BUILTIN = PASSAGES_ALONE


def by_name(folder):
    return PASSAGES_ALONE | {"embedding": {"provider": "huggingface", "model": str(folder)}}


def stored(index):
    """Each model with vectors in the store, how many, and of which length."""
    with index._app.reader.snapshot() as snapshot:
        return snapshot.select(
            """SELECT m.identity, m.dimension, count(*), min(length(e.vector)),
            max(length(e.vector))
            FROM models m JOIN embeddings e ON m.key = e.model GROUP BY m.key"""
        )


def test_indexed_and_searched_with_a_model_of_ones_own(docs, models):
    with open_index(docs, settings=by_name(models / "a")) as index:
        response = index.search("tomatoes need sun", top_n=1)
        assert response.results[0].path == "garden.md"
        assert Strategy.SEMANTIC in response.results[0].found_by
        assert response.index.state is Readiness.READY


@pytest.mark.parametrize("names", [("a", "b", "a"), ("a", "wide", None, "a"), (None, "a", None)])
def test_vectors_of_two_models_are_never_together(docs, models, names):
    seen = {}
    for name in names:
        settings = by_name(models / name) if name else BUILTIN
        with open_index(docs, settings=settings, update=False) as index:
            # What another model made is not asked; what this one made before still is.
            response = index.search("tomatoes need sun")
            is_semantic = any(Strategy.SEMANTIC in one.found_by for one in response.results)
            assert is_semantic is (name in seen)
            index.update()
            ((identity, dimension, count, shortest, longest),) = stored(index)
            assert identity == index._app.embedder.identity
            assert (count, shortest, longest) == (3, 4 * dimension, 4 * dimension)
            assert len(index._app.indices.vector) in (0, 3)
            assert index.search("tomatoes need sun").results[0].path == "garden.md"
            assert len(index._app.indices.vector) == 3
        assert seen.setdefault(name, identity) == identity
    assert len(set(seen.values())) == len(set(names))


def edit(docs, choices):
    """A file comes, changes or goes."""
    file = docs / f"{choices.choice('xyz')}.md"
    if choices.random() < 0.3:
        file.unlink(missing_ok=True)
    else:
        file.write_text(
            f"# {choices.choice(BERT_WORDS)}\n\n{choices.choice(BERT_WORDS)}\n", encoding="utf-8"
        )


def check_vectors(index, models=None):
    """What is searched is what the model in use gives for the texts, and nothing else."""
    embedder = index._app.embedder
    with index._app.reader.snapshot() as snapshot:
        texts = {leaf.key: embedding_text(leaf.chunk) for leaf in snapshot.leaves()}
        batches = list(snapshot.vectors(embedder.identity))
        assert set(snapshot.models()) == (models or {embedder.identity})
    rows = {
        key: row for batch in batches for key, row in zip(batch.keys, batch.array(), strict=True)
    }
    assert set(rows) == set(texts)
    wanted = embedder.embed_documents(list(texts.values()))
    assert np.allclose(np.stack([rows[key] for key in texts]), wanted, atol=1e-4)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_order_of_models_and_edits_is(docs, models, seed):
    choices = random.Random(seed)
    for _ in range(6):
        name = choices.choice(["a", "b", "wide", None])
        edit(docs, choices)
        settings = by_name(models / name) if name else BUILTIN
        with open_index(docs, settings=settings) as index:
            edit(docs, choices)
            index.update()
            check_vectors(index)
            found = index.search("tomatoes need sun")
            assert found.results[0].path == "garden.md"
            assert found.index.complete


def test_a_model_replaced_in_its_folder_is_noticed(docs, models, tmp_path):
    import shutil

    folder = shutil.copytree(models / "a", tmp_path / "mine")
    with open_index(docs, settings=by_name(folder)) as index:
        ((first, *_),) = stored(index)
    shutil.copy(models / "b" / "model.safetensors", folder / "model.safetensors")
    with open_index(docs, settings=by_name(folder)) as index:
        second = index._app.embedder.identity
        assert first != second
        # Those of the model before stay for a while, unused.
        assert {identity: count for identity, _, count, *_ in stored(index)} == {
            first: 3,
            second: 3,
        }
        check_vectors(index, {first, second})
        assert index.search("tomatoes need sun", top_n=1).index.complete
