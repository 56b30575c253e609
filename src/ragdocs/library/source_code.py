"""Reads source files and diffs as weighted text: comments, names and what was changed."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath

from ragdocs.errors import SourceError
from ragdocs.library.requests import EditedFile
from ragdocs.limits import MAX_READ_SOURCE_CHARS, MAX_SOURCE_FILES
from ragdocs.models import TreeName
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.markdown import MARKDOWN_SUFFIXES, Origin, parse_document
from ragdocs.search.retrieval import fair_share
from ragdocs.text import without_surrogates

# A unified diff as the files it changes: their names, the changed lines, and those around them.

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OCTALS = re.compile(r"(?:\\[0-7]{3})+")
_NOTHING = "/dev/null"


@dataclass(slots=True)
class ChangedFile:
    """The lines added or removed, those around them, and the headings of the hunks."""

    name: str
    changed: list[str] = field(default_factory=list[str])
    around: list[str] = field(default_factory=list[str])
    headings: list[str] = field(default_factory=list[str])


def changed_files(diff: str) -> list[ChangedFile]:
    """Empty for a text that is not a unified diff."""
    return list(_DiffReader().read(diff))


class _DiffReader:
    """Reads line by line; a hunk ends by its own counts, whatever is in its lines."""

    def __init__(self) -> None:
        self._old_name = ""
        self._file: ChangedFile | None = None
        self._old_left = 0
        self._new_left = 0

    def read(self, diff: str) -> Iterator[ChangedFile]:
        for line in diff.split("\n"):
            if self._old_left > 0 or self._new_left > 0:
                self._take(line)
            elif line.startswith("--- "):
                self._old_name = _name(line[4:])
            elif line.startswith(("+++ ", "rename to ")):
                self._file = ChangedFile(self._new_name(line.partition(" ")[2]))
                yield self._file
            elif self._file is not None and (found := _HUNK.match(line)):
                self._old_left = int((found[1] or "1")[:9])
                self._new_left = int((found[2] or "1")[:9])
                self._file.headings += [found[3]] if found[3] else []

    def _new_name(self, text: str) -> str:
        name = _name(text.removeprefix("to "))
        return self._old_name if name == _NOTHING else name

    def _take(self, line: str) -> None:
        sign, rest = line[:1], line[1:]
        if self._file is None or sign == "\\":
            return
        self._old_left -= sign != "+"
        self._new_left -= sign != "-"
        (self._file.changed if sign in ("+", "-") else self._file.around).append(rest)


def _name(text: str) -> str:
    """Without git's `a/` and `b/`, its quoting, and the time that other tools add."""
    quoted = _QUOTED.match(text)
    name = _unquote(quoted[1]) if quoted else text.partition("\t")[0].rstrip("\r")
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquote(text: str) -> str:
    plain = _OCTALS.sub(
        lambda found: bytes(int(part, 8) & 255 for part in found[0].split("\\")[1:]).decode(
            "utf-8", "replace"
        ),
        text,
    )
    return re.sub(r"\\(.)", r"\1", plain)


# The comments of source code in any language, and the names it defines.
#
# Found by marks that most languages share, without a parser: a wrong guess only costs a little
# weight. Linear in the length of any text.

_BLOCKS = (("/*", "*/"), ('"""', '"""'), ("'''", "'''"), ("<!--", "-->"), ("{-", "-}"))
_LINE = re.compile(r"(?:^|(?<=[ \t]))(?:#{1,3}|//[/!]?|--|;{1,3}|%)(?=[ \t])[^\n]*", re.MULTILINE)
_DEFINITION = re.compile(
    r"\b(?:class|const|def|defmodule|enum|fn|func|function|impl|interface|macro|module|namespace"
    r"|object|package|procedure|protocol|record|sub|struct|trait|type|union)[ \t]+([^\W\d]\w*)"
)
_MARKS = re.compile(r"[*#/;%=\-]{2,}|^[ \t]*[*#/;%][ \t]", re.MULTILINE)

