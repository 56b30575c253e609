"""Which documents may answer, and which candidates are good enough to be an answer."""

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import PurePosixPath

from ragdocs.search.candidates import Candidate
from ragdocs.search.requests import Filters
from ragdocs.store.records import StoredDocument


def matches(filters: Filters, document: StoredDocument) -> bool:
    """Every filter that is given holds. The language of code is the code index's to judge."""
    metadata = document.front_matter
    return (
        (not filters.trees or document.tree in filters.trees)
        and _is_in_place(filters, document)
        and all(_has_tag(document, tag) for tag in filters.tags)
        and _is_one_of(filters.category, metadata.category)
        and _is_one_of(filters.author, metadata.author)
        and _is_in_time(filters, document.date)
    )


def filter_matching(candidates: Sequence[Candidate], filters: Filters) -> list[Candidate]:
    """The indices searched within the filters already; this makes sure."""
    return [item for item in candidates if matches(filters, item.document)]


def filter_by_confidence(candidates: Sequence[Candidate], threshold: float) -> list[Candidate]:
    """Fewer answers rather than noise (P10); 0 keeps all."""
    return [item for item in candidates if item.confidence >= threshold]


def cut_at_elbow(candidates: Sequence[Candidate], ratio: float) -> list[Candidate]:
    """All before the first that scores less than `ratio` of the one before it; 0 cuts nothing."""
    for place, (before, item) in enumerate(pairwise(candidates), start=1):
        if item.score < ratio * before.score:
            return list(candidates[:place])
    return list(candidates)


def _is_in_place(filters: Filters, document: StoredDocument) -> bool:
    parts = _components(document.path)
    if filters.paths and not any(_begins(parts, _components(path)) for path in filters.paths):
        return False
    return not any(_is_named(document, parts, name) for name in filters.excluded_files)


def _is_named(document: StoredDocument, parts: tuple[str, ...], name: str) -> bool:
    """A file by its path, its folder's path, its bare name or its id."""
    wanted = _components(name)
    if not wanted:
        return False
    return name == document.id or _begins(parts, wanted) or wanted == parts[-1:]


def _begins(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return parts[: len(wanted)] == wanted


def _components(path: str) -> tuple[str, ...]:
    """Composed, because what is typed and what a file system gives back may differ in that."""
    return PurePosixPath(unicodedata.normalize("NFC", path).lstrip("/")).parts


def _has_tag(document: StoredDocument, wanted: str) -> bool:
    name = wanted.lstrip("#").strip("/").casefold()
    own = (tag.casefold() for tag in document.tags)
    return any(tag == name or tag.startswith(f"{name}/") for tag in own)


def _is_one_of(wanted: str, value: str) -> bool:
    """The value, or one of those it lists: the parser joins several authors by commas."""
    name = " ".join(wanted.split()).casefold()
    folded = value.casefold()
    return not name or name == folded or name in (part.strip() for part in folded.split(","))


def _is_in_time(filters: Filters, date: datetime) -> bool:
    after, before = filters.modified_after, filters.modified_before
    moment = _aware(date)
    return (after is None or moment >= _aware(after)) and (
        before is None or moment <= _aware(before)
    )


def _aware(moment: datetime) -> datetime:
    """No zone means UTC, as in front matter."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
