"""Snippets: the best sentence and the text around the match, cut where a reader would cut."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from math import fsum, log
from re import Pattern

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import Unit
from ragdocs.indices.languages import HANGUL_TAILS, UNSPACED, marks
from ragdocs.search.passages import MatchRange, Worth, densest
from ragdocs.text import hidden_ranges

# The sentence that is most like the queries, found without a model.
#
# Words are compared by their stems, and if those differ by their trigrams: `config` is similar to
# `configuration`. If no sentence is similar, the passage's beginning is taken.

Range = tuple[int, int]

MAX_READ_CHARS = 20_000
"""Only this much of a passage is compared; few passages have a tenth of it."""
ALIKE = 0.5
"""Dice's coefficient of two words' trigrams; below this they share only an ending or a beginning
(`configur`, `config`: 0.71; `authent`, `author`: 0.46)."""
MAX_SOUGHT = 500
"""How many terms of the queries are compared: more than a page of text has."""

SENTENCE_END = re.compile(
    r"^[ \t>]{0,8}#{1,6}[ \t][^\n]*\n"  # a heading is a sentence of its own
    r"|(?<![.!?…])(?<!^\d)(?<!^\d\d)(?<![\s>]\d)(?<![\s>]\d\d)"  # the number of a list item
    r"[.!?…]++[\"'”’)\]]{0,8}\s+|[。！？]++"  # noqa: RUF001
    r"|\n(?=[ \t>]{0,8}(?:\n|#|[-*+][ \t]|\d{1,9}[.)][ \t]|\||`{3}|~{3}))",
    re.MULTILINE,
)


def sentences(text: str, start: int, end: int) -> Iterator[Range]:
    """The sentences of a stretch in order, without the white space around them."""
    for found in SENTENCE_END.finditer(text, start, end):
        yield from _strip(text, start, found.end())
        start = found.end()
    yield from _strip(text, start, end)


class BestSentence:
    """Finds the sentence most like some queries; made once for all passages of an answer."""

    def __init__(self, queries: Iterable[str], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        sought = (token.term for query in queries for token in analyzer.query(query))
        self._sizes: dict[str, int] = {}
        self._having: dict[str, list[str]] = {}
        for term in islice(dict.fromkeys(sought), MAX_SOUGHT):
            trigrams = _trigrams(term)
            self._sizes[term] = len(trigrams)
            for trigram in trigrams:
                self._having.setdefault(trigram, []).append(term)
        self._known: dict[str, Mapping[str, float]] = {}

    def of(self, text: str, within: Range) -> Range:
        """The best sentence, the first of equal ones; the beginning of a passage without words."""
        start, end = within
        end = min(end, start + MAX_READ_CHARS)
        best, chosen = 0.0, None
        for first, last in sentences(text, start, end):
            score = self._overlap(self._analyzer.terms(text[first:last]))
            if chosen is None or score > best:
                best, chosen = score, (first, last)
        return chosen or (start, start)

    def _overlap(self, terms: Iterable[str]) -> float:
        """Each term of the queries counts by the word most similar to it."""
        best: dict[str, float] = {}
        for term in set(terms):
            if term not in self._known:
                self._known[term] = self._like(term)
            for sought, share in self._known[term].items():
                best[sought] = max(share, best.get(sought, 0.0))
        return fsum(best.values())

    def _like(self, word: str) -> Mapping[str, float]:
        """The terms of the queries that are similar to a word. Only those with a common trigram are
        compared."""
        trigrams = _trigrams(word)
        shared = Counter(term for each in trigrams for term in self._having.get(each, ()))
        shares = {
            term: 2 * count / (self._sizes[term] + len(trigrams)) for term, count in shared.items()
        }
        return {term: share for term, share in shares.items() if share >= ALIKE}


def _trigrams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[at : at + 3] for at in range(max(1, len(padded) - 2)))


def _strip(text: str, start: int, end: int) -> Iterator[Range]:
    piece = text[start:end]
    body = piece.strip()
    if body:
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(body)


# Text as it is shown: white space collapsed, invisible characters left out and counted.


@dataclass(frozen=True, slots=True)
class Shown:
    """A stretch of text for display, its marked ranges, and the number of invisible characters left
    out.
    """

    text: str
    ranges: tuple[Range, ...]
    hidden: int


def show(text: str, stretch: Range, marked: Iterable[Range]) -> Shown:
    """The stretch as it is shown; `marked` are ranges of the whole text, in order."""
    start, end = stretch
    invisible = {start + at for span in hidden_ranges(text[start:end]) for at in range(*span)}
    if not invisible:
        return _show_all(text, stretch, marked)
    kept: list[str] = []
    places: list[int] = []
    hidden = 0
    for at in range(start, end):
        places.append(len(kept))
        if text[at].isspace():
            if kept and kept[-1] != " ":
                kept.append(" ")
        elif at in invisible:
            hidden += 1
        else:
            kept.append(text[at])
    places.append(len(kept))
    body = "".join(kept).rstrip(" ")
    ranges: list[Range] = []
    for first, last in marked:
        if first < end and last > start:
            _add(ranges, places[max(first, start) - start], places[min(last, end) - start])
    return Shown(body, tuple((a, min(b, len(body))) for a, b in ranges), hidden)


def _show_all(text: str, stretch: Range, marked: Iterable[Range]) -> Shown:
    """Like `show`, but several times faster, for a stretch without invisible characters."""
    start, end = stretch
    body = " ".join(text[start:end].split())
    ranges: list[Range] = []
    for first, last in marked:
        if first < end and last > start:
            before, inside = text[start:first], text[start : min(last, end)]
            _add(ranges, _length(before), _length(inside))
    return Shown(body, tuple((a, min(b, len(body))) for a, b in ranges), 0)


def _length(beginning: str) -> int:
    """Its length when shown: blanks at its end count as one, before its first word as none."""
    words = beginning.split()
    return len(" ".join(words)) + beginning[-1:].isspace() if words else 0


def _add(ranges: list[Range], first: int, last: int) -> None:
    """Joins ranges that touch, also if only hidden characters are between them."""
    if first >= last:
        return
    if ranges and ranges[-1][1] >= first:
        first = ranges.pop()[0]
    ranges.append((first, last))


# Where a text may be cut for a reader: at spaces, between words, never within what looks like one
# character (a joined emoji, a letter with its marks, a flag).

IsBorder = Callable[[int], bool]

NEAR = 40
"""How many characters are searched for a better cut before a worse one is taken."""

_JOINER = "\u200d"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_MAX_FLAGS = 64
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,300}\1(?!`)")


def is_space_border(text: str, at: int) -> bool:
    return at <= 0 or at >= len(text) or text[at - 1].isspace() or text[at].isspace()


def is_word_border(text: str, at: int) -> bool:
    """In scripts without spaces every character is a word."""
    if is_space_border(text, at):
        return True
    if not is_character_border(text, at):
        return False
    before, after = text[at - 1], text[at]
    is_inside = bool(_word_character().match(before) and _word_character().match(after))
    return not is_inside or bool(_unspaced().match(before) or _unspaced().match(after))


def is_character_border(text: str, at: int) -> bool:
    if is_space_border(text, at):
        return True
    if text[at - 1] == _JOINER or _follower().match(text[at]):
        return False
    return not (_is_flag_letter(text[at]) and _flag_letters_before(text, at) % 2)


def code_spans(text: str, start: int, end: int) -> list[Range]:
    """Inline code within a stretch, looked for from the beginning of its line if that is near."""
    begin = text.rfind("\n", max(0, start - 2 * NEAR), start) + 1 or max(0, start - 2 * NEAR)
    return [found.span() for found in _CODE_SPAN.finditer(text, begin, min(len(text), end + NEAR))]


def best_cut(text: str, candidates: Sequence[int]) -> int:
    """The best of some places in order of preference: a space near the first, if possible outside
    inline code; else between words; within a word only as a last resort.
    """
    if not candidates:
        raise ValueError("no place to cut")
    inside = code_spans(text, min(candidates[0], candidates[-1]), max(candidates))

    def is_free(at: int) -> bool:
        return is_space_border(text, at) and not any(first < at < last for first, last in inside)

    near, is_word = candidates[:NEAR], partial(is_word_border, text)
    searches: tuple[tuple[Sequence[int], IsBorder], ...] = (
        (near, is_free),
        (near, partial(is_space_border, text)),
        (near, is_word),
        (candidates, is_word),
        (candidates, partial(is_character_border, text)),
    )
    for places, is_border in searches:
        found = next(filter(is_border, places), None)
        if found is not None:
            return found
    return candidates[0]


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int) -> int:
    count = 0
    while count < min(at, _MAX_FLAGS) and _is_flag_letter(text[at - count - 1]):
        count += 1
    return count


@cache
def _follower() -> Pattern[str]:
    """Characters that belong to the one before."""
    return re.compile(f"[{marks()}{HANGUL_TAILS}{_SKIN_TONES}]")


@cache
def _word_character() -> Pattern[str]:
    return re.compile(rf"[\w{marks()}]")


@cache
def _unspaced() -> Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


# The window of a passage that a snippet shows, cut where a reader would.
#
# Its length is counted as shown: white space of any length is one character. Everything is looked
# for near the cut, so a line of megabytes costs no more than a short one.

_FURTHEST = 8
"""How much white space is skipped, as a multiple of the wanted characters."""
_INDENT = 40

_INK = re.compile(r"\S")
_RUN = re.compile(r"\s\s")
"""Without such a run every character is shown, and they need not be counted one by one."""
_MARKS = re.compile(
    r"[ \t>]*+(?:(?:#{1,6}|[-*+]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?"
    r"|(?:`{3,}+|~{3,}+)[^`\n]*+\n\s*+)*+"
)
"""The marks before the words of a heading, a list item, a quotation or a code block."""
_LOOSE_MARKS = re.compile(r"(?:\s++(?:#{1,6}|[-*+>|]|\d{1,9}[.)]))*+\s*+$")


def window_around(text: str, core: Range, length: int) -> Range:
    """A window with the core in its middle, unless the passage begins or ends too near."""
    first, last = _whole_words(text, core, length)
    room = max(0, length - _shown_length(text, first, last))
    start, used = _step_back(text, first, room // 2)
    end, used_ahead = _step_ahead(text, last, room - used)
    if used + used_ahead < room:
        start, _ = _step_back(text, first, room - used_ahead)
    return _cut(text, (start, end), (first, last), length)


def window_from(text: str, begin: int, length: int) -> Range:
    """A window from there, without the marks of its line; earlier text only fills it up."""
    first = _without_marks(text, begin, max(begin, len(text) - 1))
    end, used = _step_ahead(text, first, length)
    start, _ = _step_back(text, first, length - used)
    return _cut(text, (start, end), (first, min(end, first + 1)), length)


def is_cut_before(text: str, start: int) -> bool:
    """Whether there are words before; the marks of the passage's first line are not words."""
    ink = _INK.search(text, 0, start)
    if ink is None:
        return False
    marks = _MARKS.match(text, ink.start())
    return marks is None or marks.end() < start


