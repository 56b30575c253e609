"""Reads front matter safely through python-frontmatter, and cleans it into known fields."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, cast

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ragdocs.config.layers import DEEP_KEY
from ragdocs.dates import parse_date
from ragdocs.limits import MAX_PROPERTIES
from ragdocs.models import DateSource, FrontMatter
from ragdocs.parsers.properties import PropertyCollector, add_toml, add_yaml

# Cleans known metadata: whatever was written, the result has these fields and types.

MAX_WARNINGS = 10
_ALIASES = {
    "summary": "description",
    "keyword": "keywords",
    "tag": "tags",
    "alias": "aliases",
    "authors": "author",
    "type": "category",
    "categories": "category",
    "updated": "modified",
    "lastmod": "modified",
    "last_modified": "modified",
}
_DATES = (DateSource.MODIFIED, DateSource.DATE, DateSource.CREATED)
KNOWN_KEYS = frozenset(
    {
        *("title", "description", "keywords", "tags", "aliases", "author", "category", "related"),
        *_DATES,
        *_ALIASES,
    }
)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BETWEEN_COMMAS = re.compile(r"(?:\[\[.*?\]\]|[^,])+", re.DOTALL)
_BLANKS_AND_COMMAS = re.compile(r"[\s,]+")
_WIKILINK = re.compile(r"^!?\[\[(.*)\]\]$", re.DOTALL)
_MARKDOWN_LINK = re.compile(r"^\[[^\]]*\]\(\s*<?([^()<>\s]+)>?[^()]*\)$")
_WEB = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]+:)?//")


@dataclass(frozen=True, slots=True)
class _Value:
    """The texts of a key, and whether they were written as a list."""

    texts: list[str]
    is_list: bool


class Fields:
    """The known keys of one block as they were written, and warnings about them."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._warnings: list[str] = []
        self._unsaid = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        more = (f"front matter: {self._unsaid} more problems",) if self._unsaid else ()
        return (*self._warnings, *more)

    def has(self, key: str) -> bool:
        return _ALIASES.get(key, key) in self._values

    def add(self, key: str, texts: Iterable[str], *, is_list: bool) -> None:
        kept = [text.strip() for text in texts if text.strip() not in _NULLS]
        if not kept:
            return
        if self.has(key):
            self.warn(f"{key}: given twice; the first is used")
        else:
            self._values[_ALIASES.get(key, key)] = _Value(kept, is_list)

    def warn(self, text: str) -> None:
        """Keeps only a few warnings: 30,000 would bury the rest."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(f"front matter: {text}")
        else:
            self._unsaid += 1

    def clean(self) -> dict[str, Any]:
        """By the names of FrontMatter's fields."""
        return {
            "title": self._text("title"),
            "description": self._text("description"),
            "keywords": self._items("keywords"),
            "tags": self._tags(),
            "aliases": self._items("aliases"),
            "author": self._text("author"),
            "category": self._text("category"),
            "related": self._related(),
            "dates": self._dates(),
        }

    def _text(self, key: str) -> str:
        value = self._values.get(key)
        return " ".join(", ".join(value.texts).split()) if value else ""

    def _items(self, key: str) -> tuple[str, ...]:
        """A list as it is; a string split at commas, but not inside a wikilink."""
        value = self._values.get(key)
        if value is None:
            return ()
        parts = value.texts if value.is_list else _BETWEEN_COMMAS.findall(value.texts[0])
        return _distinct(" ".join(part.split()) for part in parts)

    def _tags(self) -> tuple[str, ...]:
        """A string of tags is also split at blanks, because a tag has none."""
        value = self._values.get("tags")
        if value is None:
            return ()
        parts = value.texts if value.is_list else _BLANKS_AND_COMMAS.split(value.texts[0])
        return _distinct(" ".join(part.split()).lstrip("#") for part in parts)

    def _related(self) -> tuple[str, ...]:
        return tuple(target for entry in self._items("related") if (target := _related(entry)))

    def _dates(self) -> dict[DateSource, datetime]:
        found: dict[DateSource, datetime] = {}
        for source in _DATES:
            value = self._values.get(source)
            moment = parse_date(value.texts[0]) if value else None
            if moment is not None:
                found[source] = moment
            elif value is not None:
                self.warn(f"{source}: {value.texts[0][:40]!r} is not a date, ignored")
        return found


