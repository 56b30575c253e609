import threading
from pathlib import Path

import pytest

import ragdocs
from ragdocs.errors import IndexCorrupt
from ragdocs.indices.graph import (
    EDGE_WEIGHTS,
    FREE_LINKS,
    MAX_GAIN,
    MAX_NEIGHBOURS,
    Edge,
    GraphIndex,
    detect,
)
from ragdocs.indices.hits import Neighbour
from ragdocs.indices.vector import VectorIndex
from ragdocs.models import DocId, LinkKind
from ragdocs.search.vector_search import neighbour_hits
from ragdocs.store.records import Position
from ragdocs.store.tables import CommunityOrigin
from tests.support.models import WordModel, catch_up, embed_missing
from tests.support.processes import environment, run_code
from tests.support.stores import (
    Section,
    file,
    index_over,
    put,
    related,
    remove,
    run_sql,
    store_communities,
    wiki,
)

MODEL = WordModel()


def doc(name):
    return DocId(f"docs:{name}.md")


def note(name, *targets):
    return file(f"{name}.md", links=[t if not isinstance(t, str) else wiki(t) for t in targets])


def graph_of(reader):
    return catch_up(GraphIndex(), reader)


def names(neighbours):
    return [item.doc_id.removeprefix("docs:").removesuffix(".md") for item in neighbours]


def weights(neighbours):
    return {item.doc_id: item.weight for item in neighbours}


def embeds(target):
    return wiki(target, kind=LinkKind.EMBEDS)


def test_edges_have_the_kind_of_their_link(writer, reader):
    put(writer, note("a", "b", "b", embeds("c"), related("d")), note("b"), note("c"), note("d"))
    assert graph_of(reader).edges() == {
        Edge(doc("a"), doc("b"), LinkKind.LINKS_TO),
        Edge(doc("a"), doc("c"), LinkKind.EMBEDS),
        Edge(doc("a"), doc("d"), LinkKind.RELATED),
    }


def test_broken_links_and_self_links_connect_nothing(writer, reader):
    put(writer, note("a", "a", "gone"), note("b"))
    graph = graph_of(reader)
    assert graph.edges() == frozenset()
    assert len(graph) == 0
    assert graph.neighbours({doc("a"): 1.0, doc("b"): 1.0}) == []


def test_neighbours_are_found_along_and_against_links(writer, reader):
    put(writer, note("a", "b"), note("b", "c"), note("c"), note("far", "a"))
    assert names(graph_of(reader).neighbours({doc("b"): 1.0})) == ["a", "c"]


def test_what_was_asked_before_a_change_is_not_answered_from_memory(writer, reader):
    put(writer, note("a", "b"), note("b"), note("c"))
    graph = graph_of(reader)
    assert names(graph.neighbours({doc("b"): 1.0})) == ["a"]
    put(writer, note("a", "c"))
    catch_up(graph, reader)
    assert names(graph.neighbours({doc("b"): 1.0})) == []
    assert names(graph.neighbours({doc("a"): 1.0})) == ["c"]


def test_a_plain_link_brings_the_whole_score_to_be_halved_by_the_setting(writer, reader):
    put(writer, note("a", "b"), note("b"))
    assert graph_of(reader).neighbours({doc("a"): 0.8}) == [Neighbour(doc("b"), 0.8, 1)]


def test_kinds_of_links_weigh_differently(writer, reader):
    put(writer, note("a", "b", embeds("c"), related("d")), note("b"), note("c"), note("d"))
    found = graph_of(reader).neighbours({doc("a"): 1.0})
    assert names(found) == ["c", "d", "b"]
    assert list(weights(found).values()) == sorted(EDGE_WEIGHTS.values(), reverse=True)


def test_of_several_links_between_two_documents_the_strongest_counts(writer, reader):
    put(writer, note("a", "b"), note("b", embeds("a")))
    found = graph_of(reader).neighbours({doc("a"): 1.0})
    assert weights(found) == {doc("b"): EDGE_WEIGHTS[LinkKind.EMBEDS]}


