"""Where documents are: from a document to its file, and from what is typed to documents.

Inside the program a document is the name of its tree and a path within it. `Places` adds the real
file to an answer, and understands every spelling of it in a request. It looks at no document: a
spelling has several readings, and the index decides which of them is right.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, TypeVar, cast

from ragdocs.config.resolved import Tree
from ragdocs.errors import QueryError
from ragdocs.models import TreeName
from ragdocs.parsers.ids import decode_path, encode_path

MAX_SHOWN_CHARS = 120
MAX_FILE_CHARS = 4096
"""Linux's PATH_MAX: no file has a longer path, so links on the way need not be looked up."""
HINT = "give an id, a path relative to its tree, `path#heading` or `path:10-40`"
_LINES = re.compile(r"(?P<path>.+):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL)
_WIKILINK = re.compile(r"!?\[\[(?P<target>[^\[\]|]+?)\\?(?:\|[^\[\]]*)?\]\]")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# An invalid UTF-8 byte of a name becomes one of U+DC80 to U+DCFF; no name has other surrogates.
_NEVER_IN_A_NAME = re.compile("[\x00\ud800-\udc7f\udd00-\udfff]")
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
_T = TypeVar("_T")


def shown_path(path: str) -> str:
    """A path as every answer shows it: one that is not UTF-8 is percent-encoded, as in an id."""
    return encode_path(path) if _NOT_UTF_8.search(path) else path


def real_path(shown: str) -> str:
    """The path that is shown like this."""
    decoded = decode_path(shown)
    return decoded if _NOT_UTF_8.search(decoded) else shown


def printable_name(text: str) -> str:
    """A name for a message: on one line, valid text, and short."""
    safe = encode_path(_NEVER_IN_A_NAME.sub("\ufffd", text))
    return safe if len(safe) <= MAX_SHOWN_CHARS else f"{safe[: MAX_SHOWN_CHARS - 1]}…"


@dataclass(frozen=True, slots=True)
class PathReading:
    """One reading of what was typed: a path in one tree or in any, with a heading, with lines, or
    neither."""

    path: str
    tree: str | None = None
    fragment: str | None = None
    lines: tuple[int, int] | None = None


Readings = tuple[PathReading, ...]
"""Readings that are equally likely: if several are right, the text is ambiguous."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of the trees, and the folder that relative paths start from: the client's root,
    or the working directory. Without `has_files`, for clients on other machines, no file is named
    and none is taken.
    """

    roots: Mapping[TreeName, Path] = field(default_factory=dict[TreeName, Path])
    base: Path | None = None
    has_files: bool = True

    @classmethod
    def of(cls, trees: Iterable[Tree], base: Path | None = None) -> "Places":
        return cls({tree.name: tree.root for tree in trees}, base)

    def based_on(self, folder: Path | None) -> "Places":
        return replace(self, base=folder)

    # From a document to its file.

    def file_of(self, tree: str, path: str) -> str | None:
        """The real path, with `/`: relative to the base if it lies below it, otherwise absolute.
        `path` is as an answer shows it."""
        root = self.roots.get(TreeName(tree))
        if root is None or not self.has_files:
            return None
        folder = self._shown_root(root)
        is_encoded = real_path(path) != path
        if is_encoded or _NOT_UTF_8.search(folder):
            # All of it is encoded, so that it can be decoded again.
            folder = encode_path(folder)
            path = path if is_encoded else encode_path(path)
        return f"{folder}{path}"

    def with_files(self, answer: _T) -> _T:
        """The same answer, in which everything that has a tree, a path and a `file` has its file.
        An answer that can be packed again has them then, too."""
        if not is_dataclass(answer) or isinstance(answer, type):
            return answer
        given = {one.name: getattr(answer, one.name) for one in fields(answer)}
        changed: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, tuple):
                items = cast("tuple[object, ...]", value)
                added = tuple(map(self.with_files, items))
                if any(new is not old for new, old in zip(added, items, strict=True)):
                    changed[name] = added
            elif is_dataclass(value) and (found := self.with_files(value)) is not value:
                changed[name] = found
            elif name == "pack" and value is not None:
                changed[name] = _Packer(value, self)
        if "file" in given and given.get("tree") and given.get("path"):
            changed["file"] = self.file_of(given["tree"], given["path"])
        return cast("_T", replace(answer, **changed)) if changed else answer

    def _shown_root(self, root: Path) -> str:
        """What the files of a tree begin with; empty if its folder is the base."""
        if self.base is None or not root.is_relative_to(self.base):
            above = root
        elif root == self.base:
            return ""
        else:
            above = root.relative_to(self.base)
        return f"{above.as_posix().removesuffix('/')}/"

    # From what is typed to documents.

    def readings(self, reference: str) -> list[Readings]:
        """Every reading of a reference that stays within the trees, the most literal first.

        A file's name may contain `#`, `:` or `%`, so a reference has several readings.

        Raises:
            QueryError: there is no such reading.
        """
        text = _typed_path(reference)
        found = dict.fromkeys(self._readings(text))
        named = [tuple(one for one in group if one.path) for group in found]
        named = [group for group in named if group]
        if not named:
            raise QueryError(self._describe_refused(reference, text))
        return named

    def folders(self, path: str) -> list[Readings]:
        """What a path filter may mean, the most literal first; all readings of one meaning apply
        together. A heading or lines count as their document.

        Raises:
            QueryError: it lies outside the trees.
        """
        text = _typed_path(path)
        found: dict[Readings, None] = {}
        for group in self._readings(text):
            whole = [PathReading(one.path, one.tree) for one in group]
            for meant in (
                tuple(one for one in whole if one.tree is None),
                tuple(one for one in whole if one.tree is not None),
            ):
                if meant:
                    found[meant] = None
        if not found:
            raise QueryError(self._describe_refused(path, text))
        return list(found)

    def _readings(self, text: str) -> Iterator[Readings]:
        tree, colon, rest = text.partition(":")
        if colon and tree in self.roots:
            for path, fragment, lines in _forms(rest):
                if (inside := _path_in_tree(path)) is not None:
                    yield (PathReading(inside, tree, fragment, lines),)
        for path, fragment, lines in _forms(text):
            at = tuple(dict.fromkeys(self._in_files(path, fragment, lines)))
            inside = None if _is_absolute(path) else _path_in_tree(path)
            own = () if inside is None else (PathReading(inside, None, fragment, lines),)
            groups = (at, own) if _is_file_path(path) else ((*own, *at),)
            yield from filter(None, groups)

    def _absolute(self, path: str) -> str | None:
        """As a file on this machine; None if none may be named so."""
        if not self.has_files:
            return None
        if path == "~" or path.startswith("~/"):
            path = os.path.expanduser("~") + path[1:]
        if os.path.isabs(path):
            return os.path.normpath(path)
        if self.base is None or _DRIVE.match(path):
            return None
        return os.path.normpath(os.path.join(self.base, path))

    def _in_files(
        self, path: str, fragment: str | None, lines: tuple[int, int] | None
    ) -> Iterator[PathReading]:
        """The trees that a file is in, the deepest first, and those that are in it, if it is a
        folder: as it is spelled, and without links, because a link may lead to a tree."""
        whole = self._absolute(path)
        if whole is None:
            return
        by_depth = sorted(self.roots.items(), key=lambda one: -len(one[1].parts))
        for spelled in map(PurePath, _file_spellings(whole)):
            for tree, root in by_depth:
                if spelled.is_relative_to(root):
                    rest = spelled.relative_to(root).as_posix()
                    yield PathReading("" if rest == "." else rest, tree, fragment, lines)
                elif root.is_relative_to(spelled):
                    yield PathReading("", tree, fragment, lines)

    def _describe_refused(self, reference: str, text: str) -> str:
        if _is_absolute(text):
            outside = " outside the folders of the documents" if self.has_files else ""
            return f"an absolute path{outside} is not accepted: {HINT}"
        parts = chain(text.split("/"), decode_path(text).split("/"))
        if any(part.rpartition(":")[2] == ".." for part in parts):
            return f"a path that leaves its tree with `..` is not accepted: {HINT}"
        return f"`{printable_name(reference)}` names no document: {HINT}"