def _distinct(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in parts if part))


def _related(entry: str) -> str:
    """The target of an entry in any syntax; empty for a web address."""
    link = _MARKDOWN_LINK.match(entry)
    target = link[1] if link else _WIKILINK.sub(r"\1", entry).partition("|")[0]
    return "" if _WEB.match(target) else target.strip()


# Reads YAML safely: composes nodes and never constructs objects, with a limit on nesting.
#
# No tag is followed, an alias bomb stays a handful of shared nodes, and `title: 2024` or `tags:
# [yes]` keep the author's words.

MAX_VALUES = 1_000
MAX_DEPTH = 6
MAX_NESTING = 200
"""libyaml's composer recurses in C, and deeper nesting could crash the process."""

_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(rf"^(?:[ \t]|[-?:][ \t]){{{MAX_NESTING}}}", re.MULTILINE)


def compose(block: str) -> tuple[yaml.Node | None, str]:
    """The block's node, or the reason why there is none."""
    if _too_deep(block):
        return None, f"nested deeper than {MAX_NESTING}"
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # The stubs leave compose untyped.
        return cast(yaml.Node | None, yaml.compose(block, Loader=loader)), ""  # pyright: ignore[reportUnknownMemberType]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return None, f"bad YAML ({_first_line(error)})"


def _too_deep(block: str) -> bool:
    if _DEEP_BLOCK.search(block):
        return True
    if block.count("[") + block.count("{") <= MAX_NESTING:
        return False
    depth = 0
    for bracket in _BRACKET.findall(block):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            return True
    return False


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 2}" if mark is not None else ""
    return f"{str(problem).splitlines()[0] if problem else type(error).__name__}{where}"


def node_texts(node: yaml.Node) -> tuple[list[str], bool]:
    """The scalars below a node, in order and up to a limit (aliases may make them endless), and
    whether tables were left out.
    """
    texts: list[str] = []
    has_tables = False
    pending: list[tuple[Any, int]] = [(node, 0)]
    visits = 0
    while pending and visits < MAX_VALUES:
        visits += 1
        item, depth = pending.pop()
        if isinstance(item, yaml.ScalarNode):
            texts.append(str(item.value))
        elif isinstance(item, yaml.SequenceNode) and depth < MAX_DEPTH:
            pending.extend((child, depth + 1) for child in reversed(item.value[:MAX_VALUES]))
        has_tables |= isinstance(item, yaml.MappingNode)
    return texts, has_tables


# The metadata block at the beginning of a file, read through python-frontmatter.
#
# python-frontmatter calls a handler for three steps: detect a block, split it off, load it. The
# handlers here do this safely. A block that cannot be read as a whole is read key by key; prose
# between two rules stays text. The body is never lost.

MAX_BLOCK_CHARS = 65_536
"""In a longer block only known keys are read, one by one: 30,000 keys must not take seconds."""
MAX_JUDGED_LINES = 200
MAX_TRIES = 10
"""A key without a usable value is composed again only so often: a file can have a million."""

