"""A server's long life: edits and distinct requests of every kind, and its memory all the while.

The server is the real command in a process of its own. A cache without a bound shows as memory
that grows with the number of requests; the notes stay as many as they were.
"""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.machine import until
from tests.support.mcp_clients import ServerProcess
from tests.support.storms.editor import Editor
from tests.support.storms.words import Words

SAMPLE_EVERY = 100
REQUESTS_AN_EDIT = 8
ANSWER_SECONDS = 120.0
CHINESE, KANA, HANGUL = (0x4E00, 0x9FA5), (0x3041, 0x30FE), (0xAC00, 0xD7A3)
SCRIPTS = ((0x430, 0x44F), (0x3B1, 0x3C9), (0x5D0, 0x5EA), (0x905, 0x939))
"""Cyrillic, Greek, Hebrew, Devanagari."""

Call = tuple[str, dict[str, Any]]


class Asker:
    """Requests that were never asked before, as an odd crowd of clients would make them."""

    def __init__(self, seed: int | str, editor: Editor) -> None:
        self._rng = random.Random(seed)
        self._editor = editor
        self._words = Words(self._rng)
        self._cursors: dict[str, list[str]] = {"get_document": [], "list_documents": []}
        self._kinds: tuple[tuple[Callable[[], Call], float], ...] = (
            (self._plain, 8),
            (self._invented, 4),
            (self._long_words, 1),
            (self._unspaced, 2),
            (self._other_scripts, 1),
            (self._misspelt, 3),
            (self._quoted, 3),
            (self._filtered, 4),
            (self._several, 1),
            (self._explained, 1),
            (self._hypothesis, 2),
            (self._document, 4),
            (self._unknown_document, 1),
            (self._next_page, 1),
            (self._list, 1),
            (self._related, 2),
            (self._context, 1),
            (self._status, 0.2),
            (self._refused, 0.5),
        )

    def next(self) -> Call:
        kinds, weights = zip(*self._kinds, strict=True)
        (chosen,) = self._rng.choices(kinds, weights)
        return chosen()

    def take(self, tool: str, answer: dict[str, Any]) -> None:
        """Remembers where an answer may be read on."""
        content = answer.get("result", {}).get("structuredContent") or {}
        cursor = content.get("cursor")
        if cursor and tool in self._cursors:
            self._cursors[tool] = [*self._cursors[tool], cursor][-20:]

    def _plain(self) -> Call:
        words = self._words.sentences(1).rstrip(".").split()[: self._rng.randint(2, 9)]
        return "query_documents", {"query": f"{' '.join(words)} {self._words.new()}"}

    def _invented(self) -> Call:
        count = self._rng.randint(1, 12)
        return "query_documents", {"query": " ".join(self._word() for _ in range(count))}

    def _long_words(self) -> Call:
        words = [self._letters(self._rng.randint(30, 300)) for _ in range(self._rng.randint(1, 5))]
        return "query_documents", {"query": " ".join(words)}

    def _unspaced(self) -> Call:
        run = "".join(
            self._characters(script, self._rng.randint(2, 20)) for script in (CHINESE, KANA, HANGUL)
        )
        return "query_documents", {"query": run}

    def _other_scripts(self) -> Call:
        script = self._rng.choice(SCRIPTS)
        words = [self._characters(script, self._rng.randint(3, 12)) for _ in range(5)]
        return "query_documents", {"query": " ".join(words)}

    def _misspelt(self) -> Call:
        words = self._words.sentences(1).rstrip(".").split()
        typed = [self._mistyped(word) for word in words[: self._rng.randint(1, 5)]]
        return "query_documents", {"query": " ".join(typed)}

    def _quoted(self) -> Call:
        own = self._rng.choice(list(self._editor.words.values()))
        words = self._words.sentences(1).split()[:3]
        forms = (
            f'"{own}"',
            f'"{own} {self._words.new()}"',
            f'"{" ".join(words)}" -{self._words.new()}',
            f"{own} OR {self._words.new()} OR ({' '.join(words)}",
            f"title:{self._words.new()} {words[0]}",
        )
        return "query_documents", {"query": self._rng.choice(forms)}

    def _filtered(self) -> Call:
        year, month, day = self._rng.randint(1990, 2030), self._rng.randint(1, 12), 17
        choices: tuple[dict[str, Any], ...] = (
            {"path": self._rng.choice(list(self._editor.words))},
            {"path": self._words.new()},
            {"tags": [self._words.new() for _ in range(self._rng.randint(1, 5))]},
            {"category": self._words.new()},
            {"author": self._words.new()},
            {"language": self._words.new()},
            {"modified_after": f"{year}-{month:02}-{day}"},
            {"excluded_files": self._rng.sample(list(self._editor.words), 3)},
            {"top_n": self._rng.randint(1, 50), "min_score": self._rng.random()},
        )
        tool, arguments = self._rng.choice((self._plain, self._invented))()
        return tool, {**arguments, **self._rng.choice(choices)}

    def _several(self) -> Call:
        asked = [self._plain()[1]["query"] for _ in range(self._rng.randint(2, 5))]
        return "query_documents", {"query": asked}

    def _explained(self) -> Call:
        tool, arguments = self._plain()
        return tool, {**arguments, "explain": True, "show_stats": True}

    def _hypothesis(self) -> Call:
        text = f"{self._words.sentences(self._rng.randint(1, 12))} {self._words.new()}."
        return "search_with_hypothesis", {"hypothesis": text}

    def _document(self) -> Call:
        path = self._rng.choice(list(self._editor.words))
        forms: tuple[dict[str, Any], ...] = (
            {"document": path},
            {"document": path, "outline": True},
            {"document": f"{path}:{self._rng.randint(1, 9)}-{self._rng.randint(10, 99)}"},
            {"document": path, "max_tokens": 300},
        )
        return "get_document", self._rng.choice(forms)

    def _unknown_document(self) -> Call:
        return "get_document", {"document": f"{self._words.new()}/{self._words.new()}.md#there"}

    def _next_page(self) -> Call:
        tool = self._rng.choice(list(self._cursors))
        if not self._cursors[tool]:
            return self._list()
        return tool, {"cursor": self._cursors[tool].pop()}

    def _list(self) -> Call:
        kind = self._rng.choice(("documents", "trees", "outlines", "tags"))
        return "list_documents", {"kind": kind, "limit": self._rng.randint(1, 60)}

    def _related(self) -> Call:
        return "find_related", {"document": self._rng.choice(list(self._editor.words))}

    def _context(self) -> Call:
        names = [self._words.new() for _ in range(self._rng.randint(1, 30))]
        body = "\n".join(f"def {name}(value): return value  # {name}" for name in names)
        return "find_related", {"files": [{"path": f"src/{names[0]}.py", "content": body}]}

    def _status(self) -> Call:
        return "index_status", {}

    def _refused(self) -> Call:
        choices: tuple[dict[str, Any], ...] = (
            {"query": self._letters(2001)},
            {"query": "x", self._words.new(): 1},
            {"query": "x", "top_n": self._rng.randint(51, 10**6)},
            {"query": "(" * self._rng.randint(1, 30) + '"' * self._rng.randint(1, 9)},
        )
        return "query_documents", self._rng.choice(choices)

    def _word(self) -> str:
        return self._letters(self._rng.randint(2, 14))

    def _letters(self, count: int) -> str:
        return "".join(self._rng.choices("aeioubcdfghjklmnprstvwz", k=count))

    def _characters(self, script: tuple[int, int], count: int) -> str:
        return "".join(chr(self._rng.randint(*script)) for _ in range(count))

    def _mistyped(self, word: str) -> str:
        at = self._rng.randrange(len(word))
        return word[:at] + self._rng.choice(("", word[at] * 2, self._letters(1))) + word[at + 1 :]


