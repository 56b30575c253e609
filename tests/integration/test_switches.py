"""Every ranking feature has a switch, and the switch changes the answer as it says.

Each test makes two runs over one index that differ in nothing but the settings named in it. Those
of expansion and synonyms are in test_expansion.py, that of the re-ranker in test_rerank.py.
"""

from pathlib import Path

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.config.settings import AdvancedSearchConfig, BoostsConfig, ChunkingConfig, SearchConfig
from ragdocs.errors import QueryError
from ragdocs.models import TreeName
from ragdocs.search.budget import Extent
from ragdocs.search.orchestrator import Surroundings
from ragdocs.search.requests import QueryRequest, Uniqueness
from tests.support.engine import NOW, SMALL, Engine
from tests.support.models import ConceptEmbedder, MeaningEmbedder

# All that could have a say in the order beside what a test is about.
PLAIN = {
    "graph_weight": 0.0,
    "merge_threshold": 0,
    "cutoff_ratio": 0.0,
    "recency_bias": 0.0,
    "document_weight": 0.0,
    "closeness_weight": 0.0,
    "resemblance_weight": 0.0,
    "ngram_dedup_enabled": False,
    "adaptive_weights_enabled": False,
    "balance_enabled": False,
}
PLAIN_ADVANCED = {"dynamic_weights_enabled": False, "community_detection_enabled": False}
WORDS_ONLY = {"semantic_weight": 0.0}
MEANING_ONLY = {"keyword_weight": 0.0}


@pytest.fixture
def make(tmp_path):
    """Builds an engine over texts; all are closed at the end."""
    made = []

    def build(texts, **given):
        folder = tmp_path / str(len(made))
        made.append(Engine(folder, texts, MeaningEmbedder(), **given))
        return made[-1]

    yield build
    for engine in made:
        engine.__exit__()


def run(engine, query, settings, **request):
    advanced = PLAIN_ADVANCED | settings.get("advanced", {})
    chosen = PLAIN | settings | {"advanced": advanced}
    asked = QueryRequest(queries=(query,) if query else (), **{"top_n": 50, **request})
    return engine.answer(asked, **chosen).results


def both(engine, query, one, other, common=None, **request):
    """The results of two runs; `common` settings are the same in both."""
    shared = common or {}
    advanced = shared.get("advanced", {})
    settings = [
        shared | each | {"advanced": advanced | each.get("advanced", {})} for each in (one, other)
    ]
    return tuple(run(engine, query, each, **request) for each in settings)


def paths(results):
    return [result.path for result in results]


def ids(results):
    return [result.id.removeprefix("docs:") for result in results]


# Weights and fusion.

NEAR_AND_NAMED = {
    "near.md": "# One\n\nThe dawn is grey.\n",
    "named.md": "# Two\n\nA sunrise at midday is no midday and no midday at all.\n",
}


def test_semantic_weight_lets_meaning_decide(make):
    engine = make(NEAR_AND_NAMED)
    off, on = both(engine, "sunrise", {"semantic_weight": 0.0}, {"semantic_weight": 5.0})
    assert paths(off) == ["named.md"]
    assert paths(on) == ["near.md", "named.md"]


def test_keyword_weight_lets_words_decide(make):
    engine = make(NEAR_AND_NAMED)
    off, on = both(engine, "sunrise", {"keyword_weight": 0.0}, {"keyword_weight": 5.0})
    assert paths(off)[0] == "near.md"
    assert paths(on)[0] == "named.md"


RANKS = {
    "steady.md": "# A\n\nA harbour, dawn, midday and midday and midday.\n",
    "extreme.md": "# B\n\nThe dawn. " + "Nothing else is to be said here. " * 8 + "A harbour.\n",
    "words.md": "# Harbour\n\nThe harbour at sunset.\n",
    "more.md": "# C\n\nThe sunset over " + "the sea and all of its islands " * 3 + "a harbour.\n",
}


def test_fusion_by_score_keeps_what_ranks_forget(make):
    """Near in meaning by far, last by words: that is worth more than second place in both."""
    by_rank, by_score = both(make(RANKS), "sunrise harbour", {"fusion": "rrf"}, {"fusion": "score"})
    assert paths(by_rank).index("steady.md") < paths(by_rank).index("extreme.md")
    assert paths(by_score).index("extreme.md") < paths(by_score).index("steady.md")


