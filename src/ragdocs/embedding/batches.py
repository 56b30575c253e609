"""Which pieces go through the model together: those of one length, a few hundred tokens at a time.

Equal lengths need no padding, so no work is wasted and nothing in a batch depends on its
neighbours. Larger batches are no faster: the activations leave the processor's cache
(specs/0015).
"""

from collections.abc import Sequence
from dataclasses import dataclass

BATCH_TOKENS = 512
BATCH_SIZE = 32


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one run of the model may hold; a single piece always may."""

    tokens: int = BATCH_TOKENS
    size: int = BATCH_SIZE


def batches(lengths: Sequence[int], limits: BatchLimits) -> list[list[int]]:
    """Positions grouped by equal length, longest first: the last to finish is then a short one."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    groups: list[list[int]] = []
    for position in order:
        length = lengths[position]
        room = min(limits.size, limits.tokens // max(1, length))
        if groups and lengths[groups[-1][0]] == length and len(groups[-1]) < room:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups
