"""Which hits go on when trees are brought to one level: some of every tree, however loud another.

Without it a tree whose passages all score a little less would be cut off before its scores are
raised: by the indices, which give so many hits of all trees, or when candidates are chosen.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ragdocs.models import TreeName
from ragdocs.search.fusion import Fused
from ragdocs.search.retrieval import Found
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

LEAST = 5
"""As many as an answer usually has."""


def with_every_tree(snapshot: Snapshot, fused: Sequence[Fused], count: int) -> list[Fused]:
    """The first `count`, and after them the best of each tree that has fewer than LEAST there."""
    chosen, rest = list(fused[:count]), fused[count:]
    if not rest:
        return chosen
    trees = _trees(snapshot, [item.key for item in fused])
    taken = Counter(trees.get(item.key) for item in chosen)
    for item in rest:
        tree = trees.get(item.key)
        if taken[tree] < LEAST:
            taken[tree] += 1
            chosen.append(item)
    return chosen


def missing_trees(snapshot: Snapshot, fused: Sequence[Fused]) -> list[TreeName]:
    """The trees that no hit is of: whatever they have is behind all that the indices gave."""
    present = set(_trees(snapshot, [item.key for item in fused]).values())
    rows = snapshot.select("SELECT DISTINCT tree FROM documents ORDER BY tree")
    return [TreeName(tree) for (tree,) in rows if tree not in present]


def with_best_of(found: Found, own: Found) -> Found:
    """With the best hits of a tree that was searched by itself."""
    lists = {
        strategy: sorted(
            [*found.lists.get(strategy, ()), *hits[:LEAST]], key=lambda hit: -hit.score
        )
        for strategy, hits in own.lists.items()
    }
    return replace(found, lists={**found.lists, **lists})


def _trees(snapshot: Snapshot, keys: Iterable[ChunkKey]) -> dict[int, str]:
    rows = snapshot.select(
        """SELECT c.key, d.tree FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(keys)),),
    )
    return {int(key): str(tree) for key, tree in rows}
