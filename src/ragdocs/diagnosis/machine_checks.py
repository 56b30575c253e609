"""Checks of the machine: configuration, platform, permissions, disk space, models, folders,
watching.
"""

import math
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs import __version__
from ragdocs.app import App
from ragdocs.config.loading import ConfigReading
from ragdocs.config.locations import SINGLE_FILE, folder_of
from ragdocs.config.problems import Problem
from ragdocs.config.resolved import Tree
from ragdocs.config.trust import in_words
from ragdocs.diagnosis.case import Case, Finding, Level, Repair, at
from ragdocs.diagnosis.clients import (
    ClientFile,
    Registration,
    Unreadable,
    client_files,
    registrations,
)
from ragdocs.diagnosis.probes import (
    FolderEntry,
    Part,
    StoreProbe,
    disk_use,
    entries,
    kind_of,
    probe_store,
    probe_watcher,
)
from ragdocs.embedding.base import Embedder
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.cross_encoder import open_cross_encoder
from ragdocs.errors import EmbeddingError, RagdocsError
from ragdocs.files import has_other_names, open_file, set_mode, user_id
from ragdocs.indexing.reading import root_problem
from ragdocs.indexing.watch_events import Parts, WatchRules
from ragdocs.indexing.watcher import WatchMode
from ragdocs.store.folder import is_foreign
from ragdocs.text import advised, number_of, printable, size_text

if TYPE_CHECKING:
    from ragdocs.embedding.base import Vectors

# MCP clients that start this program: whether what they start exists, and gets folders that do.

_WORKSPACE = "${workspaceFolder}"


def check_clients(case: Case) -> Iterator[Finding]:
    found: list[Finding] = []
    machine = case.machine
    for file in client_files(machine.home, _projects(case), machine.platform, machine.environ):
        try:
            found += [_examined_entry(file, one, case) for one in registrations(file)]
        except Unreadable as error:
            found.append(
                Finding(
                    Level.NOTE,
                    f"{file.client}: {at(file.path)} was not understood: {error}",
                    "its servers are not known, then",
                )
            )
    yield from found
    if not found:
        yield Finding(
            Level.OK, "no client starts this program from here yet", f"{advised('install')} adds it"
        )


def _projects(case: Case) -> list[Path]:
    """The folders that clients may have settings in: this one, and those of the documents."""
    config = case.reading.config
    folders = [case.machine.folder, *map(folder_of, case.reading.files)]
    folders += [tree.root for tree in config.trees] if config else []
    return [folder for folder in dict.fromkeys(folders) if folder != case.machine.home]


def _examined_entry(file: ClientFile, entry: Registration, case: Case) -> Finding:
    who = f"{file.client} ({at(file.path)}) has {printable(entry.name)}"
    runs = f"which runs {printable(entry.command)}"
    missing = _wrong_command(entry, case) or _wrong_folders(entry)
    if missing:
        return Finding(
            Level.WARNING,
            f"{who}, {runs}: {missing}",
            f"put it right in that file; {advised('install')} shows what it should be",
        )
    given = "".join(f" {option} {printable(value)}" for option, value in entry.folders)
    if file.client == "Claude Desktop" and not os.path.dirname(entry.command):
        return Finding(
            Level.NOTE,
            f"{who}, {runs}{given}",
            "a program started from the desktop may not find it: give its whole path",
        )
    return Finding(Level.OK, f"{who}, {runs}{given}")


def _wrong_command(entry: Registration, case: Case) -> str:
    command = os.path.expanduser(_resolved(entry, entry.command))
    if "${" in command:
        return ""  # the client's own names, which only it knows
    if not os.path.dirname(command):
        there = shutil.which(command, path=case.machine.environ.get("PATH"))
        return "" if there else "there is no such command on this PATH"
    place = Path(entry.project or "/") / command
    return "" if os.access(place, os.X_OK) and place.is_file() else "there is no such command"


def _wrong_folders(entry: Registration) -> str:
    for option, value in entry.folders:
        path = Path(os.path.expanduser(_resolved(entry, value)))
        is_relative = not path.is_absolute() and entry.project is None
        if option == "--index" or "${" in str(path) or is_relative:
            continue  # made when it is needed; or only the client knows what it means
        place = Path(entry.project or "/") / path
        if option == "--docs" and not place.is_dir():
            return f"{option} {printable(value)} is not a folder"
        if option == "--config" and not place.is_file():
            return f"{option} {printable(value)} is not a file"
    return ""


