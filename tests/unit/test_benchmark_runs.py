"""`make bench`: what it keeps of a run, whatever its benchmarks do; verdicts; pictures."""

import contextlib
import importlib
import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bench(monkeypatch):
    """A module of the benchmarks by its name; they import each other as programs do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin and Path(origin).is_relative_to(BENCHMARKS):
            del sys.modules[name]


def figure(bench, **changes):
    given = {"issue": 1, "words": "w", "benchmark": "b", "what": "ratio", "of": "a / b"}
    return bench("asked").Asked(**given | {"at_most": 2.0} | changes)


def run_of(bench, name, *readings):
    runs = bench("runs")
    outcome = runs.Outcome(name="b", command="c", readings=readings)
    return runs.Run(name=name, extent="tiny", machine="m", versions={}, outcomes=(outcome,))


def test_a_failing_benchmark_is_noted_and_the_rest_is_kept(bench, tmp_path, capsys):
    suite, run_all = bench("suite"), bench("run_all")
    [parsing] = [each for each in suite.SUITE if each.name == "parsing"]
    missing = suite.Benchmark(name="missing", program="missing.py", tiny="")
    without = suite.Benchmark(name="large", program="missing.py", tiny="", needs=("no such set",))
    run = run_all.run_suite([missing, without, parsing], suite.Extent.TINY, tmp_path)

    assert [bool(outcome.problem) for outcome in run.outcomes] == [True, False, False]
    assert [bool(outcome.left_out) for outcome in run.outcomes] == [False, True, False]
    assert "no such set" in run_all.why_left_out(without, suite.Extent.USUAL)
    page = (tmp_path / run.name / "README.md").read_text(encoding="utf-8")
    assert "It failed with exit status" in page
    assert "./benchmarks/missing.py" in page
    assert str(BENCHMARKS.parent) not in page
    assert "parsing and chunking / bare block parse" in page
    assert "ratio: median" in page
    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"{run.name}/README.md#parsing" in index
    assert "failed: missing" in index
    assert "not measured" in index
    [kept] = bench("runs").load_all(tmp_path)
    assert kept.readings("parsing") == run.readings("parsing")
    assert not bench("runs").silent(run, bench("asked").figures())


def test_every_figure_asked_for_is_given_by_some_benchmark(bench):
    names = {benchmark.name for benchmark in bench("suite").SUITE}
    figures = bench("asked").figures()
    assert {each.benchmark for each in figures} <= names
    assert {each.issue for each in figures} == {2, 3, 4, 5, 6, 7, 8, 15, 16, 17}


def test_the_confidence_of_results_in_both_answers_is_compared(bench):
    before = [{"a": 0.9, "b": 0.5, "gone": 0.4}, {"a": 0.2}]
    after = [{"a": 0.88, "b": 0.3, "new": 0.7}, {}]
    moved = bench("confidence").compared(list(zip(before, after, strict=True)))
    assert moved.changes == pytest.approx((0.02, 0.2))
    assert moved.unchanged == pytest.approx(0.5)
    assert moved.largest == pytest.approx(0.2)
    nothing = bench("confidence").compared([])
    assert (nothing.unchanged, nothing.largest) == (pytest.approx(1.0), pytest.approx(0.0))


@pytest.mark.parametrize(
    ("limits", "clock", "cpu", "said"),
    [
        ({}, 2.0, None, "met"),
        ({}, 2.1, None, "**missed**"),
        ({}, 1.9, 2.1, "met; **missed** by CPU"),
        ({}, 2.1, 1.9, "**missed**; met by CPU"),
        ({"at_most": None, "at_least": 0.7}, 0.7, None, "met"),
        ({"at_most": None, "at_least": 0.7}, 0.69, None, "**missed**"),
    ],
)
def test_verdicts(bench, limits, clock, cpu, said):
    reading = bench("readings").Reading
    readings = [reading(what="ratio", of="a / b", value=value) for value in (clock, cpu) if value]
    found = bench("asked").verdict(figure(bench, **limits), *readings, *([None] * (not cpu)))
    assert found == said


def test_the_newest_run_that_has_a_figure_counts_and_the_worst_set_of_it(bench, tmp_path):
    reading, runs = bench("readings").Reading, bench("runs")
    old = run_of(
        bench,
        "2026-01-01",
        reading(what="ratio", of="a / b", value=1.0, size=5),
        reading(what="quality", of="x", value=0.9, where="one"),
        reading(what="quality", of="x", value=0.4, where="two"),
    )
    new = run_of(bench, "2026-01-02", reading(what="ratio", of="a / b", value=3.0, size=9))
    for run in (old, new):
        (tmp_path / run.name).mkdir()
        runs.save(run, tmp_path / run.name)
    kept = runs.load_all(tmp_path)
    assert kept == [new, old]
    assert runs.newest(kept, figure(bench)).reading.value == pytest.approx(3.0)
    assert runs.newest(kept, figure(bench, size=5)).run == old
    lowest = figure(bench, what="quality", of="x", where="*", at_most=None, at_least=0.5)
    assert runs.newest(kept, lowest).reading.where == "two"
    highest = figure(bench, what="quality", of="x", where="*")
    assert runs.newest(kept, highest).reading.where == "one"
    assert runs.newest(kept, figure(bench, of="c")) is None
    assert [each.of for each in runs.silent(new, [figure(bench), figure(bench, of="c")])] == ["c"]


def test_noted_numbers_are_read_again(bench, tmp_path, monkeypatch):
    readings, ratios = bench("readings"), bench("ratios")
    file = tmp_path / "noted"
    monkeypatch.setenv(readings.VARIABLE, str(file))
    rounds = ratios.Rounds()
    for seconds in (1.0, 3.0, 2.0):
        rounds.note("ours", 2 * seconds, seconds)
        rounds.note("bare", seconds, seconds)
    with contextlib.redirect_stdout(io.StringIO()):
        rounds.show_ratio("ours", "bare", "at most 3")
    clock, cpu = readings.read(file)
    assert (clock.of, clock.at, clock.value) == pytest.approx(("ours / bare", "clock", 2.0))
    assert (cpu.at, cpu.value) == pytest.approx(("CPU", 1.0))


def test_numbers_that_are_only_printed_are_found(bench, capsys):
    edits, memory = bench("indexing_edits"), bench("indexing_memory")
    edits.show_delays("the app's service", [edits.Delay(0.1, 0.2), edits.Delay(0.3, 0.4)])
    memory.show("indexing 100000 chunks", memory.Memory(255_000_000, 394_000_000, {"files": 1}))
    found = bench("printed").readings_in(capsys.readouterr().out)
    told = {(one.what, one.of, one.at): one.value for one in found}
    assert told[
        "delay", "is in an answer after the debounce, the app's service", ""
    ] == pytest.approx(0.3)
    assert told["memory", "indexing them", "peak"] == 394


def readings_for_pictures(bench):
    reading = bench("readings").Reading
    named = {
        "query-latency": [
            reading(what="latency", of=of, value=size / 1000, at=at, size=size)
            for of, at in (("search", "p50"), ("search", "p95"), ("sum", "p50"), ("embed", "p50"))
            for size in (1_000, 10_000, 100_000)
        ],
        "keyword-latency": [
            reading(what="latency", of="fts5, answer", value=3.0, at="p50, CPU", size=1_000)
        ],
        "embedding": [reading(what="throughput", of="ours", value=40.0)],
        "indexing-build": [
            reading(what="count", of="texts", value=100),
            reading(what="time", of="first build", value=2000.0, at="clock"),
        ],
        "indexing-large": [
            reading(what="memory", of="serving them", value=500, at="peak", size=100_000)
        ],
        "quality": [
            reading(what="quality", of="product", where=where, at=at, value=0.7, low=0.6, high=0.8)
            for where, at in (
                ("obsidian-help", "nDCG@10"),
                ("obsidian-help, grade 2", "nDCG@5"),
            )
        ]
        + [
            reading(what="ablation", of="code", where=where, value=-0.01, low=-0.02, high=0.0)
            for where in ("a & b", "two sets have a legend")
        ],
    }
    return lambda *names: [one for name in names for one in named.get(name, [])]


def test_every_picture_says_what_it_shows_on_light_and_dark_pages(bench):
    plots = bench("plots.gallery").gallery(readings_for_pictures(bench))
    names = {"latency", "quality", "throughput", "memory", "keyword", "ablation"}
    assert {plot.name for plot in plots} == {f"{name}.svg" for name in names}
    for plot in plots:
        root = ElementTree.fromstring(plot.svg)
        assert root.findtext(f"{SVG}title")
        assert root.findtext(f"{SVG}desc") == plot.words
        assert "prefers-color-scheme:dark" in root.findtext(f"{SVG}style")
        assert root.find(f"{SVG}rect").get("class") == "ground"
    [latency] = [plot for plot in plots if plot.name == "latency.svg"]
    for expected in ("milliseconds", "passages in the index", "100,000"):
        assert expected in latency.svg


def test_without_readings_there_are_no_pictures(bench):
    assert bench("plots.gallery").gallery(lambda *_: []) == []


def test_the_marked_lines_are_those_of_a_question_and_narrow(bench):
    labels = bench("answer_size").read_labels()
    assert len(labels) == 58
    for passages in labels.values():
        for passage in passages:
            assert passage.path.endswith(".md")
            assert 1 <= passage.first <= passage.last <= passage.first + 14


@pytest.mark.parametrize(
    ("sent", "share"),
    [
        (["before", "one", "two", "three", "after"], 1.0),
        (["one", "two", "between", "three"], 2 / 3),
        (["three", "two", "one"], 1 / 3),
        (["other"], 0.0),
        ([], 0.0),
    ],
)
def test_lines_that_answer_count_when_they_stand_together(bench, sent, share):
    found = bench("answer_size").share(["one", "two", "three"], sent)
    assert found == pytest.approx(share)


def test_the_calibration_error_has_one_value(bench):
    """That of the newest run: README and the page that defines it give no other."""
    runs, project = bench("runs"), BENCHMARKS.parent
    [asked] = [each for each in bench("asked").figures() if each.what == "calibration error"]
    found = runs.newest(runs.load_all(project / "docs" / "benchmarks"), asked)
    pages = [project / "README.md", *(project / "docs").glob("*.md")]
    said = {
        page.name: re.findall(r"calibration error\b[^|]{0,400}?(0?\.\d{2,3})\b", text, re.DOTALL)
        for page in pages
        if "calibration error" in (text := page.read_text(encoding="utf-8"))
    }
    assert {"README.md", "evaluation.md"} <= set(said)
    assert {value for values in said.values() for value in values} == {f"{found.reading.value:.3f}"}
