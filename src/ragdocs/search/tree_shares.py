"""Which hits go on when trees are brought to one level: some of every tree, however loud another.

Without it a tree whose passages all score a little less would be cut off before its scores are
raised.
"""

import json
from collections import Counter
from collections.abc import Sequence

from ragdocs.search.fusion import Fused
from ragdocs.store.snapshot import Snapshot

LEAST = 5
"""As many as an answer usually has."""


def with_every_tree(snapshot: Snapshot, fused: Sequence[Fused], count: int) -> list[Fused]:
    """The first `count`, and after them the best of each tree that has fewer than LEAST there."""
    chosen, rest = list(fused[:count]), fused[count:]
    if not rest:
        return chosen
    trees = _trees(snapshot, fused)
    taken = Counter(trees.get(item.key) for item in chosen)
    for item in rest:
        tree = trees.get(item.key)
        if taken[tree] < LEAST:
            taken[tree] += 1
            chosen.append(item)
    return chosen


def _trees(snapshot: Snapshot, fused: Sequence[Fused]) -> dict[int, str]:
    rows = snapshot.select(
        """SELECT c.key, d.tree FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps([item.key for item in fused]),),
    )
    return {int(key): str(tree) for key, tree in rows}
