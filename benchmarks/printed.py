"""Readings of the benchmarks that print some of their numbers and do not note them yet.

Each pattern is one kind of line; a test makes the lines by the benchmarks' own functions, so that a
changed form is noticed. A benchmark that notes these numbers itself needs no pattern here.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from readings import Reading

_DELAY = re.compile(
    r"^  (?P<of>(?:can be found by keyword|is in an answer) after the debounce, .+?): "
    r"median (?P<value>[\d.]+) s, (?P<low>-?[\d.]+) to (?P<high>[\d.]+) s"
)
_TEXTS = re.compile(r"^\(a, b\) (?P<texts>\d+) texts of")
_MEMORY = re.compile(r"^    (?P<of>serving .+?|indexing \d+ chunks) +(?P<now>\d+) +(?P<peak>\d+)  ")
_SERVING = re.compile(
    r"^  \(serving - serving one note\) / vectors, (?P<at>[^:]+): (?P<value>-?[\d.]+) \("
)
_WORDS_ALONE = re.compile(
    r"^ *(?P<size>\d+) (?P<of>fts5|whoosh|tantivy) +(?P<engine50>[\d.]+) +(?P<engine95>[\d.]+) +"
    r"(?P<answer50>[\d.]+) +(?P<answer95>[\d.]+) +(?P<made>[\d.]+)"
)

_CALIBRATION = re.compile(
    r"^\| all together \| \d+ \| (?P<error>[\d.]+) \| [-+][\d.]+ \| (?P<auc>[\d.]+) \|"
)
_INSTALLED = re.compile(r"^installed with everything it needs: (?P<size>\d+) MB")


def readings_in(text: str) -> list[Reading]:
    return [found for line in text.splitlines() for found in _of_line(line)]


def _of_line(line: str) -> Iterator[Reading]:
    for pattern, made in _KINDS.items():
        if match := pattern.match(line):
            yield from made(match.groupdict())


def _delay(found: Mapping[str, str]) -> Iterator[Reading]:
    low, high = float(found["low"]), float(found["high"])
    yield Reading(
        what="delay", of=found["of"], value=float(found["value"]), unit="s", low=low, high=high
    )


def _texts(found: Mapping[str, str]) -> Iterator[Reading]:
    yield Reading(what="count", of="texts", value=float(found["texts"]), unit="texts")


def _memory(found: Mapping[str, str]) -> Iterator[Reading]:
    of = re.sub(r"\d+ chunks", "them", found["of"])
    for at in ("now", "peak"):
        yield Reading(what="memory", of=of, value=float(found[at]), unit="MB", at=at)


def _serving(found: Mapping[str, str]) -> Iterator[Reading]:
    of = "(serving - serving one note) / vectors"
    yield Reading(what="ratio", of=of, value=float(found["value"]), unit="x", at=found["at"])


def _words_alone(found: Mapping[str, str]) -> Iterator[Reading]:
    for part in ("engine", "answer"):
        for at in ("50", "95"):
            yield Reading(
                what="latency",
                of=f"{found['of']}, {part}",
                value=float(found[part + at]),
                unit="ms",
                at=f"p{at}, CPU",
                size=int(found["size"]),
            )


def _calibration(found: Mapping[str, str]) -> Iterator[Reading]:
    yield Reading(what="calibration error", of="pooled", value=float(found["error"]))
    yield Reading(what="AUC", of="pooled", value=float(found["auc"]))


def _installed(found: Mapping[str, str]) -> Iterator[Reading]:
    yield Reading(what="size", of="base install", value=float(found["size"]), unit="MB")


_KINDS: Mapping[re.Pattern[str], Callable[[Mapping[str, str]], Iterator[Reading]]] = {
    _DELAY: _delay,
    _TEXTS: _texts,
    _MEMORY: _memory,
    _SERVING: _serving,
    _WORDS_ALONE: _words_alone,
    _CALIBRATION: _calibration,
    _INSTALLED: _installed,
}
