"""The default engine by its scores and tables; what all engines do is in test_keyword_engines."""

from math import log

import pytest

from ragdocs.config.settings import BoostsConfig
from ragdocs.indices.keyword import FIELDS, K1, MAX_FIELD_CHARS, B, compile_query, field_texts
from ragdocs.models import DocId, QueryField
from ragdocs.search.query_language import parse_query
from tests.support.stores import ANALYZER, NOTES, Corpus, keyword_engine, keyword_tables


@pytest.fixture
def notes(tmp_path):
    return Corpus(tmp_path, NOTES)


def naive_bm25f(snapshot, query: str) -> dict[str, float]:
    """BM25F by the book: weights before saturation, one idf and one length for a chunk."""
    weights = BoostsConfig()
    rows = {}
    for stored in snapshot.leaves():
        document = snapshot.document(stored.chunk.doc_id)
        texts = field_texts(document, stored.chunk)
        terms = {field: ANALYZER.terms(texts[field]) for field in FIELDS}
        # A text that has wholes (such as `http.md`) has one mark between them and its words.
        gaps = sum(bool(ANALYZER.streams(texts[field]).wholes) for field in FIELDS)
        rows[stored.chunk.id] = (terms, sum(map(len, terms.values())) + gaps)
    average = sum(length for _, length in rows.values()) / len(rows)
    scores: dict[str, float] = {}
    for term in {token.term for token in ANALYZER.query(query)}:
        having = [i for i, (terms, _) in rows.items() if any(term in terms[f] for f in FIELDS)]
        idf = log(1 + (len(rows) - len(having) + 0.5) / (len(having) + 0.5))
        for chunk_id in having:
            terms, length = rows[chunk_id]
            count = sum(getattr(weights, f) * terms[f].count(term) for f in FIELDS)
            saturated = count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
            scores[chunk_id] = scores.get(chunk_id, 0) + idf * saturated
    return scores


@pytest.mark.parametrize(
    "query",
    [
        "apple",
        "engine fuel",
        "fruit on trees",
        "grow",
        "getUserById timeout",
        "petrol energy",
        "is a",
    ],
)
def test_scores_agree_with_a_naive_reference(notes, query):
    with notes.snapshot() as snapshot:
        expected = naive_bm25f(snapshot, query)
    assert dict(notes.ask(query)) == pytest.approx(expected, rel=0.01)


def test_more_of_the_words_rank_higher(notes):
    assert notes.paths("pears grow on trees")[0] == "pears.md"


def test_a_question_in_plain_words_is_never_strict(notes):
    assert "cars.md" in notes.paths("what does the engine of a spaceship need?")


def test_header_field_boost(notes):
    assert notes.paths("cars engine", headers=50, title=50)[0] == "cars.md"


def test_title_field_boost(tmp_path):
    corpus = Corpus(
        tmp_path,
        {
            "a.md": "---\ntitle: Deployment\n---\nHow it is done.\n",
            "b.md": "---\ntitle: Other\n---\nNotes on deployment, a deployment of things.\n",
        },
    )
    assert corpus.paths("deployment")[0] == "a.md"
    assert corpus.paths("deployment", title=0.01, path=0)[0] == "b.md"


def test_header_field_boosts_results(tmp_path):
    """Once in a heading outweighs twice in the text, and does not when headings count nothing."""
    filler = "Nothing else is said here. " * 60
    corpus = Corpus(
        tmp_path,
        {
            "a.md": f"# Notes\n\n{filler}\n\n## Rotation\n\n{filler}\n",
            "b.md": f"# Notes\n\n{filler}\n\n## Other\n\nRotation and rotation. {filler}\n",
        },
    )
    assert corpus.paths("rotation")[0] == "a.md"
    assert corpus.paths("rotation", headers=0)[0] == "b.md"


def test_tag_field_boost(tmp_path):
    corpus = Corpus(
        tmp_path,
        {
            "a.md": "---\ntags: [backup]\n---\nWhat to do on Fridays, and who does it.\n",
            "b.md": "What to do on Fridays, a backup, and who does it.\n",
        },
    )
    assert corpus.paths("backup") == ["a.md", "b.md"]
    assert corpus.paths("backup", tags=0.1) == ["b.md", "a.md"]
    assert dict(corpus.ask("backup", tags=0))["docs:a.md"] == 0


def test_putting_the_same_again_changes_nothing(notes):
    before = notes.ask("engine fuel")
    notes.update(NOTES)
    assert notes.ask("engine fuel") == before


def test_tables_of_another_version_are_rebuilt(notes, tmp_path):
    from ragdocs.store.writer import StoreWriter

    tables = keyword_tables()
    tables.version = "another"
    with StoreWriter.open(tmp_path, "test", indices=[tables]) as writer:
        assert writer.rebuilt is None
    assert notes.paths("petrol") == ["fuel.md"]


def test_tables_that_missed_a_commit_are_rebuilt(notes, tmp_path):
    from ragdocs.store.writer import StoreWriter
    from tests.support.stores import indexed

    with StoreWriter.open(tmp_path, "test") as writer, writer.transaction() as transaction:
        transaction.put(indexed("new.md", "# Zebra\n\nStripes.\n"), 0)
    notes.update({})
    assert notes.paths("zebra") == ["new.md"]


def test_the_ideal_is_what_a_perfect_chunk_would_score(notes):
    compiled = compile_query(parse_query("apple unheard"), ANALYZER)
    with notes.snapshot() as snapshot:
        found = keyword_engine().search(snapshot, compiled, 10)
    assert found.hits[0].score < found.ideal
    assert sorted(found.frequencies.values()) == [0, 2]


def test_fields_have_the_seeds_weights():
    weights = BoostsConfig()
    assert [getattr(weights, field) for field in FIELDS] == pytest.approx(
        [3, 2.5, 2.5, 2, 2, 2, 1.5, 1, 1]
    )
    assert FIELDS[-1] is QueryField.CONTENT


def test_what_belongs_to_the_document_is_bounded_because_each_passage_has_it(tmp_path):
    """One file of 10 MB, half of it tags, would otherwise need gigabytes."""
    tags = " ".join(f"#tag{number}" for number in range(5_000))
    text = f"---\ndescription: {'words ' * 5_000}\n---\n# Title\n\n{tags}\n\nthe last word\n"
    corpus = Corpus(tmp_path, {"a.md": text})
    with corpus.snapshot() as snapshot:
        document = snapshot.document(DocId("docs:a.md"))
        passages = [field_texts(document, stored.chunk) for stored in snapshot.leaves()]
    shared = [field for field in FIELDS if field is not QueryField.CONTENT]
    assert max(len(texts[field]) for texts in passages for field in shared) == MAX_FIELD_CHARS
    assert "".join(texts[QueryField.CONTENT] for texts in passages).endswith("the last word\n")
    assert corpus.paths("tags:tag1") == corpus.paths("content:tag4999") == ["a.md"]
