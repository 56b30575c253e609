"""Who keeps an index in step with its files, and what they say of it: this process's own indexing
thread, or whichever process holds the watch lock.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.resolved import Config
from ragdocs.errors import IndexIncompatible, IndexStoreError
from ragdocs.indexing.lock import SILENT_SECONDS, watching, writing
from ragdocs.indexing.roots import unseen_trees
from ragdocs.search.upkeep import Upkeep, made_otherwise
from ragdocs.wording import process_text

if TYPE_CHECKING:
    from ragdocs.indexing.service_state import ServiceState


def upkeep_of(config: Config, service: "ServiceState | None") -> Upkeep:
    """As the own thread says, if there is one, or whoever watches. When nobody does, only what is
    to be seen of the folders."""
    if service is not None:
        return _said(service.facts(), is_at_work=service.is_alive)
    holder = watching(config.index_directory)
    if holder is not None and holder.is_heard_within(SILENT_SECONDS):
        return _said(holder.says, is_at_work=True)
    is_at_work = writing(config.index_directory) is not None
    return Upkeep(kept=unseen_trees(config.trees), is_at_work=is_at_work)


def advised(error: IndexStoreError, directory: Path) -> IndexStoreError:
    """An index of other settings may be someone's: then it is not simply to be made anew."""
    what, advice, _ = str(error).partition(": rebuild it")
    if not isinstance(error, IndexIncompatible) or not advice:
        return error
    return IndexIncompatible(made_otherwise(what, _keeper_of(directory)))


def _keeper_of(directory: Path) -> str:
    """The other process that watches; empty when none does."""
    holder = watching(directory)
    if holder is None or holder.pid == os.getpid():
        return ""
    return process_text(holder.pid)


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
