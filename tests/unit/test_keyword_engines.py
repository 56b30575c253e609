"""What every keyword engine must do alike: fts5, whoosh and tantivy behind one protocol."""

import pytest

from ragdocs.config.choices import KeywordEngineName
from ragdocs.config.settings import SearchConfig
from ragdocs.indices.analysis import text_analyzer
from ragdocs.indices.conditions import (
    All,
    Comparison,
    FilterField,
    Operator,
    Some,
    Unit,
    Without,
    in_tree,
)
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.fts5 import Fts5Index
from ragdocs.indices.keyword import KeywordQuery, Quotation, compile_query
from ragdocs.indices.scopes import few_left_out, scope_of
from ragdocs.models import DocId, QueryField
from ragdocs.search.query_language import parse_query
from ragdocs.search.understanding import SMALL, look_up
from ragdocs.store.reader import Reader
from ragdocs.store.records import ChunkKey
from tests.support.stores import NOTES, EngineCorpus, index_over

ENGINES = [choice.value for choice in KeywordEngineName]


DEEP = Comparison(FilterField.PATH, Operator.BEGINS, "deep/")


@pytest.fixture(params=ENGINES)
def corpus(request, tmp_path):
    def make(texts, name="index", **settings):
        return EngineCorpus(tmp_path / name, texts, request.param, **settings)

    return make


@pytest.fixture(scope="module", params=ENGINES)
def notes(request, tmp_path_factory):
    """Only to be asked."""
    return EngineCorpus(tmp_path_factory.mktemp("notes"), NOTES, request.param)


@pytest.fixture(scope="module", params=ENGINES[1:])
def both(request, tmp_path_factory):
    """The default engine and another one, over the same texts."""
    folder = tmp_path_factory.mktemp("both")
    return (
        EngineCorpus(folder / "fts5", NOTES, "fts5"),
        EngineCorpus(folder / "other", NOTES, request.param),
    )


QUERIES = [
    "apple",
    "engine fuel",
    "fruit on trees",
    "grow",
    "getUserById timeout",
    "petrol energy",
    "is a",
    '"grow on trees"',
    "title:cars",
    "fruit -pear",
    "pear^20 OR fuel",
    "unheard of",
]


@pytest.mark.parametrize("query", QUERIES)
def test_frequencies_and_ideal_are_the_default_engines(both, query):
    default, other = both
    expected, found = default.search(query), other.search(query)
    assert found.frequencies == expected.frequencies
    assert found.ideal == pytest.approx(expected.ideal)


def test_passages_are_counted_and_headings_are_not(corpus):
    text = "word and more " * 40
    parts = [f"## Part {number}\n\n{text}\n" for number in range(4)]
    searched = corpus({"a.md": "# Title\n\n" + "".join(parts), "b.md": "# Empty\n"})
    with searched.snapshot() as snapshot:
        searched.engine.catch_up(snapshot)
        total = searched.engine.count(snapshot)
        assert total == snapshot.count_passages()
        assert 4 <= total < snapshot.ledger.count("chunks")


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_near_the_default_engines(both, query):
    default, other = both
    expected, found = dict(default.ask(query)), dict(other.ask(query))
    assert found.keys() == expected.keys()
    # whoosh keeps fractions and exact lengths; tantivy repeats terms and rounds lengths.
    near = 0.02 if other.settings.keyword_engine is KeywordEngineName.WHOOSH else 0.3
    assert found == pytest.approx(expected, rel=near)


@pytest.mark.parametrize("query", QUERIES)
def test_chunks_are_scored_by_their_numbers_as_the_search_scores_them(notes, query):
    compiled = compile_query(parse_query(query), notes.analyzer)
    with notes.snapshot() as snapshot:
        notes.engine.catch_up(snapshot)
        every = {hit.key: hit.score for hit in notes.engine.search(snapshot, compiled, 50).hits}
        best = notes.engine.search(snapshot, compiled, 1)
        assert best.scores_of([]) == {}
        scores = best.scores_of([*every, ChunkKey(10_000)])
    assert ChunkKey(10_000) not in scores
    assert {key: scores[key] for key in every} == pytest.approx(every)


def test_a_folder_of_five_files_ranks_sensibly(notes):
    assert notes.paths("fuel for an engine")[:2] == ["fuel.md", "cars.md"]
    assert notes.paths("apple")[0] == "apples.md"
    assert notes.paths("fruit trees") == ["apples.md", "pears.md"]


def test_a_word_in_every_chunk_still_ranks(corpus):
    found = corpus({"a.md": "word", "b.md": "word word word", "c.md": "word other"}).ask("word")
    assert len(found) == 3
    assert min(score for _, score in found) > 0


