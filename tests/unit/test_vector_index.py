import shutil
import threading

import faiss
import numpy as np
import pytest

from ragdocs.chunking.splitting import embedding_text
from ragdocs.errors import EmbeddingError, IndexCorrupt
from ragdocs.indices import applied_commit, vector
from ragdocs.indices.applied_commit import IN_FLIGHT_SECONDS, AppliedCommit
from ragdocs.indices.hits import USUAL_SPREAD
from ragdocs.indices.vector import FlatVectors, VectorIndex
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey, VectorBatch
from ragdocs.store.tables import text_hash
from ragdocs.store.writer import StoreWriter
from tests.support.documents import chunk, leaves
from tests.support.machine import assert_best, assert_same_hits
from tests.support.models import WordModel, catch_up, embed_missing, stored_vectors
from tests.support.stores import FINGERPRINT, READ_NS, Section, file, indexed, put, remove

MODEL = WordModel()


@pytest.fixture
def writer(tmp_path):
    with StoreWriter.open(tmp_path / "index", FINGERPRINT) as opened:
        yield opened


@pytest.fixture
def reader(tmp_path, writer):
    with Reader.open(tmp_path / "index") as opened:
        yield opened


@pytest.fixture
def rebuilds(monkeypatch):
    """The vectors that an index holds, one more each time it starts over."""
    made = []

    class Counted(FlatVectors):
        def __init__(self, *given):
            made.append(self)
            super().__init__(*given)

    monkeypatch.setattr(vector, "FlatVectors", Counted)
    return made


def note(path, *texts, **given):
    return file(path, [Section(f"S{n}", f"{text}\n") for n, text in enumerate(texts)], **given)


def fill(writer, reader, *files):
    put(writer, *files)
    embed_missing(writer, reader, MODEL)


def index_of(reader):
    return catch_up(VectorIndex(MODEL), reader)


def naive(reader, query, keys=None):
    """The score of each, as a sum of doubles."""
    return {
        key: float(row.astype(np.float64) @ query.astype(np.float64))
        for key, row in stored_vectors(reader, MODEL).items()
        if keys is None or key in keys
    }


def keys_of(reader, *doc_ids):
    with reader.snapshot() as snapshot:
        return [leaf.key for doc_id in doc_ids for leaf in snapshot.leaves(DocId(doc_id))]


def embedded(given):
    return [
        (hashed, MODEL.embed(embedding_text(chunk)).tobytes())
        for chunk in given.chunks
        if (hashed := text_hash(chunk))
    ]


def found(hits):
    return [hit.key for hit in hits]


TOPICS = ["harbour ship", "garden flower", "engine oil", "bread flour", "winter snow", "ship oil"]


def corpus():
    return [note(f"{n}.md", f"{TOPICS[n % 6]} {n}", f"{TOPICS[n % 5]} x{n}") for n in range(30)]


def test_the_best_match_comes_first_and_scores_never_rise(writer, reader):
    fill(writer, reader, note("a.md", "harbour ship"), note("b.md", "garden flower"))
    hits = index_of(reader).search(MODEL.embed("b S0 overlap garden flower"), 10)
    with reader.snapshot() as snapshot:
        best = snapshot.chunks_by_key([hits[0].key])[hits[0].key]
    assert best.chunk.text.endswith("garden flower\n")
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.7


def test_embedding_includes_header_path(writer, reader):
    """The store asks for vectors of the heading path and the text, not of the text alone (P2)."""
    words = "Words enough for a section of its own. " * 30
    put(writer, indexed("a.md", f"# Caching\n\n{words}\n\n## Refresh\n\n{words}\n"))
    with reader.snapshot() as snapshot:
        texts = [each.text for each in snapshot.missing_embeddings(MODEL.identity)]
    paths = {text.partition("\n\n")[0] for text in texts}
    assert paths == {"Caching", "Caching > Refresh"}


def test_separator_format():
    """A blank line, so that the model reads the path as a paragraph of its own."""
    [only] = leaves(chunk("# Search\n\nWeights are below.\n"))
    assert embedding_text(only) == "Search\n\n# Search\n\nWeights are below."


def test_results_are_those_of_a_naive_search(writer, reader):
    fill(writer, reader, *corpus())
    index = index_of(reader)
    for text in ("ship", "oil in the engine", "bread", "x7 snow"):
        query = MODEL.embed(text)
        hits = index.search(query, 7)
        assert_best(hits, naive(reader, query), 7)