def test_what_several_hits_lead_to_counts_more_but_not_without_end(writer, reader):
    put(writer, *(note(f"hit{n}", "shared", f"own{n}") for n in range(4)))
    put(writer, note("shared"), *(note(f"own{n}") for n in range(4)))
    found = graph_of(reader).neighbours({doc(f"hit{n}"): 0.5 for n in range(4)})
    assert names(found)[0] == "shared"
    assert found[0].weight == pytest.approx(0.5 * MAX_GAIN)


def test_a_hit_is_a_neighbour_of_other_hits_but_not_of_itself(writer, reader):
    put(writer, note("a", "b"), note("b", "a"))
    graph = graph_of(reader)
    assert names(graph.neighbours({doc("a"): 1.0}, depth=3)) == ["b"]
    assert names(graph.neighbours({doc("a"): 1.0, doc("b"): 0.5})) == ["b", "a"]


def test_further_away_counts_less(writer, reader):
    put(writer, note("a", "b"), note("b", "c"), note("c", "d"), note("d"))
    graph, hit = graph_of(reader), {doc("a"): 1.0}
    assert names(graph.neighbours(hit)) == ["b"]
    assert graph.neighbours(hit, depth=3) == [
        Neighbour(doc("b"), 1.0, 1),
        Neighbour(doc("c"), 0.5, 2),
        Neighbour(doc("d"), 0.25, 3),
    ]
    assert graph.neighbours(hit, depth=0) == []


def test_a_page_that_lists_everything_cannot_flood(writer, reader):
    many = [f"n{n:03}" for n in range(100)]
    put(writer, note("hub", *many), note("page", "one"), note("one"), *map(note, many))
    found = graph_of(reader).neighbours({doc("hub"): 1.0, doc("page"): 0.5})
    assert len(found) == MAX_NEIGHBOURS
    assert names(found)[:2] == ["one", "n000"]
    assert found[1].weight == pytest.approx((FREE_LINKS / 100) ** 0.5)


def test_a_page_that_everything_links_to_is_not_everyones_best_neighbour(writer, reader):
    many = [note(f"n{n}", "hub") for n in range(100)]
    put(writer, note("hub"), note("page", "hub", "one"), note("one"), *many)
    assert names(graph_of(reader).neighbours({doc("page"): 1.0})) == ["one", "hub"]


def test_a_scope_confines_what_is_found_but_not_the_way(writer, reader):
    put(writer, note("a", "b"), note("b", "c"), note("c"))
    graph, scope = graph_of(reader), frozenset({doc("c"), doc("unknown")})
    assert names(graph.neighbours({doc("a"): 1.0}, depth=2, scope=scope)) == ["c"]
    assert graph.neighbours({doc("a"): 1.0}, depth=2, limit=0) == []


def test_equal_neighbours_come_in_the_order_of_their_ids(writer, reader):
    put(writer, note("a", "z", "m", "b"), note("z"), note("m"), note("b"))
    assert names(graph_of(reader).neighbours({doc("a"): 1.0})) == ["b", "m", "z"]
    assert names(graph_of(reader).neighbours({doc("a"): 1.0}, limit=2)) == ["b", "m"]


def test_no_hits_or_unknown_ones_have_no_neighbours(writer, reader):
    assert GraphIndex().neighbours({doc("a"): 1.0}) == []
    put(writer, note("a", "b"), note("b"))
    assert graph_of(reader).neighbours({}) == []
    assert graph_of(reader).neighbours({doc("unknown"): 1.0}) == []


def test_a_removed_document_takes_its_edges_with_it_and_brings_them_back(writer, reader):
    b = note("b", "c")
    put(writer, note("a", "b"), b, note("c"))
    graph = graph_of(reader)
    before = graph.edges()
    remove(writer, b)
    assert catch_up(graph, reader).edges() == frozenset()
    assert len(graph) == 0
    put(writer, b)
    assert catch_up(graph, reader).edges() == before
    assert graph.position == reader.position()


def test_only_touched_documents_are_read_again(writer, reader, monkeypatch):
    put(writer, note("a", "b"), note("b"), note("c"))
    graph = graph_of(reader)
    put(writer, note("c", "a"))
    with reader.snapshot() as snapshot:
        monkeypatch.setattr(snapshot, "all_links", None)
        graph.catch_up(snapshot)
    assert names(graph.neighbours({doc("a"): 1.0})) == ["b", "c"]