def test_hits_are_best_first_and_below_the_ideal(notes):
    found = notes.search("engine fuel apple")
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] < found.ideal


def test_a_content_match_is_not_buried_under_titles(corpus):
    texts = {f"t{n}.md": f"# Settings {n}\n\nUnrelated words here.\n" for n in range(20)}
    texts["answer.md"] = (
        "# Notes\n\nThe retry settings of the uploader: backoff doubles after each failure.\n"
    )
    assert corpus(texts).paths("settings backoff failure")[0] == "answer.md"


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("petrol", "fuel.md"),
        ("energy", "fuel.md"),
        ("http", "deep/http.md"),
        ("deep", "deep/http.md"),
        ("getUserById", "deep/http.md"),
        ("user", "deep/http.md"),
        ("handled errors", "deep/http.md"),
    ],
)
def test_every_field_is_searched(notes, query, path):
    assert notes.paths(query)[0] == path


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"grow on trees"', {"apples.md", "pears.md"}),
        ('"trees on grow"', set()),
        ("fruit -pear", {"apples.md"}),
        ("pear OR car", {"pears.md", "cars.md"}),
        ("(pear fruit) OR (car engine)", {"pears.md", "cars.md"}),
        ("title:cars", {"cars.md"}),
        ("tags:energy", {"fuel.md"}),
        ("content:petrol", set()),
        ('content:"needs fuel"', {"cars.md"}),
        ('title:"needs fuel"', set()),
        ("path:deep/ timeout", {"deep/http.md"}),
        ("path:de timeout", {"deep/http.md"}),
        ("tree:docs fuel", {"fuel.md", "cars.md"}),
        ("tree:other fuel", set()),
        ("engine fuel -title:fuel", {"cars.md"}),
        ('"error handling" timeout', {"deep/http.md"}),
        ("-fruit", set()),
    ],
)
def test_the_query_language_decides_what_is_found(notes, query, expected):
    assert set(notes.paths(query)) == expected


def test_conditions_of_every_kind(notes):
    fruit, pear, energy = Unit(("fruit",)), Unit(("pear",)), Unit(("energi",), QueryField.TAGS)
    assert notes.matching(fruit) == {"apples.md", "pears.md"}
    assert notes.matching(energy) == {"fuel.md"}
    assert notes.matching(All((fruit, Without(pear)))) == {"apples.md"}
    assert notes.matching(Some((pear, energy))) == {"pears.md", "fuel.md"}
    assert notes.matching(Without(fruit)) == {"cars.md", "fuel.md", "deep/http.md"}
    assert notes.matching(in_tree("docs")) == set(NOTES)
    assert notes.matching(in_tree("other")) == set()
    assert notes.matching(DEEP) == {"deep/http.md"}
    assert notes.matching(All((in_tree("docs"), Without(DEEP), Some((fruit,))))) == {
        "apples.md",
        "pears.md",
    }


def test_no_phrase_reaches_across_fields_or_copies(corpus):
    texts = {
        "red.md": "---\ntitle: red green\nkeywords: [green]\n---\nGreen grass, red roof.\n",
    }
    found = corpus(texts)
    assert found.paths('"red green"') == ["red.md"]
    for phrase in ('"green red"', '"green green"', '"red red"', '"roof red"', '"green grass"'):
        assert found.paths(phrase) == (["red.md"] if phrase == '"green grass"' else []), phrase


def test_no_phrase_is_made_of_wholes(corpus):
    found = corpus({"a.md": "# Names\n\ngetUser first, setUser then.\n"})
    assert found.paths('"getUser first"') == ["a.md"]
    assert found.paths("getUser") == ["a.md"]
    assert found.paths('"getUser setUser"') == []


def test_phrases_count_by_their_own_frequency(notes):
    found = notes.search('"grow on trees"')
    assert list(found.frequencies.values()) == [2]


def test_the_weight_of_a_unit_changes_the_order(notes):
    assert notes.paths("pear^20 OR fuel")[0] == "pears.md"
    assert notes.paths("pear OR fuel^20")[0] == "fuel.md"
    heavy = KeywordQuery((Unit(("pear",), weight=20.0), Unit(("fuel",))))
    light = KeywordQuery((Unit(("pear",)), Unit(("fuel",))))
    assert notes.search(heavy).hits[0].score > 3 * notes.search(light).hits[0].score


