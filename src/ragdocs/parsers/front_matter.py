"""The metadata block at the head of a file: found, read, and cleaned into known fields."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, cast

import yaml

from ragdocs.models import DateSource, FrontMatter
from ragdocs.parsers.dates import parse_date
from ragdocs.parsers.untrusted_yaml import MAX_VALUES, compose, first_line, node_texts

MAX_YAML_CHARS = 65_536
"""Beyond this only the keys we know are read, one at a time: 30,000 keys must not take seconds."""

_YAML_OPEN = re.compile(r"---[ \t]*\n")
_YAML_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_TOML_OPEN = re.compile(r"\+\+\+[ \t]*\n")
_TOML_CLOSE = re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE)
_KEY_LINE = re.compile(r"^[\"']?([A-Za-z][\w -]{0,40}?)[\"']?[ \t]*:(?=[ \t]|$)", re.MULTILINE)
_WIKILINK = re.compile(r"^!?\[\[(.*?)(?:\|.*)?\]\]$", re.DOTALL)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})

_ALIASES = {
    "summary": "description",
    "keyword": "keywords",
    "tag": "tags",
    "alias": "aliases",
    "authors": "author",
    "type": "category",
    "updated": "modified",
    "lastmod": "modified",
    "last_modified": "modified",
}
_DATES = (DateSource.MODIFIED, DateSource.DATE, DateSource.CREATED)
_KNOWN = frozenset(
    {
        *("title", "description", "keywords", "tags", "aliases", "author", "category", "related"),
        *_DATES,
        *_ALIASES,
    }
)


@dataclass(frozen=True, slots=True)
class FoundFrontMatter:
    """The cleaned metadata, where the body begins, and what had to be cleaned."""

    metadata: FrontMatter
    body_start: int
    warnings: tuple[str, ...]


class _Fields:
    """The known keys of one block, as lists of strings, and the warnings they caused."""

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {}
        self.warnings: list[str] = []

    def add(self, key: str, values: Iterable[str]) -> None:
        name = _ALIASES.get(key, key)
        kept = [value.strip() for value in values if value.strip() not in _NULLS]
        if not kept:
            return
        if name in self.values:
            self.warn(f"{key}: given twice, the first is kept")
            return
        self.values[name] = kept

    def warn(self, text: str) -> None:
        self.warnings.append(f"front matter: {text}")


def read_front_matter(text: str) -> FoundFrontMatter:
    if text.startswith("---") and (opening := _YAML_OPEN.match(text)):
        return _read(text, opening.end(), _YAML_CLOSE, _read_yaml)
    if text.startswith("+++") and (opening := _TOML_OPEN.match(text)):
        return _read(text, opening.end(), _TOML_CLOSE, _read_toml)
    return FoundFrontMatter(FrontMatter(), 0, ())


def _read(
    text: str, start: int, close: re.Pattern[str], reader: Callable[[str, _Fields], bool]
) -> FoundFrontMatter:
    closing = close.search(text, start)
    if closing is None:
        # A rule at the head of a file is ordinary Markdown; only what looks like metadata is odd.
        looks_like = _KEY_LINE.match(text, start)
        warnings = ("front matter: never closed, read as text",) if looks_like else ()
        return FoundFrontMatter(FrontMatter(), 0, warnings)
    fields = _Fields()
    is_metadata = reader(text[start : closing.start()], fields)
    body_start = min(closing.end() + 1, len(text)) if is_metadata else 0
    return FoundFrontMatter(_clean(fields), body_start, tuple(fields.warnings))


def _read_yaml(block: str, fields: _Fields) -> bool:
    """False when the block is not metadata after all, but prose between two rules."""
    if len(block) > MAX_YAML_CHARS:
        fields.warn(f"over {MAX_YAML_CHARS} characters; only known keys were read")
        return _salvage(block, fields)
    block = block.replace("\t", "  ")  # YAML forbids the tabs that people indent with
    node, problem = compose(block)
    if problem:
        fields.warn(f"{problem}; known keys were read one by one")
        return _salvage(block, fields)
    if isinstance(node, yaml.MappingNode):
        _add_pairs(node, fields)
    elif node is not None:
        fields.warn("not keys and values, read as text")
        return False
    return True


def _add_pairs(node: yaml.MappingNode, fields: _Fields) -> None:
    for key_node, value_node in node.value:
        key = key_node.value.strip().lower() if isinstance(key_node, yaml.ScalarNode) else ""
        if key in _KNOWN:
            _add_node(key, value_node, fields)


def _add_node(key: str, node: yaml.Node, fields: _Fields) -> None:
    if isinstance(node, yaml.MappingNode):
        fields.warn(f"{key}: expected text or a list, left out")
    else:
        fields.add(key, node_texts(node))


def _salvage(block: str, fields: _Fields) -> bool:
    for key, value in _known_blocks(block):
        node, problem = compose(f"{key}:{value}")
        if isinstance(node, yaml.MappingNode) and not problem:
            _add_pairs(node, fields)
        else:
            fields.add(key, [value.split("\n")[0].strip().strip("\"'")])
    return _KEY_LINE.search(block) is not None


def _known_blocks(block: str) -> Iterator[tuple[str, str]]:
    lines = list(_KEY_LINE.finditer(block))
    for line, following in zip_longest(lines, lines[1:]):
        key = line[1].strip().lower()
        if key in _KNOWN:
            end = following.start() if following else len(block)
            yield key, block[line.end() : min(end, line.end() + MAX_YAML_CHARS)]


def _read_toml(block: str, fields: _Fields) -> bool:
    try:
        table = tomllib.loads(block)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        fields.warn(f"bad TOML ({first_line(error)}), left out")
        return True
    for key, value in table.items():
        if key.lower() in _KNOWN:
            _add_toml(key.lower(), value, fields)
    return True


def _add_toml(key: str, value: Any, fields: _Fields) -> None:  # noqa: ANN401  tomllib's own type
    values = cast(list[Any], value) if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in values):
        fields.warn(f"{key}: expected text or a list, left out")
    else:
        fields.add(key, [str(item) for item in values[:MAX_VALUES]])


def _clean(fields: _Fields) -> FrontMatter:
    values = fields.values
    return FrontMatter(
        title=_text(values, "title"),
        description=_text(values, "description"),
        keywords=_items(values, "keywords"),
        tags=tuple(tag for item in _items(values, "tags") if (tag := item.lstrip("#"))),
        aliases=_items(values, "aliases"),
        author=_text(values, "author"),
        category=_text(values, "category"),
        related=tuple(_WIKILINK.sub(r"\1", item) for item in _items(values, "related")),
        dates=_dates(fields),
    )


def _text(values: dict[str, list[str]], key: str) -> str:
    return " ".join(", ".join(values.get(key, ())).split())


def _items(values: dict[str, list[str]], key: str) -> tuple[str, ...]:
    """A list as it is; a single string is split at its commas."""
    given = values.get(key, [])
    parts = given[0].split(",") if len(given) == 1 else given
    return tuple(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))


def _dates(fields: _Fields) -> dict[DateSource, datetime]:
    found: dict[DateSource, datetime] = {}
    for source in _DATES:
        for text in fields.values.get(source, ())[:1]:
            moment = parse_date(text)
            if moment is None:
                fields.warn(f"{source}: {text[:40]!r} is not a date, left out")
            else:
                found[source] = moment
    return found
