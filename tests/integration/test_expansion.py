"""Expansion and synonyms on the whole way: each pair of runs differs in one switch only."""

import pytest

from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.search.candidates import Strategy
from ragdocs.search.wordnet import WordNet
from tests.engine import Engine
from tests.tiny_wordnet import write_wordnet

TOPICS = (
    "tomatoes basil watering soil compost greenhouse",
    "bread flour yeast oven crust sourdough",
    "bicycle chain brakes tyres saddle gears",
    "mountain trail summit glacier boots weather",
    "piano chords scales rhythm melody practice",
    "chess opening gambit endgame castling rook",
    "coffee beans roast grinder espresso milk",
    "sailing harbour anchor mast wind tide",
    "camera lens aperture shutter tripod exposure",
    "football goal referee penalty stadium league",
    "painting canvas brush pigment varnish easel",
    "astronomy telescope planet orbit comet eclipse",
    "knitting wool needles stitch pattern scarf",
    "beekeeping hive honey queen swarm pollen",
    "carpentry plank chisel joint sawdust glue",
    "pottery clay kiln glaze wheel bowl",
    "running marathon pace shoes stretching injury",
    "birds nest feather migration binoculars song",
    "fishing rod bait river trout hook",
    "yoga posture breathing balance mat meditation",
    "taxes invoice deduction income receipt deadline",
    "travel passport luggage airport visa hotel",
    "cooking recipe onion garlic simmer spice",
    "theatre stage actor curtain rehearsal audience",
    "geology granite basalt fossil quartz erosion",
    "insurance premium claim policy damage broker",
    "grammar verb noun clause adjective sentence",
    "swimming pool crawl breaststroke lane goggles",
    "wine grape cellar barrel vintage cork",
    "cheese curd rind milk aging cave",
    "cats whiskers purring litter kitten vet",
    "trains platform timetable carriage conductor signal",
)
NOTES = {
    f"{words.split()[0]}.md": f"# {words.split()[0].title()}\n\nNotes about {words}.\n"
    for words in TOPICS
}
NOTES["access.md"] = "# Access\n\nAuthentication proves who someone is before a session begins.\n"
NOTES["erase.md"] = "# Cleaning up\n\nErase old records once a year.\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES, BuiltinEmbedder()) as engine:
        engine.embed_terms()
        yield engine


def results(engine, query, thesaurus=None, **settings):
    orchestrator = engine.orchestrator = engine.configured(thesaurus, **settings)
    try:
        return {result.path: result for result in engine.ask(query, top_n=50).results}
    finally:
        orchestrator.close()


def test_expansion_finds_related(engine):
    """By words alone: `auth` is in no document, and `authentication` is not near it in letters."""
    words_only = {"semantic_weight": 0.0, "graph_weight": 0.0}
    without = results(engine, "auth", **words_only, query_expansion_enabled=False)
    expanded = results(engine, "auth", **words_only, query_expansion_enabled=True)
    assert "access.md" not in without
    assert next(iter(expanded)) == "access.md"
    assert expanded["access.md"].strategies == (Strategy.KEYWORD,)


@pytest.mark.parametrize(
    ("query", "path"), [("auth", "access.md"), ("baking", "bread.md"), ("soccer", "football.md")]
)
def test_expanded_query_finds_related_documents(engine, query, path):
    without = results(engine, query, query_expansion_enabled=False)
    expanded = results(engine, query, query_expansion_enabled=True)
    assert Strategy.KEYWORD not in without[path].strategies
    assert Strategy.KEYWORD in expanded[path].strategies
    assert next(iter(expanded)) == path
    assert expanded[path].score > without[path].score


def test_synonyms_improve_recall(engine, tmp_path):
    wordnet = WordNet(write_wordnet(tmp_path))
    words_only = {"semantic_weight": 0.0, "graph_weight": 0.0}
    without = results(engine, "delete", wordnet, **words_only, synonyms_enabled=False)
    related = results(engine, "delete", wordnet, **words_only, synonyms_enabled=True)
    assert without == {}
    assert list(related) == ["erase.md"]
