"""What project files ask for, and which of them the user trusts.

A file that was found in a project may come from anyone. The settings that give it authority over
the user (`Authority`, declared with each setting) are in force only after `ragdocs trust`. What the
user granted is kept in one file of the data folder: the project file's path, the settings with
their values, and a digest of whatever lies in the project and is loaded because of them. Anything
doubtful there means "not trusted".
"""

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import cast

from ragdocs.config.layers import Assigned, Layer
from ragdocs.config.locations import TRUST_FILE
from ragdocs.config.problems import KeyPath, SettingOrigin, authority_of, find, key_text
from ragdocs.config.values import Authority, absolute, leaves_project
from ragdocs.files import is_link, open_file, user_id
from ragdocs.files import replace as replace_file
from ragdocs.text import advised, plain_value, printable

MAX_BYTES = 5_000_000
"""Of the file of grants: some thousand projects."""
MAX_LOADED_FILES = 20_000
MAX_LOADED_BYTES = 50_000_000_000
MAX_NAMED = 5
"""So many settings are named in one line."""
MAX_NAME_CHARS = 40
LOCK_FILE = "trust.lock"
LOCK_SECONDS = 10.0
_VERSION = 1
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ABSENT = object()
_FREE_TABLE = "embedding.arguments"
"""Its keys are what anyone writes."""
_PATTERNS: tuple[KeyPath, ...] = (("indexing", "include"), ("indexing", "exclude"))


class Standing(StrEnum):
    """How a project's file stands with the user."""

    MODEST = "asks-nothing"
    TRUSTED = "trusted"
    NOT_TRUSTED = "not-trusted"
    CHANGED = "changed"
    FOREIGN = "foreign"

    @property
    def words(self) -> str:
        """What is to be said of the file."""
        return _WORDS[self]


