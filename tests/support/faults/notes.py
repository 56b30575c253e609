"""Notes whose answers are known, and the rule for every answer: right, or said not to be."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.indexes import write

_WORDS = """anchor basalt candle dolphin ember falcon glacier hazel indigo jasmine kestrel lantern
marble nectar orchid pebble quartz raven saffron thistle umber velvet willow yarrow"""
_FILLER = """river stone cloud paper silver garden winter copper mirror forest harbor meadow
window thunder basket feather ladder button pocket signal"""
WORDS = tuple(_WORDS.split())
FILLER = tuple(_FILLER.split())

Ask = Callable[[str], dict[str, Any]]
Questions = Mapping[str, Sequence[str]]
"""By query, the paths that must be found, and no others."""


class Wrong(AssertionError):
    """An answer that says to be complete, and is not right."""


def path_of(number: int) -> str:
    return f"note-{number:02}.md"


def text_of(number: int) -> str:
    """Each has a word of its own, code of its own, filler of its own, and a link."""
    word, following = WORDS[number], path_of((number + 1) % len(WORDS))
    filler = " ".join(FILLER[(number * 7 + k * k) % len(FILLER)] + str(k % 5) for k in range(60))
    code = f"```python\ndef make_{word}():\n    return '{word}'\n```"
    title = word.title()
    return f"# {title}\n\nAll of {word}. See [more]({following}).\n\n{code}\n\n{filler}\n"


def write_notes(docs: Path) -> None:
    for number in range(len(WORDS)):
        write(docs, path_of(number), text_of(number))


def question(word: str) -> str:
    """Operators make a word binding: only what has it is found."""
    return f'"{word}" -nosuchword'


def questions() -> dict[str, list[str]]:
    return {question(word): [path_of(number)] for number, word in enumerate(WORDS)}


def is_right(query: str, answer: Mapping[str, Any], paths: Sequence[str], docs: Path) -> bool:
    """False when it says that it is not complete."""
    if not answer["complete"]:
        assert answer["readiness"] != "ready", answer
        return False
    found = {
        path: text.strip() for path, text in zip(answer["paths"], answer["texts"], strict=True)
    }
    expected = {path: (docs / path).read_text(encoding="utf-8").strip() for path in paths}
    if found != expected:
        raise Wrong(f"{query}: {answer}")
    return True


def all_right(ask: Ask, asked: Questions, docs: Path) -> bool:
    answers = [is_right(query, ask(query), paths, docs) for query, paths in asked.items()]
    return all(answers)


def heal(ask: Ask, asked: Questions, docs: Path, seconds: float = 15.0) -> float:
    """How long it took until all was right; nothing may be wrong on the way."""
    began = time.monotonic()
    while not all_right(ask, asked, docs):
        taken = time.monotonic() - began
        assert taken < seconds, f"not right after {seconds} s: {ask(next(iter(asked)))}"
        time.sleep(0.02)
    return time.monotonic() - began
