"""Whether all folders can be watched: the kernel's limits, and what the watcher says itself."""

import os
from collections.abc import Iterator
from pathlib import Path

from ragdocs.config.resolved import Tree
from ragdocs.diagnosis.case import Case
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.diagnosis.watch_look import look_at_watcher
from ragdocs.files import user_id
from ragdocs.indexing.watch_rules import Parts, WatchRules
from ragdocs.indexing.watcher import WatchMode
from ragdocs.wording import number_of

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
    watcher = look_at_watcher(case.directory)
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
