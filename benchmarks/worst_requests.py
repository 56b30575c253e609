"""The cost of the most expensive requests within the limits, compared with a plain question.

One warm process, as a server is, over 10,000 passages: English by Zipf's law, Chinese, code, one
document of a thousand passages, and copies. Vectors are synthetic, questions are embedded by the
real model. Every tool is called as the server calls it, its answer made ready to send. CPU time of
the process (all threads), without that of the model, which is told by itself together with the
windows it read. Before each request a plain question is asked; a request's figure is its median
over some rounds beside the median of all plain questions. Nothing is asked twice.

`--fuzz` mixes kinds of text at random, keeps the dearest and changes it, and so on.

    python benchmarks/worst_requests.py [--passages 10000] [--engines fts5 whoosh tantivy]
        [--rounds 3] [--fuzz 0] [--only WORD] [--folder DIR]
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from readings import Reading, note
from synthetic_notes import NoteWriter, SyntheticVectors, config_of
from worst_texts import Maker, Vocabulary, makers, mixed, text_of

from ragdocs.app import App
from ragdocs.embedding.base import MAX_WINDOWS, EmbeddingCounts, QueryEmbedding
from ragdocs.embedding.builtin import DIMENSION, BuiltinEmbedder
from ragdocs.errors import RagdocsError
from ragdocs.limits import MAX_HYPOTHESIS_CHARS, MAX_QUERIES, MAX_QUERIES_CHARS, MAX_QUERY_CHARS
from ragdocs.mcp_server.answer import compact_json
from ragdocs.mcp_server.host import ServedApp
from ragdocs.mcp_server.tools import TOOLS
from ragdocs.memory import collect_seldom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 10.0
WORDS_OF_A_QUESTION = 12
CHINESE_SHARE, CODE_SHARE, LONG_SHARE, COPIES_SHARE = 0.2, 0.05, 0.1, 0.02

IN_THE_LANGUAGE = (
    "common words",
    "ideographs",
    "groups",
    "nested groups",
    "quoted common words",
    "quoted pairs",
    "OR",
    "OR of rare words",
    "NOT",
    "NOT of phrases",
    "boosts",
    "one word, many boosts",
    "fields",
    "paths as filters",
    "paths that are excluded",
    "trees as filters",
)
"""Beyond this, it is read as plain text unless the request is strict."""

Arguments = Mapping[str, Any]
Make = Callable[[random.Random, Vocabulary], Arguments]


class Timed:
    """The built-in model for queries, whose CPU time and windows are counted; vectors of documents
    are synthetic."""

    def __init__(self, model: BuiltinEmbedder) -> None:
        self._model = model
        self._synthetic = SyntheticVectors(model)
        self.seconds = 0.0
        self.windows = 0
        self.name, self.dimension, self.max_tokens = model.name, DIMENSION, model.max_tokens
        self.counts, self.notes = EmbeddingCounts(), ("the vectors are synthetic",)
        loaded = model._model()
        self._run = loaded.session.run
        loaded.session.run = self._counted

    def _counted(self, pieces: Sequence[Sequence[int]]) -> "NDArray[np.float32]":
        self.windows += len(pieces)
        return self._run(pieces)

    @property
    def identity(self) -> str:
        return self._model.identity

    def load(self) -> None:
        self._model.load()

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._synthetic.embed_documents(texts)

    def embed_query(self, text: str) -> "NDArray[np.float32]":
        return self.embed_beginning(text, MAX_WINDOWS).vector

    def embed_beginning(self, text: str, windows: int) -> QueryEmbedding:
        began = time.thread_time()
        try:
            return self._model.embed_beginning(text, windows)
        finally:
            self.seconds += time.thread_time() - began


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU without the model, those of the model, and its windows."""

    own: float
    model: float
    windows: int


class Server:
    """Calls tools as the server does, and measures them."""

    def __init__(self, app: App, model: Timed, words: Vocabulary) -> None:
        self._backend = ServedApp(app)
        self._model = model
        self._words = words

    def plain(self, drawn: random.Random) -> Cost:
        words = drawn.choices(self._words.all[150:3000], k=WORDS_OF_A_QUESTION)
        return self.cost("query_documents", {"query": " ".join(words)})

    def cost(self, tool: str, arguments: Arguments) -> Cost:
        kind = TOOLS[tool]
        model, windows = self._model.seconds, self._model.windows
        began = time.process_time()
        try:
            given = kind.give(self._backend, kind.arguments.read(dict(arguments)))
            compact_json(given.structured)
        except RagdocsError:
            pass  # refused in words: that has its cost too
        taken = time.process_time() - began
        spent = self._model.seconds - model
        return Cost((taken - spent) * 1000, spent * 1000, self._model.windows - windows)