def test_rrf_k_constant_says_how_much_more_the_first_places_count(make):
    small, large = both(
        make(RANKS),
        "sunrise harbour",
        {"rrf_k_constant": 0},
        {"rrf_k_constant": 1000},
        common={"fusion": "rrf"},
    )
    assert paths(small).index("extreme.md") < paths(small).index("steady.md")
    assert paths(large).index("steady.md") < paths(large).index("extreme.md")


KINDS = {
    "named.md": "# One\n\nUse a boat when it is midday.\n",
    "near.md": "# Two\n\nThe sunrise, a sunrise, and at midday, midday, midday a rest.\n",
}
MEANT = {"hypothesis": "dawn"}
"""So that the words of the query are one thing, and what it means another."""


def test_adaptive_weights_favour_words_for_a_name(make):
    """P3: the query is a name, so it is factual, and words count half as much again. Without the
    balance, which sees to it that a word of one document alone is found."""
    off, on = both(
        make(KINDS, balance_enabled=False),
        "`boat`",
        {"adaptive_weights_enabled": False},
        {"adaptive_weights_enabled": True},
        **MEANT,
    )
    assert paths(off) == ["near.md", "named.md"]
    assert paths(on) == ["named.md", "near.md"]


def test_balance_trusts_meaning_where_something_is_near(make):
    texts = {
        "named.md": "# Boat\n\nA boat is a boat is a boat.\n",
        "near.md": "# Two\n\nThe sunrise, and at midday a rest.\n",
        # Words of one document alone have a floor whatever is near.
        **{f"{place}.md": f"# {place}\n\nA {place} with a boat.\n" for place in ("quay", "lake")},
    }
    off, on = both(
        make(texts), "boat", {"balance_enabled": False}, {"balance_enabled": True}, **MEANT
    )
    assert paths(off)[:2] == ["named.md", "near.md"]
    assert paths(on)[:2] == ["near.md", "named.md"]


SPREAD = {
    "meant.md": "# Meant\n\nThe dawn and the noon, noon, noon of it.\n",
    **{f"said{n}.md": f"# Said\n\nA boat number{n} there.\n" for n in range(4)},
}
MUDDLED = {"advanced": {"dynamic_weights_enabled": True, "variance_threshold": 0.1}}


def test_dynamic_weights_take_say_from_an_index_that_cannot_tell(make):
    """All notes with the word are alike, so words cannot tell them apart: meaning gets more say."""
    off, on = both(
        make(SPREAD),
        "boat",
        {"advanced": {"dynamic_weights_enabled": False}},
        {"advanced": {"dynamic_weights_enabled": True}},
        **MEANT,
    )
    assert paths(off)[0] != "meant.md"
    assert paths(on)[0] == "meant.md"


def test_min_weight_factor_is_what_a_muddled_index_keeps(make):
    all_of_it, half = both(
        make(SPREAD),
        "boat",
        {"advanced": {"min_weight_factor": 1.0}},
        {"advanced": {"min_weight_factor": 0.5}},
        common=MUDDLED,
        **MEANT,
    )
    assert paths(all_of_it)[0] != "meant.md"
    assert paths(half)[0] == "meant.md"


def test_variance_threshold_says_what_is_muddled(make):
    never, usual = both(
        make(SPREAD),
        "boat",
        {"advanced": {"variance_threshold": 0.0}},
        {"advanced": {"variance_threshold": 0.1}},
        common=MUDDLED,
        **MEANT,
    )
    assert paths(never)[0] != "meant.md"
    assert paths(usual)[0] == "meant.md"


