"""From source files and diffs to weighted pieces of text: what in them says what they are about."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath

from ragdocs.errors import SourceError
from ragdocs.models import TreeName
from ragdocs.parsers.decoding import decode
from ragdocs.parsers.markdown import MARKDOWN_SUFFIXES, Origin, parse_document
from ragdocs.search.library.diffs import ChangedFile, changed_files
from ragdocs.search.library.requests import SourceFile
from ragdocs.search.library.source_code import comments, definitions, without_reserved
from ragdocs.search.retrieval import fair_share
from ragdocs.store.rows import clean

MAX_READ_CHARS = 100_000
"""Of all files together: a short one leaves its share to the others. A character counts as the
bytes that UTF-8 writes it with: an ideograph says as much as several letters, and costs as much."""
MAX_CHANGED_FILES = 50
MAX_DIFF_CHARS = 100_000
"""Of a diff, in which files are looked for."""
BYTES_PER_CHARACTER = 4
"""At most, in any encoding."""
MAX_GIST_CHARS = 1_000
"""About as much as the built-in model reads at once."""
_PROSE = MARKDOWN_SUFFIXES | {".txt", ".rst", ".adoc", ".org", ".tex", ""}
_PATH_PART = re.compile(r"[^/\\]+")


class TermPlace(StrEnum):
    """Where in a file a word stands."""

    PATH = "path"
    HEADING = "heading"
    NAME = "name"
    """Of something that the code defines."""
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
"""What a word gains by each occurrence there. A comment or name is part of the body besides: it
counts 2 or 3 times in all. The order is ra's: path before headings before the body.
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of a file. A piece that `repeats` another adds weight, not occurrences."""

    place: TermPlace
    text: str
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A file as pieces; `gist` is in short what it is about, in plain words; `problem`: why its
    content could not be used, or not all of it.
    """

    name: str
    pieces: tuple[Piece, ...]
    gist: str
    problem: str = ""


def read_sources(files: Sequence[SourceFile]) -> list[ReadSource]:
    room = fair_share(MAX_READ_CHARS, [len(file.content) for file in files])
    return [read_source(file, room) for file in files]


def read_source(file: SourceFile, room: int = MAX_READ_CHARS) -> ReadSource:
    """Any bytes at all are survived: what is not text counts by its path alone."""
    name = clean(file.name)
    try:
        whole = _text(file.content[: BYTES_PER_CHARACTER * (room + 1)])
    except SourceError as error:
        return ReadSource(
            name,
            (Piece(TermPlace.PATH, _path_words(name)),),
            _gist([_path_words(name)]),
            str(error),
        )
    text = _beginning(whole, room)
    source = _by_suffix(name)(name, text)
    if len(whole) == len(text) and len(file.content) <= BYTES_PER_CHARACTER * (room + 1):
        return source
    return replace(source, problem=f"only its first {len(text):,} characters were read")


def read_diff(diff: str | bytes) -> tuple[list[ReadSource], str]:
    """The files that a diff changes; and what is wrong with it, if anything."""
    try:
        whole = _text(diff[:MAX_DIFF_CHARS])
    except SourceError as error:
        return [], f"the diff cannot be read: {error}"
    text = _beginning(whole, MAX_DIFF_CHARS)
    said: list[str] = []
    if len(text) < len(whole) or len(diff) > MAX_DIFF_CHARS:
        said.append(f"only the first {len(text):,} characters of the diff were looked at")
    found = changed_files(text)
    if not found:
        said.append("this is no unified diff: it was read as plain text")
        return [_prose("", text)], "; ".join(said)
    taken = found[:MAX_CHANGED_FILES]
    left = len(found) - len(taken)
    if left:
        said.append(f"{left} more files of the diff were not looked at")
    return [_changed(each) for each in taken], "; ".join(said)


def _beginning(text: str, room: int) -> str:
    return text[:room].encode("utf-8", "replace")[:room].decode("utf-8", "ignore")


def _by_suffix(name: str) -> Callable[[str, str], ReadSource]:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in MARKDOWN_SUFFIXES:
        return _markdown
    return _prose if suffix in _PROSE else _code


def _text(content: str | bytes) -> str:
    if isinstance(content, bytes):
        return decode(content).source.text
    return clean(content).replace("\0", " ")


def _markdown(name: str, text: str) -> ReadSource:
    document = parse_document(text.encode(), Origin(TreeName("source"), name or "source.md", 0))
    headings = [heading.text for heading in document.headings]
    body = text[document.body_start :]
    matter = document.front_matter
    about = [matter.title, matter.description, *matter.keywords, *document.tags]
    pieces = (
        Piece(TermPlace.PATH, _path_words(name)),
        Piece(TermPlace.HEADING, "\n".join(filter(None, [*headings, *about])), repeats=True),
        Piece(TermPlace.BODY, body),
    )
    return ReadSource(
        name, pieces, _gist([_path_words(name), document.title, *headings[:10], body])
    )


def _prose(name: str, text: str) -> ReadSource:
    pieces = (Piece(TermPlace.PATH, _path_words(name)), Piece(TermPlace.BODY, text))
    return ReadSource(name, pieces, _gist([_path_words(name), text]))


def _code(name: str, code: str) -> ReadSource:
    said, named = comments(code), definitions(code)
    pieces = (
        Piece(TermPlace.PATH, _path_words(name)),
        Piece(TermPlace.NAME, "\n".join(named), repeats=True),
        Piece(TermPlace.COMMENT, "\n".join(said), repeats=True),
        Piece(TermPlace.BODY, without_reserved(code)),
    )
    return ReadSource(name, pieces, _gist([_path_words(name), *_shortened(said), *named]))


def _changed(file: ChangedFile) -> ReadSource:
    name = clean(file.name)
    changed, around = "\n".join(file.changed), "\n".join(file.around)
    said = comments(changed)
    named = [*file.headings, *definitions(changed)]
    plain = without_reserved(changed)
    pieces = (
        Piece(TermPlace.PATH, _path_words(name)),
        Piece(TermPlace.NAME, without_reserved("\n".join(named)), repeats=True),
        Piece(TermPlace.COMMENT, "\n".join(said), repeats=True),
        Piece(TermPlace.CHANGED, plain, repeats=True),
        Piece(TermPlace.BODY, f"{plain}\n{without_reserved(around)}"),
    )
    return ReadSource(name, pieces, _gist([_path_words(name), *_shortened(said), *named, changed]))


def _path_words(name: str) -> str:
    """The parts of a path, without the suffix: `src/http/retryPolicy.py` → src http retryPolicy."""
    parts = _PATH_PART.findall(name)
    if parts:
        parts[-1] = PurePosixPath(parts[-1]).stem
    return "\n".join(parts[-8:])


def _shortened(texts: Sequence[str]) -> Iterator[str]:
    """The beginnings, so that a licence at the top does not fill a gist."""
    return (" ".join(text[:400].split())[:200] for text in texts)


def _gist(texts: Sequence[str]) -> str:
    """Words alone: a quotation mark or a minus would be an operator of the query language."""
    words: list[str] = []
    room = MAX_GIST_CHARS
    for text in texts:
        for word in re.findall(r"\w+", text[: MAX_GIST_CHARS * 2]):
            room -= len(word) + 1
            if room < 0:
                return " ".join(words)
            words.append(word.lower() if word in ("AND", "OR", "NOT") else word)
    return " ".join(words)