def is_cut_after(text: str, end: int) -> bool:
    return _INK.search(text, end) is not None


def _whole_words(text: str, core: Range, length: int) -> Range:
    """Extends a part of an identifier to the whole, unless that is too long."""
    first, last = core
    lowest, highest = max(-1, first - length // 2), min(len(text) + 1, last + length // 2)
    wider = next((at for at in range(first, lowest, -1) if is_word_border(text, at)), None)
    after = next((at for at in range(last, highest) if is_word_border(text, at)), None)
    while wider is None and not is_character_border(text, first):
        first -= 1
    return first if wider is None else wider, last if after is None else after


def _cut(text: str, window: Range, core: Range, length: int) -> Range:
    (start, end), (first, last) = window, core
    if _shown_length(text, first, last) > length:
        start, last = first, first
        end, _ = _step_ahead(text, first, length)
        end = best_cut(text, range(end, first, -1)) if end < len(text) else end
    else:
        start = best_cut(text, range(start, first + 1)) if start > 0 else start
        end = best_cut(text, range(end, last - 1, -1)) if end < len(text) else end
    start = _without_marks(text, start, first)
    if end < len(text):
        loose = _LOOSE_MARKS.search(text, max(last, end - _INDENT), end)
        end = loose.start() if loose else end
    return start, end


def _without_marks(text: str, start: int, first: int) -> int:
    """Skips white space and the marks of a line, but never past `first`."""
    while start < first and text[start].isspace():
        start += 1
    begin = _line_start(text, start)
    if begin is None:
        return start
    marks = _MARKS.match(text, begin)
    after = marks.end() if marks else start
    return after if start <= after <= first else start


def _line_start(text: str, at: int) -> int | None:
    """Where the line begins, if there is only indentation before."""
    begin = text.rfind("\n", max(0, at - _INDENT), at) + 1
    is_start = begin > 0 or at <= _INDENT
    return begin if is_start and not text[begin:at].strip(" \t>") else None


def _shown_length(text: str, start: int, end: int) -> int:
    """The length of a stretch when shown, or more if it is far too long."""
    if end - start > _FURTHEST * 1000:
        return end - start
    return len(" ".join(text[start:end].split()))


def _step_back(text: str, at: int, count: int) -> tuple[int, int]:
    """The place `count` shown characters back, and how many there were."""
    start = max(0, at - count)
    if not _RUN.search(text, max(0, start - 1), at):
        return start, at - start
    lowest, used = max(0, at - _FURTHEST * count), 0
    while at > lowest and used < count:
        at -= 1
        used += not (text[at].isspace() and text[at - 1 : at].isspace())
    return at, used


def _step_ahead(text: str, at: int, count: int) -> tuple[int, int]:
    end = min(len(text), at + count)
    if not _RUN.search(text, max(0, at - 1), end):
        return end, end - at
    highest, used = min(len(text), at + _FURTHEST * count), 0
    while at < highest and used < count:
        used += not (text[at].isspace() and text[at - 1 : at].isspace())
        at += 1
    return at, used


# A snippet: a line or two of a passage around its matches, for a list of results.

SNIPPET_CHARS = 150
CONTEXT_SHARE = 0.2
"""The share of a snippet around its matches."""
CUT = "…"
BETWEEN = f" {CUT} "
_SCALE = 1000


@dataclass(frozen=True, slots=True)
class SnippetQuery:
    """One query: its text, its units, and how many chunks have each unit."""

    text: str
    units: tuple[Unit, ...] = ()
    frequencies: Mapping[Unit, int] = field(default_factory=dict[Unit, int])


@dataclass(frozen=True, slots=True)
class Style:
    """The length of a snippet, and the marks around its matches."""

    length: int = SNIPPET_CHARS
    before: str = "**"
    after: str = "**"


@dataclass(frozen=True, slots=True)
class Snippet:
    """Plain text, the same with its matches marked, and their places in `text`.

    `hidden` counts the invisible characters that are not shown.
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
        asked: Sequence[SnippetQuery],
        focus: Range | None = None,
    ) -> Snippet:
        """One window for each query with matches, joined in the order of the text; without matches,
        the best sentence, within `focus` if given (the part that the vectors found).
        """
        windows = [
            window for query in asked for window in self._around_matches(text, matches, query)
        ]
        if not windows:
            begin, _ = self.best_sentence(text, asked, focus or (0, len(text)))
            windows = [window_from(text, begin, self._style.length)]
        marked = [(match.start, match.end) for match in matches]
        merged = list(_merge_windows(windows))
        parts = _distinct(show(text, window, marked) for window in merged)
        if not parts:
            return Snippet("", "")
        opening = CUT if is_cut_before(text, merged[0][0]) else ""
        closing = CUT if is_cut_after(text, merged[-1][1]) else ""
        return self._join(parts, opening, closing)

    def best_sentence(self, text: str, asked: Sequence[SnippetQuery], within: Range) -> Range:
        """The sentence that is most like the queries."""
        return self._best_sentence(asked).of(text, within)

    def _around_matches(
        self, text: str, matches: Sequence[MatchRange], query: SnippetQuery
    ) -> Iterator[Range]:
        units = set(query.units)
        own = [match for match in matches if not units.isdisjoint(match.units)]
        if own:
            reach = self._style.length * (1 - CONTEXT_SHARE)
            best = densest(own, reach, word_worth(query))
            yield window_around(text, (best[0].start, best[-1].end), self._style.length)

    def _best_sentence(self, asked: Sequence[SnippetQuery]) -> BestSentence:
        """The same for all passages of one answer."""
        queries = tuple(query.text for query in asked)
        if self._sentences is None or self._sentences[0] != queries:
            self._sentences = queries, BestSentence(queries, self._analyzer)
        return self._sentences[1]

    def _join(self, parts: Sequence[Shown], opening: str, closing: str) -> Snippet:
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
    """Marks the matches; text that is already marked in this way stays as it is."""
    pieces: list[str] = []
    at = 0
    for first, last in highlights:
        is_marked = text[:first].endswith(style.before) and text[last:].startswith(style.after)
        before, after = ("", "") if is_marked else (style.before, style.after)
        pieces += [text[at:first], before, text[first:last], after]
        at = last
    return "".join((*pieces, text[at:]))


def word_worth(query: SnippetQuery) -> Worth:
    """A unit is worth more the rarer it is among the query's units, as in idf."""
    most = max(query.frequencies.values(), default=0)
    own = set(query.units)

    def worth(unit: Unit) -> int:
        if unit not in own:
            return 0
        count = min(most, query.frequencies.get(unit, most))
        return round(_SCALE * unit.weight * (1 + log((most + 1) / (count + 1))))

    # A snippet is chosen among dozens of matches of the same few units.
    return cache(worth)


def _merge_windows(windows: Sequence[Range]) -> Iterator[Range]:
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