def test_a_small_folder_in_a_big_corpus_is_not_starved(writer, reader):
    fill(
        writer, reader, *(note(f"{n}.md", f"ship {n}") for n in range(40)), note("few.md", "bread")
    )
    index = index_of(reader)
    scope = frozenset({DocId("docs:few.md")})
    assert sorted(found(index.search(MODEL.embed("ship"), 5, scope))) == keys_of(
        reader, "docs:few.md"
    )


@pytest.mark.parametrize("limits", [(1000, 1 << 26), (0, 1 << 26), (0, 0)])
def test_every_way_to_restrict_a_search_answers_the_same(writer, reader, monkeypatch, limits):
    monkeypatch.setattr(vector, "EXACT_LIMIT", limits[0])
    monkeypatch.setattr(vector, "BITMAP_LIMIT", limits[1])
    fill(writer, reader, *corpus())
    doc_ids = [f"docs:{n}.md" for n in range(0, 30, 3)]
    scope = frozenset(map(DocId, [*doc_ids, "docs:unknown.md"]))
    index = index_of(reader)
    query = MODEL.embed("ship oil")
    hits = index.search(query, 8, scope)
    assert_best(hits, naive(reader, query, keys_of(reader, *doc_ids)), 8)
    unrestricted = {hit.key: hit.score for hit in index.search(query, 1000)}
    assert_best(hits, {hit.key: unrestricted[hit.key] for hit in hits}, len(hits))


def test_a_scope_of_everything_is_no_restriction(writer, reader):
    fill(writer, reader, *corpus())
    index = index_of(reader)
    everything = frozenset(DocId(f"docs:{n}.md") for n in range(30))
    query = MODEL.embed("ship")
    assert_same_hits(index.search(query, 9, everything), index.search(query, 9))


def test_an_empty_scope_finds_nothing(writer, reader):
    fill(writer, reader, *corpus())
    assert index_of(reader).search(MODEL.embed("ship"), 5, frozenset()) == []


def test_an_index_that_never_caught_up_or_has_no_vectors_finds_nothing(writer, reader):
    index = VectorIndex(MODEL)
    assert index.search(MODEL.embed("ship"), 5) == []
    assert index.vectors_of([ChunkKey(1)]) == {}
    assert index.position is None
    put(writer, note("a.md", "not embedded yet"))
    assert catch_up(index, reader).search(MODEL.embed("ship"), 5) == []
    assert index.position == reader.position()
    with pytest.raises(EmbeddingError, match="from different models"):
        index.search(np.ones(3, dtype=np.float32), 5)


def test_a_limit_beyond_the_end_gives_all_and_one_of_zero_or_less_nothing(writer, reader):
    fill(writer, reader, *corpus())
    index = index_of(reader)
    assert len(index.search(MODEL.embed("ship"), 10_000)) == len(index) == 90
    assert index.search(MODEL.embed("ship"), 0) == index.search(MODEL.embed("ship"), -1) == []


@pytest.mark.parametrize("query", [np.ones(3), np.ones((1, 16)), np.full(16, np.nan)])
def test_a_vector_that_is_not_of_this_model_is_an_error_that_says_so(writer, reader, query):
    fill(writer, reader, note("a.md", "ship"))
    with pytest.raises(EmbeddingError, match="the query's vector"):
        index_of(reader).search(query.astype(np.float32), 5)


def test_equal_scores_are_ordered_by_number_up_to_the_last_place(writer, reader):
    # Same titles and texts: all vectors are equal, whatever order FAISS holds them in.
    copies = [note(f"{n}/same.md", "ship", title="same") for n in range(12)]
    fill(writer, reader, *copies)
    index = index_of(reader)
    fill(writer, reader, note("0/same.md", "other", title="same"))
    fill(writer, reader, copies[0])
    catch_up(index, reader)
    query = MODEL.embed("same > s0 overlap ship")
    for limit in range(1, 14):
        hits = index.search(query, limit)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.key))
        assert hits == index.search(query, 100)[:limit]
        assert hits == index_of(reader).search(query, limit)


def test_a_stored_vector_that_is_not_a_number_is_never_found():
    vectors = FlatVectors(2)
    data = np.array([[np.nan, np.nan], [1, 0]], dtype=np.float32).tobytes()
    docs = [DocId("a"), DocId("b")]
    vectors.add(VectorBatch([ChunkKey(1), ChunkKey(2)], docs, 2, data))
    query = np.array([1, 0], dtype=np.float32)
    for scope in (None, frozenset({DocId("a"), DocId("b")}), frozenset({DocId("b")})):
        assert found(vectors.search(query, 5, scope)) == [2]
    assert vectors.search(query, 5, frozenset({DocId("a")})) == []
    assert set(vectors.best_of(query, docs)) == {DocId("b")}