_KEY_LINE = re.compile(r"[\"']?[\w%][\w .\-]{0,60}[\"']?[ \t]*:(?=[ \t]|$)", re.MULTILINE)
_TOP_KEY = re.compile(r"^[\"']?([\w%][\w .\-]{0,60}?)[\"']?[ \t]*:(?=[ \t]|$)", re.MULTILINE)
_KNOWN_LINE = re.compile(
    # A key whose value is empty is passed over here: it would be composed for nothing.
    rf"^[\"']?({'|'.join(sorted(KNOWN_KEYS))})[\"']?[ \t]*:(?=[ \t]|$)(?!\s*(?:^[^\s\-#]|\Z))",
    re.MULTILINE | re.IGNORECASE,
)
_NEXT_KEY = re.compile(r"^[^\s\-#]", re.MULTILINE)
_TOP_LINE = re.compile(r"^[^\s#].*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFrontMatter:
    """The cleaned metadata, the start of the body, warnings, and every property."""

    metadata: FrontMatter
    body_start: int
    warnings: tuple[str, ...]
    properties: PropertyCollector


def read_front_matter(text: str) -> FoundFrontMatter:
    for block in (_YamlBlock(text), _TomlBlock(text)):
        if block.detect(text):
            metadata, _ = frontmatter.parse(text, handler=block)
            cleaned = FrontMatter(**cast("dict[str, Any]", metadata))
            return FoundFrontMatter(cleaned, block.body_start, block.warnings, block.properties)
    return FoundFrontMatter(FrontMatter(), 0, (), PropertyCollector())


class _Block(BaseHandler):
    """Reads the block of one text and stores where the body begins: python-frontmatter passes to
    its handler, and returns, a copy without surrounding blanks."""

    closing: re.Pattern[str]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.body_start = 0
        self.warnings: tuple[str, ...] = ()
        self.properties = PropertyCollector()

    def split(self, text: str) -> tuple[str, str]:  # noqa: ARG002  the copy without blanks
        """The block, without a copy of the body. Raises ValueError for an unclosed block, which
        python-frontmatter then takes as text."""
        opening = self.FM_BOUNDARY.match(self._text) if self.FM_BOUNDARY else None
        start = opening.end() if opening else 0
        closing = self.closing.search(self._text, start)
        if closing is None:
            # A rule at the beginning of a file is ordinary Markdown, unless a key follows.
            if _KEY_LINE.match(self._text, start):
                self.warnings = ("front matter: not closed, read as text",)
            raise ValueError("the block is not closed")
        self.body_start = min(closing.end() + 1, len(self._text))
        return self._text[start : closing.start()], ""

    def load(self, fm: str) -> dict[str, Any]:
        """The cleaned fields; none if the block is not metadata, and then it stays in the body."""
        fields = Fields()
        if not self.read(fm, fields):
            self.body_start = 0
            self.properties = PropertyCollector()
            self.warnings = ("front matter: not made of keys and values, read as text",)
            return {}
        metadata = fields.clean()
        self.warnings = fields.warnings
        return metadata

    def read(self, block: str, fields: Fields) -> bool:
        """Fills the fields; returns False if the block is not metadata."""
        raise NotImplementedError


class _YamlBlock(_Block):
    """YAML, composed into nodes, never constructed."""

    FM_BOUNDARY = re.compile(r"---[ \t]*\n")
    closing = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)

    def read(self, block: str, fields: Fields) -> bool:
        if len(block) > MAX_BLOCK_CHARS:
            fields.warn(f"over {MAX_BLOCK_CHARS} characters; only known keys were read")
            return _salvage(block, fields, self.properties)
        block = block.replace("\t", "  ")  # YAML does not allow tabs for indentation
        node, problem = compose(block)
        if problem:
            fields.warn(f"{problem}; keys were read one by one")
            return _salvage(block, fields, self.properties)
        if isinstance(node, yaml.MappingNode):
            _add_pairs(node, fields)
            add_yaml(node, self.properties)
        return node is None or isinstance(node, yaml.MappingNode)


class _TomlBlock(_Block):
    """TOML by the standard library, which reads a block completely or not at all."""

    FM_BOUNDARY = re.compile(r"\+\+\+[ \t]*\n")
    closing = re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE)

    def read(self, block: str, fields: Fields) -> bool:
        if len(block) > MAX_BLOCK_CHARS or DEEP_KEY.search(block):
            fields.warn("TOML too large or nested too deeply, ignored")
            return True
        try:
            table = tomllib.loads(block)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            fields.warn(f"bad TOML ({error}), ignored")
            return True
        add_toml(table, self.properties)
        for key, value in table.items():
            if key.lower() in KNOWN_KEYS:
                _add_toml(key.lower(), value, fields)
        return True


