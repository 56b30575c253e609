"""What a request within the limits may cost: terms, conditions, look-ups and windows are bounded.

Nothing here measures time: what is counted is what takes it.
"""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.base import MAX_TOKENS, SPECIAL_TOKENS, QueryEmbedding, Tokens, split_text
from ragdocs.errors import QueryError
from ragdocs.indices.conditions import Unit
from ragdocs.indices.keyword import FEW_UNITS, FEWEST_UNITS, compile_query, rarest
from ragdocs.indices.vocabulary import Vocabulary
from ragdocs.library.requests import EditedFile
from ragdocs.library.source_code import read_diff, read_sources
from ragdocs.library.terms import TermCounter, TermFrequencies
from ragdocs.limits import (
    HYPOTHESIS_WINDOWS,
    MAX_CONDITIONS,
    MAX_GUESSES,
    MAX_HYPOTHESIS_CHARS,
    MAX_QUERIES,
    MAX_QUERIES_CHARS,
    MAX_QUERY_CHARS,
    MAX_READ_SOURCE_CHARS,
    MAX_SEARCHED_TERMS,
    MAX_SOURCE_FILES,
    MAX_SOURCE_TERMS,
    QUERY_WINDOWS,
)
from ragdocs.models import DocId
from ragdocs.search import vector_search
from ragdocs.search.candidates import Strategy
from ragdocs.search.query_language import TOO_MANY, parse_query
from ragdocs.search.requests import QueryRequest
from ragdocs.search.retrieval import fair_share
from ragdocs.search.snippets import BestSentence
from ragdocs.search.spelling import Spelling
from ragdocs.search.understanding import MAX_ADDED, AddedWord, Interpreter, WordOrigin
from ragdocs.search.vector_search import MOST_OF_ALL, Bounds
from ragdocs.search.weighing import closeness
from tests.support.engine import Engine
from tests.support.machine import ROUNDING, record_calls
from tests.support.models import WordEmbedder
from tests.support.stores import ANALYZER, index_over, vocabulary_store

ENGINES = ("fts5", "whoosh", "tantivy")
IDEOGRAPHS = [chr(0x4E00 + number) for number in range(400)]


def letters(number: int) -> str:
    """A word of letters for each number, no two within two errors of each other."""
    return "".join(2 * "bcdfghklmn"[int(digit)] for digit in f"{number:04}")


