"""How far the keyword engine is that the settings choose."""

import os
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from ragdocs.config.choices import KeywordEngine
from ragdocs.diagnosis.status import KeywordStatus
from ragdocs.indices.derived_folder import STATE_FILE, DerivedFolder
from ragdocs.indices.derived_state import Damaged, State
from ragdocs.store.folder import is_foreign
from ragdocs.store.variants import ENGINE_PREFIX

MAX_STATE_BYTES = 10_000_000
"""Its list of files is a few kilobytes; whatever is larger was not written by us."""


class EngineState(StrEnum):
    """Where an engine stands. Whatever lags or is damaged is made good by the next query."""

    INSIDE = "inside the store"
    IN_STEP = "in step"
    BEHIND = "behind: the next query brings it in step"
    NOT_MADE = "not made yet: the next query makes it"
    DAMAGED = "damaged: the next query makes it anew"
    NOT_INSTALLED = "not installed"


def engine_folder(directory: Path, engine: KeywordEngine) -> Path:
    """As `keyword_engines.keyword_folder`, which loads every engine."""
    return directory / f"{ENGINE_PREFIX}{engine.value}"


def look_at_keyword(directory: Path, engine: KeywordEngine, generation: int) -> KeywordStatus:
    """`generation` is the store's."""
    if engine is KeywordEngine.FTS5:
        return KeywordStatus(engine=engine.value, state=EngineState.INSIDE, generation=generation)
    if find_spec(engine.value) is None:
        problem = f"the keyword engine {engine.value} is not installed: install it, or set another"
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_INSTALLED, problem=problem)
    try:
        state = read_engine_state(engine_folder(directory, engine))
    except Damaged as error:
        return KeywordStatus(engine=engine.value, state=EngineState.DAMAGED, problem=str(error))
    if state is None:
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_MADE)
    at = state.position.generation
    how = EngineState.IN_STEP if at == generation else EngineState.BEHIND
    return KeywordStatus(engine=engine.value, state=how, generation=at)


def read_engine_state(folder: Path) -> State | None:
    """None when there is none yet; Damaged for what cannot be one."""
    if is_foreign(folder.parent):
        return None
    try:
        size = os.lstat(folder / STATE_FILE).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Damaged(f"{STATE_FILE} cannot be looked at: {error.strerror}") from error
    if size > MAX_STATE_BYTES:
        raise Damaged(f"{STATE_FILE} has {size} bytes, more than it ever could")
    return DerivedFolder(folder).state()