_RESERVED_WORDS = """
    abstract args assert async await bool boolean break bytes case catch char class const continue
    dataclass default defer define delete dict double elif else endif enum except export extends
    extern false final finally float foreach from frozenset func function global goto ifdef ifndef
    implements import include instanceof int32 int64 interface internal kwargs lambda long mutable
    namespace native none nonlocal null nullptr object operator override package pass private
    protected public pure raise readonly register return self short signed sizeof static strict
    string struct super switch template this throw throws trait true tuple type typedef typename
    typeof uint32 uint64 uint8 undefined union unsigned using virtual void volatile where while with
    yield
"""
_BY_LETTER = groupby(sorted(_RESERVED_WORDS.split()), itemgetter(0))
_RESERVED = re.compile(
    r"\b(?:"
    + "|".join(
        f"[{letter}{letter.upper()}](?i:{'|'.join(word[1:] for word in words)})"
        for letter, words in _BY_LETTER
    )
    + r")\b"
)
"""Grouped by first letter: a quarter of the time of a plain list."""


def without_reserved(code: str) -> str:
    """Without the keywords of programming languages: they are rare in documentation, so they would
    count as telling.
    """
    return _RESERVED.sub(" ", code)


def comments(code: str) -> list[str]:
    """Without their marks, in order within each kind."""
    found = [*_blocks(code), *(match.group() for match in _LINE.finditer(code))]
    return [text for each in found if (text := _MARKS.sub(" ", each).strip())]


def definitions(code: str) -> list[str]:
    """The names that are defined, each once, in order."""
    return list(dict.fromkeys(match[1] for match in _DEFINITION.finditer(code)))


def _blocks(code: str) -> Iterator[str]:
    for opening, closing in _BLOCKS:
        at = code.find(opening)
        while at >= 0:
            start = at + len(opening)
            end = code.find(closing, start)
            if end < 0:
                break
            yield code[start:end]
            at = code.find(opening, end + len(closing))


# From source files and diffs to weighted pieces of text that show what they are about.

BYTES_PER_CHARACTER = 4
"""At most, in any encoding."""
MAX_GIST_CHARS = 1_000
"""About as much as the built-in model reads at once."""
_PROSE = MARKDOWN_SUFFIXES | {".txt", ".rst", ".adoc", ".org", ".tex", ""}
_PATH_PART = re.compile(r"[^/\\]+")


class TermPlace(StrEnum):
    """Where in a file a word occurs."""

    PATH = "path"
    HEADING = "heading"
    NAME = "name"
    """The name of something that the code defines."""
    COMMENT = "comment"
    CHANGED = "changed"
    BODY = "body"
    RULE = "rule"


WEIGHTS = {
    TermPlace.PATH: 4.0,
    TermPlace.HEADING: 3.0,
    TermPlace.NAME: 2.0,
    TermPlace.COMMENT: 1.0,
    TermPlace.CHANGED: 1.0,
    TermPlace.BODY: 1.0,
}
"""The weight of each occurrence there. A comment or name is also part of the body, so it counts 2
or 3 times in total. The order is ra's: path before headings before the body.
"""


