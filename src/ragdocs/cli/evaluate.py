"""`eval`: measures the search on a labelled set and prints the report as tables."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli.main import config_option, json_option, warn_of_ignored
from ragdocs.text import escaped, json_text, number_of

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.evaluation.metrics import Estimate
    from ragdocs.evaluation.reliability import Honesty
    from ragdocs.evaluation.run import Difference, Estimates, Latency, Measured, Report

# What `eval` prints: a table for every part of its report.

_FIRST = 28
_COLUMN = 11
_BAR = 40
_KEY = "* beside a difference: its 95 % interval does not include zero"


def lines(report: "Report") -> Iterator[str]:
    yield from _head_lines(report)
    yield ""
    yield from _run(report.run)
    if report.groups:
        yield from _groups(report)
    if report.compared:
        yield from _comparison_lines(report.compared)
    if report.ablated:
        yield from _ablation_lines(report)
    if report.compared or report.ablated:
        yield from ("", _KEY)
    if report.honesty:
        yield from _honesty(report.honesty)


def _head_lines(report: "Report") -> Iterator[str]:
    said = [
        number_of(report.documents, "document"),
        f"{report.queries} scored queries",
        *([f"{report.unanswerable} without an answer"] if report.unanswerable else []),
        *([f"relevant from grade {report.level:g}"] if report.level != 1.0 else []),
    ]
    yield f"{escaped(report.name)}: {', '.join(said)}"
    if report.missing:
        yield f"note: {number_of(report.missing, 'labelled document')} not in the corpus"


def _run(run: "Measured") -> Iterator[str]:
    for metric, found in run.metrics.items():
        yield f"{metric:<10} {_interval(found)}"
    if run.latency:
        yield f"latency    {_times(run.latency)}"
    if run.unordered:
        yield f"unordered  {_interval(run.unordered)}"


def _interval(found: "Estimate") -> str:
    return f"{found.mean:.4f}   [{found.low:.4f}, {found.high:.4f}]"


def _honesty(found: "Honesty") -> Iterator[str]:
    from ragdocs.evaluation.reliability import SURE

    yield ""
    yield f"confidence of the first result, {found.questions} questions with and without answers"
    kinds = {
        "right": found.right,
        "wrong": found.wrong,
        "near miss": found.near_misses,
        "foreign": found.foreign,
    }
    for name, each in kinds.items():
        if each.cases:
            yield f"{name:<26} {_interval(each.mean)}   {number_of(each.cases, 'question')}"
    if found.near_miss_auc:
        yield f"{'AUC right / near miss':<26} {_interval(found.near_miss_auc)}"
    if found.foreign_auc:
        yield f"{'AUC answerable / foreign':<26} {_interval(found.foreign_auc)}"
    yield f"{'calibration error':<26} {_interval(found.error)}   over both kinds"
    sure = f"{len(found.believed)} of {found.near_misses.cases} near misses"
    yield f"{sure} with confidence {SURE:g} or more (--json lists them)"
    yield from ("", "conf.  right  cases  a bar for the share that was right, | at the confidence")
    for each in found.bins:
        bar = _bar(each.right, each.confidence)
        yield f"{each.confidence:.2f}   {each.right:.2f}   {each.cases:>5}  {bar}"


def _bar(right: float, told: float) -> str:
    filled, mark = round(right * _BAR), round(told * _BAR)
    drawn = ("|" if at == mark else "#" if at < filled else " " for at in range(_BAR + 1))
    return "".join(drawn).rstrip()


def _times(latency: "Latency") -> str:
    return f"p50 {latency.p50_ms:.1f} ms, p95 {latency.p95_ms:.1f} ms"


def _groups(report: "Report") -> Iterator[str]:
    yield ""
    yield _head(f"by {escaped(report.field)}")
    for group in report.groups:
        values = "".join(f"{one.mean:>{_COLUMN}.4f}" for one in group.metrics.values())
        yield f"{_cut(f'{group.value} ({group.queries})')}{values}"


def _comparison_lines(difference: "Difference") -> Iterator[str]:
    other = difference.other
    yield ""
    yield f"{escaped(other.label)}, and its difference to this run:"
    for metric, found in difference.metrics.items():
        interval = f"[{found.low:+.4f}, {found.high:+.4f}]{' *' if found.is_clear else ''}"
        yield f"{metric:<10} {other.metrics[metric].mean:.4f}  {found.mean:+.4f}   {interval}"
    if other.latency:
        yield f"latency    {_times(other.latency)}"


def _ablation_lines(report: "Report") -> Iterator[str]:
    yield ""
    yield _head("difference to this run")
    for difference in report.ablated:
        yield f"{_cut(difference.other.label)}{_differences(difference.metrics)}"


def _differences(metrics: "Estimates") -> str:
    marked = (f"{one.mean:+.4f}{'*' if one.is_clear else ' '}" for one in metrics.values())
    return "".join(f"{one:>{_COLUMN}}" for one in marked)


def _head(first: str) -> str:
    from ragdocs.evaluation.metrics import METRICS

    return _cut(first) + "".join(f"{metric:>{_COLUMN}}" for metric in METRICS)


def _cut(text: str) -> str:
    text = escaped(text)
    return f"{text[: _FIRST - 2]:<{_FIRST}}"


# `eval`: how good the search is, measured on a labelled set.

_FILE = click.Path(path_type=Path, dir_okay=False)


class _Options(TypedDict):
    config_file: Path | None
    run: Path | None
    compare: Path | None
    by: str
    rel_level: float
    ablate: bool
    near_miss: bool
    foreign: tuple[Path, ...]
    as_json: bool
    plot: Path | None


@click.command("eval")
@click.argument("folder", metavar="SET", type=click.Path(path_type=Path))
@config_option
@click.option("--run", type=_FILE, metavar="OUT.jsonl", help="Write the ranking to this file.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="OTHER",
    help="Show how another run, or another configuration (.toml), differs from this one.",
)
@click.option("--by", default="", metavar="FIELD", help="Group by this field of queries.jsonl.")
@click.option(
    "--ablate", is_flag=True, help="Switch off each part in turn, and show the difference."
)
@click.option(
    "--near-miss",
    is_flag=True,
    help="Ask again without the relevant documents, and measure the confidence.",
)
@click.option(
    "--foreign",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="SET",
    help="With --near-miss: ask 40 questions of this set too, which the corpus does not answer; "
    "may be given several times.",
)
@click.option(
    "--rel-level",
    type=float,
    default=1.0,
    show_default=True,
    metavar="GRADE",
    help="The grade from which a document is relevant, for MRR, recall and hit.",
)
@json_option
@click.option(
    "--plot",
    type=_FILE,
    metavar="FILE.svg",
    help="Draw a bar chart; with --near-miss, confidence against the share that was right.",
)
def evaluate(folder: Path, **options: Unpack[_Options]) -> None:
    """Measure the search on a folder with corpus/, queries.jsonl and qrels.tsv.

    The corpus is indexed in the user's cache, never in the set. Every query is asked with the
    effective settings; intervals are 95 %, by resampling the queries.

    \b
    Examples:
      ragdocs eval sets/handbook --by kind
      ragdocs eval sets/handbook --run before.jsonl
      ragdocs eval sets/handbook --compare before.jsonl --ablate
      ragdocs eval sets/handbook --near-miss
    """
    from ragdocs.evaluation.chart import check_name, report_chart, write_chart
    from ragdocs.evaluation.labelled_set import read_set, write_run
    from ragdocs.evaluation.run import Evaluation, EvaluationOptions, Helpers

    if options["plot"]:
        check_name(options["plot"])
    if options["foreign"] and not options["near_miss"]:
        raise click.UsageError("--foreign is about the confidence: give --near-miss too")
    chosen = EvaluationOptions(
        config_file=options["config_file"],
        compare=options["compare"],
        by=options["by"],
        ablate=options["ablate"],
        level=options["rel_level"],
        near_miss=options["near_miss"],
        foreign=options["foreign"],
    )
    helpers = Helpers(update_index=_index, say=lambda line: click.echo(line, err=True))
    report, answers = Evaluation(read_set(folder), chosen, helpers).run()
    if options["run"]:
        write_run(options["run"], answers.ranked)
    if options["plot"]:
        write_chart(options["plot"], report_chart(report))
    if options["as_json"]:
        click.echo(json_text(report))
        return

    for line in lines(report):
        click.echo(line)


def _index(config: "Config") -> None:
    """Waits for the whole index, unlike a query: figures must not depend on indexing progress."""
    from ragdocs.cli.index_run import IndexingOptions, run
    from ragdocs.cli.progress import display
    from ragdocs.shutdown import Ending

    warn_of_ignored(config)
    with Ending(watch_parent=False) as ending:
        with closing(display(quiet=False)) as shown_progress:
            ending.before_force(shown_progress.close)
            done = run(config, IndexingOptions(rebuild=False), ending, shown_progress)
        if ending.reason:
            click.echo("Stopped. What was indexed is kept; the next run continues.", err=True)
            raise click.exceptions.Exit(ending.exit_code)
    without = done.vectors.lacking or done.vectors.error
    if without:
        click.echo(f"note: searching by keywords only: {escaped(without)}", err=True)
    if done.failures:
        first = done.failures[0]
        said = f"{number_of(len(done.failures), 'file')} could not be indexed, first {first.path}"
        click.echo(f"note: {escaped(said)}: {escaped(first.reason)}", err=True)
