"""Whatever happens to the store, a view that catches up now and then answers as a fresh one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.indices.graph import GraphIndex, detect, pair_weights
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId, LinkKind
from ragdocs.parsers.ids import document_id
from tests.support.machine import assert_same_hits
from tests.support.models import WordModel, catch_up, embed_missing, stored_vectors
from tests.support.stores import (
    READ_NS,
    Section,
    file,
    related,
    store_communities,
    temporary_store,
    wiki,
)

NAMES = ["a", "b", "c", "x/a", "x/d"]
WORDS = ["ship", "bread", "snow", "ship bread", ""]
MODEL = WordModel()
QUERY = MODEL.embed("ship snow")

links = st.one_of(
    st.builds(wiki, st.sampled_from(NAMES)),
    st.builds(lambda name: wiki(name, kind=LinkKind.EMBEDS), st.sampled_from(NAMES)),
    st.builds(related, st.sampled_from(NAMES)),
)
# Few texts, so that documents share them and their vectors have equal scores.
files = st.builds(
    lambda name, title, texts, links: file(
        f"{name}.md", [Section("S", f"{text}\n") for text in texts], links, title=title
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["a", "b", "title"]),
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.lists(links, max_size=4),
)
operations = st.one_of(
    st.tuples(st.just("put"), files),
    st.tuples(st.just("put"), files),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("embed"), st.integers(1, 6)),
    st.tuples(st.just("prune"), st.none()),
    st.tuples(st.just("communities"), st.none()),
)
histories = st.lists(st.tuples(operations, st.booleans()), max_size=12)
scopes = st.frozensets(st.sampled_from([DocId(f"docs:{name}.md") for name in NAMES]))


def apply(writer, reader, kind, what):
    if kind == "embed":
        embed_missing(writer, reader, MODEL, limit=what)
        return
    if kind == "communities":
        store_communities(writer, reader)
        return
    with writer.transaction() as transaction:
        if kind == "put":
            transaction.put(what, READ_NS)
        elif kind == "remove":
            transaction.remove(document_id("docs", f"{what}.md"))
        elif kind == "prune":
            transaction.prune_embeddings([MODEL.identity])


def replay(writer, reader, history, view):
    """Does all of it; the view looks only now and then, but never starts over."""
    catch_up(view, reader)
    for (kind, what), looks in history:
        apply(writer, reader, kind, what)
        if looks:
            catch_up(view, reader)
    return catch_up(view, reader)


@settings(max_examples=60, deadline=None)
@given(histories, scopes, st.integers(1, 8))
def test_a_vector_index_that_catches_up_answers_as_a_fresh_one(history, scope, limit):
    with temporary_store() as (writer, reader):
        view = replay(writer, reader, history, VectorIndex(MODEL))
        fresh = catch_up(VectorIndex(MODEL), reader)
        rows = stored_vectors(reader, MODEL)
        assert view.position == fresh.position == reader.position()
        assert len(view) == len(fresh) == len(rows)
        for within in (None, scope):
            assert_same_hits(view.search(QUERY, limit, within), fresh.search(QUERY, limit, within))
        best, expected = view.best_of(QUERY, scope), fresh.best_of(QUERY, scope)
        assert best.keys() == expected.keys()
        for doc_id in best:
            assert_same_hits([best[doc_id]], [expected[doc_id]])
        given = view.vectors_of(list(rows))
        assert all(np.array_equal(given[key], rows[key]) for key in rows)


@settings(max_examples=60, deadline=None)
@given(histories, scopes, st.integers(1, 3))
def test_a_graph_that_catches_up_answers_as_a_fresh_one(history, scope, depth):
    with temporary_store() as (writer, reader):
        view = replay(writer, reader, history, GraphIndex())
        fresh = catch_up(GraphIndex(), reader)
        assert view.position == fresh.position == reader.position()
        assert view.edges() == fresh.edges()
        assert len(view) == len(fresh)
        hits = {doc_id: 1 / number for number, doc_id in enumerate(sorted(scope), 1)}
        assert view.neighbours(hits, depth) == fresh.neighbours(hits, depth)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_stored_communities_are_those_of_the_links_whatever_happened_before(history):
    with temporary_store() as (writer, reader):
        replay(writer, reader, history, GraphIndex())
        with reader.snapshot() as snapshot:
            snapshot.verify(deep=True)
            has_links = snapshot.edges_digest() != ""
            was_current = has_links and snapshot.has_current_communities()
        is_other = store_communities(writer, reader)
        assert not (was_current and is_other), "the same communities are stored twice"
        with reader.snapshot() as snapshot:
            snapshot.verify(deep=True)
            known = [document.id for document in snapshot.documents()]
            assert snapshot.communities_of(known) == detect(pair_weights(snapshot.all_links()))
            assert snapshot.has_current_communities()
