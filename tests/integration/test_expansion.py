"""Expansion and synonyms on the whole way: each pair of runs differs in one switch only."""

import json

import pytest

from ragdocs import open_index
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.search.candidates import Strategy
from ragdocs.search.wordnet import WordNet
from tests.support.engine import Engine
from tests.support.indexes import write_all
from tests.support.mcp_clients import ServerProcess
from tests.support.model_files import write_wordnet
from tests.support.program import called

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
    assert expanded["access.md"].found_by == (Strategy.KEYWORD,)


@pytest.mark.parametrize(
    ("query", "path"), [("auth", "access.md"), ("baking", "bread.md"), ("soccer", "football.md")]
)
def test_expanded_query_finds_related_documents(engine, query, path):
    without = results(engine, query, query_expansion_enabled=False)
    expanded = results(engine, query, query_expansion_enabled=True)
    assert Strategy.KEYWORD not in without[path].found_by
    assert Strategy.KEYWORD in expanded[path].found_by
    assert next(iter(expanded)) == path
    assert expanded[path].score > without[path].score


def test_synonyms_improve_recall(engine, tmp_path):
    wordnet = WordNet(write_wordnet(tmp_path))
    words_only = {"semantic_weight": 0.0, "graph_weight": 0.0}
    without = results(engine, "delete", wordnet, **words_only, synonyms_enabled=False)
    related = results(engine, "delete", wordnet, **words_only, synonyms_enabled=True)
    assert without == {}
    assert list(related) == ["erase.md"]


# Through the real paths, with the default settings.


CRON = "# Jobs\n\nA cron job runs every night. The cron table lists all jobs of the machine.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expansion")
    write_all(folder / "docs", {**NOTES, "jobs.md": CRON})
    return folder


@pytest.fixture
def ask(folder, one_model):
    """The words that the command line says were added."""

    def ask(*words, **search):
        environ = {f"RAGDOCS_SEARCH__{name.upper()}": str(value) for name, value in search.items()}
        place = {"RAGDOCS_INDEXING__INDEX_PATH": str(folder / "ix")}
        given = ("--docs", ".", "--json", "--explain")
        done = called(folder / "docs", "query", *words, *given, **place, **environ)
        assert done.returncode in (0, 1), done.stderr
        [query] = json.loads(done.stdout)["explanation"]["queries"]
        return [word["word"] for word in query["added"] if word["origin"] == "expansion"]

    return ask


def test_a_word_that_the_documents_lack_is_expanded_by_default(ask):
    assert ask("auth") == ["authentication"]
    assert ask("auth", query_expansion_enabled="false") == []


def test_two_words_are_expanded_and_a_question_is_not(ask):
    assert "football" in ask("soccer", "match")
    assert ask("how", "does", "soccer", "work") == []


def test_query_expansion_max_words_is_up_to_how_many_words(ask):
    assert ask("soccer", "match", query_expansion_max_words="1") == []
    assert "football" in ask("soccer", "as", "a", "game", query_expansion_max_words="9")
    assert "football" in ask("soccer", "as", "a", "game", query_expansion_max_words="0")


def test_a_word_that_is_only_alike_in_letters_is_not_added(ask):
    """The model does not know `creds`, and puts it beside whatever begins like it."""
    assert "cron" in ask("creds", query_expansion_max_words="0")
    assert ask("creds") == []


def test_a_word_that_many_documents_have_is_not_expanded(ask):
    assert ask("notes") == []


def test_a_name_or_a_quotation_is_not_expanded(ask):
    for query in ("`auth`", '"auth"', "auth_key", "auth AND access"):
        assert ask(query) == []


def test_a_rebuild_tells_the_size_of_the_vocabulary(folder, one_model):
    place = {"RAGDOCS_INDEXING__INDEX_PATH": str(folder / "rebuilt")}
    told = called(folder / "docs", "rebuild-index", "--json", **place)
    assert json.loads(told.stdout)["vocabulary"] > 150
    off = {"RAGDOCS_SEARCH__QUERY_EXPANSION_ENABLED": "false"}
    told = called(folder / "docs", "rebuild-index", "--json", **place, **off)
    assert json.loads(told.stdout)["vocabulary"] is None


def test_a_server_and_python_add_the_same_words(folder, one_model):
    with open_index(folder / "docs", settings=at_index(folder, "python")) as index:
        [query] = index.search("auth", explain=True).explanation.queries
    assert [word.word for word in query.added] == ["authentication"]
    place = ("--docs", str(folder / "docs"), "--index", str(folder / "python"))
    with ServerProcess("-m", "ragdocs", "mcp", *place) as server:
        server.initialize()
        answer = server.call(1, "query_documents", query="auth", explain=True)["result"]
    [query] = answer["structuredContent"]["explanation"]["queries"]
    assert [word["word"] for word in query["added"]] == ["authentication"]


def at_index(folder, name):
    return {"indexing": {"index_path": str(folder / name)}}
