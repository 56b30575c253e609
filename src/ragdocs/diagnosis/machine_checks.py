"""Checks of the machine: clients, configuration, models, permissions, platform, disk space,
folders, watching.
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

# MCP clients that start this program: whether the command and its folders exist.

_WORKSPACE = "${workspaceFolder}"


def check_clients(case: Case) -> Iterator[Finding]:
    found: list[Finding] = []
    machine = case.machine
    for file in client_files(machine.home, _projects(case), machine.platform, machine.environ):
        try:
            found += [_check_entry(file, one, case) for one in registrations(file)]
        except Unreadable as error:
            found.append(
                Finding(
                    Level.NOTE,
                    f"{file.client}: {at(file.path)} could not be read: {error}",
                    "its servers were not checked",
                )
            )
    yield from found
    if not found:
        yield Finding(
            Level.OK,
            "no client starts this program from here yet",
            f"{advised('install --client CLIENT')} adds it",
        )


def _projects(case: Case) -> list[Path]:
    """The folders that may have client settings: this one, and those of the documents."""
    config = case.reading.config
    folders = [case.machine.folder, *map(folder_of, case.reading.files)]
    folders += [tree.root for tree in config.trees] if config else []
    return [folder for folder in dict.fromkeys(folders) if folder != case.machine.home]


def _check_entry(file: ClientFile, entry: Registration, case: Case) -> Finding:
    who = f"{file.client} ({at(file.path)}) has {printable(entry.name)}"
    runs = f"which runs {printable(entry.command)}"
    missing = _wrong_command(entry, case) or _wrong_folders(entry)
    if missing:
        return Finding(
            Level.WARNING,
            f"{who}, {runs}: {missing}",
            f"correct it in that file; {advised('install')} shows what it should be",
        )
    given = "".join(f" {option} {printable(value)}" for option, value in entry.folders)
    if file.client == "Claude Desktop" and not os.path.dirname(entry.command):
        return Finding(
            Level.NOTE,
            f"{who}, {runs}{given}",
            "a program started from the desktop may not find it: give its full path",
        )
    return Finding(Level.OK, f"{who}, {runs}{given}")


def _wrong_command(entry: Registration, case: Case) -> str:
    command = os.path.expanduser(_expand(entry, entry.command))
    if "${" in command:
        return ""  # a variable that only the client knows
    if not os.path.dirname(command):
        there = shutil.which(command, path=case.machine.environ.get("PATH"))
        return "" if there else "there is no such command on this PATH"
    place = Path(entry.project or "/") / command
    return "" if os.access(place, os.X_OK) and place.is_file() else "there is no such command"


def _wrong_folders(entry: Registration) -> str:
    for option, value in entry.folders:
        path = Path(os.path.expanduser(_expand(entry, value)))
        is_relative = not path.is_absolute() and entry.project is None
        if option == "--index" or "${" in str(path) or is_relative:
            continue  # created when needed; or only the client knows what it means
        place = Path(entry.project or "/") / path
        if option == "--docs" and not place.is_dir():
            return f"{option} {printable(value)} is not a folder"
        if option == "--config" and not place.is_file():
            return f"{option} {printable(value)} is not a file"
    return ""


def _expand(entry: Registration, text: str) -> str:
    return text.replace(_WORKSPACE, str(entry.project)) if entry.project else text


# The configuration: which files were read, and their problems and notes.

_RERANKING = "search.rerank_enabled"
_SYNONYMS = "search.synonyms_enabled"


def absent_parts(reading: ConfigReading) -> Iterator[Problem]:
    """Settings without effect because a model or a package is missing."""
    from ragdocs.diagnosis.probes import missing_reranker
    from ragdocs.search.wordnet import wordnet_folder

    config = reading.config
    if config is None:
        return
    if config.search.rerank_enabled and (problem := missing_reranker(config)):
        model = printable(str(config.search.rerank_model))
        message = f"has no effect while the model {model} is missing: {problem}"
        yield Problem(config.origins[_RERANKING], _RERANKING, message)
    if config.search.synonyms_enabled and wordnet_folder() is None:
        message = "has no effect without WordNet: install the extra `synonyms`"
        yield Problem(config.origins[_SYNONYMS], _SYNONYMS, message)


def check_configuration(case: Case) -> Iterator[Finding]:
    reading = case.reading
    for problem in reading.problems:
        yield Finding(Level.ERROR, str(problem), f"correct it; {advised('check-config')} checks it")
    for note in (*reading.notes, *absent_parts(reading)):
        yield Finding(Level.NOTE, str(note))
    for line in in_words(reading.ignored):
        yield Finding(Level.WARNING, line, "trust it only if you know who wrote it")
    if reading.problems:
        yield Finding(Level.ERROR, "most checks need a usable configuration and were skipped")
        return
    files = ", ".join(map(at, reading.files))
    yield Finding(Level.OK, files or f"no file ({SINGLE_FILE}), all defaults")


# The models: whether they load, have the expected hashes and give sensible answers.

QUESTION = "how do I reset my password"
NEAR = "reset my password"
FAR = "tomatoes need a lot of sun"
_UNIT = 0.01
"""How far a vector's length may be from 1: int8 models round."""


