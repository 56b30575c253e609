"""Running the stages, and what each left: the statistics are made from these counts alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Self

from ragdocs.models import ChunkId
from ragdocs.search.candidates import Candidate, Stage


class StageName(StrEnum):
    """Every stage, in the order in which they run, and why there."""

    CANDIDATES = "candidates"
    """First of all: what is not to be judged takes no part in anything."""
    BOOST = "boost"
    """On raw scores, which the curve must see with their boosts."""
    CALIBRATE = "calibrate"
    """All that follow judge figures in [0, 1]."""
    CONFIDENCE = "confidence"
    """Early: noise is not worth comparing, and must not displace anything."""
    FILTERS = "filters"
    NAMED = "named"
    """Before anything is cut: the section that is asked for by name is its document's best."""
    CUTOFF = "cutoff"
    IDENTICAL = "identical"
    """From cheap to dear, and each on fewer: hash, wording, meaning."""
    NGRAM = "ngram"
    SEMANTIC = "semantic"
    MMR = "mmr"
    RERANK = "rerank"
    """The dearest, so on what is left, and on the small passages it was trained for."""
    MERGE = "merge"
    """Changes what a result is: nothing after it compares texts."""
    PARENTS = "parents"
    ORDER = "order"
    """By confidence, before places are given out: what is surest has the first."""
    DOCUMENT_LIMIT = "document_limit"
    """Of what is shown: after duplicates are gone and sections are merged."""
    TOP_N = "top_n"


@dataclass(frozen=True, slots=True)
class Fallen:
    """A chunk that a stage let go (or merged into another), as it was then, and why."""

    id: ChunkId
    score: float
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class StageCount:
    """What went into a stage and what came out; which chunks fell there, if that was asked for."""

    name: str
    before: int
    after: int
    fallen: tuple[Fallen, ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """How many results each kind of thinning left, by the seeds' names. `after_threshold` is what
    the confidence, the filters and the cutoff left."""

    original_count: int
    after_threshold: int
    after_content_dedup: int
    after_ngram_dedup: int
    after_dedup: int
    after_doc_limit: int
    clusters_merged: int

    @classmethod
    def from_counts(cls, original: int, counts: Sequence[StageCount]) -> Self:
        """A stage that was off leaves what the one before it left."""
        left = {count.name: count.after for count in counts}

        after: dict[StageName, int] = {}
        latest = original
        for name in StageName:
            latest = after[name] = left.get(name, latest)

        return cls(
            original_count=original,
            # All that is judged by its worth: what deduplication leaves is less by copies alone.
            after_threshold=after[StageName.CUTOFF],
            after_content_dedup=after[StageName.IDENTICAL],
            after_ngram_dedup=after[StageName.NGRAM],
            after_dedup=after[StageName.MMR],
            after_doc_limit=after[StageName.DOCUMENT_LIMIT],
            clusters_merged=sum(
                count.before - count.after for count in counts if count.name == StageName.SEMANTIC
            ),
        )


def run_stages(
    stages: Iterable[Stage],
    candidates: Sequence[Candidate],
    *,
    explain: bool = False,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Sequence[Candidate], tuple[StageCount, ...]]:
    """What is left after all of them, and the counts in order."""
    counts: list[StageCount] = []
    for stage in stages:
        start = clock()
        left = stage.apply(candidates)
        seconds = clock() - start
        fallen = _fallen(stage, candidates, left) if explain else ()
        counts.append(StageCount(stage.name, len(candidates), len(left), fallen, seconds))
        candidates = left
    return candidates, tuple(counts)


def _fallen(
    stage: Stage, before: Sequence[Candidate], left: Sequence[Candidate]
) -> tuple[Fallen, ...]:
    remaining = {item.id for item in left}
    return tuple(
        Fallen(item.id, item.score, item.confidence, stage.reason(item, left))
        for item in before
        if item.id not in remaining
    )