@dataclass(frozen=True, slots=True)
class Kind:
    """A request of which a new one can be drawn."""

    name: str
    tool: str
    make: Make


def kinds() -> Iterator[Kind]:
    """Every text as a question and as a hypothesis; then what else there is to ask for."""
    known = makers()
    for name, maker in known.items():
        yield Kind(name, "query_documents", _asking(maker))
    for name in IN_THE_LANGUAGE:
        yield Kind(f"strict: {name}", "query_documents", _asking(known[name], strict=True))
    for name, maker in known.items():
        yield Kind(f"hypothesis: {name}", "search_with_hypothesis", _supposing(maker))
    for name in ("any words", "ideographs"):
        make = _supposing_only(known[name])
        yield Kind(f"hypothesis alone: {name}", "search_with_hypothesis", make)
    for name in ("common words", "ideographs", "mistyped words", "quoted pairs", "fields"):
        yield Kind(f"several: {name}", "query_documents", _asking(known[name], MAX_QUERIES))
    yield Kind("several plain questions", "query_documents", _several_plain)
    everything: dict[str, Any] = {"top_n": 50, "max_tokens": 10_000, "explain": True}
    for name in ("common words", "ideographs", "quoted pairs", "OR", "a stack trace"):
        yield Kind(f"50 passages: {name}", "query_documents", _asking(known[name], **everything))
        yield Kind(
            f"several, 50 passages: {name}",
            "query_documents",
            _asking(known[name], MAX_QUERIES, **everything),
        )
    yield Kind("50 passages, plain", "query_documents", _plain(**everything))
    yield Kind("little room", "query_documents", _plain(**everything | {"max_tokens": 300}))
    one = {"top_n": 50, "path": "long.md"}
    yield Kind("within one long document", "query_documents", _plain(**one))
    yield Kind("copies", "query_documents", _plain(top_n=50, path="copies"))
    yield Kind("without near-copies", "query_documents", _plain(top_n=50, uniqueness="content"))
    yield Kind("one of each document", "query_documents", _plain(top_n=50, uniqueness="document"))
    yield Kind("many filters", "query_documents", _filtered)
    yield Kind("many excluded paths", "query_documents", _excluding)
    yield Kind("related to a long document", "find_related", _just(document="long.md", limit=50))
    yield Kind("related to a note", "find_related", _note(limit=50))
    yield Kind("one large source file", "find_related", _source(1, 990_000))
    yield Kind("many source files", "find_related", _source(50, 19_000))
    yield Kind("a source file of ideographs", "find_related", _source(1, 990_000, "ideographs"))
    yield Kind("a large diff", "find_related", _diff)
    yield Kind("a diff that is none", "find_related", _text_as_diff)
    yield Kind("a long document", "get_document", _just(document="long.md", max_tokens=10_000))
    yield Kind("its end", "get_document", _just(document="long.md:11000-11900", max_tokens=10_000))
    yield Kind("its outline", "get_document", _just(document="long.md", outline=True))
    yield Kind("a reference that is not there", "get_document", _nowhere)
    yield Kind("all documents", "list_documents", _just(limit=500, max_tokens=10_000))
    yield Kind("all headings", "list_documents", _just(kind="outlines", limit=500))
    yield Kind("all tags", "list_documents", _just(kind="tags", limit=500, max_tokens=10_000))
    yield Kind("status", "index_status", _just())


