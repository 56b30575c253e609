"""Whoever changes the model, and whenever: no answer ever comes from the vectors of two models."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs import open_index
from ragdocs.chunking.splitting import embedding_text
from ragdocs.search.candidates import Strategy
from ragdocs.search.responses import Readiness
from ragdocs.store.reader import Reader
from tests.support.indexes import write
from tests.support.models import CountingEmbedder

MODELS = ("one@1", "two@1")
"""Of the same dimension: what they make cannot be told apart by its shape."""
NAMES = ("a.md", "b.md", "c/d.md")
TEXTS = tuple(
    f"# {head}\n\n{body}\n" for head in ("Ship", "Bread") for body in ("snow", "rye sail")
)
QUERY = "ship snow bread"

actions = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(TEXTS)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("update"), st.sampled_from(MODELS), st.booleans()),
    st.tuples(st.just("ask"), st.sampled_from(MODELS), st.none()),
)


class Place:
    """A folder and its index, which a program with one model and one with the other have open."""

    def __init__(self, stack, path):
        self.docs = path / "docs"
        self.docs.mkdir()
        (self.docs / "a.md").write_text(TEXTS[0], encoding="utf-8")
        self.path = path
        self.embedders = {name: CountingEmbedder(name) for name in MODELS}
        self.indices = {name: stack.enter_context(self.opened(name, "index")) for name in MODELS}

    def opened(self, model, index, update=False):
        where = {"indexing": {"index_path": str(self.path / index)}}
        return open_index(self.docs, settings=where, update=update, embedder=self.embedders[model])

    def write(self, name, text):
        write(self.docs, name, text)

    def remove(self, name, _):
        (self.docs / name).unlink(missing_ok=True)

    def update(self, model, is_broken):
        """A model that breaks leaves texts in the index, and vectors to come."""
        self.embedders[model].is_broken = is_broken
        updated = self.indices[model].update()
        self.embedders[model].is_broken = False
        assert is_broken or not updated.problem

    def ask(self, model, _=None):
        index = self.indices[model]
        response = index.search(QUERY, min_score=0)
        if response.index.state is not Readiness.UNAVAILABLE:
            self.check_vectors(model, index._app, response)
        return response

    def check_vectors(self, model, app, response):
        """What was searched are this model's vectors of these texts, and no others."""
        with app.reader.snapshot() as snapshot:
            leaves = {leaf.key: embedding_text(leaf.chunk) for leaf in snapshot.leaves()}
        held = app.indices.vector.vectors_of(leaves)
        assert len(held) == len(app.indices.vector)
        for key, row in held.items():
            assert np.allclose(row, self.embedders[model].embed(leaves[key]), atol=1e-6)
        if not held:
            assert all(Strategy.SEMANTIC not in one.found_by for one in response.results)
        assert response.index.complete == (len(held) == len(leaves))

    def answer_of_a_fresh_index(self, model):
        with self.opened(model, "fresh", update=True) as index:
            return index.search(QUERY, min_score=0)


def shown(response):
    return [
        (one.id, one.found_by, round(one.score, 6), round(one.confidence, 6))
        for one in response.results
    ]


@settings(max_examples=12, deadline=None)
@given(st.lists(actions, max_size=8), st.sampled_from(MODELS))
def test_an_answer_is_of_one_model_whoever_changed_it_before(history, last):
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        place = Place(stack, Path(path))
        for action, what, how in history:
            getattr(place, action)(what, how)
        place.update(last, is_broken=False)
        assert shown(place.ask(last)) == shown(place.answer_of_a_fresh_index(last))
        (other,) = set(MODELS) - {last}
        place.ask(other)
        directory = place.indices[last].directory
        with Reader.open(directory) as reader, reader.snapshot() as snapshot:
            # The other model's vectors stay for a while, unused, for whoever goes back to it.
            assert last in snapshot.models() or not list(snapshot.leaves())