def many_words(count: int) -> list[str]:
    return [letters(number) for number in range(count)]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Notes with a word each that is in all of them, in half of them, …, in one."""
    texts = {
        f"{number}.md": f"# {number}\n\n"
        + " ".join(word for at, word in enumerate(many_words(400)) if number % (at % 40 + 1) == 0)
        for number in range(40)
    }
    chinese = random.Random(1)
    texts["zh.md"] = "# 一\n\n" + "".join(chinese.choices(IDEOGRAPHS, k=4000)) + "\n"
    with Engine(tmp_path_factory.mktemp("words"), texts) as engine:
        yield engine


def asked(engine, *queries, **more):
    request = QueryRequest(queries=queries, explain=True, **more)
    return engine.orchestrator.search(request)


@pytest.mark.parametrize("name", ENGINES)
def test_of_very_many_words_the_rarest_are_looked_for_and_the_others_named(
    tmp_path, words, name, monkeypatch
):
    orchestrator = words.configured(keyword_engine=name)
    engine = words.latest[0].keyword
    searches = record_calls(monkeypatch, type(engine), "search")
    query = " ".join(many_words(220))[:MAX_QUERY_CHARS]
    response = orchestrator.search(QueryRequest(queries=(query,), explain=True))
    (explained,) = response.explanation.queries
    searched = [len(asked.units) for _, _, asked, *_ in searches]
    assert max(searched) <= MAX_SEARCHED_TERMS < len(query.split())
    assert len(explained.terms) + len(explained.left_out) == len(set(query.split()))
    # Those left out are the common ones: in no fewer notes than any that was looked for.
    frequency = {word: 40 // (at % 40 + 1) for at, word in enumerate(many_words(400))}
    assert min(frequency[term] for term in explained.left_out) >= max(
        sorted(frequency[term] for term in explained.terms)[:-40]
    )
    assert any("different words" in note for note in response.notes)
    orchestrator.close()


def test_a_run_of_ideographs_gives_no_more_terms_than_words_do(words):
    chinese = random.Random(2)
    response = asked(words, "".join(chinese.choices(IDEOGRAPHS, k=MAX_QUERY_CHARS)))
    (explained,) = response.explanation.queries
    assert len(explained.terms) <= 2 * MAX_SEARCHED_TERMS
    assert explained.left_out


def test_a_question_is_looked_for_word_for_word(words):
    response = asked(words, " ".join(many_words(FEW_UNITS)))
    (explained,) = response.explanation.queries
    assert (len(explained.terms), explained.left_out) == (FEW_UNITS, ())
    assert response.notes == ()


def test_the_rarest_units_stay_in_their_order_and_a_boost_counts():
    units = [Unit((f"w{number}",)) for number in range(100)]
    counts = {f"w{number}": number + 1 for number in range(90)}

    def count(terms):
        return {term: counts.get(term, 0) for term in terms}

    kept = rarest(units, count, 40, 1000)
    assert [unit for unit in units if unit in kept] == list(kept)
    there = [unit for unit in kept if counts.get(unit.terms[0])]
    assert there == units[:40]
    boosted = [*units[:60], Unit(("w80",), None, 50.0)]
    assert boosted[-1] in rarest(boosted, count, 40, 1000)
    # Beyond a few, no more entries are read than there are chunks a few times over.
    common = dict.fromkeys(counts, 900)
    few = rarest(units, lambda terms: {t: common.get(t, 0) for t in terms}, 80, 1000)
    assert len([unit for unit in few if unit.terms[0] in common]) == FEW_UNITS


def test_each_of_several_queries_has_fewer_common_words():
    units = [Unit((f"w{number}",)) for number in range(100)]

    def common(terms):
        return dict.fromkeys(terms, 900)

    assert len(rarest(units, common, 80, 1000)) == FEW_UNITS
    assert len(rarest(units, common, 80, 1000, queries=5)) == FEWEST_UNITS == 8


def test_of_thousands_of_units_only_some_are_counted():
    asked_for: list[int] = []

    def count(terms):
        asked_for.append(len(terms))
        return dict.fromkeys(terms, 3)

    rarest([Unit((f"w{number}",)) for number in range(5000)], count, 160, 1000)
    assert asked_for == [640]


def test_a_word_with_many_weights_is_one_unit_with_all_of_them():
    parsed = parse_query("fox^2 OR fox^3 OR title:fox^4 OR cat")
    units = compile_query(parsed, ANALYZER).units
    assert [unit.terms for unit in units] == [("fox",), ("fox",), ("fox",), ("cat",)]
    assert [unit.weight for unit in units] == pytest.approx(
        [5.0, 4.0, 4.0, 1.0]
    )  # title: and headings


@pytest.mark.parametrize("joint", [" OR ", " -", " title:", ' "x" '])
def test_more_conditions_than_anyone_means_are_plain_words(joint):
    few, many = (joint.join(many_words(count)) for count in (MAX_CONDITIONS // 2, 100))
    assert parse_query(few, strict=True).is_strict
    parsed = parse_query(many, strict=True)
    assert not parsed.is_strict
    assert TOO_MANY.format(most=MAX_CONDITIONS) in parsed.notes
    assert parsed.text.startswith(many_words(1)[0])


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    "query",
    [
        "fox OR (cat -dog) OR path:a",
        "-dog -path:b fox",
        '(fox OR cat) -"quick dog" (dog OR path:c OR cat)',
        "-(dog cat) fox",
        "tree:docs (fox OR dog) -tree:other",
        "-dog OR -cat",
        "path:a OR path:b OR path:a",
        "(fox dog nosuchword)",
    ],
)
def test_conditions_mean_the_same_however_they_are_worked_out(tmp_path, name, query):
    """Beside plain sets, part by part."""
    texts = {
        "a.md": "# A\n\nfox and dog\n",
        "b.md": "# B\n\nquick dog and cat\n",
        "c.md": "# C\n\ncat\n",
        "d.md": "# D\n\nfox\n",
    }
    with Engine(tmp_path, texts, keyword_engine=name) as engine:
        keyword = engine.indices.keyword
        condition = compile_query(parse_query(query, strict=True), engine.analyzer).condition
        with engine.reader.snapshot() as snapshot:
            keyword.catch_up(snapshot)
            chunks = {
                stored.key: stored
                for path in texts
                for stored in snapshot.chunks(f"docs:{path}")
                if stored.chunk.text is not None
            }
            found = keyword.matching(snapshot, condition) & chunks.keys()
            expected = {key for key, stored in chunks.items() if holds(condition, stored)}
            assert found == expected


def holds(condition, stored) -> bool:
    from ragdocs.indices.conditions import All, Comparison, FilterField, Some, Without

    match condition:
        case Unit(terms):
            own = ANALYZER.terms(f"{stored.chunk.doc_id[5:]} {stored.chunk.text}")
            width = len(terms)
            return any(tuple(own[at : at + width]) == terms for at in range(len(own)))
        case All(parts):
            return all(holds(part, stored) for part in parts)
        case Some(parts):
            return any(holds(part, stored) for part in parts)
        case Without(part):
            return not holds(part, stored)
        case Comparison(FilterField.TREE, _, names):
            return stored.chunk.doc_id.partition(":")[0] in names
        case Comparison(FilterField.PATH, _, prefix):
            return stored.chunk.doc_id.startswith(f"docs:{prefix}")


def test_a_condition_is_worked_out_once_for_a_request(words, monkeypatch):
    calls = record_calls(monkeypatch, type(words.indices.keyword), "matching")
    first, second = many_words(2)
    asked(words, f"{first} -{second}", top_n=50)
    assert len(calls) == 1


def test_look_ups_of_unknown_words_are_bounded_and_none_is_made_twice(tmp_path, monkeypatch):
    notes = {"a.md": "# A\n\n" + " ".join(f"{word}ing" for word in many_words(80)) + "\n"}
    calls = record_calls(monkeypatch, Vocabulary, "near_words")
    with (
        vocabulary_store(tmp_path, notes) as (_, reader),
        index_over(reader).view(for_search=False) as view,
    ):
        typed = " ".join(f"{word}ixg {word}ixg" for word in many_words(80))
        spelled = Spelling(ANALYZER, 1).read(view, typed)
        looked_up = [word for _, _, word, *_ in calls]
        assert len(looked_up) == len(set(looked_up)) == MAX_GUESSES
        assert len(spelled.corrections) == 2 * MAX_GUESSES


def test_a_query_gains_no_more_words_than_a_bound(words):
    first = many_words(1)[0]
    with words.index.view() as view:
        understood = Interpreter(ANALYZER, None, SearchConfig()).read(
            view, first, parse_query(first)
        )
    for _ in range(2):
        guesses = [AddedWord(f"g{n}", f"g{n}", WordOrigin.SYNONYM, 0.5) for n in range(100)]
        understood = understood.with_words(guesses)
    assert len(understood.added) == len(understood.query.weaker) == MAX_ADDED == 48


def test_few_terms_without_spaces_are_counted_by_the_engine(words, monkeypatch):
    calls = record_calls(monkeypatch, type(words.indices.keyword), "frequencies")
    with words.index.view() as view:
        found = TermFrequencies(view).of(IDEOGRAPHS)
    assert [term for _, _, terms in calls for term in terms] == IDEOGRAPHS[:64]
    assert found


class Windowed(WordEmbedder):
    """Reads as many windows as it is told to, and remembers how many."""

    def __init__(self) -> None:
        super().__init__()
        self.windows: list[int] = []

    def embed_beginning(self, text, windows):
        room = windows * (MAX_TOKENS - SPECIAL_TOKENS)
        self.windows.append(windows)
        return QueryEmbedding(self.embed(text[:room]), len(text[room:]))


def test_a_query_is_read_in_two_windows_and_a_hypothesis_in_eight(tmp_path):
    embedder = Windowed()
    with Engine(tmp_path, {"a.md": "# A\n\nfox\n"}, embedder) as engine:
        response = asked(engine, "fox " * 500)
        assert embedder.windows == [QUERY_WINDOWS] == [2]
        assert any("too long to embed" in note for note in response.notes)
        asked(engine, hypothesis="fox " * 2000)
        assert embedder.windows[1:] == [HYPOTHESIS_WINDOWS] == [8]
        embedder.windows.clear()
        response = asked(engine, "foxx")
        assert response.did_you_mean == "fox"
        assert sum(embedder.windows) - QUERY_WINDOWS + 1 <= QUERY_WINDOWS  # one was needed first
        embedder.windows.clear()
        asked(engine, "foxx " * 100)
        assert embedder.windows == [QUERY_WINDOWS]


def test_what_lies_beyond_the_windows_is_cut_and_counted():
    def tokenise(text):
        return Tokens(list(range(len(text))), list(range(1, len(text) + 1)))

    room = MAX_TOKENS - SPECIAL_TOKENS
    windowed = split_text("x" * 1000, tokenise, 2)
    assert [len(piece) for piece in windowed.pieces] == [room, room]
    assert windowed.cut_characters == 1000 - 2 * room
    assert split_text("x" * 1000, tokenise).cut_characters == 0


def test_an_embedder_of_one_window_is_asked_as_ever():
    class Plain:
        def embed_query(self, text):
            return np.ones(2, dtype=np.float32)

    assert vector_search.embed_within(Plain(), "x", 2).cut_characters == 0


def test_queries_of_one_request_share_its_terms():
    assert fair_share(160, [12] * 5) == 160
    assert fair_share(160, [300]) == 160
    assert fair_share(160, [300] * 5) == 32
    assert fair_share(160, [10, 10, 300]) == 140
    assert fair_share(160, []) == 160


def test_queries_of_one_request_have_no_more_of_anything_than_one(words, monkeypatch):
    calls = record_calls(monkeypatch, Vocabulary, "near_words")
    unknown = [letters(number) for number in range(1000, 1400)]
    response = asked(words, *(" ".join(unknown[at * 80 :][:80]) for at in range(MAX_QUERIES)))
    assert sum(len(each.terms) for each in response.explanation.queries) <= MAX_SEARCHED_TERMS
    assert 0 < len(calls) <= MAX_GUESSES
    known = many_words(150)
    alternatives = (" OR ".join(known[at * 30 :][:30]) for at in range(MAX_QUERIES))
    response = asked(words, *alternatives, strict=True)
    assert not any(each.is_strict for each in response.explanation.queries)
    (alone,) = asked(words, " OR ".join(known[:30]), strict=True).explanation.queries
    assert alone.is_strict


def test_queries_together_have_a_length(words):
    QueryRequest(queries=("x" * (MAX_QUERIES_CHARS // MAX_QUERIES),) * MAX_QUERIES)
    with pytest.raises(QueryError, match=r"length of all queries is 6000: .* to 4000"):
        QueryRequest(queries=("x" * MAX_QUERY_CHARS,) * 3)


def test_a_deeper_look_is_bounded_and_several_queries_take_fewer():
    assert Bounds().candidates(5) == 40
    assert Bounds(queries=5).candidates(5) == 40
    deepest = Bounds()
    while deepest.can_be_deeper:
        deepest = deepest.deeper()
    assert deepest.depth == 64
    assert deepest.candidates(50) <= MOST_OF_ALL <= 1_200
    assert not Bounds(queries=2).can_be_deeper
    assert sum([Bounds(queries=5).candidates(50)] * 5) <= 300
    assert Bounds(queries=5).of_all(50) == 300
    crowded = Bounds(looks=3, full=frozenset(DocId(f"docs:{n}.md") for n in range(400)))
    assert crowded.candidates(50) == MOST_OF_ALL
    assert not Bounds(looks=4).can_be_deeper


def test_of_what_the_indices_find_only_the_best_are_read(tmp_path):
    texts = {f"{n}.md": f"# Note {n}\n\nA fox and {letters(n)}.\n" for n in range(60)}
    with Engine(tmp_path, texts) as engine:
        response = asked(engine, "fox", top_n=5)
    (explained,) = response.explanation.queries
    assert explained.hits[Strategy.KEYWORD] == 60
    assert explained.candidates == response.stats.original_count == 40


def quadratic(pairs, places) -> float:
    """The definition: every place with every other."""

    def together(first, second):
        best = 0.0
        for start, end in first:
            for next_start, next_end in second:
                in_order = start <= next_start
                if in_order and next_start - end <= 1:
                    return 1.0
                gap = next_start - end if in_order else start - next_end
                best = max(best, 0.5 if gap <= 20 else 0.0)
        return best

    return sum(together(places.get(a, ()), places.get(b, ())) for a, b in pairs) / len(pairs)


def test_closeness_is_what_comparing_every_place_gives():
    drawn = random.Random(3)
    for _ in range(2000):
        places = {
            name: sorted(
                (at, at + drawn.randint(1, 9)) for at in drawn.choices(range(200), k=length)
            )
            for name in "ab"
            if (length := drawn.randint(0, 4))
        }
        assert closeness([("a", "b")], places) == quadratic([("a", "b")], places)


class Counted(list):
    """Places that count how often one is looked at."""

    looks = 0

    def __getitem__(self, at):
        Counted.looks += 1
        return super().__getitem__(at)


def test_closeness_looks_at_each_place_a_few_times():
    places = {
        "a": [(at, at + 1) for at in range(0, 100_000, 100)],
        "b": Counted((at, at + 1) for at in range(50, 100_000, 100)),
    }
    assert closeness([("a", "b")], places) == pytest.approx(0.0, abs=ROUNDING)
    assert Counted.looks <= 6 * len(places["a"])


def test_the_best_sentence_compares_only_words_that_share_letters(monkeypatch):
    calls = record_calls(monkeypatch, BestSentence, "_like")
    chinese = random.Random(4)
    query = "".join(chinese.choices(IDEOGRAPHS, k=MAX_HYPOTHESIS_CHARS))
    finder = BestSentence([query, "configuration"], ANALYZER)
    text = "Nothing here. The config is there. Nothing here."
    for _ in range(50):
        finder.of(text, (0, len(text)))
    compared = [word for _, word in calls]
    assert len(compared) == len(set(compared)) <= 10
    start, _ = BestSentence(["configuration"], ANALYZER).of(text, (0, len(text)))
    assert text[start:].startswith("The config")


def test_an_answer_is_packed_again_and_not_searched_again(words):
    first = many_words(1)[0]
    response = asked(words, first, max_tokens=5000)
    less = response.within(100)
    assert len(less.results) < len(response.results)
    again = asked(words, first, max_tokens=100)
    assert [each.id for each in less.results] == [each.id for each in again.results]
    assert less.left_out == again.left_out


PIECES = st.sampled_from(
    (
        *("retry", "Retries", "the", "getUserById", "snake_case.name", "C++", ".NET", "中文字"),
        *("x" * 201, "ภาษา", "한국", "e\u0301e\u0301", "3.11", ".", " ", "\n", "_", "k.b" * 80),
    )
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_counted_words_give_the_terms_of_the_whole_text(text):
    counted: Counter[str] = Counter()
    for word, times in ANALYZER.count_words(text).items():
        for term, _ in ANALYZER.terms_of_word(word):
            counted[term] += times
    # Stop words are the exception: by themselves they are all there is.
    expected = Counter(token.term for token in ANALYZER.query(text))
    for term in {*counted, *expected} - {"the"}:
        assert counted[term] == expected[term]


def test_of_the_distinct_words_of_a_file_only_the_weightiest_are_analysed(monkeypatch):
    calls = record_calls(monkeypatch, type(ANALYZER), "terms_of_word")
    counter = TermCounter(ANALYZER)
    words = many_words(9_000)
    counter.add(" ".join(words))
    counter.add(" ".join(words[-500:]), 2.0, repeats=True)
    assert counter.analyse() == MAX_SOURCE_TERMS == len(calls)
    assert set(words[-500:]) <= {word for _, word in calls}
    assert counter.analyse() == 0


def test_a_word_is_looked_up_once_however_many_texts_were_added():
    counter = TermCounter(ANALYZER)
    for word in many_words(500):
        counter.add(f"{word} common")
    for word in many_words(3):
        counter.add(word, 2.0, "title", repeats=True)
    assert len(counter._counts) == 2
    counter.analyse()
    first = ANALYZER.terms(many_words(1)[0])[0]
    (common,) = ANALYZER.terms("common")
    assert (counter.frequencies[first], counter.frequencies[common]) == (1, 500)
    assert counter.weights[first] == pytest.approx(3.0)
    assert counter.places[first] == {"", "title"}


def test_source_files_share_what_is_read_and_a_short_one_leaves_its_share():
    def read(*contents):
        sources = read_sources([EditedFile("a.txt", content) for content in contents])
        return [len(source.pieces[-1].text) for source in sources]

    assert read("x" * 999_999) == [MAX_READ_SOURCE_CHARS]
    assert read(*["word " * 9_000] * 50) == [MAX_READ_SOURCE_CHARS // 50] * 50
    assert read("short", "x" * 999_999) == [5, MAX_READ_SOURCE_CHARS - 5]
    assert read("中" * 999_999) == [MAX_READ_SOURCE_CHARS // 3]
    sources, problem = read_diff("中" * 999_999)
    assert len(sources[0].pieces[-1].text) == MAX_READ_SOURCE_CHARS // 3
    assert "33,333 characters" in problem


def test_of_a_diff_only_so_many_files_are_looked_at():
    diff = "".join(f"--- a/{n}.py\n+++ b/{n}.py\n@@ -0,0 +1 @@\n+word{n}\n" for n in range(60))
    sources, problem = read_diff(diff)
    assert len(sources) == MAX_SOURCE_FILES == 50
    assert "10 more files" in problem
