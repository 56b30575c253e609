"""Who keeps an index in step with its files, and what they say of it: this process's own indexing
thread, or whichever process holds the watch lock.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.resolved import Tree
from ragdocs.indexing.lock import SILENT_SECONDS, watching, writing
from ragdocs.indexing.roots import unseen_trees
from ragdocs.search.upkeep import Upkeep

if TYPE_CHECKING:
    from ragdocs.indexing.service_state import ServiceState


def upkeep_of(directory: Path, trees: Iterable[Tree], service: "ServiceState | None") -> Upkeep:
    """As the own thread says, if there is one, or whoever watches. When nobody does, only what is
    to be seen of the folders."""
    if service is not None:
        return _said(service.facts(), is_at_work=service.is_alive)
    holder = watching(directory)
    if holder is not None and holder.is_heard_within(SILENT_SECONDS):
        return _said(holder.says, is_at_work=True)
    is_at_work = writing(directory) is not None
    return Upkeep(kept=unseen_trees(trees), is_at_work=is_at_work)


def _said(facts: Mapping[str, str], *, is_at_work: bool) -> Upkeep:
    """What an indexing thread says of itself, here or in another process."""
    return Upkeep(
        error=facts.get("error", ""),
        trouble=facts.get("trouble", ""),
        kept=facts.get("kept", ""),
        doubt=facts.get("doubt", ""),
        is_compared=bool(facts.get("last_scan")),
        is_at_work=is_at_work,
    )
