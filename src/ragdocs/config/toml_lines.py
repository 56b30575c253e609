"""Where each key stands in a TOML text, because tomllib tells only the values.

The text has already been accepted by tomllib, so this may be lenient: at worst a key is not found,
and its table's line is given in its place. It never raises.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from ragdocs.config.catalogue import KeyPath

MAX_KEY_PARTS = 32
# tomllib takes memory by the square of a dotted key's parts: 40 kB of it took 1.6 GB.
DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)[ \t]*+\.[ \t]*+)"""
    f"{{{MAX_KEY_PARTS}}}"
)


# A multi-line string may end in up to five quotes, of which the last three close it.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[A-Za-z0-9_-]+"
    r"|.",
    re.DOTALL,
)
# No setting is deeper; without a limit, one key of 100,000 dots would cost the square of that.
_MAX_DEPTH = 8
_SKIPPED = re.compile(r"[ \t\r.]|\#.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    line: int


@dataclass(slots=True)
class _Open:
    """An array or inline table that is being read."""

    path: KeyPath
    is_array: bool
    index: int = 0


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line, from 1, of every key, table header and list element."""
    return _Scanner(_tokens(text)).scan()


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of `path`, or of the nearest thing around it that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _tokens(text: str) -> list[_Token]:
    line = 1
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        if not _SKIPPED.fullmatch(match[0]):
            found.append(_Token(match[0], line))
        line += match[0].count("\n")
    return found


def _name(text: str) -> str:
    """A key as it is meant: quotes off, escapes undone."""
    if text[0] not in "\"'":
        return text
    try:
        return next(iter(tomllib.loads(f"{text} = 0")))
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _below(path: KeyPath, part: str | int) -> KeyPath:
    return (*path, part) if len(path) < _MAX_DEPTH else path


class _Scanner:
    """Reads the tokens once, statement by statement."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._table: KeyPath = ()
        self._last_index: dict[KeyPath, int] = {}
        self._lines: dict[KeyPath, int] = {}

    def scan(self) -> Mapping[KeyPath, int]:
        while (token := self._peek()) is not None:
            if token.text == "\n":
                self._next += 1
            elif token.text == "[":
                self._header(token.line)
            else:
                self._value(self._key(self._table))
        return self._lines

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _names_until(self, ends: str) -> tuple[str, ...]:
        names: list[str] = []
        while (token := self._peek()) is not None and token.text != "\n":
            self._next += 1
            if token.text in ends:
                break
            names.append(_name(token.text))
        return tuple(names)

    def _key(self, table: KeyPath) -> KeyPath:
        """Reads `key =` or `dotted.key =`, and notes each part's line."""
        token = self._peek()
        path = table
        for name in self._names_until("="):
            path = _below(path, name)
            self._lines.setdefault(path, token.line if token else 1)
        return path

    def _header(self, line: int) -> None:
        self._next += 1
        token = self._peek()
        is_array = token is not None and token.text == "["
        self._next += is_array
        names = self._names_until("]")
        self._names_until("]")
        path: KeyPath = ()
        for name in names[:-1]:
            path = self._latest(_below(path, name))
        if names:
            path = _below(path, names[-1])
        if is_array:
            self._last_index[path] = self._last_index.get(path, -1) + 1
            self._lines.setdefault(path, line)
            path = self._latest(path)
        self._table = path
        self._lines.setdefault(path, line)

    def _latest(self, path: KeyPath) -> KeyPath:
        """A sub-table of `[[list]]` belongs to the list's last element."""
        return _below(path, self._last_index[path]) if path in self._last_index else path

    def _value(self, path: KeyPath) -> None:
        """Reads a value to its end; keeps its own stack, so that no depth of nesting matters."""
        stack: list[_Open] = []
        while (token := self._peek()) is not None:
            if token.text == "\n" and not stack:
                return
            self._next += 1
            if token.text in ("[", "{"):
                self._lines.setdefault(path, token.line)
                stack.append(_Open(path, token.text == "["))
                path = self._element(stack[-1])
            elif token.text in ("]", "}") and stack:
                stack.pop()
            elif token.text == "," and stack:
                stack[-1].index += 1
                path = self._element(stack[-1])
            elif token.text != "\n":
                self._lines.setdefault(path, token.line)

    def _element(self, around: _Open) -> KeyPath:
        if around.is_array:
            return _below(around.path, around.index)
        token = self._peek()
        is_empty = token is not None and token.text == "}"
        return around.path if is_empty else self._key(around.path)