def test_vectors_of_candidates_are_those_stored_and_unknown_ones_are_left_out(writer, reader):
    fill(writer, reader, *corpus()[:3])
    index, rows = index_of(reader), stored_vectors(reader, MODEL)
    given = index.vectors_of([*rows, ChunkKey(10_000)])
    assert given.keys() == rows.keys()
    assert all(np.array_equal(given[key], rows[key]) for key in rows)


def test_each_documents_best_chunk_is_its_nearest(writer, reader):
    fill(writer, reader, *corpus()[:5])
    put(writer, note("bare.md", "no vector"))
    doc_ids = [DocId(f"docs:{name}.md") for name in ("1", "4", "bare", "unknown")]
    query = MODEL.embed("flower")
    best = index_of(reader).best_of(query, doc_ids)
    assert best.keys() == set(doc_ids[:2])
    for doc_id in doc_ids[:2]:
        assert_best([best[doc_id]], naive(reader, query, keys_of(reader, doc_id)), 1)


def test_only_touched_documents_are_read_again(writer, reader, rebuilds):
    files = corpus()
    fill(writer, reader, *files)
    index = index_of(reader)
    fill(writer, reader, note("3.md", "a new text"))
    remove(writer, files[4])
    catch_up(index, reader)
    assert len(rebuilds) == 1
    query = MODEL.embed("engine new")
    assert_best(index.search(query, 100), naive(reader, query), 100)
    assert index.position == reader.position()


def test_vectors_that_arrive_after_the_text_are_taken_in(writer, reader, rebuilds):
    put(writer, note("a.md", "ship"))
    index = index_of(reader)
    embed_missing(writer, reader, MODEL, limit=1)
    assert len(catch_up(index, reader)) == 1
    embed_missing(writer, reader, MODEL)
    assert len(catch_up(index, reader)) == 2
    assert len(rebuilds) == 1


def test_catching_up_twice_changes_nothing(writer, reader, rebuilds):
    fill(writer, reader, *corpus())
    index = index_of(reader)
    before = index.search(MODEL.embed("ship"), 100)
    catch_up(catch_up(index, reader), reader)
    assert index.search(MODEL.embed("ship"), 100) == before
    assert len(rebuilds) == 1


def test_a_log_that_does_not_reach_back_means_starting_over(writer, reader, rebuilds, monkeypatch):
    fill(writer, reader, note("a.md", "ship"))
    index = index_of(reader)
    monkeypatch.setattr("ragdocs.store.generations.KEPT_GENERATIONS", 2)
    for number in range(4):
        fill(writer, reader, note("b.md", f"bread {number}"))
    catch_up(index, reader)
    assert len(rebuilds) == 2
    assert sorted(found(index.search(MODEL.embed("x"), 9))) == sorted(stored_vectors(reader, MODEL))


def test_an_older_copy_of_the_store_leaves_no_ghosts(tmp_path, monkeypatch):
    monkeypatch.setattr(applied_commit, "IN_FLIGHT_SECONDS", 0.0)
    home, copy = tmp_path / "index", tmp_path / "copy"
    with StoreWriter.open(home, FINGERPRINT) as writer, Reader.open(home) as reader:
        fill(writer, reader, note("a.md", "ship"))
        index = index_of(reader)
    shutil.copytree(home, copy)
    with StoreWriter.open(home, FINGERPRINT) as writer, Reader.open(home) as reader:
        fill(writer, reader, note("ghost.md", "bread"))
        assert len(catch_up(index, reader)) == 4
    with Reader.open(copy) as reader:
        assert len(catch_up(index, reader)) == 2
        assert index.position == reader.position()


def test_a_request_with_a_late_snapshot_does_not_turn_the_index_back(writer, reader, rebuilds):
    fill(writer, reader, note("a.md", "ship"))
    index = index_of(reader)
    put(writer, note("b.md", "bread"))
    with reader.snapshot() as late:
        fill(writer, reader, note("c.md", "snow"))
        catch_up(index, reader)
        index.catch_up(late)
        assert index.position == reader.position() != late.position
        assert found(index.search(MODEL.embed("snow"), 9))
    assert len(rebuilds) == 1


def test_a_snapshot_from_before_is_late_only_for_a_while(writer, reader):
    now = [0.0]
    seen = AppliedCommit(clock=lambda: now[0])
    put(writer, note("a.md", "ship"))
    with reader.snapshot() as old:
        seen.reach(old.position)
        put(writer, note("b.md", "bread"))
        seen.reach(reader.position())
        assert not seen.is_behind(old)
        now[0] = IN_FLIGHT_SECONDS + 1
        assert seen.is_behind(old)
        assert seen.touched(old, frozenset()) is None