def test_document_weight_counts_what_the_whole_document_is_about(make):
    """Half of a passage's meaning is its document's: a page about dawn beats a mention of it."""
    texts = {
        "about.md": "# A\n\n## A one\n\nThe dawn and a noon.\n\n## A two\n\nThe dawn once more.\n",
        "mention.md": "# B\n\n## B one\n\nDusk, dusk.\n\n## B two\n\nDawn dawn dawn noon noon.\n",
    }
    own, whole = both(
        make(texts, sizes=SMALL),
        "sunrise",
        {"document_weight": 0.0},
        {"document_weight": 1.0},
        common=MEANING_ONLY,
    )
    assert ids(own)[:3] == ["about.md#a-two", "mention.md#b-two", "about.md#a-one"]
    assert ids(whole)[:2] == ["about.md#a-one", "about.md#a-two"]


def test_closeness_weight_prefers_words_that_stand_together(make):
    texts = {
        "apart.md": "# A\n\nA harbour with boats, and far away from there a master. Harbour.\n",
        "together.md": "# B\n\nThe harbour master has boats, and some other things to look at.\n",
    }
    off, on = both(
        make(texts),
        "harbour master",
        {"closeness_weight": 0.0},
        {"closeness_weight": 0.5},
        common=WORDS_ONLY,
    )
    assert paths(off) == ["apart.md", "together.md"]
    assert paths(on) == ["together.md", "apart.md"]


def test_resemblance_weight_brings_along_what_is_like_the_best(make):
    texts = {
        "best.md": "# A\n\nDawn dawn noon noon noon.\n",
        "like.md": "# B\n\nDawn, noon noon noon noon.\n",
        "unlike.md": "# C\n\nDawn, dusk dusk dusk.\n",
    }
    engine = make(texts)
    off, on = both(
        engine,
        "sunrise",
        {"resemblance_weight": 0.0},
        {"resemblance_weight": 0.7},
        common=MEANING_ONLY,
    )
    assert paths(off) == ["best.md", "unlike.md", "like.md"]
    assert paths(on) == ["best.md", "like.md", "unlike.md"]


# Fields and words.

SAID = "Some words on a kestrel here, no more than that.\n"
FIELD_TEXTS = {
    "title": "---\ntitle: Kestrel\n---\nSome words on nothing here, no more than that.\n",
    "keywords": "---\nkeywords: [kestrel]\n---\nSome words on nothing here, no more than that.\n",
    "description": "---\ndescription: kestrel\n---\nSome words on nothing here, no more.\n",
    "tags": "---\ntags: [kestrel]\n---\nSome words on nothing here, no more than that.\n",
    "aliases": "---\naliases: [kestrel]\n---\nSome words on nothing here, no more than that.\n",
    "author": "---\nauthor: Kestrel\n---\nSome words on nothing here, no more than that.\n",
    "path": "Some words on nothing here, no more than that.\n",
}


@pytest.mark.parametrize("field", FIELD_TEXTS)
def test_a_field_boost_raises_what_stands_in_the_field(make, field):
    """P4 and P9."""
    path = "kestrel/a.md" if field == "path" else "a.md"
    engine = make({path: FIELD_TEXTS[field], "b.md": SAID})
    low, high = both(
        engine, "kestrel", {"boosts": {field: 0.05}}, {"boosts": {field: 20.0}}, WORDS_ONLY
    )
    assert paths(low) == ["b.md", path]
    assert paths(high) == [path, "b.md"]


def test_the_boost_of_content_raises_what_the_text_says(make):
    engine = make({"a.md": FIELD_TEXTS["tags"], "b.md": SAID})
    low, high = both(
        engine, "kestrel", {"boosts": {"content": 0.05}}, {"boosts": {"content": 20.0}}, WORDS_ONLY
    )
    assert paths(low) == ["a.md", "b.md"]
    assert paths(high) == ["b.md", "a.md"]


def test_the_boost_of_headers_raises_what_stands_below_them(make):
    """A passage's headings are those above it too: its own is also part of its text."""
    below = "# Kestrel\n\nIts page.\n\n## Below\n\nSome words on nothing here, no more.\n"
    engine = make({"a.md": f"---\ntitle: T\n---\n{below}", "b.md": SAID}, sizes=SMALL)
    low, high = both(
        engine, "kestrel", {"boosts": {"headers": 0.05}}, {"boosts": {"headers": 20.0}}, WORDS_ONLY
    )
    assert ids(low).index("b.md") < ids(low).index("a.md#below")
    assert ids(high).index("a.md#below") < ids(high).index("b.md")