def _asking(maker: Maker, count: int = 1, **more: object) -> Make:
    def make(drawn: random.Random, words: Vocabulary) -> Arguments:
        length = min(MAX_QUERY_CHARS, MAX_QUERIES_CHARS // count)
        texts = [text_of(maker, length, drawn, words) for _ in range(count)]
        return {"query": texts, **more}

    return make


def _supposing(maker: Maker) -> Make:
    def make(drawn: random.Random, words: Vocabulary) -> Arguments:
        return {
            "hypothesis": text_of(maker, MAX_HYPOTHESIS_CHARS, drawn, words),
            "query": text_of(maker, MAX_QUERY_CHARS, drawn, words),
        }

    return make


def _supposing_only(maker: Maker) -> Make:
    return lambda drawn, words: {
        "hypothesis": text_of(maker, MAX_HYPOTHESIS_CHARS, drawn, words),
        "top_n": 50,
    }


def _question(drawn: random.Random, words: Vocabulary) -> str:
    return " ".join(drawn.choices(words.all[150:3000], k=WORDS_OF_A_QUESTION))


def _plain(**more: object) -> Make:
    return lambda drawn, words: {"query": _question(drawn, words), **more}


def _several_plain(drawn: random.Random, words: Vocabulary) -> Arguments:
    return {"query": [_question(drawn, words) for _ in range(MAX_QUERIES)]}


def _filtered(drawn: random.Random, words: Vocabulary) -> Arguments:
    return {
        "query": _question(drawn, words),
        "tags": drawn.choices(words.all, k=50),
        "excluded_files": [f"{drawn.randrange(50)}/{drawn.choice(words.all)}*" for _ in range(50)],
        "modified_after": "1990-01-01",
        "top_n": 50,
    }


def _excluding(drawn: random.Random, words: Vocabulary) -> Arguments:
    paths = ["*" * 50 + drawn.choice(words.all) * 400 for _ in range(50)]
    return {"query": _question(drawn, words), "excluded_files": paths, "top_n": 50}


def _just(**arguments: object) -> Make:
    return lambda _drawn, _words: arguments


def _note(**more: object) -> Make:
    return lambda drawn, _: {"document": f"{(n := drawn.randrange(600)) % 50}/{n}.md", **more}


def _nowhere(drawn: random.Random, words: Vocabulary) -> Arguments:
    return {"document": "/".join(drawn.choices(words.all, k=600))[:5000]}


def _source(count: int, size: int, kind: str = "code") -> Make:
    def make(drawn: random.Random, words: Vocabulary) -> Arguments:
        maker = makers()[kind]
        return {
            "files": [
                {"path": f"src/{drawn.choice(words.all)}.py", "content": text}
                for text in (text_of(maker, size, drawn, words) for _ in range(count))
            ],
            "limit": 50,
        }

    return make


def _diff(drawn: random.Random, words: Vocabulary) -> Arguments:
    parts: list[str] = []
    for number in range(300):
        lines = [f"+{' '.join(drawn.choices(words.all, k=8))}" for _ in range(50)]
        parts += [f"--- a/{number}.py", f"+++ b/{number}.py", "@@ -0,0 +1,50 @@", *lines]
    return {"diff": "\n".join(parts)[:1_000_000]}


def _text_as_diff(drawn: random.Random, words: Vocabulary) -> Arguments:
    return {"diff": text_of(makers()["any words"], 990_000, drawn, words)}


def build(folder: Path, notes: NoteWriter, passages: int) -> None:
    """The files; what they are made of is drawn by the same seed every time."""
    drawn = random.Random(31)
    docs = folder / "docs"
    chinese, code = int(passages * CHINESE_SHARE), int(passages * CODE_SHARE)
    long, copies = int(passages * LONG_SHARE), int(passages * COPIES_SHARE)
    notes.write(docs, passages - chinese - code - long - copies)
    pairs = pairs_of()
    for number in range(chinese // 10):
        own = [_pair(drawn, pairs) for _ in range(30)]
        parts = [f"# {''.join(own[:3])}"]
        for _ in range(10):
            text = [
                drawn.choice(own) if drawn.random() < 0.3 else _pair(drawn, pairs)
                for _ in range(140)
            ]
            parts += [f"## {''.join(own[:2])}", "".join(text) + "。"]
        head = f"---\ntags: [zh, t{number}]\n---\n"
        _write(docs / "zh" / f"{number}.md", head + "\n\n".join(parts))
    for number in range(code // 5):
        parts = [f"# {' '.join(notes.words(3))}"]
        for _ in range(5):
            lines = [
                f"def {'_'.join(notes.words(3))}({', '.join(notes.words(3))}):\n"
                f"    return {'.'.join(notes.words(3))}()"
                for _ in range(9)
            ]
            parts += [f"## {' '.join(notes.words(3))}", "```python", *lines, "```"]
        _write(docs / "code" / f"{number}.md", "\n".join(parts) + "\n")
    parts = [line for n in range(long) for line in (f"## part {n}", " ".join(notes.words(90)), "")]
    _write(docs / "long.md", "\n".join(parts))
    same = " ".join(notes.words(90))
    for number in range(copies):
        _write(docs / "copies" / f"{number}.md", f"# copy\n\n{same} {number}\n")


def pairs_of() -> list[str]:
    """Most common first."""
    drawn = random.Random(32)
    return ["".join(chr(0x4E00 + drawn.randrange(1200)) for _ in range(2)) for _ in range(3000)]


def _pair(drawn: random.Random, pairs: Sequence[str]) -> str:
    return pairs[min(len(pairs) - 1, int(drawn.paretovariate(0.35)))]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


Draw = Callable[[random.Random], tuple[str, Arguments]]
"""A request of one kind: its tool and its arguments."""


class Costs:
    """What requests cost, and plain questions between them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._plain: list[Cost] = []
        self.found: dict[str, list[Cost]] = {}

    def measure(self, name: str, draw: Draw, drawn: random.Random) -> float:
        self._plain.append(self._server.plain(drawn))
        cost = self._server.cost(*draw(drawn))
        self.found.setdefault(name, []).append(cost)
        return cost.own

    def forget(self) -> None:
        """The first round only warms the caches."""
        self._plain.clear()
        self.found.clear()

    @property
    def usual(self) -> float:
        return statistics.median(cost.own for cost in self._plain)

    def own(self, name: str) -> float:
        return statistics.median(cost.own for cost in self.found[name])

    def show(self, engine: str, passages: int) -> None:
        usual = self.usual
        print(f"  a plain question: {usual:.1f} ms of CPU without the model")
        ranked = sorted(self.found, key=lambda name: -self.own(name))
        for name in ranked:
            ratio, costs = self.own(name) / usual, self.found[name]
            model = statistics.median(cost.model for cost in costs)
            windows = max(cost.windows for cost in costs)
            read = f"model {model:7.1f} ms, {windows} windows"
            print(f"    {name:46} {self.own(name):8.1f} ms {ratio:6.2f} x  {read}")
        worst = ranked[0]
        print(f"  the dearest: {worst}, {self.own(worst) / usual:.2f} x (at most {MOST:g})")
        note(
            Reading(
                what="ratio",
                of="dearest request / plain question",
                at="CPU",
                where=engine,
                value=self.own(worst) / usual,
                unit="x",
                size=passages,
            )
        )
        for kind, most in (("query", 2 * MAX_QUERIES), ("hypothesis", 8)):
            windows = max(
                (
                    cost.windows
                    for name, costs in self.found.items()
                    for cost in costs
                    if name.startswith("hypothesis") == (kind == "hypothesis")
                ),
                default=0,
            )
            print(f"  windows for a {kind}: {windows} (at most {most} in a request)")


def measure(server: Server, words: Vocabulary, rounds: int, only: str) -> Costs:
    chosen = [kind for kind in kinds() if only in kind.name]
    costs = Costs(server)
    for number in range(rounds + 1):
        drawn = random.Random(100 + number)
        if number == 1:
            costs.forget()
        for kind in chosen:
            costs.measure(kind.name, lambda d, kind=kind: (kind.tool, kind.make(d, words)), drawn)
    return costs


def fuzz(server: Server, words: Vocabulary, tries: int) -> None:
    """Mixtures of texts: of the dearest so far one part is changed, or a new one is drawn."""
    known, drawn = makers(), random.Random(7)
    costs, best, dearest = Costs(server), list[str](), 0.0
    for _ in range(tries):
        names = drawn.sample(sorted(known), 3)
        if best and drawn.random() < 0.7:
            names = list(best)
            names[drawn.randrange(len(names))] = drawn.choice(sorted(known))
        parts = [known[name] for name in names]

        def draw(d: random.Random, parts: Sequence[Maker] = parts) -> tuple[str, Arguments]:
            text = mixed(parts, MAX_QUERY_CHARS, d, words)
            return "query_documents", {"query": text, "top_n": 50, "explain": True}

        taken = costs.measure(" + ".join(names), draw, drawn)
        if taken > dearest:
            best, dearest = names, taken
    print(f"  the dearest of {tries} mixtures: {' + '.join(best)}, {dearest / costs.usual:.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description="The dearest requests beside a plain question.")
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--engines", nargs="+", default=["fts5"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fuzz", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    collect_seldom()  # as a server does
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = given.folder or Path(temporary)
        builtin = BuiltinEmbedder(threads=1)
        builtin.load()
        notes = NoteWriter(builtin, seed=30)
        words = Vocabulary(notes._words[:150], notes._words, pairs_of())
        model = Timed(builtin)
        if not (folder / "docs").exists():
            build(folder, notes, given.passages)
        for engine in given.engines:
            config = config_of(
                folder,
                search={"keyword_engine": engine},
                indexing={"index_path": str(folder / engine)},
            )
            with App(config, model) as app:
                with app.manager() as manager:
                    manager.update()
                    manager.update_communities()
                    manager.fill()
                print(f"{engine}, {given.passages:,} passages")
                server = Server(app, model, words)
                measure(server, words, given.rounds, given.only).show(engine, given.passages)
                if given.fuzz:
                    fuzz(server, words, given.fuzz)


if __name__ == "__main__":
    main()
