"""A line or two of a passage, around what was looked for: what a list of results shows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.keyword import Unit
from ragdocs.search.match_ranges import MatchRange, Worth, densest
from ragdocs.search.sentences import BestSentence
from ragdocs.search.shown_text import Shown, shown
from ragdocs.search.snippet_windows import is_cut_after, is_cut_before, window_around, window_from
from ragdocs.search.text_borders import Range

SNIPPET_CHARS = 150
CONTEXT_SHARE = 0.2
"""How much of a snippet is for what stands around the matches."""
CUT = "…"
BETWEEN = f" {CUT} "
_SCALE = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: as it was typed, what was looked for, and how many chunks have each unit."""

    text: str
    units: tuple[Unit, ...] = ()
    frequencies: Mapping[Unit, int] = field(default_factory=dict[Unit, int])


@dataclass(frozen=True, slots=True)
class Style:
    """How long a snippet is, and what is written around its matches."""

    length: int = SNIPPET_CHARS
    before: str = "**"
    after: str = "**"


@dataclass(frozen=True, slots=True)
class Snippet:
    """Plain text, the same with its matches marked, and where in `text` they stand.

    `hidden` counts the invisible characters of the passage that are not shown.
    """

    text: str
    highlighted: str
    highlights: tuple[Range, ...] = ()
    hidden: int = 0


class SnippetMaker:
    """Makes snippets of one length, marked in one way."""

    def __init__(self, analyzer: Analyzer, style: Style | None = None) -> None:
        self._analyzer = analyzer
        self._style = style or Style()
        self._sentences: tuple[tuple[str, ...], BestSentence] | None = None

    def of(
        self,
        text: str,
        matches: Sequence[MatchRange],
        asked: Sequence[Asked],
        focus: Range | None = None,
    ) -> Snippet:
        """One stretch for each query that has matches, joined in the order of the text; where none
        has, the best sentence, of `focus` if given (the part that the vectors found).
        """
        windows = [
            window for query in asked for window in self._around_matches(text, matches, query)
        ]
        if not windows:
            begin, _ = self.best_sentence(text, asked, focus or (0, len(text)))
            windows = [window_from(text, begin, self._style.length)]
        marked = [(match.start, match.end) for match in matches]
        merged = list(_merged(windows))
        parts = _distinct(shown(text, window, marked) for window in merged)
        if not parts:
            return Snippet("", "")
        opening = CUT if is_cut_before(text, merged[0][0]) else ""
        closing = CUT if is_cut_after(text, merged[-1][1]) else ""
        return self._joined(parts, opening, closing)

    def best_sentence(self, text: str, asked: Sequence[Asked], within: Range) -> Range:
        """The sentence that says most of what was asked."""
        return self._best_sentence(asked).of(text, within)

    def _around_matches(
        self, text: str, matches: Sequence[MatchRange], query: Asked
    ) -> Iterator[Range]:
        units = set(query.units)
        own = [match for match in matches if not units.isdisjoint(match.units)]
        if own:
            reach = self._style.length * (1 - CONTEXT_SHARE)
            best = densest(own, reach, rarity(query))
            yield window_around(text, (best[0].start, best[-1].end), self._style.length)

    def _best_sentence(self, asked: Sequence[Asked]) -> BestSentence:
        """The same for all passages of one answer."""
        queries = tuple(query.text for query in asked)
        if self._sentences is None or self._sentences[0] != queries:
            self._sentences = queries, BestSentence(queries, self._analyzer)
        return self._sentences[1]

    def _joined(self, parts: Sequence[Shown], opening: str, closing: str) -> Snippet:
        highlights: list[Range] = []
        text = opening
        for place, part in enumerate(parts):
            text += BETWEEN if place else ""
            highlights += [(len(text) + first, len(text) + last) for first, last in part.ranges]
            text += part.text
        text += closing
        hidden = sum(part.hidden for part in parts)
        marked = highlighted(text, highlights, self._style)
        return Snippet(text, marked, tuple(highlights), hidden)


def highlighted(text: str, highlights: Iterable[Range], style: Style) -> str:
    """The text with its matches marked; what is already marked in this way is left as it is."""
    pieces: list[str] = []
    at = 0
    for first, last in highlights:
        is_marked = text[:first].endswith(style.before) and text[last:].startswith(style.after)
        before, after = ("", "") if is_marked else (style.before, style.after)
        pieces += [text[at:first], before, text[first:last], after]
        at = last
    return "".join((*pieces, text[at:]))


def rarity(query: Asked) -> Worth:
    """A unit counts the more the rarer it is beside the query's others, as in idf."""
    most = max(query.frequencies.values(), default=0)
    own = set(query.units)

    def worth(unit: Unit) -> int:
        if unit not in own:
            return 0
        count = min(most, query.frequencies.get(unit, most))
        return round(_SCALE * unit.weight * (1 + log((most + 1) / (count + 1))))

    # A snippet is chosen among dozens of matches of the same few units.
    return cache(worth)


def _merged(windows: Sequence[Range]) -> Iterator[Range]:
    """In the order of the text; overlapping ones, and neighbours, are one."""
    current: Range | None = None
    for window in sorted(windows):
        if current is not None and window[0] <= current[1] + 1:
            current = current[0], max(current[1], window[1])
            continue
        if current is not None:
            yield current
        current = window
    if current is not None:
        yield current


def _distinct(parts: Iterable[Shown]) -> list[Shown]:
    found: dict[str, Shown] = {}
    for part in parts:
        if part.text:
            found.setdefault(part.text, part)
    return list(found.values())
