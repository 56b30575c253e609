"""How the index is kept in step with its files, as far as anyone says; and what that makes of its
state. One rule for all: the answers of a server, those of a command, and `status`.
"""

from dataclasses import dataclass

from ragdocs.errors import IndexMissing, IndexStoreError
from ragdocs.search.index_state import IndexState
from ragdocs.wording import advised

_COMPARING = "the files are being compared with the index"

_CHANGED = "the index was copied, or changed by another program"
BEING_CHECKED = f"{_CHANGED}: it is checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What is known against an index besides what is in it; without a word, nothing is."""

    error: str = ""
    """Why it is not kept in step: whoever does that fails, or has stood down."""
    trouble: str = ""
    """Why vectors do not come."""
    kept: str = ""
    """Folders of which it cannot be seen whether their files are as they were."""
    doubt: str = ""
    """Why it is looked at again: what it answers meanwhile may not be right."""
    is_compared: bool = True
    """Whether all files were compared with it since someone began to keep it in step."""
    is_at_work: bool = False
    """Whether someone is there to make it, where there is none yet."""

    def comes_by_waiting(self, error: IndexStoreError) -> bool:
        """Whether an index that cannot be read is only just being made."""
        return isinstance(error, IndexMissing) and self.is_at_work and not self.error


def unchecked() -> str:
    """The doubt about a store that nobody checks at present."""
    return f"{_CHANGED}: {advised('update')} checks it, and so does a server"


def judged(state: IndexState, upkeep: Upkeep) -> IndexState:
    """What waiting does not mend comes first."""
    if upkeep.error:
        return state.behind(upkeep.error)
    if upkeep.trouble and state.vectors_pending:
        return state.behind(upkeep.trouble)
    if upkeep.kept:
        return state.behind(upkeep.kept)
    if upkeep.doubt:
        return state.unsure(upkeep.doubt)
    return state if upkeep.is_compared else state.unsure(_COMPARING)