def two_circles():
    left = [note(f"l{n}", f"l{(n + 1) % 4}", f"l{(n + 2) % 4}") for n in range(4)]
    right = [note(f"r{n}", f"r{(n + 1) % 5}", f"r{(n + 2) % 5}") for n in range(5)]
    return [*left, *right, note("bridge", "l0", "l1"), note("alone"), note("r0", "r1", "r2", "l0")]


def communities(reader):
    with reader.snapshot() as snapshot:
        return snapshot.communities_of([one.id for one in snapshot.documents()])


def test_documents_that_link_each_other_are_one_community(writer, reader):
    put(writer, *two_circles())
    assert communities(reader) == {}
    assert store_communities(writer, reader)
    left = dict.fromkeys([doc(name) for name in ("bridge", "l0", "l1", "l2", "l3")], 0)
    assert communities(reader) == left | {doc(f"r{n}"): 1 for n in range(5)}
    with reader.snapshot() as snapshot:
        assert snapshot.members_with(doc("l0")) == tuple(sorted(left))
        assert snapshot.members_with(doc("alone")) == snapshot.members_with(doc("unknown")) == ()
        assert snapshot.count_communities() == 2


def test_no_links_mean_no_communities_and_no_networkx():
    assert detect({}) == {}
    code = """if True:
        import sys
        from ragdocs.indices.graph import detect
        print(detect({}), "networkx" in sys.modules)"""
    assert run_code(code).split() == ["{}", "False"]


def test_communities_are_current_until_other_documents_are_linked(writer, reader):
    def is_current():
        with reader.snapshot() as snapshot:
            return snapshot.has_current_communities()

    put(writer, note("alone"))
    assert is_current(), "nothing is linked"
    put(writer, *two_circles())
    assert not is_current()
    store_communities(writer, reader)
    assert is_current()
    put(writer, file("alone.md", [Section("New text"), Section("More")]))
    put(writer, file("l0.md", [Section("New text")], [wiki("l2"), wiki("l1"), wiki("l1")]))
    assert is_current(), "the same documents are linked"
    put(writer, note("alone", "r0", "r1"))
    assert not is_current()
    before = communities(reader)
    assert before[doc("r0")] == 1, "the stored ones are used until there are others"
    store_communities(writer, reader)
    assert communities(reader)[doc("alone")] == communities(reader)[doc("r0")]


def test_a_new_set_of_communities_is_a_generation_and_the_same_set_is_none(writer, reader):
    put(writer, *two_circles())
    before = reader.position()
    assert store_communities(writer, reader)
    with reader.snapshot() as snapshot:
        assert snapshot.position.generation == before.generation + 1
        assert snapshot.changes_since(before) == ()
        assert snapshot.communities_origin.position == before
    assert not store_communities(writer, reader)
    assert reader.position().generation == before.generation + 1


def test_a_deleted_document_leaves_its_community(writer, reader):
    put(writer, *two_circles())
    store_communities(writer, reader)
    remove(writer, note("l3"))
    with reader.snapshot() as snapshot:
        snapshot.verify(deep=True)
        assert doc("l3") not in snapshot.members_with(doc("l0"))


def test_communities_of_another_history_or_older_than_the_stored_are_not_stored(writer, reader):
    put(writer, *two_circles())
    with reader.snapshot() as snapshot:
        early = CommunityOrigin(snapshot.position, snapshot.edges_digest())
    put(writer, note("alone", "r0"))
    store_communities(writer, reader)
    stored = communities(reader)
    elsewhere = CommunityOrigin(Position(reader.position().generation, "another"), "")
    for origin in (early, elsewhere):
        with writer.transaction() as transaction:
            assert not transaction.put_communities({doc("l0"): 0, doc("r0"): 0}, origin)
    assert communities(reader) == stored


def test_a_damaged_community_is_noticed(writer, reader, tmp_path):
    put(writer, *two_circles())
    store_communities(writer, reader)
    run_sql(tmp_path, "UPDATE communities SET number = 1 WHERE number = 0")
    with reader.snapshot() as snapshot:
        for look in (
            lambda: snapshot.communities_of([doc("l0")]),
            lambda: snapshot.members_with(doc("l0")),
            lambda: snapshot.verify(deep=True),
        ):
            with pytest.raises(IndexCorrupt):
                look()


