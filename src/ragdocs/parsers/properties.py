"""Properties: front matter of any shape as flat keys, and inline fields (`key:: value`) in text.

Everything is bounded: no file makes many properties, long ones, or takes long.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import yaml

from ragdocs.filter_language import property_key
from ragdocs.limits import MAX_PROPERTIES, MAX_PROPERTY_CHARS, MAX_PROPERTY_VALUES
from ragdocs.models import Property

MAX_KEY_CHARS = 100
MAX_DEPTH = 6
"""Keys and lists that are nested deeper are left out."""
MAX_VISITS = 20_000
"""Values of front matter that are looked at: an alias bomb has billions."""
_NULLS = frozenset({"", "~", "null"})


class PropertyCollector:
    """The properties of one document, as far as the limits allow, in order."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}
        self._count = 0
        self.left_out = 0
        """How many values were left out or cut."""

    def add(self, key: str, value: str) -> None:
        """A key that is added again has several values."""
        name, text = property_key(key), value.strip()
        if not name or text.casefold() in _NULLS:
            return
        if len(name) > MAX_KEY_CHARS or self._count >= MAX_PROPERTY_VALUES:
            self.left_out += 1
            return
        if name not in self._values and len(self._values) >= MAX_PROPERTIES:
            self.left_out += 1
            return
        if len(text) > MAX_PROPERTY_CHARS:
            self.left_out += 1
            text = text[:MAX_PROPERTY_CHARS]
        self._count += 1
        self._values.setdefault(name, []).append(text)

    def found(self) -> tuple[Property, ...]:
        return tuple(Property(key, tuple(values)) for key, values in self._values.items())


# Front matter: nested keys are joined by dots; a list of tables gives each key a list.


def add_yaml(node: yaml.Node, into: PropertyCollector) -> None:
    """Nodes that are only composed: no object is made, and an alias is a shared node."""
    _add(node, _yaml_parts, into)


def add_toml(table: dict[str, Any], into: PropertyCollector) -> None:
    _add(table, _toml_parts, into)


def _yaml_parts(node: Any) -> "Parts":  # noqa: ANN401  the stubs leave values untyped
    if isinstance(node, yaml.MappingNode):
        pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
        return [(_yaml_key(key), value) for key, value in pairs]
    if isinstance(node, yaml.SequenceNode):
        return [(None, value) for value in cast("list[yaml.Node]", node.value)]
    return str(node.value)


def _yaml_key(node: yaml.Node) -> str:
    return str(node.value).strip() if isinstance(node, yaml.ScalarNode) else ""


def _toml_parts(value: Any) -> "Parts":  # noqa: ANN401  tomllib's own type
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return [(None, each) for each in cast("list[Any]", value)]
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return str(value)
    except ValueError:  # a hexadecimal number of thousands of digits, which Python does not write
        return ""


Parts = list[tuple[str | None, Any]] | str
"""What is below a value, each with its key if it has one; or the text of the value."""


def _add(root: object, parts_of: Callable[[Any], "Parts"], into: PropertyCollector) -> None:
    pending: list[tuple[str, Any, int]] = [("", root, 0)]
    visits = 0
    while pending:
        key, value, depth = pending.pop()
        visits += 1
        if visits > MAX_VISITS:
            into.left_out += 1 + len(pending)
            return
        parts = parts_of(value)
        if isinstance(parts, str):
            into.add(key, parts)
        elif depth >= MAX_DEPTH:
            visits += len(parts)
            into.left_out += bool(parts)
        else:
            below = parts[:MAX_VISITS]
            into.left_out += len(parts) - len(below)
            pending.extend(
                (_join(key, name), part, depth + 1) for name, part in reversed(below) if name != ""
            )


def _join(above: str, name: str | None) -> str:
    if name is None:
        return above
    return f"{above}.{name}" if above else name


# Inline fields, as Dataview has them: `key:: value` on a line of its own or as a list item, and
# `[key:: value]` or `(key:: value)` anywhere. A blank follows the colons, so `std::vector` is none.

FIELD_MARK = "::"
_KEY = r"[\w\u00c0-\U0010ffff][\w\-/ &'\u00c0-\U0010ffff]{0,59}"
_LINE_FIELD = re.compile(
    rf"""^[ \t>]*(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]+(?:\[.\][ \t]+)?)?
        (?P<marks>[*_]{{0,3}})(?P<key>{_KEY}?)(?P=marks)::[ \t]++(?P<value>\S[^\n]*)""",
    re.MULTILINE | re.VERBOSE,
)
# Each repetition stops at the next bracket of its kind, so an unclosed one costs no more.
_BRACKETED = re.compile(
    rf"""\[(?P<key>{_KEY})::[ \t]++(?P<value>(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\]|\[[^\[\]\n]*\])*+)\]
      | \((?P<other>{_KEY})::[ \t]++(?P<said>(?:[^()\n]|\([^()\n]*\))*+)\)""",
    re.VERBOSE,
)


def inline_fields(
    text: str, start: int, end: int, skipped: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """The fields between two places of a text, except in the skipped stretches (code, comments),
    which are in order."""
    for pattern in (_LINE_FIELD, _BRACKETED):
        at = 0
        for found in pattern.finditer(text, start, end):
            place = found.start("key") if found["key"] else found.start("other")
            while at < len(skipped) and skipped[at][1] <= place:
                at += 1
            if at < len(skipped) and skipped[at][0] <= place:
                continue
            if pattern is _LINE_FIELD or found["key"]:
                yield found["key"], found["value"]
            else:
                yield found["other"], found["said"]