def test_every_field_has_such_a_test():
    assert {*FIELD_TEXTS, "content", "headers"} == set(BoostsConfig.model_fields)


def test_the_stemmer_decides_which_endings_are_one_word(make):
    texts = {"de.md": "# Notiz\n\nDie Katzen schlafen.\n"}
    english = run(make(texts, stemmer="english"), "Katze", WORDS_ONLY | {"fuzzy_distance": 0})
    german = run(make(texts, stemmer="german"), "Katze", WORDS_ONLY | {"fuzzy_distance": 0})
    assert paths(english) == []
    assert paths(german) == ["de.md"]


@pytest.mark.parametrize(("typed", "distance"), [("lighthose", 1), ("lihthose", 2)])
def test_fuzzy_distance_forgives_so_many_errors(make, typed, distance):
    engine = make({"a.md": "# Coast\n\nThe lighthouse is white.\n"})
    strict, lenient = both(
        engine,
        typed,
        {"fuzzy_distance": distance - 1},
        {"fuzzy_distance": distance},
        common=WORDS_ONLY,
    )
    assert paths(strict) == []
    assert paths(lenient) == ["a.md"]


def test_query_expansion_max_terms_is_how_many_words_can_be_added(tmp_path):
    texts = {"a.md": "# Access\n\nAuthentication comes first.\n", "b.md": "# B\n\nA pond.\n"}
    with Engine(tmp_path, texts, ConceptEmbedder()) as engine:
        engine.embed_terms()
        none, many = both(
            engine,
            "auth",
            {"query_expansion_max_terms": 0},
            {"query_expansion_max_terms": 10_000},
            common=WORDS_ONLY | {"query_expansion_enabled": True},
        )
    assert paths(none) == []
    assert paths(many) == ["a.md"]


# Code (P7).

CODED = {
    "prose.md": "# Notes\n\nThe token of the queue is a token; the queue has a token.\n",
    "block.md": "# Client\n\n"
    + "It talks to the server. " * 6
    + "\n\n```js\nlet queueToken;\n```\n",
}


def test_code_search_leads_to_the_block(make):
    off, on = both(
        make(CODED),
        "queue token",
        {"code_search_enabled": False},
        {"code_search_enabled": True},
        common=WORDS_ONLY | {"code_search_weight": 1.0},
    )
    assert paths(off)[0] == "prose.md"
    assert paths(on)[0] == "block.md"


def test_code_search_weight_is_how_much_blocks_count(make):
    low, high = both(
        make(CODED),
        "queue token",
        {"code_search_weight": 0.01},
        {"code_search_weight": 2.0},
        common=WORDS_ONLY | {"code_search_enabled": True},
    )
    assert paths(low)[0] == "prose.md"
    assert paths(high)[0] == "block.md"


# Links.

LINKED = {
    "start.md": "# Start\n\nA heron stands here. See [[second]].\n",
    "second.md": "# Second\n\nNothing of that kind. See [[third]].\n",
    "third.md": "# Third\n\nNothing here either.\n",
    "weak.md": "# Weak\n\n" + "It is long and says little that matters. " * 12 + "A heron.\n",
}


def test_graph_weight_brings_linked_documents_along(make):
    off, on = both(
        make(LINKED), "heron", {"graph_weight": 0.0}, {"graph_weight": 1.0}, common=WORDS_ONLY
    )
    assert set(paths(off)) == {"start.md", "weak.md"}
    assert set(paths(on)) == {"start.md", "weak.md", "second.md"}


def test_graph_depth_is_how_far_links_are_followed(make):
    near, far = both(
        make(LINKED),
        "heron",
        {"graph_depth": 1},
        {"graph_depth": 2},
        common=WORDS_ONLY | {"graph_weight": 1.0},
    )
    assert "third.md" not in paths(near)
    assert "third.md" in paths(far)


@pytest.mark.parametrize("fusion", ["score", "rrf"])
def test_graph_neighbor_weight_is_what_a_link_is_worth(make, fusion):
    low, high = both(
        make(LINKED),
        "heron",
        {"graph_neighbor_weight": 0.02},
        {"graph_neighbor_weight": 1.0},
        common=WORDS_ONLY | {"graph_weight": 1.0, "fusion": fusion},
    )
    assert paths(low) == ["start.md", "weak.md", "second.md"]
    assert paths(high).index("second.md") < paths(high).index("weak.md")


