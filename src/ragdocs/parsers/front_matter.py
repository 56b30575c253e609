"""The metadata block at the head of a file, read by python-frontmatter without trusting it.

python-frontmatter asks a handler for the three steps: is there a block, where does it end, what is
in it. The handlers here answer them safely. A block that cannot be read as a whole is read key by
key; prose between two rules stays text. The body is never lost.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ragdocs.config.toml_lines import DEEP_KEY
from ragdocs.models import FrontMatter
from ragdocs.parsers.metadata import KNOWN_KEYS, Fields
from ragdocs.parsers.untrusted_yaml import MAX_VALUES, compose, node_texts

MAX_BLOCK_CHARS = 65_536
"""Beyond this only the keys we know are read, one at a time: 30,000 keys must not take seconds."""
MAX_JUDGED_LINES = 200

_KEY_LINE = re.compile(r"[\"']?[\w%][\w .\-]{0,60}[\"']?[ \t]*:(?=[ \t]|$)", re.MULTILINE)
_KNOWN_LINE = re.compile(
    rf"^[\"']?({'|'.join(sorted(KNOWN_KEYS))})[\"']?[ \t]*:(?=[ \t]|$)",
    re.MULTILINE | re.IGNORECASE,
)
_NEXT_KEY = re.compile(r"^[^\s\-#]", re.MULTILINE)
_TOP_LINE = re.compile(r"^[^\s#].*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFrontMatter:
    """The cleaned metadata, where the body begins, and what had to be cleaned."""

    metadata: FrontMatter
    body_start: int
    warnings: tuple[str, ...]


def read_front_matter(text: str) -> FoundFrontMatter:
    for block in (_YamlBlock(text), _TomlBlock(text)):
        if block.detect(text):
            metadata, _ = frontmatter.parse(text, handler=block)
            cleaned = FrontMatter(**cast("dict[str, Any]", metadata))
            return FoundFrontMatter(cleaned, block.body_start, block.warnings)
    return FoundFrontMatter(FrontMatter(), 0, ())


class _Block(BaseHandler):
    """Reads the block of one text, and remembers where the body begins: python-frontmatter
    gives its handler, and returns, a copy without the blanks around it."""

    closing: re.Pattern[str]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.body_start = 0
        self.warnings: tuple[str, ...] = ()

    def split(self, text: str) -> tuple[str, str]:  # noqa: ARG002  the copy without blanks
        """The block, and no copy of the body. Raises ValueError where nothing closes the block:
        python-frontmatter then takes all of it as text."""
        opening = self.FM_BOUNDARY.match(self._text) if self.FM_BOUNDARY else None
        start = opening.end() if opening else 0
        closing = self.closing.search(self._text, start)
        if closing is None:
            # A rule at the head of a file is ordinary Markdown; only a key after it is odd.
            if _KEY_LINE.match(self._text, start):
                self.warnings = ("front matter: never closed, read as text",)
            raise ValueError("the block is never closed")
        self.body_start = min(closing.end() + 1, len(self._text))
        return self._text[start : closing.start()], ""

    def load(self, fm: str) -> dict[str, Any]:
        """The cleaned fields; none where the block is not metadata, which leaves it in the body."""
        fields = Fields()
        if not self.read(fm, fields):
            self.body_start = 0
            self.warnings = ("front matter: not keys and values, read as text",)
            return {}
        metadata = fields.cleaned()
        self.warnings = fields.warnings
        return metadata

    def read(self, block: str, fields: Fields) -> bool:
        """Fills the fields. False when the block is not metadata after all."""
        raise NotImplementedError


class _YamlBlock(_Block):
    """YAML, composed into nodes and never constructed."""

    FM_BOUNDARY = re.compile(r"---[ \t]*\n")
    closing = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)

    def read(self, block: str, fields: Fields) -> bool:
        if len(block) > MAX_BLOCK_CHARS:
            fields.warn(f"over {MAX_BLOCK_CHARS} characters; only known keys were read")
            return _salvage(block, fields)
        block = block.replace("\t", "  ")  # YAML forbids the tabs that people indent with
        node, problem = compose(block)
        if problem:
            fields.warn(f"{problem}; known keys were read one by one")
            return _salvage(block, fields)
        if isinstance(node, yaml.MappingNode):
            _add_pairs(node, fields)
        return node is None or isinstance(node, yaml.MappingNode)


class _TomlBlock(_Block):
    """TOML by the standard library; nothing of a block that it refuses."""

    FM_BOUNDARY = re.compile(r"\+\+\+[ \t]*\n")
    closing = re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE)

    def read(self, block: str, fields: Fields) -> bool:
        if len(block) > MAX_BLOCK_CHARS or DEEP_KEY.search(block):
            fields.warn("TOML too large or too deep, left out")
            return True
        try:
            table = tomllib.loads(block)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            fields.warn(f"bad TOML ({error}), left out")
            return True
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
        fields.warn(f"{key}: expected text or a list, what is neither was left out")
    fields.add(key, texts, is_list=isinstance(node, yaml.SequenceNode))


def _salvage(block: str, fields: Fields) -> bool:
    if not _is_mostly_keys(block):
        return False
    for key, value in _known_blocks(block, fields):
        node, problem = compose(f"{key}:{value}")
        if isinstance(node, yaml.MappingNode) and not problem:
            _add_pairs(node, fields)
        else:
            fields.add(key, [value.split("\n")[0].strip().strip("\"'")], is_list=False)
    return True


def _is_mostly_keys(block: str) -> bool:
    """Metadata with a mistake in it begins with a key and has little else at its margin."""
    lines = [line[0] for line in islice(_TOP_LINE.finditer(block), MAX_JUDGED_LINES)]
    if not lines or not _KEY_LINE.match(lines[0]):
        return False
    others = sum(1 for line in lines if line[0] not in "-]}" and not _KEY_LINE.match(line))
    return others * 2 <= len(lines)


def _known_blocks(block: str, fields: Fields) -> Iterator[tuple[str, str]]:
    """Known keys with all that belongs to them, each once: the first is kept."""
    for line in _KNOWN_LINE.finditer(block):
        if fields.has(line[1].lower()):
            continue
        following = _NEXT_KEY.search(block, line.end() + 1)
        end = following.start() if following else len(block)
        yield line[1].lower(), block[line.end() : min(end, line.end() + MAX_BLOCK_CHARS)]


def _add_toml(key: str, value: Any, fields: Fields) -> None:  # noqa: ANN401  tomllib's own type
    is_list = isinstance(value, list)
    values = cast(list[Any], value) if is_list else [value]
    if any(isinstance(item, dict | list) for item in values):
        fields.warn(f"{key}: expected text or a list, left out")
    else:
        fields.add(key, [str(item) for item in values[:MAX_VALUES]], is_list=is_list)