_WORDS = {
    Standing.MODEST: "asks for nothing that needs trust",
    Standing.TRUSTED: "is trusted",
    Standing.NOT_TRUSTED: "is not trusted",
    Standing.CHANGED: "has changed what it asks for since it was trusted",
    Standing.FOREIGN: "belongs to another account",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One setting of a project's file that needs trust."""

    path: KeyPath
    value: object
    origin: SettingOrigin
    authority: Authority

    @property
    def key(self) -> str:
        return key_text(self.path)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A setting that is not in force because its file is not trusted; no key: the whole file.

    `because` is why not even the user's earlier word counts.
    """

    origin: SettingOrigin
    key: str
    value: object
    meaning: str
    standing: Standing
    because: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the user allowed one file: settings with their values, and what was loaded for them."""

    settings: Mapping[str, object]
    loaded: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grants:
    """All that the user allowed, by the file's path; `problem` is why it cannot be used."""

    files: Mapping[str, Grant] = field(default_factory=dict[str, Grant])
    problem: str = ""


class TrustLedger:
    """The file of grants, read when the first project file asks for something."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @cached_property
    def grants(self) -> Grants:
        return read_grants(self._path) if self._path else Grants()

    @property
    def problem(self) -> str:
        """Why what was granted cannot be used; empty while nothing was looked up."""
        found = self.grants.problem if "grants" in vars(self) else ""
        return f"{TRUST_FILE}, which has what you trust, is not used: {found}" if found else ""


@dataclass(frozen=True, slots=True)
class Request:
    """What one project file asks for. `project` is the folder that it speaks for.

    `chosen` are its patterns, if it asks for folders: they are in force without trust for what is
    the project's, and with it they choose from those folders.
    """

    file: Path
    project: Path
    asks: tuple[Ask, ...]
    chosen: Mapping[str, object] = field(default_factory=dict[str, object])

    def standing(self, ledger: TrustLedger) -> Standing:
        """Reads nothing but the file of grants, unless that has a grant for these settings."""
        if not self.asks:
            return Standing.MODEST
        grant = ledger.grants.files.get(os.fspath(self.file))
        if grant is None:
            return Standing.NOT_TRUSTED
        if grant.settings != self._settings:
            return Standing.CHANGED
        try:
            is_same = grant.loaded == self._digests(grant.loaded)
        except (OSError, ValueError):
            is_same = False
        return Standing.TRUSTED if is_same else Standing.CHANGED

    def grant(self) -> Grant:
        """To be remembered. Raises OSError or ValueError for files that cannot be."""
        return Grant(self._settings, self._digests({}))

    def loaded(self) -> tuple[Path, ...]:
        """The files and folders of the project that are loaded because of what it asks for."""
        found = (path for ask in self.asks for path in _loaded(ask, self.project))
        return tuple(dict.fromkeys(found))

    @property
    def _settings(self) -> dict[str, object]:
        """In the form in which they are kept, so that equal values are equal."""
        asked = {ask.key: _kept(ask.value) for ask in self.asks}
        chosen = {key: _kept(value) for key, value in self.chosen.items()}
        return json.loads(json.dumps({**asked, **chosen}, default=str))

    def _digests(self, known: Mapping[str, str]) -> dict[str, str]:
        return {os.fspath(at): digest(at, known.get(os.fspath(at), "")) for at in self.loaded()}


def request_of(
    file: Path, project: Path, layer: Layer, otherwise: Layer, trusted: Layer
) -> Request:
    """`otherwise` is the user's own word: a value that changes nothing asks for nothing. But one
    that takes back what another file is `trusted` with asks as well."""

    def asks() -> Iterator[Ask]:
        for path, assigned in layer.items():
            authority = authority_of(path)
            if authority is None:
                continue
            setting = find(path)
            default = setting.default if setting else _ABSENT
            before = [otherwise[path].value if path in otherwise else default]
            before += [trusted[path].value] if path in trusted else []
            if any(authority.asks(assigned.value, one, project) for one in before):
                yield Ask(path, assigned.value, assigned.origin, authority)

    asked = tuple(sorted(asks(), key=lambda ask: ask.origin.line or 0))
    has_folders = any(ask.authority.asks is leaves_project for ask in asked)
    patterns = [path for path in _PATTERNS if has_folders and path in layer]
    return Request(file, project, asked, {key_text(path): layer[path].value for path in patterns})


def granted(layer: Layer, request: Request, standing: Standing) -> Layer:
    """What is in force of a project file's layer: all of it, or what asks for nothing.

    Paths that do not leave the project are marked: they never will, whatever becomes a link later.
    """
    withheld = set[KeyPath]()
    if standing is not Standing.TRUSTED:
        withheld = {ask.path for ask in request.asks}
    return {
        path: _kept_inside(one, path, request.project)
        for path, one in layer.items()
        if path not in withheld
    }


def _kept_inside(assigned: Assigned, path: KeyPath, project: Path) -> Assigned:
    authority = authority_of(path)
    if authority is None or authority.asks is not leaves_project:
        return assigned
    stays = not leaves_project(assigned.value, _ABSENT, project)
    return replace(assigned, within=project) if stays else assigned


def ignored(request: Request, standing: Standing, because: str = "") -> Iterator[Ignored]:
    if standing in (Standing.NOT_TRUSTED, Standing.CHANGED):
        for ask in request.asks:
            meaning = ask.authority.meaning
            yield Ignored(ask.origin, ask.key, plain_value(ask.value), meaning, standing, because)


def in_words(found: Iterable[Ignored], *, with_folders: bool = True) -> Iterator[str]:
    """A line for each file: what is not in force, and what to do. Without folders, for answers that
    may leave this machine."""
    by_file: dict[str, list[Ignored]] = {}
    for one in found:
        by_file.setdefault(one.origin.where, []).append(one)
    for file, settings in by_file.items():
        shown = printable(file if with_folders else os.path.basename(file))
        standing = settings[0].standing
        if standing is Standing.FOREIGN:
            yield f"{shown} {standing.words} and is not read; `--config` with its path has it read"
            continue
        every = list(dict.fromkeys(_named(one.key) for one in settings))
        names, more = every[:MAX_NAMED], len(every) - MAX_NAMED
        named = ", ".join([*names, f"{more} more"] if more > 0 else names)
        are = "is" if len(every) == 1 else "are"
        command = advised(f"trust {_quoted(shown)}" if with_folders else "trust")
        because = f" ({settings[0].because})" if settings[0].because else ""
        yield (
            f"{shown} {standing.words}{because}: {named} {are} ignored; "
            f"{command} shows what it asks for"
        )


def _named(key: str) -> str:
    """Not by words of the file's own choice: in an answer they would read as the program's."""
    name = _FREE_TABLE if key.startswith(f"{_FREE_TABLE}.") else printable(key)
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…"


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _kept(value: object) -> object:
    """A path letter by letter, unlike `plain_value`, which is for people."""
    if isinstance(value, os.PathLike):
        return os.fspath(cast("Path", value))
    if isinstance(value, list | tuple):
        return [_kept(one) for one in cast("list[object]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return {key: _kept(one) for key, one in pairs}
    return value


def _loaded(ask: Ask, project: Path) -> Iterator[Path]:
    """What of the project a setting has loaded: a folder, a module of that name, or whatever an
    argument names there."""
    if not ask.authority.is_loaded:
        return
    for text in _texts(ask.value):
        module = text.partition(":")[0].partition(".")[0]
        names = [module, f"{module}.py"] if ask.path[-1] == "class_name" else [text]
        for name in names:
            with suppress(ValueError):
                path = absolute(name, project)
                if name and path.is_relative_to(project) and os.path.lexists(path):
                    yield path


def _texts(value: object) -> Iterator[str]:
    kept = _kept(value)
    if isinstance(kept, str):
        yield kept
    elif isinstance(kept, list):
        for one in cast("list[object]", kept):
            yield from _texts(one)
    elif isinstance(kept, dict):
        yield from _texts(list(cast("dict[str, object]", kept).values()))


def digest(path: Path, known: str = "") -> str:
    """Of a file, or of all in a folder: number, bytes, and a hash of names and contents. Where the
    number or the bytes are not those of `known`, nothing is read.

    Raises OSError, or ValueError for what cannot be remembered: a link to a folder, or too much.
    """
    files = dict(sorted(_files(path)))
    size = sum(os.stat(file).st_size for file in files.values())
    if len(files) > MAX_LOADED_FILES or size > MAX_LOADED_BYTES:
        raise ValueError(f"{path} is too large to be remembered")
    begin = f"{len(files)} files, {size} bytes, sha256 "
    if known and not known.startswith(begin):
        return f"{begin}unread"
    whole = hashlib.sha256()
    for name, file in files.items():
        whole.update(name.encode("utf-8", "surrogateescape") + b"\0")
        with open(_regular(file), "rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    return begin + whole.hexdigest()


def _files(path: Path) -> Iterator[tuple[str, str]]:
    """Links to files count as what they lead to: that is what would be loaded."""
    if not path.is_dir():
        yield "", os.fspath(path)
        return

    def refuse(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(path, onerror=refuse):
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                raise ValueError(f"{os.path.join(folder, name)} is a link to a folder")
        for name in names:
            file = os.path.join(folder, name)
            yield os.path.relpath(file, path), file


def _regular(file: str) -> int:
    descriptor = open_file(file, os.O_RDONLY, follow=True)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{file} is not a regular file")
    return descriptor


def read_grants(path: Path) -> Grants:
    """Never raises. What others could have written counts for nothing, and that is said."""
    try:
        found = os.lstat(path.parent)
        if is_link(found) or not stat.S_ISDIR(found.st_mode):
            return Grants(problem="its folder is a link or no folder")
        if reason := _not_ours(found):
            return Grants(problem=f"its folder {reason}")
        descriptor = open_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return Grants()
    except OSError as error:
        return Grants(problem=f"it cannot be opened: {error.strerror}")
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return Grants(problem="it is not a regular file")
        if reason := _not_ours(found):
            return Grants(problem=f"it {reason}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return _parsed(file.read(MAX_BYTES + 1))
    except OSError as error:
        return Grants(problem=f"it cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)


def _not_ours(found: os.stat_result) -> str:
    mine = user_id()
    if mine is None:  # neither owners nor modes mean anything here
        return ""
    if found.st_uid != mine:
        return "belongs to another account"
    if found.st_mode & _WRITABLE_BY_OTHERS:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _parsed(data: bytes) -> Grants:
    damaged = Grants(problem="it is damaged")
    if len(data) > MAX_BYTES:
        return damaged
    try:
        whole: object = json.loads(data)
    except (ValueError, RecursionError):
        return damaged
    if not isinstance(whole, dict):
        return damaged
    table = cast("dict[str, object]", whole)
    files = cast("object", table.get("files"))
    if not isinstance(files, dict) or table.get("sha256") != _seal(cast("object", files)):
        return damaged
    if table.get("version") != _VERSION:
        return Grants(problem="another version of the program wrote it")
    found: dict[str, Grant] = {}
    for name, one in cast("dict[str, dict[str, dict[str, object]]]", files).items():
        try:
            loaded = {at: str(text) for at, text in one["loaded"].items()}
            found[name] = Grant(one["settings"], loaded)
        except (KeyError, AttributeError, TypeError):
            return damaged
    return Grants(found)


def _seal(files: object) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def change_grants(path: Path, change: Callable[[Mapping[str, Grant]], Mapping[str, Grant]]) -> str:
    """Under a lock, so that two at once lose nothing. Returns why what was there before could not
    be used, and is now replaced; mostly nothing.

    Raises OSError, or LockHeld when another process does not finish.
    """
    from ragdocs.locks import lock

    _prepare_folder(path.parent)
    with lock(path.with_name(LOCK_FILE), LOCK_SECONDS):
        before = read_grants(path)
        after = change(before.files)
        if before.problem or after != before.files:
            _write(path, after)
        return before.problem


def _prepare_folder(folder: Path) -> None:
    """The user's alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if is_link(found):
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a link", os.fspath(folder))
    if user_id() is not None and stat.S_IMODE(found.st_mode) != 0o700:
        os.chmod(folder, 0o700)


def _write(path: Path, grants: Mapping[str, Grant]) -> None:
    """Whole or not at all."""
    files = {
        name: {"settings": dict(one.settings), "loaded": dict(one.loaded)}
        for name, one in sorted(grants.items())
    }
    text = json.dumps({"version": _VERSION, "files": files, "sha256": _seal(files)}, indent=1)
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = open_file(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        replace_file(new, path)
    finally:
        new.unlink(missing_ok=True)
    with suppress(OSError):  # where a folder can be opened, its entry lasts too
        opened = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
