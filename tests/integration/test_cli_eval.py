"""`eval` as a person uses it: figures, runs, comparisons, an ablation, a picture, clear errors."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from ragdocs.app import App
from ragdocs.cli.main import main
from ragdocs.evaluation.labelled_set import read_set
from ragdocs.evaluation.metrics import METRICS
from ragdocs.evaluation.run import ask_all, index_folder, settings_for
from tests.support.indexes import write, write_all

DOCUMENTS = {
    "fruit/apple.md": "# Apples\n\nAn apple keeps for months in a cold cellar.\n",
    "fruit/pear.md": "# Pears\n\nA pear ripens off the tree within days.\n",
    "craft/kiln #1.md": "# The kiln\n\nClay is fired at a thousand degrees, overnight.\n",
}
QUERIES = [
    {"id": "q1", "text": "how long does an apple keep", "kind": "words"},
    {"id": "q2", "text": "baking pottery", "kind": "meaning"},
    {"id": "q3", "text": "when are pears ripe", "kind": "words"},
    {"id": "q4", "text": "who won the chess match", "kind": "none"},
]
LABELS = "q1\tfruit/apple.md\t2\nq2\tcraft/kiln #1.md\t1\nq3\tfruit/pear.md\t1\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval")
    write_all(folder / "set" / "corpus", DOCUMENTS)
    write(folder, "set/queries.jsonl", "\n".join(map(json.dumps, QUERIES)))
    write(folder, "set/qrels.tsv", LABELS)
    # The index goes to a cache of its own; the prepared model is shared with the other tests.
    usual = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    ours = folder / "cache" / "mcp-markdown-ragdocs"
    ours.mkdir(parents=True)
    for prepared in (usual / "mcp-markdown-ragdocs").glob("*"):
        if not prepared.name.startswith(("index-", "eval")):
            (ours / prepared.name).symlink_to(prepared)
    return folder


@pytest.fixture
def run(place, one_model, monkeypatch):
    env = {"HOME": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place)
    runner = CliRunner()
    return lambda *words: runner.invoke(main, ["eval", *words], catch_exceptions=False)


def test_figures_a_run_groups_and_nothing_left_in_the_set(run, place):
    before = sorted(place.glob("set/**/*"))
    result = run("set", "--run", "run.jsonl", "--by", "kind")
    assert result.exit_code == 0, result.stderr
    first, _, *lines = result.stdout.splitlines()
    assert first == "set: 3 documents, 3 scored queries, 1 without an answer"
    assert [line.split()[0] for line in lines[:5]] == list(METRICS)
    assert "Hit@1      1.0000   [1.0000, 1.0000]" in lines
    assert any(line.startswith("latency    p50 ") for line in lines)
    assert any(line.startswith("words (2)") for line in lines)
    assert "asking 4 queries" in result.stderr
    found = [json.loads(line) for line in (place / "run.jsonl").read_text("utf-8").splitlines()]
    assert [one["id"] for one in found] == ["q1", "q2", "q3", "q4"]
    assert found[1]["results"][0] == "craft/kiln #1.md"
    assert sorted(place.glob("set/**/*")) == before
    assert list(index_folder((place / "set").resolve()).glob("variant-*/store.db"))


def test_another_run_is_compared_query_by_query(run, place):
    write(place, "worse.jsonl", '{"id": "q1", "results": ["fruit/apple.md"]}\n')
    report = json.loads(run("set", "--compare", "worse.jsonl", "--json").stdout)
    compared = report["compared"]
    assert compared["other"]["label"] == "worse.jsonl"
    assert compared["other"]["metrics"]["Hit@1"]["mean"] == pytest.approx(1 / 3)
    assert compared["metrics"]["Hit@1"]["mean"] == pytest.approx(-2 / 3)
    assert compared["other"]["latency"] is None
    assert report["run"]["latency"]["p95_ms"] >= report["run"]["latency"]["p50_ms"] > 0


def test_another_configuration_is_compared(run, place):
    write(place, "words.toml", "[search]\nsemantic_weight = 0.0\n")
    shown = run("set", "--compare", "words.toml").stdout
    assert "words.toml, and its difference to this run:" in shown
    # No word of "baking pottery" is in the document.
    assert "Recall@10  0.6667  -0.3333" in shown


def test_the_named_configuration_is_used(run, place):
    write(place, "words.toml", "[search]\nsemantic_weight = 0.0\n")
    assert "Recall@10  0.6667" in run("set", "--config", "words.toml").stdout


def test_each_part_is_switched_off_and_drawn(run, place):
    result = run("set", "--ablate", "--json", "--plot", "bars.svg")
    report = json.loads(result.stdout)
    worth = {one["other"]["label"]: one for one in report["ablated"]}
    assert worth["without vectors"]["setting"] == "search.semantic_weight = 0.0"
    assert worth["without vectors"]["metrics"]["Recall@10"]["mean"] == pytest.approx(-1 / 3)
    assert {"without keywords", "without graph", "without n-gram dedup"} <= set(worth)
    assert "without MMR" not in worth  # it is off
    titles = bar_titles(place / "bars.svg")
    assert len(titles) == len(METRICS) * (1 + len(worth))
    assert "without vectors: 0.6667" in titles


def bar_titles(file: Path) -> list[str]:
    """What each bar says where the pointer rests on it."""
    svg = "{http://www.w3.org/2000/svg}"
    return [one.text for one in ElementTree.parse(file).iterfind(f".//{svg}rect/{svg}title")]


def test_a_chart_is_drawn_for_a_light_and_a_dark_page_and_told_in_words(run, place):
    assert run("set", "--plot", "bars.svg").exit_code == 0
    drawn = (place / "bars.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in drawn
    root = ElementTree.fromstring(drawn)
    told = root.findtext("{http://www.w3.org/2000/svg}desc")
    assert all(f"{metric}: as configured " in told for metric in METRICS)


def test_two_runs_give_the_same_ranking(run, place):
    for name in ("one.jsonl", "two.jsonl"):
        assert run("set", "--run", name).exit_code == 0
    assert (place / "one.jsonl").read_bytes() == (place / "two.jsonl").read_bytes()


def test_near_misses_are_asked_without_the_relevant_documents(run, place):
    result = run("set", "--near-miss", "--json")
    assert result.exit_code == 0, result.stderr
    assert "without the relevant documents: asking 3 queries" in result.stderr
    report = json.loads(result.stdout)
    found = report["honesty"]
    assert found["questions"] == found["near_misses"]["cases"] == found["right"]["cases"] == 3
    # The chess question is of the set and has no answer there.
    assert found["foreign"]["cases"] == 1
    assert found["near_misses"]["mean"]["mean"] < found["right"]["mean"]["mean"]
    # Each right answer is told higher than each near miss.
    assert found["near_miss_auc"]["mean"] == pytest.approx(1.0)
    assert sum(each["cases"] for each in found["bins"]) == 6
    assert 0 <= report["run"]["unordered"]["mean"] <= 1


def test_near_misses_are_shown_with_a_bar_for_each_bin(run, place):
    lines = run("set", "--near-miss", "--plot", "bins.svg").stdout.splitlines()
    head = "conf.  right  cases  a bar for the share that was right, | at the confidence"
    start = lines.index(head)
    bars = lines[start + 1 :]
    assert len(bars) == 6
    assert all(bar.count("|") == 1 for bar in bars)
    assert bars[-1].split()[1] == "1.00"
    assert bars[-1].count("#") >= 39
    assert "#" not in bars[0]
    assert len(bar_titles(place / "bins.svg")) == 6


def test_questions_of_another_set_are_foreign(run, place):
    write(place, "other/corpus/moon.md", "# The moon\n\nIt is full every four weeks.\n")
    queries = [{"id": "q1", "text": "when is the moon full"}, {"id": "q2", "text": "and never"}]
    write(place, "other/queries.jsonl", "\n".join(map(json.dumps, queries)))
    write(place, "other/qrels.tsv", "q1\tmoon.md\t1\n")
    result = run("set", "--near-miss", "--foreign", "other", "--json")
    assert "from other sets: asking 1 queries" in result.stderr
    # With the set's own question that has no answer.
    assert json.loads(result.stdout)["honesty"]["foreign"]["cases"] == 2


def test_exactly_the_relevant_documents_are_excluded(run, place):
    # Others of the same name, which is how a user may exclude a file, must stay.
    write(place, "twins/corpus/note.md", DOCUMENTS["fruit/apple.md"])
    write(place, "twins/corpus/there/note.md", "# Cider\n\nPressed from apples every autumn.\n")
    write(place, "twins/corpus/here/note.md", "# Cake\n\nApples, flour and a hot oven.\n")
    write(place, "twins/queries.jsonl", '{"id": "q", "text": "apples"}')
    write(place, "twins/qrels.tsv", "q\tnote.md\t2\nq\tthere/note.md\t0\n")
    assert run("twins", "--near-miss").exit_code == 0
    labelled = read_set(place / "twins")
    with App(settings_for(labelled.folder, None)) as app:
        whole = ask_all(app, labelled.queries)
        without = ask_all(app, labelled.queries, labelled.answers())
    assert set(whole.ranked["q"]) == {"note.md", "there/note.md", "here/note.md"}
    assert set(without.ranked["q"]) == {"there/note.md", "here/note.md"}


def test_a_set_whose_answers_are_not_in_the_corpus_has_no_near_misses(run, place):
    write(place, "lost/corpus/apple.md", DOCUMENTS["fruit/apple.md"])
    write(place, "lost/queries.jsonl", '{"id": 1, "text": "apples"}')
    write(place, "lost/qrels.tsv", "1\tgone.md\t1\n")
    result = run("lost", "--near-miss")
    assert result.exit_code == 2
    assert "has none of the relevant documents in qrels.tsv" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "--foreign", "set"), "--foreign is about the confidence: give --near-miss too"),
        (("set", "--near-miss", "--foreign", "set"), "is the set being measured; choose one"),
        (("set", "--near-miss", "--foreign", "none"), "is not a folder"),
        (("none",), "is not a folder; name one that contains corpus/"),
        (("set", "--by", "colour"), "has the field 'colour': the fields are kind"),
        (("set", "--plot", "bars.png"), "charts are drawn as SVG, so the name must end in .svg"),
        (("set", "--plot", "none/bars.svg"), "none/bars.svg cannot be written: No such file"),
        (("set", "--compare", "none.jsonl"), "none.jsonl"),
        (("set", "--config", "none.toml"), "none.toml"),
    ],
)
def test_wrong_use_is_said_in_a_line(run, words, message):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output


def test_wrong_options_are_reported_before_the_long_work(run, place):
    write(place, "broken.jsonl", '{"id": 1}\n')
    result = run("set", "--compare", "broken.jsonl")
    assert result.exit_code == 2
    assert "broken.jsonl:1: the line has no" in result.stderr
    assert "asking" not in result.stderr


def test_labels_without_their_document_are_noted(run, place):
    write(place, "partly/corpus/apple.md", DOCUMENTS["fruit/apple.md"])
    write(place, "partly/queries.jsonl", '{"id": 1, "text": "apples"}')
    write(place, "partly/qrels.tsv", "1\tapple.md\t1\n1\tgone.md\t1\n")
    shown = run("partly").stdout
    assert "note: 1 labelled document not in the corpus" in shown
    assert "Recall@10  0.5000" in shown


def test_a_corpus_without_documents_is_said_to_be_so(run, place):
    write(place, "bare/corpus/picture.png", b"\x89PNG")
    write(place, "bare/queries.jsonl", '{"id": 1, "text": "apples"}')
    write(place, "bare/qrels.tsv", "1\ta.md\t1\n")
    result = run("bare")
    assert result.exit_code == 2
    assert "has no documents to index" in result.stderr