def _resolved(entry: Registration, text: str) -> str:
    return text.replace(_WORKSPACE, str(entry.project)) if entry.project else text


# The configuration: which files were read, what is wrong with them, what should be known.

_RERANKING = "search.rerank_enabled"
_SYNONYMS = "search.synonyms_enabled"


def absent_parts(reading: ConfigReading) -> Iterator[Problem]:
    """What is set and has no effect because something outside of the settings is not there."""
    from ragdocs.diagnosis.probes import missing_reranker
    from ragdocs.search.wordnet import wordnet_folder

    config = reading.config
    if config is None:
        return
    if config.search.rerank_enabled and (problem := missing_reranker(config)):
        model = printable(str(config.search.rerank_model))
        message = f"has no effect while the model {model} is not there: {problem}"
        yield Problem(config.origins[_RERANKING], _RERANKING, message)
    if config.search.synonyms_enabled and wordnet_folder() is None:
        message = "has no effect while there is no WordNet: install the extra `synonyms`"
        yield Problem(config.origins[_SYNONYMS], _SYNONYMS, message)


def check_configuration(case: Case) -> Iterator[Finding]:
    reading = case.reading
    for problem in reading.problems:
        yield Finding(
            Level.ERROR, str(problem), f"put it right; {advised('check-config')} checks it"
        )
    for note in (*reading.notes, *absent_parts(reading)):
        yield Finding(Level.NOTE, str(note))
    for line in in_words(reading.ignored):
        yield Finding(Level.WARNING, line, "trust it only if you know who wrote it")
    if reading.problems:
        yield Finding(Level.ERROR, "without a usable configuration most checks cannot be made")
        return
    files = ", ".join(map(at, reading.files))
    yield Finding(Level.OK, files or f"no file ({SINGLE_FILE}): the defaults are in force")


# The models: found, the ones we know by their hashes, and giving sensible answers.

QUESTION = "how do I reset my password"
NEAR = "reset my password"
FAR = "tomatoes need a lot of sun"
_UNIT = 0.01
"""How far from 1 a vector's length may be: int8 models round."""


def check_model(case: Case) -> Iterator[Finding]:
    """Loads it and embeds three sentences; a model is loaded and verified only by use."""
    try:
        embedder = case.app.embedder
        embedder.load()
        wrong = _wrong_with(embedder)
    except RagdocsError as error:
        what = "until then passages are found by their words only"
        yield Finding(Level.ERROR, str(error), what)
        return
    rejected = embedder.rejected if isinstance(embedder, BuiltinEmbedder) else ()
    for note in embedder.notes:
        level = Level.WARNING if note in rejected else Level.NOTE
        yield Finding(level, note)
    if wrong:
        advice = "try another version of onnxruntime, or another model"
        yield Finding(Level.ERROR, f"{embedder.name} {wrong}", advice)
        return
    place = f" from {embedder.place}" if isinstance(embedder, BuiltinEmbedder) else ""
    works = f"loaded, {embedder.dimension} dimensions, tells passwords from tomatoes"
    yield Finding(Level.OK, f"{embedder.name}{place}: {works}")


def check_reranker(case: Case) -> Iterator[Finding]:
    settings = case.app.config.search
    if not settings.rerank_enabled:
        yield Finding(Level.OK, "off (search.rerank_enabled)")
        return
    try:
        yield Finding(Level.OK, _reranked(case.app))
    except EmbeddingError as error:
        yield Finding(Level.WARNING, str(error), "until then results keep their first order")


def _reranked(app: App) -> str:
    encoder = open_cross_encoder(str(app.config.search.rerank_model), app.config.embedding.threads)
    encoder.load()
    near, far = encoder.score(QUESTION, [NEAR, FAR])
    if not (0 <= far <= 1 and 0 <= near <= 1):  # so that a NaN fails as well
        raise EmbeddingError(f"{encoder.name} gives scores outside [0, 1]: use another model")
    return f"{encoder.name} is loaded and gives scores"


def _wrong_with(embedder: Embedder) -> str:
    """What is not as it should be with its vectors; empty when all is."""
    question = _values(embedder.embed_query(QUESTION))
    near, far = (_values(row) for row in embedder.embed_documents([NEAR, FAR]))
    if len(question) != embedder.dimension:
        return f"gives vectors of {len(question)} numbers, not of {embedder.dimension}"
    lengths = [math.sqrt(_dot(row, row)) for row in (question, near, far)]
    if not all(abs(length - 1) <= _UNIT for length in lengths):
        return "gives vectors that are not of unit length"
    if not _dot(question, near) >= _dot(question, far):
        return "finds tomatoes nearer to a password than a password"
    return ""


