"""What `eval` prints: a table for every part of its report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragdocs.cli.output import counted, shown
from ragdocs.evaluation.metrics import METRICS

if TYPE_CHECKING:
    from ragdocs.evaluation.measuring import Difference, Estimates, Latency, Report

_FIRST = 28
_COLUMN = 11
_KEY = "* beside a difference: its 95 % interval does not include zero"


def lines(report: "Report") -> Iterator[str]:
    said = [
        counted(report.documents, "document"),
        f"{report.queries} scored queries",
        *([f"{report.unanswerable} without an answer"] if report.unanswerable else []),
        *([f"relevant from grade {report.level:g}"] if report.level != 1.0 else []),
    ]
    yield f"{shown(report.name)}: {', '.join(said)}"
    if report.missing:
        yield f"note: {counted(report.missing, 'labelled document')} not in the corpus"
    yield ""
    for metric, found in report.run.metrics.items():
        yield f"{metric:<10} {found.mean:.4f}   [{found.low:.4f}, {found.high:.4f}]"
    if report.run.latency:
        yield f"latency    {_times(report.run.latency)}"
    if report.groups:
        yield from _groups(report)
    if report.compared:
        yield from _compared(report.compared)
    if report.ablated:
        yield from _ablated(report)
    if report.compared or report.ablated:
        yield from ("", _KEY)


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