def test_field_weights_decide(corpus):
    texts = {
        "a.md": "---\ntitle: Deployment\n---\nHow it is done.\n",
        "b.md": "---\ntitle: Other\n---\nNotes on deployment, a deployment of things.\n",
    }
    assert corpus(texts).paths("deployment")[0] == "a.md"
    faint = corpus(texts, "faint", boosts={"title": 0.01, "path": 0})
    assert faint.paths("deployment") == ["b.md", "a.md"]


def test_a_field_of_no_weight_is_still_found(corpus):
    found = corpus({"a.md": "---\ntags: [zebra]\n---\ntext\n"}, boosts={"tags": 0})
    assert found.paths("zebra") == ["a.md"]
    assert found.paths("tags:zebra") == ["a.md"]


def test_a_text_of_little_weight_still_counts_its_words(corpus):
    texts = {"a.md": "word " * 3 + "other " * 9, "b.md": "word " + "other " * 11}
    assert corpus(texts, boosts={"content": 0.2}).paths("word") == ["a.md", "b.md"]


def test_a_scope_restricts_the_search_itself(corpus):
    texts = {f"big/{n}.md": "needle " * 20 for n in range(60)} | {"small/a.md": "one needle here"}
    scope = frozenset({DocId("docs:small/a.md")})
    found = corpus(texts)
    assert [chunk for chunk, _ in found.ask("needle", scope, limit=5)] == ["docs:small/a.md"]
    assert found.ask("needle", frozenset()) == []
    assert [chunk for chunk, _ in found.ask("path:small needle", scope)] == ["docs:small/a.md"]
    assert found.ask("path:big needle", scope) == []


def test_a_scope_that_leaves_out_few_finds_what_is_left(corpus):
    found = corpus({f"{n}.md": f"needle {'hay ' * n}" for n in range(6)})
    every = frozenset(DocId(f"docs:{n}.md") for n in range(6))
    left_out = frozenset({DocId("docs:0.md"), DocId("docs:3.md")})
    scope = scope_of(every - left_out, left_out)
    assert few_left_out(scope) == left_out
    for query in ("needle", "needle OR path:0", "hay -path:5"):
        assert found.ask(query, scope) == found.ask(query, frozenset(every - left_out)) != []
    assert len(found.ask("needle", scope)) == 4


def test_a_long_document_is_left_out_whole_and_no_other(corpus):
    long = "# Long\n\n" + "\n".join(f"## {n}\n\n{'needle hay ' * 30}\n" for n in range(1_050))
    found = corpus({"a.md": "needle", "long.md": long, "short.md": "needle hay", "z.md": "needle"})
    left_out = frozenset({DocId("docs:long.md"), DocId("docs:short.md")})
    kept = frozenset(DocId(f"docs:{name}.md") for name in ("a", "z", "other"))
    scope = scope_of(kept, left_out)
    assert few_left_out(scope) == left_out
    assert {chunk for chunk, _ in found.ask("needle", scope)} == {"docs:a.md", "docs:z.md"}


def test_ties_are_ordered_by_number_wherever_the_list_ends(corpus):
    found = corpus({f"{n}.md": "same words" for n in range(30)}, boosts={"path": 0, "title": 0})
    whole = [hit.key for hit in found.search("words").hits]
    assert whole == sorted(whole)
    assert [hit.key for hit in found.search("words", limit=7).hits] == whole[:7]


def test_an_edit_and_a_delete_are_seen(corpus):
    notes = corpus(NOTES)
    assert notes.paths("engine")
    notes.update({"cars.md": "# Cars\n\nElectric now.\n"}, removed=("fuel.md",))
    assert notes.paths("engine") == []
    assert notes.paths("electric") == ["cars.md"]
    assert list(notes.search("fuel").frequencies.values()) == [0]


def test_putting_the_same_again_changes_nothing(corpus):
    notes = corpus(NOTES)
    before = notes.ask("engine fuel")
    notes.update(NOTES)
    notes.update(NOTES)
    assert dict(notes.ask("engine fuel")) == pytest.approx(dict(before), rel=1e-3)
    assert list(notes.search("engine").frequencies.values()) == [2]


def test_a_document_changed_twice_is_there_once(corpus):
    notes = corpus(NOTES)
    notes.search("engine")
    for text in ("# Cars\n\nFirst zebra.\n", "# Cars\n\nSecond zebra.\n"):
        notes.update({"cars.md": text})
    assert len(notes.ask("zebra")) == 1
    assert notes.ask("first") == []