def test_another_model_of_the_same_dimension_starts_over_and_shares_nothing(writer, reader):
    model = WordModel()
    put(writer, note("a.md", "ship"))
    embed_missing(writer, reader, model)
    index = catch_up(VectorIndex(model), reader)
    assert len(index) == 2
    model.identity = "words@2"
    assert len(catch_up(index, reader)) == 0
    embed_missing(writer, reader, model)
    assert len(catch_up(index, reader)) == 2


def test_pruned_vectors_go_although_no_document_changed(writer, reader):
    fill(writer, reader, note("a.md", "ship"))
    index = index_of(reader)
    with writer.transaction() as transaction:
        transaction.prune_embeddings(["another model"])
    assert len(catch_up(index, reader)) == 0


def test_a_count_that_differs_from_the_stores_means_starting_over(
    writer, reader, rebuilds, monkeypatch
):
    monkeypatch.setattr(vector, "COUNT_EVERY", 1)
    fill(writer, reader, *corpus()[:3])
    index = index_of(reader)
    (vectors,) = rebuilds
    vectors.keep([DocId("docs:1.md")])
    put(writer, note("other.md", "bread"))
    assert len(catch_up(index, reader)) == 9
    assert len(rebuilds) == 2


def test_vectors_of_another_dimension_than_the_models_are_corrupt(writer, reader):
    fill(writer, reader, note("a.md", "ship"))
    model = WordModel()
    model.dimension = 8
    with pytest.raises(IndexCorrupt, match="16 dimensions"):
        catch_up(VectorIndex(model), reader)


def test_before_it_has_read_any_vector_the_spread_is_the_usual_one():
    assert VectorIndex(MODEL).spread(MODEL.embed("ship")) == pytest.approx(USUAL_SPREAD)


def test_a_damaged_vector_is_reported_and_the_index_stays_as_it_was(writer, reader, monkeypatch):
    fill(writer, reader, *corpus()[:3])
    index = index_of(reader)
    before, position = index.search(MODEL.embed("ship"), 50), index.position
    fill(writer, reader, note("1.md", "changed"))
    with monkeypatch.context() as damaged:
        damaged.setattr("ragdocs.store.embeddings._is_whole", lambda *_: False)
        with pytest.raises(IndexCorrupt):
            catch_up(index, reader)
    assert (index.search(MODEL.embed("ship"), 50), index.position) == (before, position)
    assert catch_up(index, reader).search(MODEL.embed("ship"), 50) != before


def test_a_catch_up_that_broke_off_halfway_is_made_good_by_the_next(writer, reader, monkeypatch):
    fill(writer, reader, *corpus()[:3])
    index = index_of(reader)
    fill(writer, reader, note("1.md", "changed"))

    def out_of_memory(*_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(FlatVectors, "add", out_of_memory)
        with pytest.raises(MemoryError):
            catch_up(index, reader)
    catch_up(index, reader)
    query = MODEL.embed("changed")
    assert_best(index.search(query, 50), naive(reader, query), 50)


def test_searches_from_several_threads_while_one_catches_up(writer, reader):
    """Whatever the moment, a search sees whole documents of one of the two versions."""
    fill(writer, reader, *corpus())
    index = index_of(reader)
    query, stop, wrong = MODEL.embed("ship"), threading.Event(), []

    def search():
        while not stop.is_set():
            hits = index.search(query, 200)
            scores = [hit.score for hit in hits]
            if len(hits) != 90 or len(set(found(hits))) != 90 or scores != sorted(scores)[::-1]:
                wrong.append(len(hits))
            index.vectors_of(found(hits[:5]))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(30):
        with writer.transaction() as transaction:
            for path in ("1.md", "2.md"):
                given = note(path, f"ship {number}", f"oil {number}")
                transaction.put(given, READ_NS)
                transaction.put_embeddings(MODEL.identity, embedded(given))
        catch_up(index, reader)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert_best(index.search(query, 200), naive(reader, query), 200)


def test_faiss_uses_one_thread_in_every_thread(writer, reader):
    fill(writer, reader, note("a.md", "ship"))
    index, seen = index_of(reader), []

    def search():
        index.search(MODEL.embed("ship"), 1)
        seen.append(faiss.omp_get_max_threads())

    thread = threading.Thread(target=search)
    thread.start()
    thread.join(30)
    assert seen == [1]
