"""An index of known answers that is damaged, at rest or under servers that run, and must heal."""

import shutil
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragdocs.store.integrity import seal
from ragdocs.store.reader import Reader
from tests.support.faults.damage import Pair, copied, damage
from tests.support.faults.notes import (
    Ask,
    all_right,
    heal,
    path_of,
    question,
    questions,
    text_of,
    write_notes,
)
from tests.support.indexes import held, write
from tests.support.machine import until
from tests.support.program import ServedProcess, ask, served, told, value

LATE = "zymurgy"


class Scene:
    """The files, the index as servers left it, and older copies of its files."""

    def __init__(self, folder: Path, engine: str = "fts5", patience: float = 15.0) -> None:
        """`patience`: the seconds that anyone has to heal."""
        self.patience = patience
        self.docs, self.template = folder / "docs", folder / "template"
        folder.mkdir(exist_ok=True)
        self.sections: dict[str, dict[str, object]] = {"search": {"keyword_engine": engine}}
        self.asked = questions()
        self._turn = 0
        write_notes(self.docs)
        with self._asking(self.template) as first:
            heal(first, self.asked, self.docs, patience)
            self.old = copied(self.template)
        write(self.docs, path_of(0), text_of(0) + "\nEdited.\n")
        write(self.docs, "late.md", f"# Late\n\nAll of {LATE}.\n")
        self.asked[question(LATE)] = ["late.md"]
        killed = folder / "killed"
        with self._asking(self.template) as second:
            heal(second, self.asked, self.docs, patience)
            shutil.copytree(self.template, killed)  # with the log, as a killed server leaves it
        self.at_rest = (self.template, killed)

    def heal_at_rest(self, left: Path, pair: Pair, seed: object) -> float:
        """The seconds that a server needs that is started on the damaged index."""
        index = self._damaged(left, pair, seed)
        with _told(left.name, pair), self._asking(index) as asking:
            seconds = heal(asking, self.asked, self.docs, self.patience)
            self.go_on([asking])
            held(index)
        return seconds

    def heal_by_command(self, left: Path, pair: Pair, seed: object) -> float:
        """The seconds that an update needs, without an indexing thread; nothing that is asked
        before it may be wrong."""
        index = self._damaged(left, pair, seed)
        with _told(left.name, pair), served(self.docs, index, **self.sections) as app:
            asking: Ask = lambda query: told(ask(app, query))  # noqa: E731
            all_right(asking, self.asked, self.docs)
            began = time.monotonic()
            with app.manager() as manager:
                manager.update()
                manager.fill()
            seconds = time.monotonic() - began
            heal(asking, self.asked, self.docs, self.patience)
            held(index)
        return seconds

    @contextmanager
    def running(self, servers: int = 1) -> Generator["Running"]:
        with ExitStack() as stack:
            running = Running(self, self.copy_index(self.template), stack)
            running.start(servers)
            yield running

    def go_on(self, asking: list[Ask]) -> None:
        """What is written now is found."""
        self._turn += 1
        word = f"turn{self._turn}"
        write(self.docs, "turn.md", f"# Turn\n\nThe {word} of many.\n")
        for each in asking:
            until(lambda each=each: _is_only(each(question(word)), "turn.md"))

    def copy_index(self, left: Path) -> Path:
        index = left.with_name("index")
        if index.exists():
            shutil.rmtree(index)
        shutil.copytree(left, index)
        with Reader.open(index) as reader:
            seal(index, reader.position())  # as if it had been left there: a copy is not sealed
        return index

    def _damaged(self, left: Path, pair: Pair, seed: object) -> Path:
        index = self.copy_index(left)
        damage(index, *pair, self.old, seed)
        return index

    @contextmanager
    def _asking(self, index: Path) -> Generator[Ask]:
        with served(self.docs, index, **self.sections) as app:
            app.service.start()
            yield lambda query: value(app, ask(app, query))
            assert app.service.stop(self.patience)  # or it goes on in the next one's files


class Running:
    """Servers on one index, whose files are damaged again and again."""

    def __init__(self, scene: Scene, index: Path, stack: ExitStack) -> None:
        self.index = index
        self._scene = scene
        self._servers: list[ServedProcess] = []
        self._stack = stack

    def start(self, servers: int = 1) -> None:
        """So many more."""
        started = [
            self._stack.enter_context(
                ServedProcess(self._scene.docs, self.index, **self._scene.sections)
            )
            for _ in range(servers)
        ]
        self._servers += started
        for server in started:
            until(lambda server=server: server.ask("x")["role"] in ("watching", "standby"))
            until(lambda server=server: server.ask("x")["complete"])

    def go_on(self) -> None:
        self._scene.go_on([server.ask for server in self._servers])

    def heal(self, pair: Pair, seed: object) -> float | None:
        """The seconds that the slowest server needs; None when there was no such file."""
        if not damage(self.index, *pair, self._scene.old, seed):
            return None
        scene, asking = self._scene, [server.ask for server in self._servers]
        with _told("running", pair):
            seconds = [heal(each, scene.asked, scene.docs, scene.patience) for each in asking]
            scene.go_on(asking)
            held(self.index)
        return sum(seconds)

    def end(self) -> list[int]:
        return [server.end() for server in self._servers]


@contextmanager
def _told(*what: object) -> Generator[None]:
    """With what was damaged, and how, in the failure."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error


def _is_only(answer: Mapping[str, Any], path: str) -> bool:
    return bool(answer["complete"] and answer["paths"] == [path])