COMMUNITY = {
    "leader.md": "# Otter\n\nThe otter. See [[member]].\n",
    "member.md": "# Pond\n\nWhere an otter may be found, with frogs and newts. See [[leader]].\n",
    "stranger.md": "# Brook\n\nWhere an otter may be found now and then.\n",
}


def test_communities_raise_what_belongs_to_the_best(make):
    engine = make(COMMUNITY)
    factor = {"community_boost_factor": 1.5}
    off, on = (
        engine.answer(
            QueryRequest(queries=("otter",)),
            communities=True,
            **PLAIN,
            **WORDS_ONLY,
            advanced=PLAIN_ADVANCED | factor | {"community_detection_enabled": is_on},
        ).results
        for is_on in (False, True)
    )
    assert paths(off) == ["leader.md", "stranger.md", "member.md"]
    assert paths(on) == ["leader.md", "member.md", "stranger.md"]


def test_community_boost_factor_is_by_how_much(make):
    engine = make(COMMUNITY)
    none, much = (
        engine.answer(
            QueryRequest(queries=("otter",)),
            communities=True,
            **PLAIN,
            **WORDS_ONLY,
            advanced=PLAIN_ADVANCED
            | {"community_detection_enabled": True, "community_boost_factor": factor},
        ).results
        for factor in (1.0, 1.5)
    )
    assert paths(none) == ["leader.md", "stranger.md", "member.md"]
    assert paths(much) == ["leader.md", "member.md", "stranger.md"]


# Other boosts.


def test_recency_bias_raises_new_documents(make):
    engine = make(
        {
            "old.md": "---\ndate: 2020-05-05\n---\n# A\n\nThe heron stands in the water.\n",
            "new.md": "---\ndate: 2025-12-30\n---\n# B\n\nThe heron stands in the water there.\n",
        }
    )
    off, on = both(engine, "heron", {"recency_bias": 0.0}, {"recency_bias": 1.0}, WORDS_ONLY)
    assert paths(off) == ["old.md", "new.md"]
    assert paths(on) == ["new.md", "old.md"]


def test_local_boost_prefers_the_projects_own_trees(make):
    engine = make(
        {
            "home:everywhere.md": "# A\n\nThe heron stands in the water.\n",
            "here.md": "# B\n\nThe heron stands in the water there, as was said.\n",
        }
    )
    project = Surroundings(clock=lambda: NOW, local_trees=frozenset({TreeName("docs")}))
    off, on = both(
        engine,
        "heron",
        {"local_boost": 1.0},
        {"local_boost": 2.0},
        common=WORDS_ONLY | {"surroundings": project},
    )
    assert paths(off) == ["everywhere.md", "here.md"]
    assert paths(on) == ["here.md", "everywhere.md"]


# What is good enough.

GOOD_AND_POOR = {
    "good.md": "# Kestrel nest\n\nThe nest of the kestrel.\n",
    "poor.md": "# Other\n\n" + "Words about the weather and the sea. " * 10 + "A nest.\n",
}


def test_min_confidence_drops_what_is_too_doubtful(make):
    """P10."""
    all_of_them, sure = both(
        make(GOOD_AND_POOR),
        "kestrel nest",
        {"min_confidence": 0.0},
        {"min_confidence": 0.5},
        common=WORDS_ONLY,
    )
    assert paths(all_of_them) == ["good.md", "poor.md"]
    assert paths(sure) == ["good.md"]


@pytest.mark.parametrize(
    ("lenient", "strict"),
    [
        ({"score_calibration_threshold": 0.0}, {"score_calibration_threshold": 5.0}),
        (
            {"score_calibration_threshold": 1.0, "score_calibration_steepness": 0.01},
            {"score_calibration_threshold": 1.0, "score_calibration_steepness": 100.0},
        ),
    ],
)
def test_calibration_decides_what_a_figure_is_worth(make, lenient, strict):
    """The higher the threshold, the more evidence it takes; a steep curve leaves no middle."""
    one, other = both(
        make(GOOD_AND_POOR), "kestrel nest", lenient, strict, common={"min_confidence": 0.45}
    )
    assert paths(one) == ["good.md", "poor.md"]
    assert set(paths(other)) < {"good.md", "poor.md"}


