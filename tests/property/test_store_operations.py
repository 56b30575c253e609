"""Whatever happens to a store, it ends up equal to a fresh one of the same final documents."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.models import DocId
from ragdocs.parsers.ids import document_id
from ragdocs.parsers.link_targets import Catalogue, Names
from ragdocs.store.records import FileFailure
from tests.support.stores import (
    MODEL,
    READ_NS,
    Section,
    file,
    markdown,
    put,
    related,
    temporary_store,
    wiki,
)

# Few names, so that they meet: twins by case, Unicode form, extension, folder and tree.
PATHS = ["a.md", "A.md", "a.txt", "x/a.md", "x/b.md", "b.md", "caf\u00e9.md", "cafe\u0301.md"]
TITLES = ["a", "A", "b", "caf\u00e9", "x/b", "Title", "title"]
HEADINGS = ["One", "one", "A -- B"]
TARGETS = [*PATHS, *TITLES, "", "../a.md", "x/a", "CAFE\u0301", "none", "/b.md", "x/"]
ANCHORS = ["", "One", "one", "a-b", "^block"]

links = st.builds(
    lambda make, target, anchor: make(target) if make is related else make(target, anchor),
    st.sampled_from([wiki, markdown, related]),
    st.sampled_from(TARGETS),
    st.sampled_from(ANCHORS),
)
files = st.builds(
    lambda path, tree, title, aliases, headings, links: file(
        path, [Section(text) for text in headings], links, tree=tree, title=title, aliases=aliases
    ),
    st.sampled_from(PATHS),
    st.sampled_from(["docs", "notes"]),
    st.sampled_from(TITLES),
    st.lists(st.sampled_from(TITLES), max_size=2),
    st.lists(st.sampled_from(HEADINGS), max_size=3),
    st.lists(links, max_size=4),
)
names = st.tuples(st.sampled_from(["docs", "notes"]), st.sampled_from(PATHS))
operations = st.one_of(
    st.tuples(st.just("put"), files),
    st.tuples(st.just("put"), files),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("fail"), names),
    st.tuples(st.just("embed"), st.integers(1, 5)),
    st.tuples(st.just("abort"), files),
)
histories = st.lists(st.lists(operations, min_size=1, max_size=4), max_size=6)


class Abort(Exception):
    pass


def failure(tree, path):
    return FileFailure(tree, path, "SourceBinary", "not text", None, READ_NS)


def apply(transaction, model, operation):
    """Does one operation to the store, and to a dictionary that says what must be there."""
    kind, what = operation
    if kind == "put":
        transaction.put(what, READ_NS)
        model[what.document.tree, what.document.path] = what
    elif kind == "remove":
        assert transaction.remove(document_id(*what)) == (what in model)
        model.pop(what, None)
    elif kind == "fail":
        transaction.fail(failure(*what))
        model[what] = None
    elif kind == "abort":
        transaction.put(what, READ_NS)
        raise Abort


def embed(writer, reader, count):
    with reader.snapshot() as snapshot:
        texts = snapshot.missing_embeddings(MODEL, limit=count)
    with writer.transaction() as transaction:
        vectors = [(t.text_hash, struct.pack("<3f", 0, 0, len(t.text))) for t in texts]
        assert transaction.put_embeddings(MODEL, vectors) == len(texts)


def run(writer, reader, history, before=()):
    model = dict(before)
    for batch in history:
        attempt = dict(model)
        try:
            with writer.transaction() as transaction:
                for operation in batch:
                    apply(transaction, attempt, operation)
            model = attempt
        except Abort:
            pass
        for kind, count in batch:
            if kind == "embed":
                embed(writer, reader, count)
    return model


def dump(snapshot):
    """Everything but internal keys and positions."""
    documents = list(snapshot.documents())
    return {
        "documents": documents,
        "headings": [snapshot.headings(found.id) for found in documents],
        "chunks": [[stored.chunk for stored in snapshot.chunks(d.id)] for d in documents],
        "links": [snapshot.links(found.id) for found in documents],
        "manifest": snapshot.manifest(),
        "failures": snapshot.failures(),
    }


@settings(max_examples=60, deadline=None)
@given(histories)
def test_a_store_after_any_history_equals_a_fresh_one(history):
    with temporary_store() as (writer, reader), temporary_store() as (fresh, other):
        model = run(writer, reader, history)
        put(fresh, *(found for found in model.values() if found))
        with fresh.transaction() as transaction:
            for name, found in model.items():
                if found is None:
                    transaction.fail(failure(*name))
        with reader.snapshot() as snapshot, other.snapshot() as expected:
            assert dump(snapshot) == dump(expected)
            assert set(snapshot.ledger.differing(expected.ledger)) <= {"embeddings"}
            snapshot.verify(deep=True)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_links_after_any_history_are_as_resolved_from_scratch(history):
    with temporary_store() as (writer, reader):
        run(writer, reader, history)
        with reader.snapshot() as snapshot:
            known = {
                d.id: Names(0, d.id, d.tree, d.path, d.title, d.front_matter.aliases)
                for d in snapshot.documents()
            }
            catalogue = Catalogue(known.values())
            for link in snapshot.all_links():
                target = catalogue.resolve(known[link.source], link.link)
                assert link.target == (target.doc_id if target else None)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_a_view_that_replays_the_change_log_equals_a_new_one(history):
    with temporary_store() as (writer, reader):
        view, seen, model = {}, writer.position, {}
        for batch in history:
            model = run(writer, reader, [batch], model)
            with reader.snapshot() as snapshot:
                for change in snapshot.changes_since(seen):
                    view.pop(change.doc_id, None)
                    if snapshot.document(change.doc_id):
                        view[change.doc_id] = seen_by_views(snapshot, change.doc_id)
                seen = snapshot.position
        with reader.snapshot() as snapshot:
            fresh = {d.id: seen_by_views(snapshot, d.id) for d in snapshot.documents()}
        assert view == fresh


def seen_by_views(snapshot, doc_id):
    """The text, vectors and edges of one document."""
    vectors = [
        (key, batch.data[number * 12 : number * 12 + 12])
        for batch in snapshot.vectors(MODEL, [DocId(doc_id)])
        for number, key in enumerate(batch.keys)
    ]
    return snapshot.chunks(doc_id), snapshot.links(doc_id), sorted(vectors)