def _add_pairs(node: yaml.MappingNode, fields: Fields) -> None:
    for key_node, value_node in node.value:
        key = key_node.value.strip().lower() if isinstance(key_node, yaml.ScalarNode) else ""
        if key in KNOWN_KEYS:
            _add_node(key, value_node, fields)


def _add_node(key: str, node: yaml.Node, fields: Fields) -> None:
    texts, has_tables = node_texts(node)
    if has_tables:
        fields.warn(f"{key}: expected text or a list; anything else was ignored")
    fields.add(key, texts, is_list=isinstance(node, yaml.SequenceNode))


def _salvage(block: str, fields: Fields, properties: PropertyCollector) -> bool:
    """Known keys one by one; every other key too, unless the block is too long."""
    if not _is_mostly_keys(block):
        return False
    others: Iterator[tuple[str, str]] = iter(())
    if len(block) <= MAX_BLOCK_CHARS:
        others = _other_blocks(block)
        properties.left_out += max(0, len(_TOP_KEY.findall(block)) - MAX_PROPERTIES)
    for key, value in chain(_known_blocks(block, fields, properties), others):
        node, problem = compose(f"{key}:{value}")
        if isinstance(node, yaml.MappingNode) and not problem:
            _add_pairs(node, fields)
            add_yaml(node, properties)
        else:
            text = value.split("\n")[0].strip().strip("\"'")
            properties.add(key, text)
            if key in KNOWN_KEYS:
                fields.add(key, [text], is_list=False)
    return True


def _is_mostly_keys(block: str) -> bool:
    """Metadata with a mistake begins with a key and has few other lines without indentation."""
    lines = [line[0] for line in islice(_TOP_LINE.finditer(block), MAX_JUDGED_LINES)]
    if not lines or not _KEY_LINE.match(lines[0]):
        return False
    others = sum(1 for line in lines if line[0] not in "-]}" and not _KEY_LINE.match(line))
    return others * 2 <= len(lines)


def _known_blocks(
    block: str, fields: Fields, properties: PropertyCollector
) -> Iterator[tuple[str, str]]:
    """Known keys with their values, each key once: the first that has a value is kept."""
    tries = Counter[str]()
    composed = Counter[str]()
    for line in _KNOWN_LINE.finditer(block):
        key = line[1].lower()
        if fields.has(key):
            continue
        field = _ALIASES.get(key, key)
        room = MAX_BLOCK_CHARS - composed[field]
        if tries[field] >= MAX_TRIES or room <= 0:
            properties.left_out += 1
            continue
        following = _NEXT_KEY.search(block, line.end() + 1)
        end = following.start() if following else len(block)
        value = block[line.end() : min(end, line.end() + room)]
        tries[field] += 1
        composed[field] += len(value)
        yield key, value


def _other_blocks(block: str) -> Iterator[tuple[str, str]]:
    """The other keys at the beginning of a line, with their values."""
    for line in islice(_TOP_KEY.finditer(block), MAX_PROPERTIES):
        if line[1].strip().lower() not in KNOWN_KEYS:
            following = _NEXT_KEY.search(block, line.end() + 1)
            yield (
                line[1].strip(),
                block[line.end() : following.start() if following else len(block)],
            )


def _add_toml(key: str, value: Any, fields: Fields) -> None:  # noqa: ANN401  tomllib's own type
    is_list = isinstance(value, list)
    values = cast(list[Any], value) if is_list else [value]
    if any(isinstance(item, dict | list) for item in values):
        fields.warn(f"{key}: expected text or a list, ignored")
    else:
        fields.add(key, [str(item) for item in values[:MAX_VALUES]], is_list=is_list)
