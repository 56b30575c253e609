"""An answer on a terminal: whole passages, one line each, or the lines that match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ragdocs.cli.output import shown, shown_lines
from ragdocs.wording import advised

if TYPE_CHECKING:
    from ragdocs.search.match_ranges import MatchRange
    from ragdocs.search.responses import SearchResponse, SearchResult

_INDENT = "   "
DOUBTFUL = 0.3
"""Below this the best passage is more often wrong than right."""


def full(response: SearchResponse) -> Iterator[str]:
    return passages(response.results)


def passages(results: Sequence[SearchResult]) -> Iterator[str]:
    """Each with its citation; matches stand out."""
    for number, result in enumerate(results, 1):
        yield f"{number}. {_citation(result)}"
        yield from (f"{_INDENT}{click.style(line, dim=True)}" for line in _around(result))
        text = marked(result.text, result.matches)
        yield from (f"{_INDENT}{line}".rstrip() for line in text.strip("\n").split("\n"))
        yield ""


def short(response: SearchResponse) -> Iterator[str]:
    """A line for where, and one for what."""
    for number, result in enumerate(response.results, 1):
        yield f"{number}. {_citation(result)}"
        yield f"{_INDENT}{_snippet(result)}"


def matches(response: SearchResponse) -> Iterator[str]:
    """As grep gives them, `path:line: text`; what was found by meaning gives its first line."""
    for result in response.results:
        lines = result.text.split("\n")
        hits = sorted({match.line_start for match in result.matches})
        first = result.text_lines[0]
        for line in hits or [first]:
            at = line - first
            text = lines[at] if 0 <= at < len(lines) else lines[0]
            yield f"{click.style(shown(result.path), fg='cyan')}:{line}: {shown(text.strip())}"


def remarks(response: SearchResponse) -> Iterator[str]:
    """What must be known of the answer besides its results."""
    if response.index.is_there:
        yield from _worth(response)
    if response.did_you_mean:
        yield f"Did you mean: {shown(response.did_you_mean)}"
    for left_out in response.left_out:
        where = f"{shown(left_out.path)}:{left_out.line_start}-{left_out.line_end}"
        yield f"{left_out.extent.value.replace('_', ' ')}: {where} ({left_out.tokens} tokens)"
    for note in response.notes:
        yield f"note: {shown(note)}"
    if not response.index.complete:
        yield f"index {response.index.in_words()}"


def _worth(response: SearchResponse) -> Iterator[str]:
    results = response.results
    if results and max(result.confidence for result in results) >= DOUBTFUL:
        return
    if results:
        listing = f"{advised('ls docs')} lists documents"
        yield f"None of these is a sure answer: try other words. {listing}."
    elif response.index.documents:
        yield "Nothing was found."
    else:
        where = f"{advised('status')} says where it looks"
        yield f"Nothing was found: the index has no document. {where}."
    if response.nearest_terms:
        terms = ", ".join(map(shown, response.nearest_terms))
        yield f"No document has these words; the nearest they have: {terms}"


def marked(text: str, ranges: Sequence[MatchRange]) -> str:
    parts: list[str] = []
    at = 0
    for found in ranges:
        parts.append(shown_lines(text[at : found.start]))
        parts.append(_marked(shown_lines(text[found.start : found.end])))
        at = found.end
    parts.append(shown_lines(text[at:]))
    return "".join(parts)


def _marked(text: str) -> str:
    return click.style(text, fg="yellow", bold=True)


def _citation(result: SearchResult) -> str:
    where = f"{result.path}:{result.line_start}-{result.line_end}"
    headings = " > ".join(result.heading_path) or result.title
    confidence = click.style(f"{result.confidence:.0%}", fg="green")
    return f"{click.style(shown(where), fg='cyan', bold=True)}  {shown(headings)}  {confidence}"


def _around(result: SearchResult) -> Iterator[str]:
    """Which lines are shown, where that is not all of the section, and in what they stand."""
    told: list[str] = []
    first, last = result.text_lines
    if (first, last) != (result.line_start, result.line_end):
        told.append(f"lines {first}-{last}")
    if result.within is not None:
        wider = result.within
        headings = " > ".join(wider.heading_path)
        lines = f"{wider.line_start}-{wider.line_end}"
        told.append(f"within {shown(headings)} ({lines})")
    if told:
        yield ", ".join(told)


def _snippet(result: SearchResult) -> str:
    snippet = result.snippet
    parts: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        parts += [
            shown(snippet.text[at:start]),
            _marked(shown(snippet.text[start:end])),
        ]
        at = end
    return "".join([*parts, shown(snippet.text[at:])])