def test_neighbours_are_found_without_networkx(writer, tmp_path):
    """To import it takes longer than the first search of a server."""
    put(writer, note("a", "b"), note("b"))
    code = f"""if True:
        import sys
        from pathlib import Path
        from ragdocs.indices.graph import GraphIndex
        from ragdocs.store.reader import Reader
        graph = GraphIndex()
        with Reader.open(Path({str(tmp_path)!r})) as reader:
            with reader.snapshot() as snapshot:
                graph.catch_up(snapshot)
        print(*(near.doc_id for near in graph.neighbours({{"docs:a.md": 1.0}})))
        print("networkx" in sys.modules)"""
    assert run_code(code).split() == ["docs:b.md", "False"]


def test_communities_are_the_same_in_every_process():
    """Sets of strings have another order in each: with plain ids the result would differ."""
    code = """if True:
        import random
        from ragdocs.indices.graph import detect
        choose = random.Random(7)
        ids = [f"docs:{n}.md" for n in range(200)]
        pairs = sorted({tuple(sorted(choose.sample(ids, 2))) for _ in range(500)})
        choose.shuffle(pairs)
        found = detect({pair: choose.choice((1.0, 1.5)) for pair in pairs})
        print(sorted(found.items()))"""
    source = str(Path(ragdocs.__file__).parents[1])
    answers = {
        run_code(code, env=environment(PYTHONHASHSEED=seed, PYTHONPATH=source))
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1
    assert answers != {"[]\n"}


def test_the_order_of_pairs_does_not_matter():
    pairs = {(doc("a"), doc("b")): 1.0, (doc("b"), doc("c")): 1.0, (doc("d"), doc("e")): 1.5}
    assert detect(pairs) == detect(dict(reversed(pairs.items())))


def test_questions_from_several_threads_while_one_catches_up(writer, reader):
    circles = two_circles()
    put(writer, *circles)
    graph, stop, wrong = graph_of(reader), threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                if "l1" not in names(graph.neighbours({doc("l0"): 1.0}, depth=2)):
                    wrong.append("l1 is not near l0")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        put(writer, note("alone", f"r{number % 5}"), note("other", f"l{number % 4}"))
        catch_up(graph, reader)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert graph.edges() == graph_of(reader).edges()


@pytest.fixture
def linked(writer, reader):
    sections = [Section("Ships", "harbour ship\n"), Section("Bread", "flour bread\n")]
    put(writer, note("hit", "two", "bare"), file("two.md", sections))
    embed_missing(writer, reader, MODEL)
    put(writer, file("bare.md", [Section("Late", "no vector yet\n")]))
    return graph_of(reader).neighbours({doc("hit"): 0.8})


def text_of(view, hit):
    return view.chunks_by_key([hit.key])[hit.key].chunk.text


def test_each_neighbour_contributes_its_best_chunk_at_half_the_score(reader, linked):
    index = index_over(reader, vector=VectorIndex(MODEL))
    for query, expected in (
        ("flour", "# Bread\nflour bread\n"),
        ("ship", "# Ships\nharbour ship\n"),
    ):
        with index.view() as view:
            hits = neighbour_hits(view, linked, MODEL.embed(query))
            assert {text_of(view, hit) for hit in hits} == {"Intro.\n", expected}
        assert [hit.score for hit in hits] == pytest.approx([0.4, 0.4])


def test_without_vectors_a_neighbour_contributes_its_first_leaf(reader, linked):
    with index_over(reader).view() as view:
        hits = neighbour_hits(view, linked)
        assert [text_of(view, hit) for hit in hits] == ["Intro.\n", "Intro.\n"]


def test_the_weight_of_neighbours_is_a_setting(reader, linked):
    with index_over(reader).view() as view:
        assert [hit.score for hit in neighbour_hits(view, linked, weight=0.25)] == pytest.approx(
            [0.2, 0.2]
        )


def test_a_neighbour_that_is_gone_contributes_nothing(reader, linked):
    gone = Neighbour(doc("gone"), 1.0, 1)
    with index_over(reader).view() as view:
        assert len(neighbour_hits(view, [gone, *linked])) == 2