def check_model(case: Case) -> Iterator[Finding]:
    """Loads the model and embeds three sentences: only use verifies a model."""
    try:
        embedder = case.app.embedder
        embedder.load()
        wrong = _wrong_with(embedder)
    except RagdocsError as error:
        what = "until then search uses keywords only"
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
    works = f"loaded, {embedder.dimension} dimensions, gives sensible vectors"
    yield Finding(Level.OK, f"{embedder.name}{place}: {works}")


def check_reranker(case: Case) -> Iterator[Finding]:
    settings = case.app.config.search
    if not settings.rerank_enabled:
        yield Finding(Level.OK, "off (search.rerank_enabled)")
        return
    try:
        yield Finding(Level.OK, _try_reranker(case.app))
    except EmbeddingError as error:
        yield Finding(Level.WARNING, str(error), "until then results keep their original order")


def _try_reranker(app: App) -> str:
    encoder = open_cross_encoder(str(app.config.search.rerank_model), app.config.embedding.threads)
    encoder.load()
    near, far = encoder.score(QUESTION, [NEAR, FAR])
    if not (0 <= far <= 1 and 0 <= near <= 1):  # written so that NaN fails too
        raise EmbeddingError(f"{encoder.name} gives scores outside [0, 1]: use another model")
    return f"{encoder.name} is loaded and gives scores"


def _wrong_with(embedder: Embedder) -> str:
    """What is wrong with its vectors; empty if nothing is."""
    question = _values(embedder.embed_query(QUESTION))
    near, far = (_values(row) for row in embedder.embed_documents([NEAR, FAR]))
    if len(question) != embedder.dimension:
        return f"gives vectors of {len(question)} numbers instead of {embedder.dimension}"
    lengths = [math.sqrt(_dot(row, row)) for row in (question, near, far)]
    if not all(abs(length - 1) <= _UNIT for length in lengths):
        return "gives vectors that are not of unit length"
    if not _dot(question, near) >= _dot(question, far):
        return "finds a question about passwords nearer to tomatoes than to passwords"
    return ""


def _values(row: "Vectors") -> list[float]:
    return [float(value) for value in row]


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# Only the user has access to the index: modes 0700 and 0600, owned and writable.
#
# Files in the directory that are not ours are left alone, and so is then the directory itself.

FOLDER_MODE, FILE_MODE = 0o700, 0o600
SHOWN = 5


