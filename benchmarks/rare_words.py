"""Whether what only one document has leads to it: rare words, and exact tokens.

From each corpus documents are drawn by a seed that have words no other document has. Two and three
such words of a document are asked for: it should be among the first ten. Exact tokens are names in
code, file names, versions, codes and hashes that one document alone has; each is asked for by
itself and within a question: its document should be among the first three. So are the
tokens of synthetic notes, which are all alike but for them. Only figures are kept, no text.

    python benchmarks/rare_words.py [SET ...] [--documents 100] [--tokens 60] [--notes 300]
"""

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from places import OWN_SET, shared_set
from readings import Reading, note
from synthetic_notes import config_of

from ragdocs.app import App
from ragdocs.cli.index_run import IndexingOptions, run
from ragdocs.cli.progress import display
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from ragdocs.evaluation.metrics import DEPTH
from ragdocs.evaluation.run import results_for, settings_for
from ragdocs.parsers.ids import decode_path
from ragdocs.search.requests import QueryRequest
from ragdocs.shutdown import Ending

SETS = (
    "obsidian-help",
    "anthropic-docs-sections",
    "codebase-qa",
    "mdn-anchors-small",
    "cranfield",
)
SEED = 16
SYNTHETIC = "synthetic notes"
TWO, THREE, ALONE, ASKED = "two words", "three words", "token alone", "token in a question"
KINDS = (TWO, THREE, ALONE, ASKED)
FIRST, FEW, TEN = 1, 3, 10

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_NO_PROSE = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)|`[^`\n]*`|<[^>\n]*>|\]\([^)\n]*\)|\[\[[^]\n]*\]\]"
    r"|\S*(?:://|www\.|[/\\@=_{}])\S*",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+")
_SENSIBLE = re.compile(r"(?<![\w'\u2019-])[a-z]{4,14}(?![\w'\u2019-])")
_TOKEN = re.compile(
    r"(?<![\w./-])(?:"
    r"[A-Za-z]+(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[a-z]+(?:[A-Z][a-z0-9]+)+"  # camelCase
    r"|[\w-]{3,30}\.(?:py|js|ts|json|toml|ya?ml|css|html|sh|cfg|ini|png|svg)"  # file names
    r"|v?\d+\.\d+\.\d+"  # versions
    r"|[A-Z]{2,6}-\d{2,6}"  # codes
    r"|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}"  # hashes
    r")(?![\w/-]|\.\w)"
)
QUESTIONS = (
    "what does {} mean",
    "where is {} described?",
    "how do I use {} in a project",
    "why do I get {} and what can I do about it?",
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What is asked, and the one document that has it."""

    kind: str
    text: str
    document: str


def main() -> None:
    parser = argparse.ArgumentParser(description="What only one document has must lead to it.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--documents", type=int, default=100, help="of each set, for words")
    parser.add_argument("--tokens", type=int, default=60, help="of each set")
    parser.add_argument("--notes", type=int, default=300, help="synthetic ones")
    given = parser.parse_args()
    folders = given.sets or [OWN_SET, *(found for name in SETS if (found := shared_set(name)))]
    print(f"Share of probes whose document is first, among the first {FEW}, among the first {TEN}")
    print("\n| set | probes | kind | first | first three | first ten |\n|---|--:|---|--:|--:|--:|")
    every: list[tuple[Probe, int | None]] = []
    for folder in folders:
        config = settings_for(folder.resolve(), None)
        texts = read_corpus(folder / "corpus")
        probes = [*word_probes(texts, given.documents), *token_probes(texts, given.tokens)]
        every += measure(folder.name, config, probes)
    with tempfile.TemporaryDirectory() as place:
        probes = write_notes(Path(place), given.notes, given.tokens)
        every += measure(SYNTHETIC, config_of(Path(place)), probes)
    show("all together", every)


def measure(
    name: str, config: Config, probes: Sequence[Probe], embedder: Embedder | None = None
) -> list[tuple[Probe, int | None]]:
    with Ending(watch_parent=False) as ending, closing(display(quiet=True)) as shown:
        run(config, IndexingOptions(rebuild=False), ending, shown)
    with App(config, embedder) as app:
        places = [(probe, place_of(app, probe)) for probe in probes]
    show(name, places)
    return places


def place_of(app: App, probe: Probe) -> int | None:
    """Of its document among all that are found, from 1; None when it is not there."""
    top_n = results_for(DEPTH, app.config.search.max_chunks_per_doc)
    response = app.search(QueryRequest(queries=(probe.text,), top_n=top_n))
    found = dict.fromkeys(result.doc_id for result in response.results)
    paths = [decode_path(doc_id.partition(":")[2]) for doc_id in found]
    return paths.index(probe.document) + 1 if probe.document in paths else None


def show(name: str, places: Sequence[tuple[Probe, int | None]]) -> None:
    for kind in KINDS:
        of_kind = [place for probe, place in places if probe.kind == kind]
        if not of_kind:
            continue
        shares = [share(of_kind, limit) for limit in (FIRST, FEW, TEN)]
        cells = " | ".join(f"{100 * value:.1f} %" for value in shares)
        print(f"| {name} | {len(of_kind)} | {kind} | {cells} |", flush=True)
        for limit, value in zip((FIRST, FEW, TEN), shares, strict=True):
            at = f"first {limit}"
            note(Reading(what="rare words", of=kind, where=name, at=at, value=value))


def share(places: Sequence[int | None], limit: int) -> float:
    return sum(place is not None and place <= limit for place in places) / len(places)


def read_corpus(folder: Path) -> dict[str, str]:
    """Text by path, as the index names it."""
    files = sorted(folder.rglob("*.md"))
    return {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8", errors="replace")
        for file in files
    }


def word_probes(texts: Mapping[str, str], documents: int) -> Iterator[Probe]:
    """A word counts as another document's too when it stands there in code, an address or its
    path."""
    counts: Counter[str] = Counter()
    for path, text in texts.items():
        counts.update({word.casefold() for word in _WORD.findall(f"{path}\n{text}")})
    own = {path: own_words(text, counts) for path, text in texts.items()}
    draw = random.Random(SEED)
    usable = [path for path, words in own.items() if len(words) >= len((TWO, THREE)) + 1]
    for path in draw.sample(usable, min(documents, len(usable))):
        words = draw.sample(own[path], 3)
        yield Probe(TWO, " ".join(words[:2]), path)
        yield Probe(THREE, " ".join(words), path)


def own_words(text: str, counts: Mapping[str, int]) -> list[str]:
    """Words of its prose that no other document has."""
    prose = _NO_PROSE.sub(" ", _FRONT_MATTER.sub("", text))
    return sorted({word for word in _SENSIBLE.findall(prose) if counts[word] == 1})


def token_probes(texts: Mapping[str, str], tokens: int) -> Iterator[Probe]:
    """A token counts as another document's too when it stands there within a longer one."""
    folded = {path: f"{path}\n{text}".casefold() for path, text in texts.items()}
    draw = random.Random(SEED)
    found = sorted({(token, path) for path, text in texts.items() for token in tokens_in(text)})
    draw.shuffle(found)
    left = tokens
    for token, path in found:
        if not left:
            return
        if sum(token.casefold() in other for other in folded.values()) == 1:
            left -= 1
            yield from asked_for(token, path, draw)


def tokens_in(text: str) -> set[str]:
    return set(_TOKEN.findall(text))


def asked_for(token: str, path: str, draw: random.Random) -> Iterator[Probe]:
    yield Probe(ALONE, token, path)
    yield Probe(ASKED, draw.choice(QUESTIONS).format(token), path)


_SUBJECTS = ("billing export", "search index", "login page", "nightly backup", "mail gateway")
_EVENTS = ("failed", "was slow", "stopped", "lost its connection", "was restarted")
_REMEDIES = ("restarted the service", "cleared the cache", "rolled the release back")


def write_notes(folder: Path, notes: int, tokens: int) -> list[Probe]:
    """Notes on incidents, all of the same words, each with tokens of its own."""
    draw = random.Random(SEED)
    (folder / "docs").mkdir()
    numbers = draw.sample(range(10_000, 100_000), notes)
    probes: list[Probe] = []
    for at, number in enumerate(numbers):
        own = [
            f"TKT-{number}",
            f"ERR_{draw.choice(('IO', 'NET', 'AUTH'))}_{number:x}".upper(),
            f"{draw.getrandbits(48):012x}",
            f"job_{draw.choice(('export', 'index', 'mail'))}_{number}.py",
            f"{at % 9}.{number // 100}.{number % 100}",
        ]
        subject, event, remedy = map(draw.choice, (_SUBJECTS, _EVENTS, _REMEDIES))
        path = f"{at:04}.md"
        (folder / "docs" / path).write_text(
            f"# The {subject} {event}\n\n## What happened\n\nTicket {own[0]}: the {subject} "
            f"{event} with the error {own[1]} after commit {own[2]}.\n\n## What we did\n\nWe "
            f"{remedy} and looked at {own[3]}. Version {own[4]} has the repair, and the "
            f"{subject} runs again.\n",
            encoding="utf-8",
        )
        probes += (probe for token in own for probe in asked_for(token, path, draw))
    return draw.sample(probes, min(len(probes), 4 * tokens))


if __name__ == "__main__":
    main()