def _values(row: "Vectors") -> list[float]:
    return [float(value) for value in row]


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# The index is its user's alone: 0700 and 0600, owned and writable.
#
# What lies in the directory and is not the program's is left alone, and so is then the directory.

FOLDER_MODE, FILE_MODE = 0o700, 0o600
SHOWN = 5


def check_permissions(case: Case) -> Iterator[Finding]:
    directory = case.directory
    try:
        status = os.stat(directory)
    except FileNotFoundError:
        yield _absent(directory)
        return
    except OSError as error:
        yield Finding(
            Level.ERROR, f"{at(directory)} cannot be reached: {error.strerror}", "see its folder"
        )
        return
    if not stat.S_ISDIR(status.st_mode):
        yield Finding(
            Level.ERROR,
            f"the index directory {at(directory)} is {kind_of(status.st_mode)}",
            "move it away, or set another indexing.index_path",
        )
        return
    if is_foreign(directory):
        yield Finding(
            Level.ERROR,
            f"{at(directory)} is not empty, and is not an index of this program",
            "nothing in it is touched: set indexing.index_path (--index) to an empty folder, or "
            "to one that does not exist yet",
        )
        return
    yield from _of_directory(directory, status)


def _absent(directory: Path) -> Finding:
    """It will be made; if its nearest folder allows that."""
    nearest = next((one for one in directory.parents if one.exists()), Path("/"))
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Finding(Level.OK, f"{at(directory)} is not there yet")
    return Finding(
        Level.ERROR,
        f"{at(directory)} cannot be made, because {at(nearest)} must not be written to",
        "make that folder writable, or set another indexing.index_path",
    )


def _of_directory(directory: Path, status: os.stat_result) -> Iterator[Finding]:
    user = user_id()
    if user is None:
        yield Finding(
            Level.OK, f"{at(directory)} has the permissions of the folder it is in (no modes here)"
        )
        return
    if status.st_uid != user:
        yield Finding(
            Level.ERROR,
            f"{at(directory)} belongs to another user ({status.st_uid})",
            "set another indexing.index_path; an index is for one user",
        )
        return
    try:
        found = list(entries(directory))
    except OSError as error:
        found = []
        yield Finding(
            Level.ERROR,
            f"{at(directory)} cannot be listed: {error.strerror}",
            "make it readable",
            repair=_repair(directory, [(directory, FOLDER_MODE)]),
        )
    else:
        yield from _of_entries(directory, status, found)


def _of_entries(
    directory: Path, status: os.stat_result, found: list[FolderEntry]
) -> Iterator[Finding]:
    ours = [entry for entry in found if entry.part is not Part.FOREIGN]
    others = [entry for entry in ours if entry.status.st_uid != user_id()]
    wrong = [change for entry in ours if (change := _wrong_mode(entry))]
    is_shared = len(ours) < len(found)
    if stat.S_IMODE(status.st_mode) != FOLDER_MODE and not is_shared:
        wrong.append((directory, FOLDER_MODE))
    if others:
        names = tuple(at(entry.path) for entry in others[:SHOWN])
        yield Finding(
            Level.ERROR,
            f"{len(others)} files of the index belong to another user",
            "delete the index directory as that user, or set another indexing.index_path",
            details=names,
        )
    elif wrong:
        yield _too_open(directory, wrong)
    elif is_shared and status.st_mode & 0o077:
        is_writable = status.st_mode & 0o022
        yield Finding(
            Level.WARNING if is_writable else Level.NOTE,
            f"{at(directory)} is open to others ({stat.S_IMODE(status.st_mode):04o}), "
            + ("who can change the index, " if is_writable else "")
            + "and holds more than the index",
            "give the index a folder of its own: indexing.index_path",
        )
    else:
        yield Finding(Level.OK, f"{at(directory)} is yours alone")


def _too_open(directory: Path, wrong: list[tuple[Path, int]]) -> Finding:
    details = tuple(
        f"{at(path)}: {stat.S_IMODE(os.lstat(path).st_mode):04o}, not {mode:04o}"
        for path, mode in wrong[:SHOWN]
        if os.path.lexists(path)
    )
    return Finding(
        Level.WARNING,
        "some permissions of the index are not as they should be",
        "make folders 0700 and files 0600; the index holds the text of your documents",
        details=details,
        repair=_repair(directory, wrong),
    )