def test_cutoff_ratio_stops_where_scores_fall(make):
    off, on = both(
        make(GOOD_AND_POOR),
        "kestrel nest",
        {"cutoff_ratio": 0.0},
        {"cutoff_ratio": 0.9},
        common=WORDS_ONLY,
    )
    assert paths(off) == ["good.md", "poor.md"]
    assert paths(on) == ["good.md"]


def test_candidate_limit_is_how_many_are_judged(make):
    off, on = both(
        make(GOOD_AND_POOR),
        "kestrel nest",
        {"candidate_limit": 0},
        {"candidate_limit": 1},
        common=WORDS_ONLY,
    )
    assert paths(off) == ["good.md", "poor.md"]
    assert paths(on) == ["good.md"]


# Repetition.

ALIKE = {
    "one.md": "# A\n\nThe kestrel hovers at dawn, and a mouse hides.\n",
    "two.md": "# B\n\nAt sunrise some kestrel was in the air above the field.\n",
    "three.md": "# C\n\nIn a storm there is no kestrel to be seen at all, which is well known.\n",
}


def test_semantic_dedup_drops_the_same_meaning(make):
    """P8."""
    off, on = both(
        make(ALIKE), "kestrel", {"dedup_enabled": False}, {"dedup_enabled": True}, WORDS_ONLY
    )
    assert sorted(paths(off)) == sorted(ALIKE)
    assert len(on) == 2
    assert "three.md" in paths(on)


def test_dedup_similarity_threshold_is_what_counts_as_the_same(make):
    texts = {**ALIKE, "two.md": "# B\n\nAt sunrise, or at noon, some kestrel was in the air.\n"}
    loose, strict = both(
        make(texts),
        "kestrel",
        {"dedup_similarity_threshold": 0.5},
        {"dedup_similarity_threshold": 0.9},
        common=WORDS_ONLY | {"dedup_enabled": True},
    )
    assert len(loose) == 2
    assert sorted(paths(strict)) == sorted(texts)


def test_max_chunks_per_doc_leaves_room_for_others(make):
    """P8."""
    book = "# Book\n\n" + "".join(f"## Part {n}\n\nThe kestrel, part {n}.\n\n" for n in range(3))
    engine = make({"book.md": book, "note.md": "# Note\n\nOnce a kestrel was seen.\n"}, sizes=SMALL)
    off, on = both(
        engine, "kestrel", {"max_chunks_per_doc": 0}, {"max_chunks_per_doc": 1}, WORDS_ONLY
    )
    assert paths(off).count("book.md") == 3
    assert paths(on).count("book.md") == 1
    assert "note.md" in paths(on)


def test_mmr_prefers_what_is_different(make):
    """P11: two of a kind score best, and the third says something else."""
    off, on = both(
        make(ALIKE),
        "kestrel",
        {"mmr_enabled": False},
        {"mmr_enabled": True},
        common=WORDS_ONLY | {"mmr_lambda": 0.3},
        top_n=2,
    )
    assert "three.md" not in paths(off)
    assert "three.md" in paths(on)


def test_mmr_lambda_weighs_relevance_against_difference(make):
    different, relevant = both(
        make(ALIKE),
        "kestrel",
        {"mmr_lambda": 0.0},
        {"mmr_lambda": 1.0},
        common=WORDS_ONLY | {"mmr_enabled": True},
        top_n=2,
    )
    assert "three.md" in paths(different)
    assert "three.md" not in paths(relevant)


LONGER = "The kestrel hovers above the meadow and looks for mice that hide in the grass below it"
WORDED = {"one.md": f"# A\n\n{LONGER}.\n", "two.md": f"# A\n\n{LONGER} now.\n"}


def test_ngram_dedup_drops_the_same_wording(make):
    """P12."""
    off, on = both(
        make(WORDED),
        "kestrel",
        {"ngram_dedup_enabled": False},
        {"ngram_dedup_enabled": True},
        common=WORDS_ONLY,
    )
    assert sorted(paths(off)) == ["one.md", "two.md"]
    assert paths(on) == paths(off)[:1]


