"""Whether a section is cited under its own heading: each of some headings is asked for by its own
words, within its own file, and the first result must be cited under it.

Headings are drawn by a seed from the outlines of a set's documents, so that runs compare; nothing
of a set is kept. A heading that a document has several times counts by its words: no question can
tell them apart. Without arguments: the usual sets that lie beside this clone.

    python benchmarks/own_heading.py [SET ...] [--headings 300] [--seed 16] [--failed]
"""

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

from places import OWN_SET, shared_set
from quality import index
from readings import Reading, note

from ragdocs.app import App
from ragdocs.evaluation.run import settings_for
from ragdocs.library.answers import OutlineEntry
from ragdocs.library.requests import ListKind, ListRequest
from ragdocs.limits import MAX_ANSWER_TOKENS, MAX_PAGE_ENTRIES, MAX_QUERY_CHARS
from ragdocs.parsers.ids import decode_path
from ragdocs.search.requests import Filters, QueryRequest
from ragdocs.search.responses import SearchResult

SETS = ("obsidian-help", "mdn-anchors-small")


@dataclass(frozen=True, slots=True)
class Cited:
    """What the first result of one heading's question was cited under."""

    heading: OutlineEntry
    result: SearchResult | None

    @property
    def is_own(self) -> bool:
        return self.result is not None and self.result.heading_path[-1] == self.heading.text

    @property
    def is_own_id(self) -> bool:
        return self.result is not None and self.result.id == self.heading.id


def main() -> None:
    parser = argparse.ArgumentParser(description="Sections cited under their own headings.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--headings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument(
        "--failed", action="store_true", help="name the ids that were cited wrongly"
    )
    given = parser.parse_args()
    folders: list[Path] = given.sets or [found for name in SETS if (found := shared_set(name))]
    print("| set | headings | own heading | own section | nothing found |\n|---|--:|--:|--:|--:|")
    for folder in folders or [OWN_SET]:
        cited = ask(folder, given.headings, given.seed)
        own = sum(each.is_own for each in cited) / len(cited)
        same = sum(each.is_own_id for each in cited) / len(cited)
        nothing = sum(each.result is None for each in cited) / len(cited)
        cells = f"{own:.1%} | {same:.1%} | {nothing:.1%}"
        print(f"| {folder.name} | {len(cited)} | {cells} |", flush=True)
        note(Reading(what="citation", of="own heading", where=folder.name, value=own))
        note(Reading(what="citation", of="own section", where=folder.name, value=same))
        if given.failed:
            for each in cited:
                if not each.is_own:
                    found = each.result.id if each.result else "nothing"
                    print(f"  {each.heading.id} -> {found}")


def ask(folder: Path, count: int, seed: int) -> list[Cited]:
    config = settings_for(folder, None)
    index(config)
    with App(config) as app:
        headings = [entry for entry in outlines(app) if entry.level and entry.text.strip()]
        drawn = random.Random(seed).sample(headings, min(count, len(headings)))
        return [Cited(heading, first_result(app, heading)) for heading in drawn]


def outlines(app: App) -> list[OutlineEntry]:
    found: list[OutlineEntry] = []
    cursor = ""
    while True:
        page = app.library.list(
            ListRequest(
                kind=ListKind.OUTLINES,
                limit=MAX_PAGE_ENTRIES,
                max_tokens=MAX_ANSWER_TOKENS,
                cursor=cursor,
            )
        )
        found += page.outlines
        if page.cursor is None:
            return found
        cursor = page.cursor


def first_result(app: App, heading: OutlineEntry) -> SearchResult | None:
    path = decode_path(heading.doc_id.partition(":")[2])
    filters = Filters(paths=(path,))
    request = QueryRequest(queries=(heading.text[:MAX_QUERY_CHARS],), filters=filters)
    return next(iter(app.search(request).results), None)


if __name__ == "__main__":
    main()
