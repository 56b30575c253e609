"""What project files ask for, and which of them the user trusts.

A file that was found in a project may come from anyone. The settings that give it authority over
the user (`Authority`, declared with each setting) are in force only after `ragdocs trust`. The
user's grants are kept in one file in the data folder: the project file's path, the settings with
their values, and a digest of everything in the project that is loaded because of them. Any doubt
about that file means "not trusted".
"""

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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
"""Maximum size of the file of grants: some thousand projects."""
MAX_LOADED_FILES = 20_000
MAX_LOADED_BYTES = 50_000_000_000
MAX_NAMED = 5
"""How many settings one line names."""
MAX_NAME_CHARS = 40
LOCK_FILE = "trust.lock"
LOCK_SECONDS = 10.0
_VERSION = 1
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ABSENT = object()
_FREE_TABLE = "embedding.arguments"
"""Its keys are free text chosen by the file's author."""
_PATTERNS: tuple[KeyPath, ...] = (("indexing", "include"), ("indexing", "exclude"))


class Standing(StrEnum):
    """Whether the user trusts a project file."""

    MODEST = "asks-nothing"
    TRUSTED = "trusted"
    NOT_TRUSTED = "not-trusted"
    CHANGED = "changed"
    FOREIGN = "foreign"

    @property
    def words(self) -> str:
        """The predicate of a sentence about the file."""
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
    """One setting of a project file that needs trust."""

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

    `because` is why even an earlier grant does not count.
    """

    origin: SettingOrigin
    key: str
    value: object
    meaning: str
    standing: Standing
    because: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the user allowed one file: settings with values, and digests of what they load."""

    settings: Mapping[str, object]
    loaded: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grants:
    """All grants, by the project file's path; `problem` is why they cannot be used."""

    files: Mapping[str, Grant] = field(default_factory=dict[str, Grant])
    problem: str = ""


class TrustLedger:
    """The file of grants; it is read when the first project file asks for something."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @cached_property
    def grants(self) -> Grants:
        return read_grants(self._path) if self._path else Grants()

    @property
    def problem(self) -> str:
        """Why the grants cannot be used; empty before the first lookup."""
        found = self.grants.problem if "grants" in vars(self) else ""
        return f"{TRUST_FILE}, which records what you trust, is not used: {found}" if found else ""


@dataclass(frozen=True, slots=True)
class Request:
    """What one project file asks for. `project` is the folder that it applies to.

    `chosen` are its patterns, if it asks for folders: without trust they apply only inside the
    project, with trust also to those folders.
    """

    file: Path
    project: Path
    asks: tuple[Ask, ...]
    chosen: Mapping[str, object] = field(default_factory=dict[str, object])

    def standing(self, ledger: TrustLedger) -> Standing:
        """Reads only the file of grants, unless it contains a grant for these settings."""
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
        """The grant to record. Raises OSError or ValueError for files that cannot be recorded."""
        return Grant(self._settings, self._digests({}))

    def loaded(self) -> tuple[Path, ...]:
        """The files and folders of the project that are loaded because of what it asks for."""
        found = (path for ask in self.asks for path in _find_loaded(ask, self.project))
        return tuple(dict.fromkeys(found))

    @property
    def _settings(self) -> dict[str, object]:
        """In their stored form, so that equal values compare equal."""
        asked = {ask.key: _to_stored(ask.value) for ask in self.asks}
        chosen = {key: _to_stored(value) for key, value in self.chosen.items()}
        return json.loads(json.dumps({**asked, **chosen}, default=str))

    def _digests(self, known: Mapping[str, str]) -> dict[str, str]:
        return {os.fspath(at): digest(at, known.get(os.fspath(at), "")) for at in self.loaded()}


def request_of(
    file: Path, project: Path, layer: Layer, otherwise: Layer, trusted: Layer
) -> Request:
    """`otherwise` are the user's own settings: a value that changes nothing asks for nothing. But a
    value that overrides a `trusted` value of another file asks as well."""

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
            yield from _asks_to_describe(path, assigned, before)

    asked = tuple(sorted(asks(), key=lambda ask: ask.origin.line or 0))
    has_folders = any(ask.authority.asks is leaves_project for ask in asked)
    patterns = [path for path in _PATTERNS if has_folders and path in layer]
    return Request(file, project, asked, {key_text(path): layer[path].value for path in patterns})


def _asks_to_describe(path: KeyPath, assigned: Assigned, before: Sequence[object]) -> Iterator[Ask]:
    """For the description of a tree, which is part of the tree's table."""
    described = _description(assigned.value)
    key = (*path, "description")
    authority = authority_of(key) if described else None
    if authority is not None and any(_description(one) != described for one in before):
        yield Ask(key, described, assigned.origin, authority)


def _description(tree: object) -> str:
    return str(_table(tree).get("description", ""))


