"""What a caller asks for, already checked."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MAX_QUERY_CHARS = 2_000
MAX_TOP_N = 50


class QueryType(StrEnum):
    """What kind of answer a query wants (P3)."""

    FACTUAL = "factual"
    NAVIGATIONAL = "navigational"
    EXPLORATORY = "exploratory"


class Uniqueness(StrEnum):
    """What may appear only once among the results."""

    OFF = "off"
    DOCUMENT = "document"
    CONTENT = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which documents may answer. Empty means all; every filter given must hold.

    `paths` are prefixes by whole components (`api` is `api/x.md`, never `apis.md`), `tags` are
    matched without regard to case, and a tag stands for those nested below it.
    """

    trees: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    excluded_files: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    category: str = ""
    author: str = ""
    language: str = ""
    modified_after: datetime | None = None
    modified_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One question, or several whose answers are merged."""

    queries: tuple[str, ...]
    top_n: int = 5
    min_score: float | None = None
    filters: Filters = Filters()
    query_type: QueryType | None = None
    uniqueness: Uniqueness | None = None
    similarity_threshold: float | None = None
    max_tokens: int | None = None
    explain: bool = False
