"""How an answer is printed: a list, whole passages or matching lines, with links to the places."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ragdocs.limits import HIGH_CONFIDENCE, LOW_CONFIDENCE
from ragdocs.text import advised, escaped, escaped_line

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.models import DocId
    from ragdocs.search.passages import MatchRange
    from ragdocs.search.responses import DocumentList, SearchResponse, SearchResult

# Where the output goes decides how it looks.

MAX_COLUMNS = 120
"""Longer lines are tiring to read."""

Linker = Callable[["DocId", int], str | None]
"""The address that opens a document at a line, if it has one."""


@dataclass(frozen=True, slots=True)
class Look:
    """How results are shown: on a terminal with this many columns; without (None), nothing is
    wrapped or shortened.
    """

    columns: int | None = None
    link: Linker | None = None

    def place_text(self, result: SearchResult, lines: str) -> str:
        """`file:lines`, which an editor opens from here; in a canvas `file#card`."""
        at = f"#{result.slug}" if result.is_card else f":{lines}"
        return escaped_line(f"{result.file or result.path}{at}")

    def place(self, result: SearchResult, lines: str, line: int) -> str:
        """The same in colour, as a link to the line."""
        shown = click.style(self.place_text(result, lines), fg="cyan", bold=True)
        address = self.link(result.doc_id, line) if self.link else None
        return shown if address is None else f"\x1b]8;;{address}\x1b\\{shown}\x1b]8;;\x1b\\"


def is_terminal() -> bool:
    """Whether a person reads the answer."""
    return sys.stdout.isatty()


def look_of(config: Config) -> Look:
    """For this terminal, file or pipe."""
    if not is_terminal():
        return Look()
    import shutil

    from ragdocs.cli.opening import linker

    columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
    return Look(columns, linker(config))


# The three forms of an answer.

SNIPPET_LINES = 2
LEAST_HEADING = 12
"""A heading that is cut to fewer columns says nothing."""
_INDENT = "   "


def full(results: Sequence[SearchResult], look: Look) -> Iterator[str]:
    """Whole passages, each with its citation; matches are highlighted."""
    for number, result in enumerate(results, 1):
        yield f"{number}. {_citation(result, look)}"
        yield from (f"{_INDENT}{click.style(line, dim=True)}" for line in _around(result))
        text = _mark_matches(result.text, result.matches)
        yield from (f"{_INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
        yield ""


def short(results: Sequence[SearchResult], look: Look) -> Iterator[str]:
    """For each result its citation and a snippet: on a terminal one line and up to two, and a blank
    line; otherwise one line each."""
    for number, result in enumerate(results, 1):
        if look.columns is None:
            yield f"{number}. {_citation(result, look)}"
            yield f"{_INDENT}{_Marked.snippet(result).all()}"
        else:
            head = f"{number}. "
            yield head + _citation(result, look, look.columns - len(head))
            snippet = _Marked.snippet(result)
            yield from (f"{_INDENT}{line}" for line in snippet.lines(look.columns - len(_INDENT)))
            yield ""


def matches(results: Sequence[SearchResult], look: Look) -> Iterator[str]:
    """Like grep, `path:line: text`; a passage found by meaning shows its first line."""
    for result in results:
        lines = result.text.split("\n")
        hits = sorted({match.line_start for match in result.matches})
        first = result.text_lines[0]
        for line in hits or [first]:
            at = line - first
            text = lines[at] if 0 <= at < len(lines) else lines[0]
            yield f"{look.place(result, str(line), line)}: {escaped(text.strip())}"


FORMS = {"full": full, "list": short, "matches": matches}
"""The forms by the values of --output, all but `json`."""


def form_of(output: str | None, *, is_full: bool, as_json: bool) -> str:
    """The form that the options ask for: otherwise a list on a terminal, and whole passages where
    another program reads them."""
    if as_json:
        return "json"
    if is_full:
        return "full"
    return output or ("list" if is_terminal() else "full")


def _citation(result: SearchResult, look: Look, columns: int | None = None) -> str:
    """The place, the headings and the confidence; the headings give way if columns are few."""
    lines = f"{result.line_start}-{result.line_end}"
    headings = [escaped_line(one) for one in result.heading_path or (result.title,)]
    confidence = f"{result.shown_confidence:.0%}"
    shown = " > ".join(headings)
    if columns is not None:
        room = columns - width(look.place_text(result, lines)) - len(f"    {confidence}")
        shown = _shorten_headings(headings, room)
    line = result.answer_lines[0] if result.answer_lines else result.line_start
    said = (look.place(result, lines, line), shown, _in_colour(confidence, result.shown_confidence))
    return "  ".join(part for part in said if part)


def _shorten_headings(headings: Sequence[str], room: int) -> str:
    """As many of the last headings as fit, or the beginning of the last; empty if there is no
    room."""
    for first in range(len(headings)):
        shown = " > ".join(headings[first:])
        shown = f"… > {shown}" if first else shown
        if width(shown) <= room:
            return shown
    return _cut(headings[-1], room) if room >= LEAST_HEADING else ""


def _in_colour(text: str, confidence: float) -> str:
    if confidence >= HIGH_CONFIDENCE:
        return click.style(text, fg="green", bold=True)
    if confidence >= LOW_CONFIDENCE:
        return click.style(text, fg="yellow")
    return click.style(text, dim=True)


def _around(result: SearchResult) -> Iterator[str]:
    """The lines shown, if they are not the whole section, and the section around them."""
    said: list[str] = []
    first, last = result.text_lines
    if (first, last) != (result.line_start, result.line_end):
        said.append(f"lines {first}-{last}")
    if result.within is not None:
        wider = result.within
        headings = " > ".join(wider.heading_path)
        lines = f"{wider.line_start}-{wider.line_end}"
        said.append(f"within {escaped_line(headings)} ({lines})")
    if said:
        yield ", ".join(said)


# What the reader must know about an answer besides its results.


def documents(listing: DocumentList) -> Iterator[str]:
    """What a filter matches, when nothing is asked: nothing is ranked, so no confidence."""
    for document in listing.documents:
        tags = "".join(f" #{tag}" for tag in document.tags)
        said = "".join(f"  {key}: {', '.join(all)}" for key, all in document.properties.items())
        path = click.style(escaped_line(document.file or document.path), fg="cyan", bold=True)
        about = escaped_line(f"{document.title}{tags}{said}")
        yield f"{document.modified:%Y-%m-%d}  {path}  {about}"


def _list_remarks(listing: DocumentList) -> Iterator[str]:
    shown = len(listing.documents)
    if shown and listing.total > shown:
        last = listing.offset + shown
        more = f"; more with --offset {listing.next_offset}" if listing.next_offset else ""
        yield f"documents {listing.offset + 1} to {last} of {listing.total:,}{more}"
    elif not shown:
        yield "No document matches the filter." if not listing.total else "No more documents."


def remarks(response: SearchResponse) -> Iterator[str]:
    if response.listing is not None:
        yield from _list_remarks(response.listing)
    elif response.index.is_there:
        yield from _worth(response)
    if response.did_you_mean:
        yield f"Did you mean: {escaped(response.did_you_mean)}"
    for left_out in response.left_out:
        file = escaped_line(left_out.file or left_out.path)
        where = f"{file}:{left_out.line_start}-{left_out.line_end}"
        yield f"{left_out.extent.value.replace('_', ' ')}: {where} ({left_out.tokens} tokens)"
    for note in response.notes:
        yield f"note: {escaped(note)}"
    if not (response.index.complete or _is_complete_list(response)):
        yield f"index {response.index.in_words()}"


def _is_complete_list(response: SearchResponse) -> bool:
    """Whether only vectors are missing, which a list of documents does not need."""
    from ragdocs.search.responses import Readiness

    index = response.index
    lacks_vectors = index.state is Readiness.BUILDING and index.files_waiting == 0
    has_more = index.failed_files or index.reason
    return response.listing is not None and lacks_vectors and not has_more


def _worth(response: SearchResponse) -> Iterator[str]:
    results = response.results
    if results and max(result.shown_confidence for result in results) >= LOW_CONFIDENCE:
        return
    if results:
        listing = f"{advised('ls docs')} lists documents"
        yield f"None of these is a certain answer: try other words. {listing}."
    elif response.index.documents:
        yield "Nothing was found."
    else:
        where = f"{advised('status')} shows which folders it searches"
        yield f"Nothing was found: the index has no documents. {where}."
    if response.nearest_terms:
        terms = ", ".join(map(escaped, response.nearest_terms))
        yield f"No document has these words; the nearest words: {terms}"


# Text with highlights, wrapped at a number of columns.


@dataclass(frozen=True, slots=True)
class _Marked:
    """Text that is safe on a terminal, and its highlighted ranges."""

    text: str
    highlights: tuple[tuple[int, int], ...]

    @classmethod
    def snippet(cls, result: SearchResult) -> _Marked:
        return cls.of(result.snippet.text, result.snippet.highlights)

    @classmethod
    def of(cls, text: str, ranges: Sequence[tuple[int, int]]) -> _Marked:
        """The ranges are those of `text`, before its invisible characters become escapes."""
        parts: list[str] = []
        highlights: list[tuple[int, int]] = []
        at = length = 0
        for start, end in (*ranges, (len(text), len(text))):
            before, inside = escaped(text[at:start]), escaped(text[start:end])
            parts += [before, inside]
            length += len(before)
            if inside:
                highlights.append((length, length + len(inside)))
            length += len(inside)
            at = end
        return cls("".join(parts), tuple(highlights))

    def all(self) -> str:
        return self._part(0, len(self.text))

    def lines(self, columns: int) -> Iterator[str]:
        """At most two, broken between words; `…` shows that there is more."""
        at, text = 0, self.text.rstrip()
        for number in range(1, SNIPPET_LINES + 1):
            at += len(text[at:]) - len(text[at:].lstrip())
            if at >= len(text):
                return
            if width(text[at:]) <= columns:
                yield self._part(at, len(text))
                return
            is_last = number == SNIPPET_LINES
            end = at + _fitting(text[at:], columns - is_last)
            yield self._part(at, end).rstrip() + "…" * is_last
            at = end

    def _part(self, start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for first, last in self.highlights:
            first, last = max(first, at), min(last, end)
            if first < last:
                parts += [self.text[at:first], _highlight(self.text[first:last])]
                at = last
        return "".join([*parts, self.text[at:end]])


def _mark_matches(text: str, ranges: Sequence[MatchRange]) -> str:
    return _Marked.of(text, [(found.start, found.end) for found in ranges]).all()


def _highlight(text: str) -> str:
    return click.style(text, fg="yellow", bold=True)


def width(text: str) -> int:
    """The columns that a terminal needs."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200c\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, columns: int) -> int:
    """How many characters fit, up to the end of a word if there is one."""
    taken = used = 0
    for character in text:
        used += _columns_of(character)
        if used > columns:
            break
        taken += 1
    if taken < len(text) and not text[taken].isspace():
        space = text.rfind(" ", 0, taken)
        taken = space if space > taken // 2 else taken
    return max(taken, 1)


def _cut(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    return text[: _fitting(text, columns - 1)].rstrip() + "…"