def test_ngram_dedup_threshold_is_what_counts_as_a_copy(make):
    loose, strict = both(
        make(WORDED),
        "kestrel",
        {"ngram_dedup_threshold": 0.7},
        {"ngram_dedup_threshold": 1.0},
        common=WORDS_ONLY | {"ngram_dedup_enabled": True},
    )
    assert len(loose) == 1
    assert len(strict) == 2


# What a result is: merging (ra) and parents (P13).

MANUAL = """# Manual

## Birds

### Falcons

The kestrel is small.

### Hawks

Not a kestrel at all.

### Owls

They fly by night.

## Beasts

### Otters

They swim.
"""
NOTE = "# Note\n\nA kestrel was seen.\n"


def test_merge_threshold_gives_the_section_for_its_parts(make):
    off, on = both(
        make({"manual.md": MANUAL}, sizes=SMALL),
        "kestrel",
        {"merge_threshold": 0},
        {"merge_threshold": 2},
        common=WORDS_ONLY | {"first_result_tokens": 0},
    )
    assert sorted(ids(off)) == ["manual.md#falcons", "manual.md#hawks"]
    assert [result.within.id for result in on] == ["docs:manual.md#birds"]
    assert ids(on)[0] in ids(off)
    assert "They fly by night" in on[0].text


def test_merge_bonus_raises_the_merged_section(make):
    none, much = both(
        make({"manual.md": MANUAL, "note.md": NOTE}, sizes=SMALL),
        "kestrel",
        {"merge_bonus": 0.0},
        {"merge_bonus": 2.0},
        common=WORDS_ONLY | {"merge_threshold": 2},
    )
    assert paths(none) == ["note.md", "manual.md"]
    assert paths(much) == ["manual.md", "note.md"]


def test_max_merge_depth_keeps_whole_documents_apart(make):
    deep, shallow = both(
        make({"manual.md": MANUAL}, sizes=SMALL),
        "kestrel swim",
        {"max_merge_depth": 3},
        {"max_merge_depth": 0},
        common=WORDS_ONLY | {"merge_threshold": 1, "max_chunks_per_doc": 0},
    )
    assert sorted(ids(deep)) == ["manual.md#falcons", "manual.md#hawks", "manual.md#otters"]
    [whole] = shallow
    assert whole.within.id == "docs:manual.md#manual"
    assert len(whole.parts) == 3


def test_max_merge_bytes_keeps_large_sections_apart(make):
    small, large = both(
        make({"manual.md": MANUAL}, sizes=SMALL),
        "kestrel",
        {"max_merge_bytes": 20},
        {"max_merge_bytes": 4_000},
        common=WORDS_ONLY | {"merge_threshold": 2},
    )
    assert len(small) == 2
    assert len(large) == 1


def test_result_tokens_is_how_much_of_a_passage_is_given(make):
    lines = [f"Line {n} says nothing of it." for n in range(30)]
    lines[20] = "Here a kestrel is named."
    text = "# Long\n\n" + "\n\n".join(lines) + "\n"
    sizes = ChunkSizes(leaf=Limits(1, 4_000), small_document=0, overlap=0)
    whole, part = both(
        make({"long.md": text}, sizes=sizes),
        "kestrel",
        {"result_tokens": 0},
        {"result_tokens": 50},
        common=WORDS_ONLY | {"first_result_tokens": 0},
    )
    assert (whole[0].text, whole[0].extent) == (text, Extent.WHOLE)
    assert "Here a kestrel is named." in part[0].text
    assert len(part[0].text) <= 200
    assert part[0].extent is Extent.EXCERPT
    assert part[0].answer_lines == (43, 43)
    assert (part[0].line_start, part[0].id) == (whole[0].line_start, whole[0].id)


