"""Where the units of a query stand in whoosh's segments: which chunks, and how much they count."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.indices.keyword import FIELDS, Unit
from ragdocs.indices.whoosh_library import PLACE_BITS, PLACE_CODE, Matcher, Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Places = dict[int, set[int]]
"""The places of a term, by the chunk's number within the segment."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks of a segment that have a unit, and its weighted count in each."""

    numbers: "NDArray[np.int64]"
    counts: "NDArray[np.float64]"


def postings(segment: Segment, unit: Unit, weights: Sequence[float]) -> Postings:
    import numpy as np

    if len(unit.terms) == 1 and unit.field is None:
        found = [(matcher.id(), matcher.weight()) for matcher in _matches(segment, unit.terms[0])]
    else:
        found = list(_counted(segment, unit, weights))
    numbers = np.array([number for number, _ in found], np.int64)
    return Postings(numbers, np.array([count for _, count in found], np.float64))


def _counted(segment: Segment, unit: Unit, weights: Sequence[float]) -> Iterator[tuple[int, float]]:
    """By the places: phrases, and what must stand in one field."""
    only = None if unit.field is None else FIELDS.index(unit.field)
    for number, starts in _starts(segment, unit.terms).items():
        fields = [start >> PLACE_BITS for start in starts]
        wanted = [field for field in fields if only is None or field == only]
        if wanted:
            yield number, sum(weights[field] for field in wanted)


def _starts(segment: Segment, terms: Sequence[str]) -> Places:
    """Where the first of these terms stands with the others behind it."""
    found = _places(segment, terms[0])
    for distance, term in enumerate(terms[1:], 1):
        later = _places(segment, term) if found else {}
        joined = {
            number: starts & {place - distance for place in later[number]}
            for number, starts in found.items()
            if number in later
        }
        found = {number: starts for number, starts in joined.items() if starts}
    return found


def _places(segment: Segment, term: str) -> Places:
    return {
        matcher.id(): set(array(PLACE_CODE, matcher.value())) for matcher in _matches(segment, term)
    }


def _matches(segment: Segment, term: str) -> Iterator[Matcher]:
    """whoosh's matcher, at each of the term's postings in turn; removed chunks are left out."""
    text = term.encode()
    if ("text", text) not in segment.reader:
        return
    matcher = segment.reader.postings("text", text)
    while matcher.is_active():
        yield matcher
        matcher.next()
