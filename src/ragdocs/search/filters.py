"""Which documents may answer, and which candidates are good enough."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ragdocs.errors import QueryError
from ragdocs.indices.conditions import (
    Comparison,
    Condition,
    Filter,
    FilterField,
    Operator,
    Some,
    Without,
    compile_filter,
    in_language,
    join,
)
from ragdocs.search.candidates import Candidate
from ragdocs.search.requests import Filters


def refuse_unknown_trees(wanted: frozenset[str], known: Sequence[str]) -> None:
    """Raises QueryError: an empty answer about a tree that does not exist would mislead."""
    if unknown := sorted(wanted.difference(known)):
        names = ", ".join(f"`{name}`" for name in known)
        raise QueryError(f"there is no tree `{unknown[0][:100]}`; there is {names}")


def to_filter(filters: Filters) -> Filter:
    """What a request asks for as one condition, which each engine carries out."""
    return join((*_by_place(filters), *_by_content(filters)))


def _by_place(filters: Filters) -> Iterator[Condition]:
    if filters.trees:
        yield Comparison(FilterField.TREE, Operator.ONE_OF, filters.trees)
    if filters.paths:
        under = [Comparison(FilterField.PATH, Operator.UNDER, path) for path in filters.paths]
        yield under[0] if len(under) == 1 else Some(tuple(under))
    if filters.excluded_files:
        yield Without(Comparison(FilterField.FILE, Operator.ONE_OF, filters.excluded_files))


def _by_content(filters: Filters) -> Iterator[Condition]:
    for tag in sorted(filters.tags):
        yield Comparison(FilterField.TAG, Operator.IS, tag)
    if filters.category:
        yield Comparison(FilterField.CATEGORY, Operator.IS, filters.category)
    if filters.author:
        yield Comparison(FilterField.AUTHOR, Operator.IS, filters.author)
    if filters.modified_after is not None:
        yield Comparison(FilterField.MODIFIED, Operator.AT_LEAST, filters.modified_after)
    if filters.modified_before is not None:
        yield Comparison(FilterField.MODIFIED, Operator.AT_MOST, filters.modified_before)
    if (language := in_language(filters.language)) is not None:
        yield language


def filter_matching(candidates: Sequence[Candidate], filters: Filters) -> list[Candidate]:
    """The indices searched within the filters already; this makes sure."""
    is_match = compile_filter(to_filter(filters))
    return [item for item in candidates if is_match is None or is_match(item.document)]


def filter_by_confidence(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Fewer answers rather than noise (P10); 0 keeps all."""
    return [item for item in candidates if item.confidence >= threshold]


def cut_at_elbow(candidates: Sequence[Candidate], ratio: float) -> list[Candidate]:
    """All before the first that scores less than `ratio` of the one before it; 0 cuts nothing."""
    for place, (before, item) in enumerate(pairwise(candidates), start=1):
        if item.score < ratio * before.score:
            return list(candidates[:place])
    return list(candidates)
