"""Whatever happens, the vocabulary is that of a fresh build, and typed words come first."""

import tempfile
from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import KeywordQuery, search_in_tiers
from tests.support.stores import Corpus, entries, keyword_engine, put_texts, vocabulary_store

WORDS = ["apple", "apples", "pear", "getPear", "Straße", "node.js", "2024", "x_y", "東京", "the"]
PATHS = ["a.md", "b.md", "deep/pear.md"]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(
    lambda words: f"# {' '.join(words[:2])}\n\n{' '.join(words)}\n"
)
changes = st.lists(
    st.tuples(st.sampled_from(PATHS), st.none() | texts), min_size=1, max_size=3
).map(dict)


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=6))
def test_a_vocabulary_after_any_changes_is_that_of_a_fresh_build(history):
    kept = {}
    with tempfile.TemporaryDirectory() as folder:
        with vocabulary_store(Path(folder, "lived"), {}) as (writer, reader):
            for change in history:
                gone = tuple(path for path, text in change.items() if text is None)
                put_texts(writer, {p: t for p, t in change.items() if t is not None}, gone)
                kept = {p: t for p, t in {**kept, **change}.items() if t is not None}
            lived = entries(reader)
        with vocabulary_store(Path(folder, "fresh"), kept) as (_, reader):
            assert lived == entries(reader)
    assert all(count > 0 for _, count in lived.values())


TERMS = ["appl", "pear", "fig", "plum", "unknown"]
notes = st.lists(
    st.lists(st.sampled_from(["apple", "pear", "fig", "plum", "and"]), max_size=8).map(" ".join),
    min_size=1,
    max_size=8,
)
units = st.lists(
    st.builds(
        lambda term, weight: Unit((term,), None, weight), st.sampled_from(TERMS), st.floats(0.1, 5)
    ),
    max_size=3,
    unique_by=lambda unit: unit.terms,
).map(tuple)


@settings(max_examples=60, deadline=None)
@given(notes, units, units, st.integers(1, 12))
def test_typed_words_always_come_before_guessed_ones(found, typed, guessed, limit):
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder), {f"{n}.md": f"# N\n\n{t}\n" for n, t in enumerate(found)})
        engine = keyword_engine()
        with corpus.snapshot() as snapshot:
            alone = engine.search(snapshot, KeywordQuery(typed), 100)
            search = partial(engine.search, snapshot)
            both = search_in_tiers(search, KeywordQuery(typed, None, guessed), limit)
    own = {hit.key: hit.score for hit in alone.hits}
    scores = [hit.score for hit in both.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    is_own = [hit.key in own for hit in both.hits]
    assert is_own == sorted(is_own, reverse=True)
    assert sum(is_own) == min(limit, len(own))
    assert all(hit.score >= own[hit.key] for hit in both.hits if hit.key in own)
    assert both.ideal == alone.ideal
    lowest = min((hit.score for hit in both.hits if hit.key in own), default=None)
    if lowest is not None:
        assert all(hit.score < lowest for hit in both.hits if hit.key not in own)
