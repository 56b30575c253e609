"""Questions from several threads while the first build goes on: right, or said to be incomplete."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ragdocs.app import App
from ragdocs.search.responses import Readiness
from tests.support.program import ask, paths, served
from tests.support.storms.editor import Editor

THREADS = 4
PAUSE_SECONDS = 0.02
"""People and agents pause between questions; those that do not leave no time for indexing."""


@dataclass
class Answered:
    """What was measured; `early` were asked before all was in."""

    answers: int = 0
    early: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])


class QuestionStorm:
    """Each note has a word of its own; once a note was found, it must always be found."""

    def __init__(self, place: Path, seed: int, files: int) -> None:
        self._docs, self._index = place / "docs", place / "index"
        editor = Editor(self._docs, f"{seed} editor")
        editor.populate(files)
        self._words = editor.words
        self._seed = seed
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self.figures = Answered()

    def run(self, questions: int) -> None:
        """At least so many, and until all is in; then every note is asked for."""
        began = time.monotonic()
        with served(self._docs, self._index) as app:
            app.service.start()
            with ThreadPoolExecutor(THREADS) as pool:
                share = questions // THREADS
                jobs = [pool.submit(self._ask_many, app, n, share) for n in range(THREADS)]
                for job in jobs:
                    job.result()
            self.figures.seconds = time.monotonic() - began
            for path in self._words:
                self._ask(app, path)

    def _ask_many(self, app: App, number: int, count: int) -> None:
        rng = random.Random(f"{self._seed} questions {number}")
        notes = list(self._words)
        asked, is_ready, pause = 0, False, threading.Event()
        while asked < count or not is_ready:
            is_ready = self._ask(app, rng.choice(notes))
            asked += 1
            pause.wait(PAUSE_SECONDS)

    def _ask(self, app: App, path: str) -> bool:
        """Whether all is in."""
        word = self._words[path]
        was_known = path in self._known
        try:
            response = ask(app, f'"{word}"')
        except Exception as error:
            self._note(errors=repr(error))
            return False
        found, index = set(paths(response)), response.index
        self._note(is_early=not index.complete)
        if found == {path}:
            self._known.add(path)
        elif found or index.complete:
            self._note(wrong=f"{path} was asked for, and {found} given ({index})")
        elif was_known:
            self._note(wrong=f"{path} had been found, and was not any more ({index})")
        return index.state is Readiness.READY

    def _note(self, *, is_early: bool | None = None, wrong: str = "", errors: str = "") -> None:
        with self._lock:
            self.figures.answers += is_early is not None
            self.figures.early += bool(is_early)
            self.figures.wrong += [wrong] if wrong else []
            self.figures.errors += [errors] if errors else []