def _wrong_mode(entry: FolderEntry) -> tuple[Path, int] | None:
    if not (entry.is_file or entry.is_folder) or has_other_names(entry.status):
        return None
    mode = FOLDER_MODE if entry.is_folder else FILE_MODE
    is_right = stat.S_IMODE(entry.status.st_mode) == mode
    return None if is_right or entry.status.st_uid != user_id() else (entry.path, mode)


def _repair(directory: Path, wrong: list[tuple[Path, int]]) -> Repair:
    return Repair(f"set permissions in {at(directory)}", partial(_set_modes, wrong))


def _set_modes(wrong: list[tuple[Path, int]]) -> str:
    for path, mode in wrong:
        _set_mode(path, mode)
    number = len(wrong)
    return f"set the permissions of {number} {'file' if number == 1 else 'files'}"


def _set_mode(path: Path, mode: int) -> None:
    """Through a descriptor that follows no link: the name may mean something else by now."""
    try:
        kind = getattr(os, "O_DIRECTORY", 0) if mode == FOLDER_MODE else 0
        descriptor = open_file(path, os.O_RDONLY | kind)
    except PermissionError:  # not readable even for its owner, who may change that
        os.chmod(path, mode)
        return
    try:
        set_mode(descriptor, mode)
    finally:
        os.close(descriptor)


# Whether Python, SQLite and the libraries can do what the program needs.

LIBRARIES = {
    "faiss": "faiss-cpu",
    "markdown_it": "markdown-it-py",
    "mcp": "mcp",
    "networkx": "networkx",
    "numpy": "numpy",
    "onnxruntime": "onnxruntime",
    "rapidfuzz": "rapidfuzz",
    "Stemmer": "pystemmer",
    "tokenizers": "tokenizers",
    "watchdog": "watchdog",
    "yaml": "pyyaml",
}
"""Module → the package that brings it."""


def check_platform(_: Case) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    if not has_fts5():
        yield Finding(
            Level.ERROR,
            f"Python's SQLite {sqlite3.sqlite_version} has no FTS5, which keyword search needs",
            "use a Python whose sqlite3 module has it; that of python.org has",
        )
        return
    missing = [package for module, package in LIBRARIES.items() if find_spec(module) is None]
    if missing:
        yield Finding(
            Level.ERROR,
            f"not installed: {', '.join(missing)}",
            f"pip install {' '.join(missing)}",
        )
        return
    versions = f"Python {python}, SQLite {sqlite3.sqlite_version} with FTS5"
    yield Finding(Level.OK, f"ragdocs {__version__}, {versions}")


def has_fts5() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.Error:
            return False
    return True


# Room on the disk, against what the index takes now and would take while it is rebuilt.

FULL_BYTES = 50_000_000
"""With less than this, not even a small index can be written for long."""
LEAST_BYTES = 500_000_000


def check_space(case: Case) -> Iterator[Finding]:
    directory = case.directory
    nearest = next((one for one in (directory, *directory.parents) if one.exists()), Path("/"))
    free = shutil.disk_usage(nearest).free
    used = disk_use(directory).total
    said = f"{size_text(free)} free, the index takes {size_text(used)}"
    if free < FULL_BYTES:
        yield Finding(Level.ERROR, f"the disk of {at(nearest)} is full: {said}", "make room on it")
    elif free < max(LEAST_BYTES, used):
        yield Finding(
            Level.WARNING,
            f"there is little room on the disk of {at(nearest)}: {said}",
            "make room: an index takes as much again while it is rebuilt",
        )
    else:
        yield Finding(Level.OK, said)


# Folders of documents: there, readable, not empty; and what is kept of those that are not.


def check_trees(case: Case) -> Iterator[Finding]:
    probe = probe_store(case.directory, "")
    for tree in case.app.config.trees:
        yield _examined(tree, probe)


