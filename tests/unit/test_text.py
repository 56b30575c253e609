"""Values as JSON and text for a terminal: one way for each."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

import pytest

from ragdocs.text import Cleaner, escaped, json_text, json_value


class Size(NamedTuple):
    width: int
    height: float


class Mode(Enum):
    OPEN = "open"


@dataclass(frozen=True)
class Box:
    name: str
    size: Size
    mode: Mode = Mode.OPEN
    tags: frozenset[str] = frozenset({"b", "a"})
    sizes: tuple[Size, ...] = ()
    by_name: MappingProxyType[str, int] = field(default_factory=lambda: MappingProxyType({"x": 1}))
    note: str | None = None
    pack: object = field(default=None, repr=False)


def test_dataclasses_and_named_tuples_are_objects_by_field_name():
    assert json_value(Box("n", Size(1, 2.5), sizes=(Size(3, 4.5),))) == {
        "name": "n",
        "size": {"width": 1, "height": pytest.approx(2.5)},
        "mode": "open",
        "tags": ["a", "b"],
        "sizes": [{"width": 3, "height": pytest.approx(4.5)}],
        "by_name": {"x": 1},
        "note": None,
    }


def test_texts_are_cleaned_and_empty_values_left_out_on_request():
    cleaner = Cleaner()
    value = json_value({"a": ["x\u202ey"], "b": None}, cleaner.clean, has_null=False)
    assert (value, cleaner.removed) == ({"a": ["xy"]}, 1)


def test_times_and_paths_are_texts():
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    assert json_value([moment, PurePosixPath("a/b.md")]) == ["2026-01-31T00:00:00+00:00", "a/b.md"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nnext", "plain\ttext\nnext"),
        ("\x1b[31mred\r", "\\u001b[31mred\\u000d"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("so\u00adft\ufff9", "so\\u00adft\\ufff9"),
        ("👩\u200d👧 end\u200d", "👩\u200d👧 end\\u200d"),
        ("x\ufe01\ufe02", "x\\ufe01\\ufe02"),
    ],
)
def test_a_terminal_shows_invisible_characters_as_escapes(text, shown):
    assert escaped(text) == shown


def test_json_for_a_terminal_has_no_invisible_character_and_reads_back_the_same():
    text = "a\x1b\u202e\u2028\U000e0041b 👩\u200d👧\n"
    written = json_text({"text": text})
    assert not set(written) & set("\x1b\u202e\u2028\U000e0041")
    assert json.loads(written) == {"text": text}
