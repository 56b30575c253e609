"""The pictures of a run: from readings to SVG. One without anything to show is left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from places import OWN_SET
from published import REFERENCE, TOOLS, TOOLS_SET
from readings import Reading

from plots.bars import lying
from plots.curves import Axes, Curve, curves
from ragdocs.evaluation.chart import Bar, Picture, document, in_words, stack, standing

Taken = Callable[..., Sequence[Reading]]
"""Names of benchmarks → the readings of the first run that has them."""
PRODUCT = "product"
METRIC = "nDCG@10"
BUILDS = ("first build", "rebuild", "update: files to texts")


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with its file's name, and its content in words."""

    name: str
    svg: str
    words: str


def gallery(taken: Taken) -> list[Plot]:
    drawn = (
        latency(taken("query-latency")),
        quality(taken("quality")),
        throughput(taken("embedding"), taken("indexing-build")),
        memory(taken("indexing-large")),
        words_alone([*taken("keyword-latency-large"), *taken("keyword-latency")]),
        ablation(taken("quality")),
    )
    return [plot for plot in drawn if plot]


def latency(readings: Sequence[Reading]) -> Plot | None:
    shown = [
        Curve(
            name="a whole hybrid query, p95",
            colour=0,
            points=_points(readings, "search", "p95"),
            dashed=True,
        ),
        Curve(
            name="a whole hybrid query, p50", colour=0, points=_points(readings, "search", "p50")
        ),
        Curve(
            name="the bare calls that it needs (embed, FAISS, FTS5), one after the other, p50",
            colour=1,
            points=_points(readings, "sum", "p50"),
        ),
        Curve(
            name="of these, embedding the query, p50",
            colour=2,
            points=_points(readings, "embed", "p50"),
        ),
    ]
    axes = Axes(
        title="Time of a warm query by size of the index",
        across="passages in the index",
        up="milliseconds",
    )
    return _curves("latency", axes, shown)


def words_alone(readings: Sequence[Reading]) -> Plot | None:
    engines = {"fts5": "FTS5 (default)", "tantivy": "tantivy", "whoosh": "whoosh"}
    shown = [
        Curve(
            name=f"{name}, {at}",
            colour=colour,
            points=_points(readings, f"{engine}, answer", f"{at}, CPU"),
            dashed=at == "p95",
        )
        for colour, (engine, name) in enumerate(engines.items())
        for at in ("p50", "p95")
    ]
    axes = Axes(
        title="A query by words alone, by keyword engine",
        across="passages in the index",
        up="milliseconds of CPU",
    )
    return _curves("keyword", axes, shown)


def quality(readings: Sequence[Reading]) -> Plot | None:
    by_set: dict[str, dict[str, Bar]] = {}
    for found in readings:
        if found.what == "quality" and found.at == METRIC and ", grade" not in found.where:
            by_set.setdefault(_set(found.where), {})[_series(found.of)] = _bar(found)
    if not by_set:
        return None
    for name, bars in by_set.items():
        if name in REFERENCE:
            bars["plain reference hybrid"] = Bar(value=REFERENCE[name])
    title = "Search quality by set, with 95 % intervals where they are known"
    pictures = [standing(title, METRIC, by_set)]
    beside = _beside_others(readings)
    if beside:
        pictures.append(standing(f"{TOOLS_SET}, beside published figures", "value", beside))
    return _plot("quality", stack(pictures), title, in_words(by_set | beside))


def _beside_others(readings: Sequence[Reading]) -> dict[str, dict[str, Bar]]:
    """The set that others have published figures of, relevant from the grade they use."""
    ours = {
        found.at: _bar(found)
        for found in readings
        if found.what == "quality" and found.where.startswith(f"{TOOLS_SET}, grade")
    }
    metrics = next(iter(TOOLS.values()))
    return {
        metric: {"ragdocs": ours[metric]}
        | {tool: Bar(value=figures[metric]) for tool, figures in TOOLS.items()}
        for metric in metrics
        if metric in ours
    }


def throughput(embedding: Sequence[Reading], building: Sequence[Reading]) -> Plot | None:
    rows: dict[str, Bar] = {}
    for found in embedding:
        if found.what == "throughput":
            rows[f"embedding: {found.of}"] = _bar(found)
    texts = next((found.value for found in building if found.of == "texts"), 0.0)
    for found in building:
        if found.what == "time" and found.at == "clock" and found.of in BUILDS and texts:
            rows[f"indexing: {found.of}"] = Bar(value=texts / found.value * 1000)
    return _lying("throughput", "Indexing and embedding speed", "passages a second", rows)


def memory(readings: Sequence[Reading]) -> Plot | None:
    rows: dict[str, Bar] = {}
    for found in readings:
        if found.what == "memory":
            of = found.of.replace("them", f"{found.size:,} passages")
            rows[f"{of}, {'at the end' if found.at == 'now' else 'peak'}"] = _bar(found)
    return _lying("memory", "Memory of a process", "MB resident", rows)


def ablation(readings: Sequence[Reading]) -> Plot | None:
    rows: dict[str, dict[str, Bar]] = {}
    for found in readings:
        if found.what == "ablation":
            rows.setdefault(f"without {found.of}", {})[_set(found.where)] = _bar(found)
    if not rows:
        return None
    title = "What each part is worth: quality without it minus that of the product"
    picture = lying(title, f"difference in {METRIC}, with 95 % intervals", rows)
    return _plot("ablation", picture, title, in_words(rows))


def _set(name: str) -> str:
    return "own set" if name == OWN_SET.name else name


def _series(variant: str) -> str:
    return "ragdocs" if variant == PRODUCT else f"ragdocs, {variant}"


def _bar(found: Reading) -> Bar:
    return Bar(value=found.value, low=found.low, high=found.high)


def _points(readings: Sequence[Reading], of: str, at: str) -> dict[int, float]:
    return {
        found.size: found.value
        for found in readings
        if (found.what, found.of, found.at) == ("latency", of, at)
    }


def _curves(name: str, axes: Axes, shown: Sequence[Curve]) -> Plot | None:
    if not any(curve.points for curve in shown):
        return None
    told = [
        f"{curve.name}: "
        + ", ".join(f"{value:.3g} at {size:,}" for size, value in sorted(curve.points.items()))
        for curve in shown
        if curve.points
    ]
    return _plot(name, curves(axes, shown), f"{axes.title}, {axes.up}", "; ".join(told))


def _lying(name: str, title: str, across: str, rows: Mapping[str, Bar]) -> Plot | None:
    if not rows:
        return None
    groups = {row: {"": bar} for row, bar in rows.items()}
    return _plot(name, lying(title, across, groups), f"{title}, {across}", in_words(groups))


def _plot(name: str, picture: Picture, title: str, told: str) -> Plot:
    words = f"{title}. {told}."
    return Plot(f"{name}.svg", document(picture, title, words), words)