def _table(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def select_granted(layer: Layer, request: Request, standing: Standing) -> Layer:
    """The part of a project file's layer that is in force: all of it, or what asks for nothing.

    Paths inside the project are marked, so that they stay inside even if one becomes a link later.
    """
    withheld = set[KeyPath]()
    if standing is not Standing.TRUSTED:
        withheld = {ask.path for ask in request.asks}
    return {
        path: _keep_inside(_without(one, path, withheld), path, request.project)
        for path, one in layer.items()
        if path not in withheld
    }


def _without(assigned: Assigned, path: KeyPath, withheld: Set[KeyPath]) -> Assigned:
    """A tree is in force without its description, if only that is withheld."""
    if (*path, "description") not in withheld:
        return assigned
    table = _table(assigned.value)
    return replace(assigned, value={key: table[key] for key in table if key != "description"})


def _keep_inside(assigned: Assigned, path: KeyPath, project: Path) -> Assigned:
    authority = authority_of(path)
    if authority is None or authority.asks is not leaves_project:
        return assigned
    stays = not leaves_project(assigned.value, _ABSENT, project)
    return replace(assigned, within=project) if stays else assigned


def ignored_settings(request: Request, standing: Standing, because: str = "") -> Iterator[Ignored]:
    if standing in (Standing.NOT_TRUSTED, Standing.CHANGED):
        for ask in request.asks:
            meaning = ask.authority.meaning
            yield Ignored(ask.origin, ask.key, plain_value(ask.value), meaning, standing, because)


def in_words(found: Iterable[Ignored], *, with_folders: bool = True) -> Iterator[str]:
    """A line for each file: what is not in force, and what to do. Omit folders in answers that may
    leave this machine."""
    by_file: dict[str, list[Ignored]] = {}
    for one in found:
        by_file.setdefault(one.origin.where, []).append(one)
    for file, settings in by_file.items():
        shown = printable(file if with_folders else os.path.basename(file))
        standing = settings[0].standing
        if standing is Standing.FOREIGN:
            yield f"{shown} {standing.words} and is not read; to read it, pass it with `--config`"
            continue
        every = list(dict.fromkeys(_shorten_key(one.key) for one in settings))
        names, more = every[:MAX_NAMED], len(every) - MAX_NAMED
        named = ", ".join([*names, f"{more} more"] if more > 0 else names)
        are = "is" if len(every) == 1 else "are"
        command = advised(f"trust {_quote(shown)}" if with_folders else "trust")
        because = f" ({settings[0].because})" if settings[0].because else ""
        yield (
            f"{shown} {standing.words}{because}: {named} {are} ignored; "
            f"{command} shows what it asks for"
        )


def _shorten_key(key: str) -> str:
    """Never uses free text from the file: in an answer it would look like the program's own."""
    name = _FREE_TABLE if key.startswith(f"{_FREE_TABLE}.") else printable(key)
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…"


def _quote(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _to_stored(value: object) -> object:
    """The stored form of a value. Keeps paths exact, unlike `plain_value`, which is for people."""
    if isinstance(value, os.PathLike):
        return os.fspath(cast("Path", value))
    if isinstance(value, list | tuple):
        return [_to_stored(one) for one in cast("list[object]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return {key: _to_stored(one) for key, one in pairs}
    return value


def _find_loaded(ask: Ask, project: Path) -> Iterator[Path]:
    """The paths in the project that a setting causes to be loaded: a folder, a module of that name,
    or any path that an argument names."""
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
    kept = _to_stored(value)
    if isinstance(kept, str):
        yield kept
    elif isinstance(kept, list):
        for one in cast("list[object]", kept):
            yield from _texts(one)
    elif isinstance(kept, dict):
        yield from _texts(list(cast("dict[str, object]", kept).values()))


def digest(path: Path, known: str = "") -> str:
    """Of a file, or of all files in a folder: their number and size, and a hash of names and
    contents. If number or size differ from those in `known`, no file is read.

    Raises OSError, or ValueError for what cannot be recorded: a link to a folder, or too much.
    """
    files = dict(sorted(_files(path)))
    size = sum(os.stat(file).st_size for file in files.values())
    if len(files) > MAX_LOADED_FILES or size > MAX_LOADED_BYTES:
        raise ValueError(f"{path} is too large to be recorded")
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
    """Links to files count as their targets, because those would be loaded."""
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
    """Never raises. A file that others could have written is ignored, and `problem` says why."""
    try:
        found = os.lstat(path.parent)
        if is_link(found) or not stat.S_ISDIR(found.st_mode):
            return Grants(problem="its folder is a link or not a folder")
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
            return _parse(file.read(MAX_BYTES + 1))
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
        return f"is writable by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _parse(data: bytes) -> Grants:
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
        return Grants(problem="it was written by another version of the program")
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
    """Holds a lock, so that concurrent changes are not lost. Returns why the previous file could
    not be used and was replaced; usually empty.

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
    """Creates the folder, accessible only to the user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(folder)
    if is_link(found):
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a link", os.fspath(folder))
    if user_id() is not None and stat.S_IMODE(found.st_mode) != 0o700:
        os.chmod(folder, 0o700)


def _write(path: Path, grants: Mapping[str, Grant]) -> None:
    """Replaces the file atomically."""
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
    with suppress(OSError):  # where folders can be opened, makes the new entry durable
        opened = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
