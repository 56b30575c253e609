"""`fusion = "rrf"` as the seeds have it: links are in the rank sum, and a calibration that the user
has set is a sigmoid over that sum. Asked through Python, the command line and a server's process.
"""

import json
import math

import pytest

from ragdocs import open_index
from ragdocs.search.candidates import Strategy
from tests.support.indexes import write, write_all
from tests.support.mcp_clients import ServerProcess
from tests.support.models import MeaningModel
from tests.support.program import called

NOTES = {
    "start.md": "# Start\n\nA heron stands here. See [[second]].\n",
    "second.md": "# Second\n\nNothing of that kind.\n",
    "weak.md": "# Weak\n\n" + "It is long and says little that matters. " * 12 + "A heron.\n",
}
BY_RANK = {
    "fusion": "rrf",
    "semantic_weight": 0.0,
    "recency_bias": 0.0,
    "adaptive_weights_enabled": False,
}
SEEDS = {"score_calibration_threshold": 0.035, "score_calibration_steepness": 150.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    write_all(folder / "docs", NOTES)
    return folder


@pytest.fixture
def ask(folder):
    def ask(query="heron", explain=False, **search):
        settings = {"search": search, "indexing": {"index_path": str(folder / "ix")}}
        with open_index(folder / "docs", settings=settings, embedder=MeaningModel()) as index:
            return index.search(query, explain=explain)

    return ask


def paths(response):
    return [result.path for result in response.results]


def sigmoid(value, threshold=0.035, steepness=150.0):
    return 1 / (1 + math.exp(-steepness * (value - threshold)))


def test_links_are_a_list_of_the_rank_sum(ask):
    """They brought a page nearer to the best by a part of its score, whatever its rank."""
    few, many = (ask(**BY_RANK, graph_weight=weight) for weight in (1.0, 3.0))
    assert paths(few) == ["start.md", "weak.md", "second.md"]
    assert paths(many)[0] == "second.md"
    first, *_ = ask(**BY_RANK, graph_weight=3.0, explain=True).explanation.results
    # The scores are parts of 1/61, the most that one index can give.
    assert first.contributions[Strategy.GRAPH] == pytest.approx(3.0 * 0.5)
    assert first.evidence[Strategy.GRAPH].rank == 1


def test_half_of_a_rank_is_the_seeds_worked_example(ask):
    explained = ask(**BY_RANK, **SEEDS, explain=True).explanation.results
    sums = [result.relevance for result in explained]
    assert sums == pytest.approx([1 / 61, 1 / 62, 0.5 / 61])


def test_a_calibration_that_is_set_is_a_sigmoid_over_the_rank_sum(ask):
    found = [result.confidence for result in ask(**BY_RANK, **SEEDS).results]
    assert found == pytest.approx([sigmoid(1 / 61), sigmoid(1 / 62), sigmoid(0.5 / 61)])
    assert found[0] == pytest.approx(0.058, abs=0.0005)


@pytest.mark.parametrize("left_out", SEEDS)
def test_of_the_two_the_one_left_out_is_the_seeds(ask, left_out):
    one = {name: value for name, value in SEEDS.items() if name != left_out}
    first, *_ = ask(**BY_RANK, **one).results
    assert first.confidence == pytest.approx(sigmoid(1 / 61))


def test_recency_counts_in_the_rank_sum_before_the_sigmoid(ask):
    """The notes were written just now."""
    first, *_ = ask(**{**BY_RANK, "recency_bias": 0.5}, **SEEDS).results
    assert first.confidence == pytest.approx(sigmoid(1.2 / 61))


def test_rank_fusion_alone_has_the_number_of_the_default_mode(ask):
    by_score, by_rank = (
        {result.path: result.confidence for result in ask(**{**BY_RANK, "fusion": fusion}).results}
        for fusion in ("score", "rrf")
    )
    assert by_rank == pytest.approx(by_score)


def test_a_calibration_without_rank_fusion_is_over_the_evidence(ask):
    *_, last = ask(**{**BY_RANK, "fusion": "score"}, **SEEDS).results
    assert last.confidence > 0.9


CONFIG = (
    '[search]\nfusion = "rrf"\nsemantic_weight = 0.0\nrecency_bias = 0.0\n'
    "adaptive_weights_enabled = false\nscore_calibration_threshold = 0.035\n"
    "score_calibration_steepness = 150.0\n"
)


@pytest.fixture
def project(folder, one_model):
    """A folder with a configuration; asked by the command line as a person would."""
    write(folder, "docs/.ragdocs.toml", CONFIG)

    def call(*words):
        place = {"RAGDOCS_INDEXING__INDEX_PATH": str(folder / "cli.ix")}
        return called(folder / "docs", *words, **place)

    return call


def test_the_command_line_drops_an_exact_hit_below_the_least_confidence(project):
    kept = json.loads(project("query", "heron", "--json").stdout)
    assert kept["results"][0]["confidence"] == pytest.approx(0.058, abs=0.0005)
    dropped = json.loads(project("query", "heron", "--json", "--min-score", "0.3").stdout)
    assert dropped["results"] == []


def test_check_config_tells_the_figure(project):
    done = project("check-config")
    assert done.returncode == 0
    assert "only one index ranks first has 0.058" in done.stdout
    notes = json.loads(project("check-config", "--json").stdout)["notes"]
    keys = {note["key"] for note in notes if "0.058" in note["message"]}
    assert keys == {f"search.{name}" for name in SEEDS}


def test_explain_tells_the_figure(project):
    explained = json.loads(project("query", "heron", "--json", "--explain").stdout)
    assert "0.058" in explained["explanation"]["confidence_from"]
    assert "0.058" in " ".join(project("query", "heron", "--explain").stdout.split())


def test_a_server_answers_by_the_same_sum(folder):
    write(folder, "docs/.ragdocs.toml", CONFIG)
    place = ("--docs", str(folder / "docs"), "--index", str(folder / "mcp.ix"))
    with ServerProcess("-m", "ragdocs", "mcp", *place) as server:
        server.initialize()
        answer = server.call(1, "query_documents", query="heron", explain=True)["result"]
    told = answer["structuredContent"]
    assert told["results"][0]["confidence"] == pytest.approx(0.058, abs=0.005)
    assert "0.058" in told["explanation"]["confidence_from"]
