"""Every single step of a commit fails in turn: what is left must be before it, or after it."""

import errno
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import IndexMissing
from tests.support.faults.child import Forge
from tests.support.faults.shim import ENDED, Shim, What, compiled
from tests.support.faults.work import (
    Keywords,
    Stage,
    engines_behind,
    made,
    stage,
    stages,
    write_changes,
    write_first,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the step, and with which error."""

    what: What
    error: int = errno.EIO

    def __str__(self) -> str:
        return f"{self.what.name} {errno.errorcode[self.error]}"


FAULTS = (
    Fault(What.ONCE, errno.EIO),
    Fault(What.ONCE, errno.ENOSPC),
    Fault(What.END),
    Fault(What.TEAR),
    Fault(What.FROM_THERE_ON, errno.ENOSPC),
)


class CommitTrial:
    """An index, and changed files that are on their way into it."""

    def __init__(self, folder: Path, *, is_new: bool = False) -> None:
        self._docs = folder / "docs"
        self._template, self._index = folder / "template", folder / "index"
        write_first(self._docs)
        self._template.mkdir()
        if not is_new:
            made(self._docs, self._template)
            write_changes(self._docs)
        self._stages = stages(self._docs, self._copied(folder / "clean"))
        later = stages(self._docs, self._copied(folder / "later"), communities=False)
        self._possible = (*self._stages, *later, None)
        self._after = stage(made(self._docs, folder / "fresh")).content
        assert self._stages[-1].content == self._after != self._stages[0].content
        self._copied(self._index)
        self._shim = Shim(compiled(folder), self._index, folder / "control")
        self._forge = Forge(self._shim.environment)

    def steps(self) -> int:
        """How many there are when nothing fails, closing included."""
        self._copied(self._index)
        self._shim.clear()
        done = [self._forge.begin(self._docs, self._index), self._forge.close()]
        assert not any(one["error"] or one["unexpected"] for one in done), done
        steps = self._shim.calls
        assert self._forge.end() == 0
        assert stage(self._index) == self._stages[-1]
        return steps

    def fail(self, number: int, fault: Fault) -> str:
        """Fails that step; says which call it was."""
        self._copied(self._index)
        self._shim.set(fault.what, number, fault.error)
        said = self._forge.begin(self._docs, self._index)
        if not self._shim.faults:
            said = self._forge.close()
        call = self._shim.last
        assert self._shim.faults, "nothing was made to fail"
        self._shim.clear()
        assert not said.get("unexpected"), said["unexpected"]
        assert said.get("exit", ENDED) == ENDED, said
        assert self._now() in self._possible
        if "exit" not in said:
            healed = self._forge.again()
            assert not healed["error"], healed
            assert not healed["unexpected"], healed
            assert self._forge.end() == 0
        else:
            made(self._docs, self._index)
        assert stage(self._index).content == self._after
        return call

    def close(self) -> None:
        self._forge.stop()

    def _now(self) -> Stage | None:
        with suppress(IndexMissing):
            return stage(self._index)
        assert self._stages[0].generation <= 1, "an index that was there is gone"
        return None

    def _copied(self, to: Path) -> Path:
        shutil.rmtree(to, ignore_errors=True)
        return shutil.copytree(self._template, to)


class KeywordTrial:
    """A keyword engine beside the store, which has yet to follow the last commit."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._engine = engine
        self._template, self._index = folder / "template", folder / "index"
        docs = folder / "docs"
        write_first(docs)
        with engines_behind(docs, self._template, engine):
            write_changes(docs)
        self._expected = Keywords(shutil.copytree(self._template, folder / "clean"), engine).found()
        self._copied()
        self._shim = Shim(compiled(folder), self._folder, folder / "control")
        self._forge = Forge(self._shim.environment)

    @property
    def _folder(self) -> Path:
        return self._index / f"keyword-{self._engine}"

    def steps(self) -> int:
        self._copied()
        self._shim.clear()
        assert self._begin() == {"error": "", "unexpected": "", "found": self._expected}
        assert self._forge.end() == 0
        return self._shim.calls

    def fail(self, number: int, fault: Fault) -> str:
        self._copied()
        self._shim.set(fault.what, number, fault.error)
        said = self._begin()
        call = self._shim.last
        self._shim.clear()
        assert not said.get("unexpected"), said["unexpected"]
        assert said.get("exit", ENDED) == ENDED, said
        if "exit" not in said:
            assert said["error"] or said["found"] == self._expected, said
            assert self._forge.again()["found"] == self._expected
            assert self._forge.end() == 0
        assert Keywords(self._index, self._engine).found() == self._expected
        return call

    def close(self) -> None:
        self._forge.stop()

    def _begin(self) -> dict[str, object]:
        return self._forge.begin(Path(), self._index, self._engine)

    def _copied(self) -> None:
        shutil.rmtree(self._index, ignore_errors=True)
        shutil.copytree(self._template, self._index)


Trial = CommitTrial | KeywordTrial


@contextmanager
def running(trial: Trial) -> Generator[Trial]:
    try:
        yield trial
    finally:
        trial.close()