def working_directory() -> Path | None:
    """None if it is gone."""
    try:
        return Path.cwd()
    except OSError:
        return None


def clients_folder() -> Path | None:
    """The working directory, if it can be the folder that a client works in. Some clients start
    servers in the home folder or at the root, while their own tools start paths elsewhere."""
    folder = working_directory()
    home = Path(os.path.realpath(os.path.expanduser("~")))
    return None if folder is None or home.is_relative_to(folder) else folder


@dataclass(frozen=True, slots=True)
class _Packer:
    """Packs an answer again, with the files of what is in it."""

    pack: Any
    places: Places

    def __call__(self, *arguments: object) -> object:
        return self.places.with_files(self.pack(*arguments))


def _typed_path(reference: str) -> str:
    """Without the brackets and the alias of a wikilink.

    Raises QueryError for a text that cannot be a file's name.
    """
    if _NEVER_IN_A_NAME.search(reference):
        raise QueryError(f"the reference has characters that no file's name can have: {HINT}")
    text = reference
    if found := _WIKILINK.fullmatch(text.strip()):
        text = found["target"].strip()
    return text.replace("\\", "/") if os.name == "nt" else text


def _is_absolute(path: str) -> bool:
    is_home = path == "~" or path.startswith("~/")
    return path.startswith("/") or is_home or _DRIVE.match(path) is not None


def _is_file_path(path: str) -> bool:
    """Whether it is written as the path of a file, rather than as one in a tree."""
    return _is_absolute(path) or path.startswith(("./", "../")) or path in (".", "..")


def _file_spellings(whole: str) -> list[str]:
    """As typed, without links on the way, and in NFC."""
    found = [whole]
    if len(whole) <= MAX_FILE_CHARS:
        found.append(os.path.realpath(whole))
    if not whole.isascii():
        found.append(unicodedata.normalize("NFC", whole))
    return list(dict.fromkeys(found))


_Form = tuple[str, str | None, tuple[int, int] | None]


def _forms(text: str) -> Iterator[_Form]:
    """Path, heading and lines, in each way to divide the text."""
    for path in _spellings(text):
        yield path, None, None
    if found := _LINES.fullmatch(text):
        first = int(found["first"])
        for path in _spellings(found["path"]):
            yield path, None, (first, int(found["last"] or first))
    # In an id the first `#` ends the path; in a typed path it may be the last one.
    for before, hash_sign, fragment in dict.fromkeys((text.partition("#"), text.rpartition("#"))):
        if before and hash_sign and fragment:
            for path in _spellings(before):
                yield path, fragment, None


def _spellings(text: str) -> Iterator[str]:
    """As typed, and decoded as in an id."""
    decoded = decode_path(text)
    parts = decoded.split("/")
    is_hidden_way_out = decoded != text and ".." in parts
    if not is_hidden_way_out and not any(part.endswith(":..") for part in parts):
        yield from (path for path in dict.fromkeys((text, decoded)) if "\0" not in path)


def _path_in_tree(path: str) -> str | None:
    """Without `./`, doubled slashes and `..`; None if it leaves the tree."""
    parts: list[str] = []
    for part in path.split("/") if not path.startswith("/") else ("..",):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
