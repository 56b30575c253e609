"""The invented product's documentation under tests/fixtures, and texts on other subjects."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


def markdown(folder: str) -> dict[str, str]:
    """Path below the folder → text."""
    root = FIXTURES / folder
    files = sorted(root.rglob("*.md"))
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}


def documentation() -> dict[str, str]:
    return markdown("markdown_docs") | markdown("code_samples")


def distractors() -> dict[str, str]:
    return {f"other/{path}": text for path, text in markdown("distractors").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a query must find: a document, or `path#slug` for one section of it."""

    kind: str
    query: str
    place: str
    within: int


def expected(kind: str) -> list[Expected]:
    """The labelled queries of one kind, from `expected_results/queries.toml`."""
    path = FIXTURES / "expected_results" / "queries.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["query"]
    chosen = [Expected(**table) for table in tables if table["kind"] == kind]
    if not chosen:
        raise LookupError(f"no query of the kind {kind}")
    return chosen


def rank_of(place, results):
    """From 1; a section is also found as one of its parts, or within a larger passage."""
    for rank, result in enumerate(results, start=1):
        ids = [result.id, *(part.id for part in result.parts)]
        names = {re.sub(r"~\d+$", "", chunk_id.removeprefix("docs:")) for chunk_id in ids}
        if place == result.path or place in names:
            return rank
    return None


ROTA = """# Kitchen rota

Whoever is on duty empties the dishwasher before nine, wipes the table after lunch and waters the
basil on Friday. Milk is bought on Monday from the jar on the shelf. Cups that stand in the sink for
more than a day are put in the cupboard of shame, from which their owners may redeem them with cake.
Swap your week with somebody if you are away, and write it on the sheet beside the door.
"""
_CHANGES = (
    ("nine", "ten"),
    ("Friday", "Thursday"),
    ("basil", "parsley"),
    ("Milk", "Coffee"),
    ("cake", "biscuits"),
    ("more than a day", "two days or more"),
    ("Swap your week", "Exchange your week"),
    (" beside the door", ""),
    ("# Kitchen rota", "# Kitchen duty"),
    ("the door.", "the door. Thank you all."),
)


def copies() -> dict[str, str]:
    """One note, ten exact copies of it and ten with a word or two changed."""
    exact = {f"copies/same-{n}.md": ROTA for n in range(10)}
    near = {f"copies/near-{n}.md": ROTA.replace(*change) for n, change in enumerate(_CHANGES)}
    return {"copies/rota.md": ROTA, **exact, **near}
