"""What `eval` prints: a table for every part of its report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragdocs.cli.output import counted, shown
from ragdocs.evaluation.metrics import METRICS
from ragdocs.evaluation.reliability import SURE

if TYPE_CHECKING:
    from ragdocs.evaluation.intervals import Estimate
    from ragdocs.evaluation.measuring import Difference, Estimates, Latency, Measured, Report
    from ragdocs.evaluation.reliability import Honesty

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
        yield from _compared(report.compared)
    if report.ablated:
        yield from _ablated(report)
    if report.compared or report.ablated:
        yield from ("", _KEY)
    if report.honesty:
        yield from _honesty(report.honesty)


def _head_lines(report: "Report") -> Iterator[str]:
    said = [
        counted(report.documents, "document"),
        f"{report.queries} scored queries",
        *([f"{report.unanswerable} without an answer"] if report.unanswerable else []),
        *([f"relevant from grade {report.level:g}"] if report.level != 1.0 else []),
    ]
    yield f"{shown(report.name)}: {', '.join(said)}"
    if report.missing:
        yield f"note: {counted(report.missing, 'labelled document')} not in the corpus"


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
            yield f"{name:<26} {_interval(each.mean)}   {counted(each.cases, 'question')}"
    if found.near_miss_auc:
        yield f"{'AUC right / near miss':<26} {_interval(found.near_miss_auc)}"
    if found.foreign_auc:
        yield f"{'AUC answerable / foreign':<26} {_interval(found.foreign_auc)}"
    yield f"{'calibration error':<26} {_interval(found.error)}   over both kinds"
    sure = f"{len(found.believed)} of {found.near_misses.cases} near misses"
    yield f"{sure} told at {SURE:g} or more (--json lists them)"
    yield from ("", "told   right  cases  a bar for what was right, | where it was told")
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
    yield _head(f"by {shown(report.field)}")
    for group in report.groups:
        values = "".join(f"{one.mean:>{_COLUMN}.4f}" for one in group.metrics.values())
        yield f"{_cut(f'{group.value} ({group.queries})')}{values}"


def _compared(difference: "Difference") -> Iterator[str]:
    other = difference.other
    yield ""
    yield f"{shown(other.label)}, and its difference to this run:"
    for metric, found in difference.metrics.items():
        interval = f"[{found.low:+.4f}, {found.high:+.4f}]{' *' if found.is_clear else ''}"
        yield f"{metric:<10} {other.metrics[metric].mean:.4f}  {found.mean:+.4f}   {interval}"
    if other.latency:
        yield f"latency    {_times(other.latency)}"


def _ablated(report: "Report") -> Iterator[str]:
    yield ""
    yield _head("difference to this run")
    for difference in report.ablated:
        yield f"{_cut(difference.other.label)}{_differences(difference.metrics)}"


def _differences(metrics: "Estimates") -> str:
    marked = (f"{one.mean:+.4f}{'*' if one.is_clear else ' '}" for one in metrics.values())
    return "".join(f"{one:>{_COLUMN}}" for one in marked)


def _head(first: str) -> str:
    return _cut(first) + "".join(f"{metric:>{_COLUMN}}" for metric in METRICS)


def _cut(text: str) -> str:
    text = shown(text)
    return f"{text[: _FIRST - 2]:<{_FIRST}}"