def test_statistics_forget_what_was_removed(corpus):
    texts = {f"{n}.md": f"number{n} word\n" for n in range(40)}
    found = corpus(texts)
    found.search("word")
    found.update({"0.md": "number0 rare\n"}, removed=tuple(f"{n}.md" for n in range(1, 19)))
    later = found.search("word rare")
    assert sorted(later.frequencies.values()) == [1, 21]
    fresh = EngineCorpus(
        found.folder.with_name("fresh"),
        {"0.md": "number0 rare\n"} | {f"{n}.md": f"number{n} word\n" for n in range(19, 40)},
        found.settings.keyword_engine,
    ).search("word rare")
    assert later.ideal == pytest.approx(fresh.ideal)
    assert later.hits[0].score == pytest.approx(fresh.hits[0].score, rel=0.05)


def test_endings_are_ignored_in_the_chosen_language(corpus):
    texts = {"a.md": "Die Häuser stehen dort.\n", "b.md": "Houses are there.\n"}
    assert corpus(texts, "de", stemmer="german").paths("Haus") == ["a.md"]
    assert corpus(texts, "en").paths("housing") == ["b.md"]


def test_names_in_code_are_found_whole_and_in_parts(corpus):
    found = corpus({"a.md": "Use `parse_http_header` here.\n", "b.md": "Parse the header.\n"})
    assert found.paths("parse_http_header")[0] == "a.md"
    assert found.paths("header http")[0] == "a.md"


def test_text_without_spaces(corpus):
    texts = {
        "a.md": "全文検索エンジン\n",
        "b.md": "検定の全文\n",
        "c.md": "中国語の文書を検索する\n",
    }
    found = corpus(texts)
    assert set(found.paths("検索")) == {"a.md", "c.md"}
    assert found.paths('"全文検索"') == ["a.md"]


def test_a_document_without_text_is_found_by_its_title(corpus):
    found = corpus({"a.md": "---\ntitle: Quarterly plan\n---\n", "b.md": "text"})
    assert found.paths("quarterly") == ["a.md"]


def test_an_empty_index_answers(corpus):
    found = corpus({})
    assert found.ask("word") == []
    assert found.matching(Unit(("word",))) == set()
    found.update({"a.md": "word\n"})
    assert found.paths("word") == ["a.md"]
    found.update({}, removed=("a.md",))
    assert found.ask("word") == []


@pytest.mark.parametrize(
    "query", ["", "   ", "\x00", '"', "((", "* NEAR(a b)", "' OR 1=1", "col:x", "-a", "text:*"]
)
def test_no_query_is_an_error(notes, query):
    every = {f"docs:{path}" for path in NOTES}
    assert {found.partition("#")[0] for found, _ in notes.ask(query)} <= every


def test_no_limit_no_hits(notes):
    assert notes.ask("engine", limit=0) == []


def test_only_the_default_engine_needs_tables(tmp_path):
    for choice in ENGINES:
        settings = SearchConfig(keyword_engine=choice)
        setup = keyword_setup(settings, text_analyzer(settings.stemmer), tmp_path)
        kinds = [type(table) for table in setup.tables]
        assert kinds == ([Fts5Index] if choice == "fts5" else [])
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_from_before_gives_no_chunk_that_came_after(corpus):
    found = corpus(NOTES)
    query = compile_query(parse_query("engine"), found.analyzer)
    with found.snapshot() as before:
        found.engine.catch_up(before)
        expected = {hit.key for hit in found.engine.search(before, query, 1).hits}
        found.update({"a.md": "# Engine\n\nengine engine\n", "b.md": "# Engine\n\nengine\n"})
        found.search("engine")
        hits = found.engine.search(before, query, 1).hits
        assert {hit.key for hit in hits} == expected
        assert found.engine.matching(before, Unit(("engin",))) >= expected
        assert len(found.engine.matching(before, Unit(("engin",)))) == 2


def test_a_small_folder_is_small_however_many_headings_it_has(corpus):
    """What two quoted words count depends on how many passages there are."""
    bare = "".join(f"### Empty {number}\n\n" for number in range(60))
    texts = {f"{n}.md": f"# Note {n}\n\nThe red door of house {n}, red.\n" for n in range(6)}
    texts |= {f"other {n}.md": f"# Other {n}\n\nThis door is never red.\n" for n in range(6)}
    texts["index.md"] = f"# Index\n\nAll notes.\n\n{bare}"
    searched = corpus(texts)
    quotation = Quotation(Unit(("red", "door")), 2)
    with (
        Reader.open(searched.folder) as reader,
        index_over(reader, keyword=searched.engine).view() as view,
    ):
        assert view.count_chunks() > SMALL > view.count_matching()
        [wish] = look_up([quotation], view)
    assert wish.passages == 6
    assert wish.is_name
