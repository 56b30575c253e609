"""What quotation marks, brackets, colons and dashes in a question cost: nDCG@10 with and without.

Every question of a labelled set is asked as it stands and with marks that say nothing about what is
wanted: two adjacent words quoted, a clause in brackets, a colon after a word, a dash between two
words, and all four at once. Which words get them is random, with a fixed seed. The product must not
lose by it, and no answer may be empty. Sets are folders as `ragdocs eval` takes them; without
arguments those of `benchmarks/quality.py`.

    python benchmarks/plain_questions.py [SET ...] [--all] [--seed 7]
"""

import argparse
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quality import answers, index, usual_sets
from readings import Reading, note

from ragdocs.app import App
from ragdocs.evaluation.labelled_set import LabelledQuery, LabelledSet, read_set
from ragdocs.evaluation.run import Judge, settings_for
from ragdocs.search.query_language import parse_query

PLAIN = "plain"
METRIC = "nDCG@10"
MOST_BRACKETED = 4
"""Words of a clause."""
DASHES = ("-", "--", "\u2013", "\u2014")
_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")
"""Without the punctuation around it."""

Marked = Callable[[str, random.Random], str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One set asked in one way: its figure, and how many answers were empty or read strictly."""

    score: float
    empty: float
    strict: float


def main() -> None:
    parser = argparse.ArgumentParser(description="What marks in questions cost.")
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true", help="the large sets too")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    names = [PLAIN, *VARIANTS]
    print(f"{METRIC}; behind it, where there are any, how many answers are empty and how many")
    print("questions were read as query language\n")
    print("| set | queries | " + " | ".join(names) + " |")
    print("|---|--:|" + "--:|" * len(names))
    for folder in given.sets or usual_sets(everything=given.all):
        labelled = read_set(folder)
        found = ask_in_every_way(labelled, given.seed)
        cells = [f"{one.score:.4f}{_shares(one)}" for one in found.values()]
        print(f"| {folder.name} | {len(labelled.labels)} | " + " | ".join(cells) + " |", flush=True)
        note_all(folder.name, found)


def ask_in_every_way(labelled: LabelledSet, seed: int) -> Mapping[str, Asked]:
    config = settings_for(labelled.folder, None)
    index(config)
    embedder = App(config).embedder
    judge = Judge(labelled)
    found: dict[str, Asked] = {}
    for name, marked in {PLAIN: _as_it_stands, **VARIANTS}.items():
        queries = tuple(_variant(query, marked, f"{seed} {name}") for query in labelled.queries)
        given = answers(replace(labelled, queries=queries), config, embedder)
        empty = sum(not ranked for ranked in given.ranked.values())
        strict = sum(parse_query(query.text).is_strict for query in queries)
        score = judge.measure(name, given).metrics[METRIC].mean
        found[name] = Asked(score, empty / len(queries), strict / len(queries))
    return found


def _variant(query: LabelledQuery, marked: Marked, seed: str) -> LabelledQuery:
    text = marked(query.text, random.Random(f"{seed} {query.id}"))
    return replace(query, text=text)


def _as_it_stands(text: str, _: random.Random) -> str:
    return text


def quoted(text: str, chance: random.Random) -> str:
    return _enclosed(text, chance, 2, '""')


def bracketed(text: str, chance: random.Random) -> str:
    return _enclosed(text, chance, chance.randint(2, MOST_BRACKETED), "()")


def with_colon(text: str, chance: random.Random) -> str:
    ends = [word.end() for word in _WORD.finditer(text)][:-1]
    if not ends:
        return text
    at = chance.choice(ends)
    return f"{text[:at]}:{text[at:]}"


def with_dash(text: str, chance: random.Random) -> str:
    starts = [word.start() for word in _WORD.finditer(text)][1:]
    if not starts:
        return text
    at = chance.choice(starts)
    return f"{text[:at]}{chance.choice(DASHES)} {text[at:]}"


def with_all(text: str, chance: random.Random) -> str:
    for marked in (quoted, bracketed, with_colon, with_dash):
        text = marked(text, chance)
    return text


VARIANTS: Mapping[str, Marked] = {
    "quoted": quoted,
    "bracketed": bracketed,
    "colon": with_colon,
    "dash": with_dash,
    "all": with_all,
}


def _enclosed(text: str, chance: random.Random, count: int, marks: str) -> str:
    """So many words, or all that there are."""
    words = list(_WORD.finditer(text))
    if not words:
        return text
    first = chance.randint(0, max(0, len(words) - count))
    last = min(len(words), first + count) - 1
    start, end = words[first].start(), words[last].end()
    return f"{text[:start]}{marks[0]}{text[start:end]}{marks[1]}{text[end:]}"


def _shares(one: Asked) -> str:
    told = [f"{one.empty:.1%} empty"] if one.empty else []
    told += [f"{one.strict:.1%} strict"] if one.strict else []
    return f" ({', '.join(told)})" if told else ""


def note_all(name: str, found: Mapping[str, Asked]) -> None:
    for way, one in found.items():
        note(Reading(what="quality", of=way, where=name, at=METRIC, value=one.score))
        note(Reading(what="empty answers", of=way, where=name, value=one.empty))
        note(Reading(what="read strictly", of=way, where=name, value=one.strict))
        if way != PLAIN:
            change = one.score - found[PLAIN].score
            note(
                Reading(what="difference", of=f"{way} - plain", where=name, at=METRIC, value=change)
            )


if __name__ == "__main__":
    main()
