"""Finds the files of a tree, or of some paths in it, and reports what it skipped."""

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from ragdocs.errors import SourceError, SourceTooLarge
from ragdocs.indexing.changes import (
    FoundFile,
    RootProblem,
    RootUnavailable,
    Scan,
    SkippedPath,
    SkipReason,
)
from ragdocs.indexing.ignore import (
    GITIGNORE,
    MAX_IGNORE_FILE_BYTES,
    MAX_RULES,
    UNREAD_EXTENSIONS,
    GitIgnores,
    IgnoreBudget,
    Selection,
    TooManyRules,
    TreeRules,
    ignores_above,
    is_hidden,
    is_ignored_directory,
    is_key,
    is_leftover,
)
from ragdocs.indexing.reading import (
    Descent,
    Folder,
    is_behind_link,
    is_nameable,
    is_our_limit,
    open_root,
    read_entry,
    relative_parts,
)
from ragdocs.memory import no_collection

# Which part of a tree is scanned: some files, and everything below some folders.

Names = dict[str, "Names | None"]
"""The names to look for in a folder, with those below each; None means everything below it."""


def scope_of(paths: Iterable[str]) -> frozenset[str] | None:
    """Normalizes the paths; returns None for the whole tree.

    An ignore file is replaced by its folder, because it affects everything there. Paths that no
    file of a tree could have are dropped.
    """
    scope: set[str] = set()
    for path in paths:
        try:
            parts = relative_parts(path) if path else ()
        except SourceError:
            continue
        parts = parts[:-1] if parts[-1:] == (GITIGNORE,) else parts
        if not parts:
            return None
        scope.add("/".join(parts))
    return frozenset(scope)


def names_in(scope: frozenset[str]) -> Names:
    top: Names = {}
    # A folder sorts before its contents and then covers them all.
    for path in sorted(scope, key=lambda path: path.split("/")):
        *folders, name = path.split("/")
        here: Names | None = top
        for folder in folders:
            here = here.setdefault(folder, {}) if here is not None else None
        if here is not None:
            here[name] = None
    return top


# A tree → the files in it, and the skipped paths to report to the user.
#
# The walk opens directories one component at a time, follows no link, opens no file but .gitignore,
# and remembers what it could not read: a file missing from a scan may not be deleted.

# The directory was removed or replaced after its name was listed; the next scan sees its successor.
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_over_budget: set[str] = set()
"""Roots whose ignore files exceeded the total limit in the last full scan."""


def discover(tree: TreeRules, *, respect_gitignore: bool = True) -> Scan | RootUnavailable:
    """The whole tree."""
    with no_collection():
        return _scan(tree, respect_gitignore, None)


def look(
    tree: TreeRules, paths: Iterable[str], *, respect_gitignore: bool = True
) -> Scan | RootUnavailable:
    """Scans these files, and everything below these folders, as a full scan would.

    Lists the folders on the way and never tries a name: where `A.md` and `a.md` open the same
    file, only one of them exists. An ignore file stands for its whole folder.

    Where the ignore files together exceed the limit, only a full scan can determine which of them
    apply, so it runs one.
    """
    is_whole = os.fspath(tree.root) in _over_budget
    return _scan(tree, respect_gitignore, None if is_whole else scope_of(paths))


def _scan(
    tree: TreeRules, respect_gitignore: bool, scope: frozenset[str] | None
) -> Scan | RootUnavailable:
    try:
        root = tree.root if tree.within else tree.root.resolve(strict=True)
        with open_root(root, tree.within) as descriptor, closing(Descent(descriptor)) as descent:
            walk = _Walk(Selection(tree), root, respect_gitignore)
            found = walk.run(descent, scope)
        if scope is None:
            note = _over_budget.add if walk.is_over_budget else _over_budget.discard
            note(os.fspath(tree.root))
        return found
    except FileNotFoundError:
        problem = RootProblem.MISSING
    except NotADirectoryError:
        problem = RootProblem.NOT_A_DIRECTORY
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        problem = RootProblem.LIMITED if is_our_limit(error) else RootProblem.UNREADABLE
    if tree.within and problem is not RootProblem.LIMITED and is_behind_link(tree.root):
        problem = RootProblem.LINKED
    return RootUnavailable(tree.root, problem)