@dataclass(frozen=True, slots=True)
class SourcePiece:
    """Some text of a file. A piece that `repeats` another adds weight, not occurrences."""

    place: TermPlace
    text: str
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A file as pieces; `gist` is a short text about it, in plain words; `problem`: why its content
    could not be used, or not all of it.
    """

    name: str
    pieces: tuple[SourcePiece, ...]
    gist: str
    problem: str = ""


def read_sources(files: Sequence[EditedFile]) -> list[ReadSource]:
    room = fair_share(MAX_READ_SOURCE_CHARS, [len(file.content) for file in files])
    return [read_source(file, room) for file in files]


def read_source(file: EditedFile, room: int = MAX_READ_SOURCE_CHARS) -> ReadSource:
    """Accepts any bytes: a file that is not text counts by its path alone."""
    name = without_surrogates(file.name)
    try:
        whole = plain_text(file.content[: BYTES_PER_CHARACTER * (room + 1)])
    except SourceError as error:
        return ReadSource(
            name,
            (SourcePiece(TermPlace.PATH, _path_words(name)),),
            _gist([_path_words(name)]),
            str(error),
        )
    text = _beginning(whole, room)
    source = _by_suffix(name)(name, text)
    if len(whole) == len(text) and len(file.content) <= BYTES_PER_CHARACTER * (room + 1):
        return source
    return replace(source, problem=f"only its first {len(text):,} characters were read")


def read_diff(diff: str | bytes) -> tuple[list[ReadSource], str]:
    """The files that a diff changes, and its problem, if any."""
    try:
        whole = plain_text(diff[:MAX_READ_SOURCE_CHARS])
    except SourceError as error:
        return [], f"the diff cannot be read: {error}"
    text = _beginning(whole, MAX_READ_SOURCE_CHARS)
    said: list[str] = []
    if len(text) < len(whole) or len(diff) > MAX_READ_SOURCE_CHARS:
        said.append(f"only the first {len(text):,} characters of the diff were read")
    found = changed_files(text)
    if not found:
        said.append("this is not a unified diff: it was read as plain text")
        return [_read_prose("", text)], "; ".join(said)
    taken = found[:MAX_SOURCE_FILES]
    left = len(found) - len(taken)
    if left:
        said.append(f"{left} more files of the diff were not read")
    return [_read_change(each) for each in taken], "; ".join(said)


def _beginning(text: str, room: int) -> str:
    return text[:room].encode("utf-8", "replace")[:room].decode("utf-8", "ignore")


def _by_suffix(name: str) -> Callable[[str, str], ReadSource]:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in MARKDOWN_SUFFIXES:
        return _read_markdown
    return _read_prose if suffix in _PROSE else _read_code


def plain_text(content: str | bytes) -> str:
    if isinstance(content, bytes):
        return decode(content).source.text
    return without_surrogates(content).replace("\0", " ")


def _read_markdown(name: str, text: str) -> ReadSource:
    document = parse_document(text.encode(), Origin(TreeName("source"), name or "source.md", 0))
    headings = [heading.text for heading in document.headings]
    body = text[document.body_start :]
    matter = document.front_matter
    about = [matter.title, matter.description, *matter.keywords, *document.tags]
    pieces = (
        SourcePiece(TermPlace.PATH, _path_words(name)),
        SourcePiece(TermPlace.HEADING, "\n".join(filter(None, [*headings, *about])), repeats=True),
        SourcePiece(TermPlace.BODY, body),
    )
    return ReadSource(
        name, pieces, _gist([_path_words(name), document.title, *headings[:10], body])
    )


def _read_prose(name: str, text: str) -> ReadSource:
    pieces = (SourcePiece(TermPlace.PATH, _path_words(name)), SourcePiece(TermPlace.BODY, text))
    return ReadSource(name, pieces, _gist([_path_words(name), text]))


def _read_code(name: str, code: str) -> ReadSource:
    said, named = comments(code), definitions(code)
    pieces = (
        SourcePiece(TermPlace.PATH, _path_words(name)),
        SourcePiece(TermPlace.NAME, "\n".join(named), repeats=True),
        SourcePiece(TermPlace.COMMENT, "\n".join(said), repeats=True),
        SourcePiece(TermPlace.BODY, without_reserved(code)),
    )
    return ReadSource(name, pieces, _gist([_path_words(name), *_shorten(said), *named]))


def _read_change(file: ChangedFile) -> ReadSource:
    name = without_surrogates(file.name)
    changed, around = "\n".join(file.changed), "\n".join(file.around)
    said = comments(changed)
    named = [*file.headings, *definitions(changed)]
    plain = without_reserved(changed)
    pieces = (
        SourcePiece(TermPlace.PATH, _path_words(name)),
        SourcePiece(TermPlace.NAME, without_reserved("\n".join(named)), repeats=True),
        SourcePiece(TermPlace.COMMENT, "\n".join(said), repeats=True),
        SourcePiece(TermPlace.CHANGED, plain, repeats=True),
        SourcePiece(TermPlace.BODY, f"{plain}\n{without_reserved(around)}"),
    )
    return ReadSource(name, pieces, _gist([_path_words(name), *_shorten(said), *named, changed]))


def _path_words(name: str) -> str:
    """The parts of a path, without the suffix: `src/http/retryPolicy.py` → src http retryPolicy."""
    parts = _PATH_PART.findall(name)
    if parts:
        parts[-1] = PurePosixPath(parts[-1]).stem
    return "\n".join(parts[-8:])


def _shorten(texts: Sequence[str]) -> Iterator[str]:
    """Only the beginnings, so that a licence at the top does not fill a gist."""
    return (" ".join(text[:400].split())[:200] for text in texts)


def _gist(texts: Sequence[str]) -> str:
    """Only words: a quotation mark or a minus would be an operator of the query language."""
    words: list[str] = []
    room = MAX_GIST_CHARS
    for text in texts:
        for word in re.findall(r"\w+", text[: MAX_GIST_CHARS * 2]):
            room -= len(word) + 1
            if room < 0:
                return " ".join(words)
            words.append(word.lower() if word in ("AND", "OR", "NOT") else word)
    return " ".join(words)
