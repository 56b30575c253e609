"""The figures of BM25, the same in every keyword engine: so their scores agree."""

from math import log

K1, B = 1.2, 0.75
"""Fixed inside FTS5's bm25(), and inside tantivy."""
MOST = K1 + 1
"""What a unit's share of a score, without its idf, stays below however often a row has it."""


def idf(total: int, frequency: int) -> float:
    """Never negative, so that five files rank sensibly too."""
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))
