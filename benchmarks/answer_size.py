"""How long the default answer to a question is, and whether the lines that answer are in it; and
how long the list of tools is.

The questions of obsidian-help, each asked as a client asks it: `query_documents` with the question
and nothing else. A token is four bytes of UTF-8, rounded up, as in the search's own budget. Which
lines answer is in `answer_lines.tsv`, marked from the files before any search was asked: a question
counts as answered when all lines of one of its passages stand one after the other in the text that
was sent (blank lines and indentation aside). The share of lines is that of the passage of which
most is there.

    python benchmarks/answer_size.py [SET] [--each]
"""

import argparse
import csv
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path

from mcp.types import ListToolsResult
from places import shared_set
from pydantic import BaseModel
from quality import index
from readings import Reading, note

from ragdocs.app import App
from ragdocs.evaluation.labelled_set import LabelledSet, read_set
from ragdocs.evaluation.run import settings_for
from ragdocs.mcp_server.answer import compact_json
from ragdocs.mcp_server.host import ServedApp
from ragdocs.mcp_server.tools import TOOLS, to_result
from ragdocs.search.budget import tokens

SET = "obsidian-help"
LABELS = Path(__file__).with_name("answer_lines.tsv")


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a document that answer a question."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer: its tokens in each form, the bytes of all that is sent, and how much of a marked
    passage its text has."""

    question: str
    sent: int
    text: int
    links: int
    structured: int
    results: int
    share: float

    @property
    def has_answer(self) -> bool:
        return self.share >= 1


def main() -> None:
    parser = argparse.ArgumentParser(description="The size of answers, and what is in them.")
    parser.add_argument("set", nargs="?", type=Path)
    parser.add_argument("--each", action="store_true", help="a row for every question")
    given = parser.parse_args()
    folder = given.set or shared_set(SET)
    if folder is None:
        raise SystemExit(f"{SET} is not beside this clone: name its folder.")
    measured = list(measure(read_set(folder), read_labels()))
    if given.each:
        show_each(measured)
    show(measured, folder.name)


def read_labels(file: Path = LABELS) -> dict[str, list[Passage]]:
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")
    found: dict[str, list[Passage]] = {}
    for row in rows:
        passage = Passage(row["path"], int(row["first"]), int(row["last"]))
        found.setdefault(row["query-id"], []).append(passage)
    return found


def measure(labelled: LabelledSet, labels: Mapping[str, Sequence[Passage]]) -> Iterator[Measured]:
    config = settings_for(labelled.folder, None)
    index(config)
    tool = TOOLS["query_documents"]
    with App(config) as app, closing(ServedApp(app)) as backend:
        # As for an agent that works in this folder; elsewhere the files' paths are longer.
        app.places = app.places.based_on(labelled.folder)
        for query in labelled.queries:
            given = tool.give(backend, tool.arguments.read({"query": query.text}))
            sent = _lines(given.text)
            wanted = (_marked(labelled.folder, each) for each in labels[query.id])
            yield Measured(
                question=query.id,
                sent=bytes_of(to_result(given)),
                text=tokens(given.text),
                links=sum(tokens(compact_json(asdict(link))) for link in given.links),
                structured=tokens(compact_json(given.structured)),
                results=len(given.structured["results"]),
                share=max(share(lines, sent) for lines in wanted),
            )


def bytes_of(sent: BaseModel) -> int:
    """Of the JSON on the wire."""
    return len(sent.model_dump_json(by_alias=True, exclude_none=True).encode())


def share(wanted: Sequence[str], sent: Sequence[str]) -> float:
    """The longest run of the wanted lines that is in the text."""
    longest = SequenceMatcher(None, wanted, sent, autojunk=False).find_longest_match()
    return longest.size / len(wanted)


def _marked(folder: Path, passage: Passage) -> list[str]:
    text = (folder / "corpus" / passage.path).read_text(encoding="utf-8")
    return _lines("\n".join(text.split("\n")[passage.first - 1 : passage.last]))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def show_each(measured: Sequence[Measured]) -> None:
    print("| question | bytes | tokens, text | tokens, structured | results | share of lines |")
    print("|---|--:|--:|--:|--:|--:|")
    for one in measured:
        sizes = f"{one.sent} | {one.text} | {one.structured} | {one.results}"
        print(f"| {one.question} | {sizes} | {one.share:.2f} |")
    print()


def show(measured: Sequence[Measured], name: str) -> None:
    forms = {
        "text": [one.text for one in measured],
        "text and links": [one.text + one.links for one in measured],
        "structured": [one.structured for one in measured],
    }
    print(f"{name}: {len(measured)} questions, query_documents with default settings\n")
    print("| form | median tokens | p90 | longest |\n|---|--:|--:|--:|")
    for form, sizes in forms.items():
        middle, high = statistics.median(sizes), statistics.quantiles(sizes, n=10)[-1]
        print(f"| {form} | {middle:,.0f} | {high:,.0f} | {max(sizes):,} |")
        for at, value in (("median", middle), ("p90", high)):
            note(Reading(what="tokens", of=form, where=name, at=at, value=value, unit="tokens"))
    every = [one.sent for one in measured]
    middle, high = statistics.median(every), statistics.quantiles(every, n=10)[-1]
    print(f"\nBytes of both forms and the links: median {middle:,.0f}, p90 {high:,.0f}.")
    note(Reading(what="sent", of="both forms", where=name, at="median", value=middle, unit="bytes"))
    tools = bytes_of(ListToolsResult(tools=[tool.to_tool() for tool in TOOLS.values()]))
    print(f"Bytes of the list of tools: {tools:,}.")
    note(Reading(what="sent", of="list of tools", where=name, value=tools, unit="bytes"))
    answered = statistics.mean(one.has_answer for one in measured)
    lines = statistics.mean(one.share for one in measured)
    count = sum(one.has_answer for one in measured)
    print(f"\nThe lines that answer are in the text: {count} of {len(measured)} ({answered:.3f}).")
    print(f"Of the marked lines, on average: {lines:.3f}.")
    note(
        Reading(what="answered", of="all marked lines", where=name, value=answered),
        Reading(what="answered", of="share of marked lines", where=name, value=lines),
    )


if __name__ == "__main__":
    main()