def count_files(
    tree: TreeRules, *, respect_gitignore: bool, most: int, seconds: float
) -> tuple[int, bool]:
    """How many files a scan would find, and whether all were counted: it ends after this many files
    or seconds. A folder that cannot be read has none.
    """
    until = time.monotonic() + seconds
    try:
        with open_root(tree.root, tree.within) as descriptor, closing(Descent(descriptor)) as below:
            walk = _Walk(Selection(tree), tree.root, respect_gitignore)
            return walk.count(below, lambda found: found >= most or time.monotonic() >= until)
    except OSError:
        return 0, True


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory to visit, with the rules it inherits from its parents."""

    parts: tuple[str, ...]
    ignores: GitIgnores
    inside: bool
    only: Names | None


@dataclass(frozen=True, slots=True)
class _Link:
    """A link found by the walk, and whether a file or a folder of its name would be indexed."""

    path: str
    as_file: bool
    as_directory: bool


class _Walk:
    """One pass over a tree, with a list of directories still to visit instead of recursion."""

    def __init__(self, selection: Selection, root: Path, respect_gitignore: bool) -> None:
        self._selection = selection
        self._root = root
        self._respect_gitignore = respect_gitignore
        self._files: list[FoundFile] = []
        self._skipped: list[SkippedPath] = []
        self._unseen: set[str] = set()
        self._links: list[_Link] = []
        self._pending: list[_Directory] = []
        self._budget = IgnoreBudget()
        self._unread = Counter[str]()
        self.is_over_budget = False

    def run(self, descent: Descent, scope: frozenset[str] | None) -> Scan:
        self._walk(descent, scope)
        found = {file.path for file in self._files}
        if scope is not None:
            found |= self._find_link_targets(descent, scope)
        self._judge_links(found)
        files = sorted(self._files, key=attrgetter("path"))  # each path occurs once
        skipped, unseen = tuple(sorted(self._skipped)), frozenset(self._unseen)
        unread = dict(sorted(self._unread.items())) if scope is None else {}
        return Scan(tuple(files), skipped, unseen, scope, unread)

    def count(self, descent: Descent, is_enough: Callable[[int], bool]) -> tuple[int, bool]:
        """How many files were found, and whether every folder was visited."""
        self._start(None)
        while self._pending and not is_enough(len(self._files)):
            self._visit(descent, self._pending.pop())
        return len(self._files), not self._pending

    def _walk(self, descent: Descent, scope: frozenset[str] | None) -> None:
        self._start(scope)
        while self._pending:
            self._visit(descent, self._pending.pop())

    def _start(self, scope: frozenset[str] | None) -> None:
        above = GitIgnores()
        if self._respect_gitignore:
            above = ignores_above(self._root, self._budget, self._refuse)
        only = None if scope is None else names_in(scope)
        self._pending.append(_Directory((), above, inside=False, only=only))

    def _find_link_targets(self, descent: Descent, scope: frozenset[str]) -> set[str]:
        """The files outside the scope that links inside it point to."""
        targets = {Path(os.path.realpath(self._root / link.path)) for link in self._links}
        inside = {at for at in targets if at.is_relative_to(self._root) and os.path.isfile(at)}
        elsewhere = frozenset(at.relative_to(self._root).as_posix() for at in inside) - scope
        if not elsewhere:
            return set()
        walk = _Walk(self._selection, self._root, self._respect_gitignore)
        walk._walk(descent, elsewhere)
        return {file.path for file in walk._files}

    def _visit(self, descent: Descent, directory: _Directory) -> None:
        first = len(self._pending)
        try:
            with descent.open(directory.parts) as folder:
                entries = _filter_entries(folder.entries(), directory.only)
                here = self._with_gitignore(directory, folder, entries)
                for entry in entries:
                    if not is_hidden(entry.name):
                        self._consider(entry, here, folder)
        except OSError as error:
            if not directory.parts:
                raise
            self._miss("/".join(directory.parts), error)
        # A fixed order, because it decides which ignore files apply when they exceed the limit.
        self._pending[first:] = sorted(self._pending[first:], key=attrgetter("parts"), reverse=True)

    def _with_gitignore(
        self, directory: _Directory, folder: Folder, entries: list[os.DirEntry[str]]
    ) -> _Directory:
        if not self._respect_gitignore or all(entry.name != GITIGNORE for entry in entries):
            return directory
        try:
            data = read_entry(folder, GITIGNORE, MAX_IGNORE_FILE_BYTES).data
            ignores = directory.ignores.with_file(len(directory.parts), data, self._budget)
        except (OSError, SourceError) as error:
            if is_our_limit(error):
                raise
            self._refuse("/".join((*directory.parts, GITIGNORE)), error)
            return directory
        return replace(directory, ignores=ignores)

    def _consider(self, entry: os.DirEntry[str], directory: _Directory, folder: Folder) -> None:
        parts = (*directory.parts, entry.name)
        try:
            if directory.only is not None and _leads_nowhere(entry, directory.only):
                return
            if entry.is_symlink():
                as_file = self._wants(parts, directory)
                as_directory = self._enters(parts, directory)
                self._links.append(_Link("/".join(parts), as_file, as_directory))
            elif entry.is_dir(follow_symlinks=False):
                self._enter(parts, directory)
            elif self._wants(parts, directory):
                self._take(entry, parts, folder)
            else:
                self._count_unread(parts, directory)
        except OSError as error:
            self._miss("/".join(parts), error)

    def _enter(self, parts: tuple[str, ...], directory: _Directory) -> None:
        if not self._enters(parts, directory):
            return
        if not is_nameable("/".join(parts)):
            self._skip("/".join(parts), SkipReason.PATH_TOO_LONG)
            return
        inside = self._selection.includes_directory(parts, directory.inside)
        only = None if directory.only is None else directory.only[parts[-1]]
        self._pending.append(_Directory(parts, directory.ignores, inside, only))

    def _enters(self, parts: tuple[str, ...], directory: _Directory) -> bool:
        return not (
            is_ignored_directory(parts[-1])
            or self._selection.excludes(parts, is_directory=True)
            or directory.ignores.ignores(parts, is_directory=True)
        )

    def _wants(self, parts: tuple[str, ...], directory: _Directory) -> bool:
        """Checks the cheapest and most selective condition first: most files are not text."""
        is_included = self._selection.includes(parts, directory.inside)
        return is_included and self._is_allowed(parts, directory)

    def _count_unread(self, parts: tuple[str, ...], directory: _Directory) -> None:
        extension = os.path.splitext(parts[-1])[1].lower()
        if extension in UNREAD_EXTENSIONS and self._is_allowed(parts, directory):
            self._unread[extension] += 1

    def _is_allowed(self, parts: tuple[str, ...], directory: _Directory) -> bool:
        """Whether no rule keeps the file out of the index."""
        return (
            not is_leftover(parts[-1])
            and not self._selection.excludes(parts, is_directory=False)
            and not directory.ignores.ignores(parts, is_directory=False)
        )

    def _take(self, entry: os.DirEntry[str], parts: tuple[str, ...], folder: Folder) -> None:
        path = "/".join(parts)
        if is_key(entry.name):
            self._skip(path, SkipReason.KEY_NAME)
            return
        if not is_nameable(path):
            self._skip(path, SkipReason.PATH_TOO_LONG)
            return
        status = folder.status_of(entry)
        if not stat.S_ISREG(status.st_mode):
            self._skip(path, SkipReason.SPECIAL)
            return
        self._files.append(FoundFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))

    def _judge_links(self, found: set[str]) -> None:
        for link in self._links:
            reason = self._judge(link, found)
            if reason is not None:
                self._skip(link.path, reason)

    def _judge(self, link: _Link, found: set[str]) -> SkipReason | None:
        """None for a link to something that is indexed anyway; other links are reported."""
        path = os.path.join(self._root, link.path)
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
            target = Path(os.path.realpath(path))
        except OSError:
            return SkipReason.BROKEN_LINK if link.as_file else None
        if not (link.as_directory if is_directory else link.as_file):
            return None
        if not target.is_relative_to(self._root):
            return SkipReason.LINK_OUTSIDE
        if is_directory or target.relative_to(self._root).as_posix() in found:
            return None
        return SkipReason.LINK_TO_UNINDEXED

    def _skip(self, path: str, reason: SkipReason, detail: str = "") -> None:
        self._skipped.append(SkippedPath(path, reason, detail))

    def _refuse(self, path: str, error: Exception) -> None:
        if is_our_limit(error.__cause__):
            raise error.__cause__ or error
        self.is_over_budget |= isinstance(error, TooManyRules)
        too_large = f"more than {MAX_IGNORE_FILE_BYTES} bytes or {MAX_RULES} rules"
        detail = too_large if isinstance(error, SourceTooLarge) else str(error)
        self._skip(path, SkipReason.IGNORE_FILE, detail)

    def _miss(self, path: str, error: OSError) -> None:
        if is_our_limit(error):
            raise error
        if error.errno not in _GONE:
            self._unseen.add(path)
            self._skip(path, SkipReason.UNREADABLE, error.strerror or "")


def _filter_entries(listing: list[os.DirEntry[str]], only: Names | None) -> list[os.DirEntry[str]]:
    if only is None:
        return listing
    return [entry for entry in listing if entry.name in only or entry.name == GITIGNORE]


def _leads_nowhere(entry: os.DirEntry[str], only: Names) -> bool:
    """Whether we look for something below the entry and it is not a folder."""
    return only.get(entry.name) is not None and not entry.is_dir(follow_symlinks=False)