def _examined(tree: Tree, probe: StoreProbe) -> Finding:
    name = f"{tree.name} ({at(tree.root)})"
    documents, _ = probe.by_tree.get(tree.name, (0, 0))
    problem = root_problem(tree)
    if problem:
        kept = f"; {number_of(documents, 'document')} kept as last seen" if documents else ""
        return Finding(
            Level.WARNING,
            f"{name} {problem}{kept}",
            "bring the folder back, or correct its path (--docs, or the configuration)",
        )
    is_complete = probe.error is None and probe.holdings.files_waiting == 0
    if is_complete and not documents:
        return Finding(
            Level.NOTE,
            f"{name} has no document",
            f"files must match {', '.join(tree.include)}, and not be ignored (docs/trees.md)",
        )
    known = f": {number_of(documents, 'document')} indexed" if probe.error is None else ""
    return Finding(Level.OK, f"{name}{known}")


# Whether all folders can be watched: the kernel's limits, and what the watcher says itself.

MAX_FOLDERS = 200_000
"""So many are counted; a tree of more has no index of a sensible size."""
FULL_SHARE = 0.9
"""Other programs watch folders too: from this part of the limit on, it is said."""
LEAST_DESCRIPTORS = 256
_WATCHES = "max_user_watches"
_INSTANCES = "max_user_instances"


def check_watching(case: Case) -> Iterator[Finding]:
    if not case.app.config.indexing.watch:
        yield Finding(Level.OK, "off (indexing.watch)")
        return
    watcher = probe_watcher(case.directory)
    if watcher is not None and watcher.mode == WatchMode.POLLING:
        yield Finding(
            Level.WARNING,
            f"process {watcher.pid} looks at the files now and then instead of watching them: "
            f"{watcher.reason or 'it did not say why'}",
            "changes are found all the same, only later",
        )
    yield from _limits(case)


def check_descriptors(_: Case) -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # Windows
        yield Finding(Level.OK, "this system has no limit of open files that could be read")
        return
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < LEAST_DESCRIPTORS:
        yield Finding(
            Level.WARNING,
            f"a process may have {soft} files open",
            f"raise it: ulimit -n {LEAST_DESCRIPTORS * 4}",
        )
        return
    said = "any number of" if soft == resource.RLIM_INFINITY else f"{soft:,}"
    yield Finding(Level.OK, f"a process may have {said} files open")


def _limits(case: Case) -> Iterator[Finding]:
    watches = _limit(case.machine.proc, _WATCHES)
    instances = _limit(case.machine.proc, _INSTANCES)
    if watches is None or instances is None:
        yield Finding(Level.OK, "this system has no limit that could be read")
        return
    folders = sum(_folders(tree, case.directory) for tree in case.app.config.trees)
    number = number_of(folders, "folder")
    said = f"{number} of documents, and {watches:,} can be watched ({_WATCHES})"
    if folders > watches * FULL_SHARE:
        yield Finding(
            Level.WARNING,
            said,
            f"changes are then found later, by looking; sudo sysctl fs.inotify.{_WATCHES}="
            f"{max(folders * 4, 65536)} raises it",
        )
    elif instances <= _instances_used(case.machine.proc):
        yield Finding(
            Level.WARNING,
            f"all {instances} watchers that one user may have are in use ({_INSTANCES})",
            f"sudo sysctl fs.inotify.{_INSTANCES}={max(instances * 4, 512)} raises it",
        )
    else:
        yield Finding(Level.OK, said)


def _limit(proc: Path, name: str) -> int | None:
    try:
        with open(proc / "sys/fs/inotify" / name, encoding="ascii") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return None


def _folders(tree: Tree, private: Path) -> int:
    """Those that would be watched: counted by the watcher's own rules."""
    try:
        root = tree.root.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        return 0
    rules = WatchRules(tree, root, (private,))
    pending: list[Parts] = [()]
    number = 0
    while pending and number < MAX_FOLDERS:
        parts = pending.pop()
        number += 1
        pending += [below for below in _below(root, parts) if rules.enters(below)]
    return number


def _below(root: Path, parts: Parts) -> list[Parts]:
    try:
        with os.scandir(os.path.join(root, *parts)) as entries:
            return [
                (*parts, entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _instances_used(proc: Path) -> int:
    """By this user's processes, as far as they can be seen."""
    number = 0
    for folder in proc.glob("[0-9]*/fd"):
        try:
            names = os.listdir(folder) if folder.stat().st_uid == user_id() else []
        except OSError:
            continue
        number += sum(_is_inotify(folder / name) for name in names)
    return number


def _is_inotify(path: Path) -> bool:
    try:
        return os.readlink(path) == "anon_inode:inotify"
    except OSError:
        return False