def test_first_result_tokens_is_how_much_the_first_passage_may_have(make):
    text = "".join(
        f"# Part {n}\n\nA kestrel, number {n}. {'And so on. ' * 12}\n\n" for n in range(6)
    )
    like_others, more = both(
        make({"birds.md": text}, sizes=SMALL),
        "kestrel",
        {"first_result_tokens": 0},
        {"first_result_tokens": 600},
        common=WORDS_ONLY | {"merge_threshold": 0},
    )
    assert more[0].text == text
    assert len(like_others[0].text) < 200
    assert [each.text for each in more[1:]] == [each.text for each in like_others[1:]]


def test_a_limit_per_document_that_is_set_is_hard_and_the_usual_one_gives_way(make):
    """Where nothing else is found, the usual limit drops nothing."""
    text = "".join(f"# Part {n}\n\nA kestrel, number {n}.\n\n" for n in range(4))
    engine = make({"birds.md": text}, sizes=SMALL)
    common = {**WORDS_ONLY, "merge_threshold": 0, "ngram_dedup_enabled": False}
    usual = run(engine, "kestrel", common, top_n=3)
    hard = run(engine, "kestrel", common | {"max_chunks_per_doc": 2}, top_n=3)
    asked = run(engine, "kestrel", common, top_n=3, uniqueness=Uniqueness.DOCUMENT)
    assert (len(usual), len(hard), len(asked)) == (3, 2, 1)


def test_parent_retrieval_returns_the_passage_around(make):
    """P13: smaller leaves are found, and what is returned is the section around."""
    paragraphs = [f"Paragraph {n} is about something. " + "And so on. " * 30 for n in range(8)]
    paragraphs[3] += " A kestrel."
    text = "# Long\n\n" + "\n\n".join(paragraphs) + "\n"
    settings = {each: ChunkingConfig(parent_retrieval_enabled=each) for each in (False, True)}
    found = {}
    for is_on, chunking in settings.items():
        size = Limits(chunking.parent_chunk_min_chars, chunking.parent_chunk_max_chars)
        around = Surroundings(
            clock=lambda: NOW,
            parent_size=size if is_on else None,
            parent_overlap=chunking.parent_overlap_chars,
        )
        engine = make({"long.md": text}, sizes=ChunkSizes.from_settings(chunking))
        common = WORDS_ONLY | {"first_result_tokens": 0}
        [found[is_on]] = run(engine, "kestrel", common | {"surroundings": around})
    overlap = settings[True].parent_overlap_chars
    assert len(found[False].text) <= 1000 < 1500 <= len(found[True].text) <= 2000 + overlap
    [part] = found[True].parts
    assert found[True].matched == part
    assert found[True].parent_chunk_id == "docs:long.md#long"
    at = text.index(found[True].text)
    assert not text[:at] or text[at - 1].isspace()
    assert part.byte_end - part.byte_start <= 600
    assert "A kestrel." in found[True].text


# HyDE.


def test_hyde_searches_by_a_hypothetical_answer(make):
    engine = make({"storm.md": "# A\n\nThe tempest.\n", "dusk.md": "# B\n\nThe sunset.\n"})
    asked, supposed = (
        run(engine, "dusk", MEANING_ONLY, hypothesis=hypothesis)
        for hypothesis in ("", "Then came the storm")
    )
    assert paths(asked)[0] == "dusk.md"
    assert paths(supposed)[0] == "storm.md"


def test_hyde_enabled_says_whether_that_is_offered(make):
    engine = make({"storm.md": "# A\n\nThe tempest.\n"})
    on = run(engine, "", {"advanced": {"hyde_enabled": True}}, hypothesis="The storm")
    assert paths(on) == ["storm.md"]
    with pytest.raises(QueryError, match="hyde_enabled"):
        run(engine, "", {"advanced": {"hyde_enabled": False}}, hypothesis="The storm")


ELSEWHERE = (
    "test_expansion.py",
    "test_rerank.py",
    "test_keyword_engine_end_to_end.py",
    "test_ra_trees.py",
)


def test_every_search_setting_is_set_in_a_test_of_its_effect():
    here = Path(__file__)
    files = [here, *(here.with_name(name) for name in ELSEWHERE)]
    written = "".join(file.read_text(encoding="utf-8") for file in files)
    settings = [*SearchConfig.model_fields, *AdvancedSearchConfig.model_fields]
    assert [name for name in settings if name not in written] == []
