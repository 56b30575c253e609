"""Several trees in use: the project's and the user's own, from two files to one answer."""

import json

import pytest
from click.testing import CliRunner

from ragdocs.app import App
from ragdocs.cli.main import main
from ragdocs.config.loading import load_config
from ragdocs.models import TreeName
from ragdocs.search.orchestrator import Surroundings
from ragdocs.search.requests import Filters, QueryRequest
from tests.support.engine import NOW, Engine
from tests.support.indexes import write
from tests.support.models import CountingEmbedder, MeaningEmbedder

HERON = "# Heron\n\nThe heron stands in the water and waits.\n"
LONGER = "# Heron\n\nThe heron, as was said, stands in the water there and waits for long.\n"


class Home:
    """A project with a tree of its own, and a user with one that every project sees."""

    def __init__(self, folder):
        self.project, self.home = folder / "project", folder / "home"
        write(self.project, "manual/heron.md", LONGER)
        write(self.project, "manual/otter.md", "# Otter\n\nThe otter swims.\n")
        write(self.home, "notes/heron.md", HERON)
        toml = '[indexing]\nindex_path = "index"\n[tree.manual]\npath = "manual"\n'
        write(self.project, ".ragdocs.toml", toml)
        users = f'[tree.notes]\npath = "{(self.home / "notes").as_posix()}"\n'
        write(self.home, ".config/mcp-markdown-ragdocs/config.toml", users)
        self.environ = {"HOME": str(self.home)}

    def app(self, **search):
        config = load_config(cwd=self.project, environ=self.environ, flags={"search": search})
        return App(config, CountingEmbedder())

    def update(self):
        with self.app() as app, app.manager() as manager:
            manager.update()
            manager.fill()

    def found(self, query, filters=None, **search):
        request = QueryRequest(queries=(query,), filters=filters or Filters())
        with self.app(cutoff_ratio=0, **search) as app:
            return [result.doc_id for result in app.search(request).results]


@pytest.fixture
def place(tmp_path):
    made = Home(tmp_path)
    made.update()
    return made


def test_the_projects_tree_and_the_users_are_searched_together(place):
    assert {"manual:heron.md", "notes:heron.md"} <= set(place.found("heron"))


def test_the_projects_own_tree_is_preferred_as_far_as_the_setting_says(place):
    assert place.found("heron", local_boost=1.0)[0] == "notes:heron.md"
    assert place.found("heron")[0] == "manual:heron.md"


def test_a_query_can_name_its_tree_and_so_can_a_filter(place):
    assert place.found("tree:notes heron") == ["notes:heron.md"]
    assert place.found("tree:manual heron") == ["manual:heron.md"]
    assert place.found("-tree:manual heron") == ["notes:heron.md"]
    assert place.found("heron", Filters(trees=frozenset({"notes"}))) == ["notes:heron.md"]


def test_ls_and_status_count_each_tree_by_itself(place, monkeypatch):
    monkeypatch.chdir(place.project)
    runner = CliRunner(env=place.environ)

    def said(*words):
        return json.loads(runner.invoke(main, [*words, "--json"], catch_exceptions=False).stdout)

    listed = said("ls", "trees", "--no-update")["trees"]
    counts = [(tree["name"], tree["scope"], tree["documents"], tree["passages"]) for tree in listed]
    assert counts == [("manual", "local", 2, 2), ("notes", "global", 1, 1)]
    trees = said("status")["trees"]
    assert [(tree["name"], tree["scope"], tree["documents"]) for tree in trees] == [
        ("manual", "local", 2),
        ("notes", "global", 1),
    ]
    shown = runner.invoke(main, ["ls", "trees", "--no-update"]).stdout.splitlines()
    assert shown[0].startswith("manual  local  2 documents, 2 passages  ")
    assert shown[1].startswith("notes  global  1 document, 1 passage  ")


