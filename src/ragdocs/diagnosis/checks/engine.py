"""The keyword engine's own folder, when it has one: every file against its hash."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragdocs.config.choices import KeywordEngine
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level, Repair
from ragdocs.diagnosis.keyword_look import engine_folder, look_at_keyword, read_engine_state
from ragdocs.diagnosis.store_look import look_at_store
from ragdocs.errors import IndexLocked
from ragdocs.indices.derived_folder import DerivedFolder
from ragdocs.indices.derived_state import Damaged, State


def check_engine(case: Case) -> Iterator[Finding]:
    engine = case.app.config.search.keyword_engine
    generation = look_at_store(case.directory, "").holdings.generation
    found = look_at_keyword(case.directory, engine, generation)
    if engine is KeywordEngine.FTS5:
        yield Finding(Level.OK, "fts5, inside the store")
        return
    folder = engine_folder(case.directory, engine)
    try:
        state = read_engine_state(folder)
        if state is not None:
            _verify(folder, state)
    except Damaged as error:
        yield Finding(
            Level.WARNING,
            f"the files of {engine.value} are damaged: {error}",
            "they are rebuilt from the store by the next query; nothing is lost",
            repair=folder_repair(folder),
        )
        return
    if found.problem:
        yield Finding(Level.ERROR, found.problem, f"pip install {engine.value}")
    else:
        yield Finding(Level.OK, f"{engine.value}: {found.state}")


def folder_repair(folder: Path) -> Repair:
    return Repair(f"delete {at(folder)}", partial(_delete, folder))


def _delete(folder: Path) -> str:
    """Under its lock: whoever writes there now is not disturbed."""
    with DerivedFolder(folder).lock() as is_ours:
        if not is_ours:
            raise IndexLocked(f"{at(folder)} is being written: try again")
        shutil.rmtree(folder)
    return f"deleted {at(folder)}, which is made from the store whenever it is needed"


def _verify(folder: Path, state: State) -> None:
    """Sizes first: a file that has grown beyond all measure need not be read to be wrong."""
    for name, mark in state.files.items():
        try:
            size = os.lstat(folder / state.directory / name).st_size
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}") from error
        if size != mark.size:
            raise Damaged(f"{name} is not as it was written")
    DerivedFolder(folder).verify(state)
