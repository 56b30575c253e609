"""The project's own trees are preferred to those the user has everywhere."""

from collections.abc import Iterable

from ragdocs.models import TreeName


def locality_factors(
    trees: Iterable[TreeName], local: frozenset[TreeName], boost: float
) -> dict[TreeName, float]:
    """Where all trees are local there is nothing to prefer, and scores stay as they are."""
    found = frozenset(trees)
    factor = 1.0 if found <= local else boost
    return {tree: factor if tree in local else 1.0 for tree in found}