def check_permissions(case: Case) -> Iterator[Finding]:
    directory = case.directory
    try:
        status = os.stat(directory)
    except FileNotFoundError:
        yield _check_absent(directory)
        return
    except OSError as error:
        yield Finding(
            Level.ERROR, f"{at(directory)} cannot be reached: {error.strerror}", "check its folder"
        )
        return
    if not stat.S_ISDIR(status.st_mode):
        yield Finding(
            Level.ERROR,
            f"the index directory {at(directory)} is {kind_of(status.st_mode)}",
            "move it elsewhere, or set another indexing.index_path",
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
    yield from _check_directory(directory, status)


def _check_absent(directory: Path) -> Finding:
    """It will be created, if the nearest existing folder allows that."""
    nearest = next((one for one in directory.parents if one.exists()), Path("/"))
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Finding(Level.OK, f"{at(directory)} does not exist yet")
    return Finding(
        Level.ERROR,
        f"{at(directory)} cannot be created, because {at(nearest)} is not writable",
        "make that folder writable, or set another indexing.index_path",
    )


def _check_directory(directory: Path, status: os.stat_result) -> Iterator[Finding]:
    user = user_id()
    if user is None:
        yield Finding(
            Level.OK,
            f"{at(directory)} has the permissions of its folder (this system has no file modes)",
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
        yield from _check_entries(directory, status, found)


def _check_entries(
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
            + "and has other files besides the index",
            "give the index a folder of its own: indexing.index_path",
        )
    else:
        yield Finding(Level.OK, f"only you have access to {at(directory)}")


def _too_open(directory: Path, wrong: list[tuple[Path, int]]) -> Finding:
    details = tuple(
        f"{at(path)}: {stat.S_IMODE(os.lstat(path).st_mode):04o}, not {mode:04o}"
        for path, mode in wrong[:SHOWN]
        if os.path.lexists(path)
    )
    return Finding(
        Level.WARNING,
        "some permissions of the index are wrong",
        "make folders 0700 and files 0600; the index has the text of your documents",
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
    """Through a descriptor that follows no link: the name may have been replaced meanwhile."""
    try:
        kind = getattr(os, "O_DIRECTORY", 0) if mode == FOLDER_MODE else 0
        descriptor = open_file(path, os.O_RDONLY | kind)
    except PermissionError:  # not readable for its owner, who may still change the mode
        os.chmod(path, mode)
        return
    try:
        set_mode(descriptor, mode)
    finally:
        os.close(descriptor)


# Whether Python, SQLite and the libraries have what this program needs.

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
"""Module → its package."""


def check_platform(_: Case) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    if not has_fts5():
        yield Finding(
            Level.ERROR,
            f"Python's SQLite {sqlite3.sqlite_version} has no FTS5, which keyword search needs",
            "use a Python whose sqlite3 module has it, such as the one from python.org",
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


# Free disk space, compared with what the index needs now and during a rebuild.

FULL_BYTES = 50_000_000
"""With less than this, even a small index cannot be written for long."""
LEAST_BYTES = 500_000_000


def check_space(case: Case) -> Iterator[Finding]:
    directory = case.directory
    nearest = next((one for one in (directory, *directory.parents) if one.exists()), Path("/"))
    free = shutil.disk_usage(nearest).free
    used = disk_use(directory).total
    said = f"{size_text(free)} free, the index takes {size_text(used)}"
    if free < FULL_BYTES:
        yield Finding(Level.ERROR, f"the disk of {at(nearest)} is full: {said}", "free some space")
    elif free < max(LEAST_BYTES, used):
        yield Finding(
            Level.WARNING,
            f"the disk of {at(nearest)} is almost full: {said}",
            "free some space: a rebuild needs as much again as the index",
        )
    else:
        yield Finding(Level.OK, said)


# Folders of documents: whether they exist, are readable and not empty.


def check_trees(case: Case) -> Iterator[Finding]:
    probe = probe_store(case.directory, "")
    for tree in case.app.config.trees:
        yield _check_tree(tree, probe)


def _check_tree(tree: Tree, probe: StoreProbe) -> Finding:
    name = f"{tree.name} ({at(tree.root)})"
    documents, _ = probe.by_tree.get(tree.name, (0, 0))
    problem = root_problem(tree)
    if problem:
        kept = f"; {number_of(documents, 'document')} kept as last indexed" if documents else ""
        return Finding(
            Level.WARNING,
            f"{name} {problem}{kept}",
            "restore the folder, or correct its path (--docs, or the configuration)",
        )
    is_complete = probe.error is None and probe.holdings.files_waiting == 0
    if is_complete and not documents:
        return Finding(
            Level.NOTE,
            f"{name} has no documents",
            f"files must match {', '.join(tree.include)}, and not be ignored (docs/trees.md)",
        )
    known = f": {number_of(documents, 'document')} indexed" if probe.error is None else ""
    return Finding(Level.OK, f"{name}{known}")


# Whether all folders can be watched: the kernel's limits, and what the watcher reports.

MAX_FOLDERS = 200_000
"""Counting stops here; a tree with more has no index of a sensible size."""
FULL_SHARE = 0.9
"""The share of the limit that causes a warning: other programs watch folders too."""
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
            f"process {watcher.pid} polls the files instead of watching them: "
            f"{watcher.reason or 'the reason is unknown'}",
            "changes are still found, but later",
        )
    yield from _limits(case)


def check_descriptors(_: Case) -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # Windows
        yield Finding(Level.OK, "this system reports no limit on open files")
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
        yield Finding(Level.OK, "this system reports no limit on watched folders")
        return
    folders = sum(_folders(tree, case.directory) for tree in case.app.config.trees)
    number = number_of(folders, "folder")
    said = f"{number} of documents, and {watches:,} can be watched ({_WATCHES})"
    if folders > watches * FULL_SHARE:
        yield Finding(
            Level.WARNING,
            said,
            f"changes are then found later, by polling; sudo sysctl fs.inotify.{_WATCHES}="
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
    """Counts the folders that would be watched, by the watcher's own rules."""
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
    """By those of this user's processes that can be inspected."""
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