@dataclass
class Soaked:
    """What was measured. `samples`: requests answered, and the process's own memory in bytes."""

    requests: int = 0
    edits: int = 0
    seconds: float = 0.0
    samples: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    errors: list[str] = field(default_factory=list[str])

    def growth(self, share: float = 2 / 3) -> float:
        """Bytes a thousand requests, over the last share of them: a line through the samples."""
        first = self.requests * (1 - share)
        points = [(done, held) for done, held in self.samples if done >= first]
        mean_x = sum(done for done, _ in points) / len(points)
        mean_y = sum(held for _, held in points) / len(points)
        spread = sum((done - mean_x) ** 2 for done, _ in points)
        return 1000 * sum((done - mean_x) * (held - mean_y) for done, held in points) / spread


class Soak:
    """One server over one folder, which is edited while the server is asked."""

    def __init__(self, place: Path, seed: int | str, notes: int) -> None:
        self.docs, self.index = place / "docs", place / "index"
        self._home = place / "home"
        self._notes = notes
        self._editor = Editor(self.docs, f"{seed} editor")
        self._editor.populate(notes)
        self._asker = Asker(f"{seed} requests", self._editor)
        self.figures = Soaked()

    def run(
        self,
        *,
        seconds: float | None = None,
        requests: int | None = None,
        on_sample: Callable[[Soaked], object] = lambda _: None,
    ) -> Soaked:
        """Until so much time has passed, or so many requests were answered."""
        with self._server() as server:
            server.initialize()
            until(lambda: self._is_ready(server), 600)
            began = time.monotonic()
            for number in self._numbers(seconds, requests):
                if number % REQUESTS_AN_EDIT == 0:
                    self._edit()
                if number % SAMPLE_EVERY == 0:
                    self._sample(server, number, began)
                    on_sample(self.figures)
                self._ask(server, number)
            self._sample(server, self.figures.requests, began)
        return self.figures

    def _server(self) -> ServerProcess:
        command = ("-m", "ragdocs", "mcp", "--docs", str(self.docs), "--index", str(self.index))
        self._home.mkdir(parents=True, exist_ok=True)
        return ServerProcess(*command, HOME=str(self._home))

    def _numbers(self, seconds: float | None, requests: int | None) -> Iterator[int]:
        ends = time.monotonic() + seconds if seconds else None
        while ends is None or time.monotonic() < ends:
            if requests is not None and self.figures.requests >= requests:
                return
            yield self.figures.requests
            self.figures.requests += 1

    def _ask(self, server: ServerProcess, number: int) -> None:
        tool, arguments = self._asker.next()
        server.send(number, "tools/call", name=tool, arguments=arguments)
        answer = server.answer(number, ANSWER_SECONDS)
        server.lines.clear()
        self._asker.take(tool, answer)
        if "error" in answer and answer["error"]["code"] == -32603:
            self.figures.errors.append(f"{tool} {arguments}: {answer['error']}")

    def _edit(self) -> None:
        """The notes stay about as many as they were."""
        editor = self._editor
        if len(editor.words) > self._notes:
            editor.delete()
        else:
            editor.step()
        self.figures.edits += 1

    def _sample(self, server: ServerProcess, number: int, began: float) -> None:
        self.figures.seconds = time.monotonic() - began
        self.figures.samples.append((number, own_memory(server.process.pid)))

    def _is_ready(self, server: ServerProcess) -> bool:
        answer = server.call("ready", "index_status")
        threading.Event().wait(0.2)
        return answer["result"]["structuredContent"]["index"]["complete"]


def own_memory(pid: int) -> int:
    """What no other process and no file backs, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} tells nothing of its memory")


def main(place: str, seed: str, notes: str, seconds: str) -> None:
    """`python -m tests.support.storms.soaking PLACE SEED NOTES SECONDS` prints as it goes."""

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def tell(figures: Soaked) -> None:
        done, held = figures.samples[-1]
        if done % 500 == 0:
            say(f"{figures.seconds:7.1f} s {done:6} requests {held / 1e6:8.2f} MB")

    soak = Soak(Path(place), seed, int(notes))
    figures = soak.run(seconds=float(seconds), on_sample=tell)
    say(
        f"{figures.requests} requests, {figures.edits} edits, {figures.seconds:.0f} s, "
        f"{len(figures.errors)} errors, growth a thousand requests: "
        f"{figures.growth() / 1e6:.3f} MB (last two thirds), {figures.growth(1 / 3) / 1e6:.3f} MB "
        "(last third)"
    )
    for error in figures.errors[:5]:
        say(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