# One tree has short notes that are all about the word, the other says it in passing.
LOUD_AND_QUIET = {
    **{
        f"loud:{n}.md": f"# Kestrel\n\nThe kestrel number{n}. {'And more of it. ' * n}\n"
        for n in range(8)
    },
    "quiet:a.md": "# Birds\n\nA kestrel was seen, a kestrel. Words about the weather.\n",
    "quiet:b.md": "# Other\n\n" + "Words about the sea and its isles. " * 20 + "A kestrel.\n",
}
WORDS_ONLY = {"semantic_weight": 0.0, "cutoff_ratio": 0.0, "merge_threshold": 0, "graph_weight": 0}


def ranked(engine, query="kestrel", **settings):
    request = QueryRequest(queries=(query,), top_n=10)
    chosen = WORDS_ONLY | {"ngram_dedup_enabled": False, "recency_bias": 0.0} | settings
    return [result.doc_id for result in engine.answer(request, **chosen).results]


def test_a_loud_tree_does_not_drown_a_quiet_one_when_trees_are_brought_to_one_level(tmp_path):
    with Engine(tmp_path, LOUD_AND_QUIET, MeaningEmbedder()) as engine:
        off, on = ranked(engine), ranked(engine, tree_normalisation=1.0)
    assert off.index("quiet:a.md") == 8
    assert on.index("quiet:a.md") < 8
    for tree in ("loud", "quiet"):  # the order within a tree stays
        assert [d for d in off if d.startswith(tree)] == [d for d in on if d.startswith(tree)]


def test_one_tree_alone_is_ranked_the_same_with_and_without_levels(tmp_path):
    texts = {path.replace("loud:", "").replace("quiet:", "q"): text
             for path, text in LOUD_AND_QUIET.items()}  # fmt: skip
    with Engine(tmp_path, texts, MeaningEmbedder()) as engine:
        request = QueryRequest(queries=("kestrel",), top_n=10)
        answers = [
            engine.answer(request, **WORDS_ONLY, tree_normalisation=strength).results
            for strength in (0.0, 1.0)
        ]
    assert [(r.id, r.score) for r in answers[0]] == [(r.id, r.score) for r in answers[1]]


def test_the_local_boost_acts_on_top_of_the_levels(tmp_path):
    place = Surroundings(clock=lambda: NOW, local_trees=frozenset({TreeName("quiet")}))
    with Engine(tmp_path, LOUD_AND_QUIET, MeaningEmbedder()) as engine:
        first = ranked(engine, tree_normalisation=1.0, local_boost=3.0, surroundings=place)[0]
    assert first == "quiet:a.md"


def test_a_tree_of_many_good_passages_does_not_cut_off_another_before_it_is_raised(tmp_path):
    texts = {
        f"loud:{n}.md": f"# Kestrel\n\nThe kestrel number{n}. {'And so it was. ' * (n // 4)}\n"
        for n in range(60)
    }
    texts["quiet:a.md"] = "# Birds\n\nWords about the weather, and a kestrel at the end of it.\n"
    with Engine(tmp_path, texts, MeaningEmbedder()) as engine:
        off, on = ranked(engine), ranked(engine, tree_normalisation=1.0)
    assert "quiet:a.md" not in off
    assert "quiet:a.md" in on[:5]


def test_a_tree_that_is_behind_all_that_the_indices_give_is_searched_by_itself(tmp_path):
    texts = {
        f"loud:{n}.md": f"# Kestrel\n\nThe kestrel number{n}. {'And so it was. ' * (n // 8)}\n"
        for n in range(120)
    }
    texts["quiet:a.md"] = "# Birds\n\nWords about the weather, and a kestrel at the end of it.\n"
    texts["other:a.md"] = "# Fish\n\nNothing of the kind.\n"
    with Engine(tmp_path, texts, MeaningEmbedder()) as engine:
        off, on = ranked(engine), ranked(engine, tree_normalisation=1.0)
    assert "quiet:a.md" not in off
    assert "quiet:a.md" in on
    assert "other:a.md" not in on
