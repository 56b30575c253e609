"""What is left out of every tree: hidden names, editors' leftovers, keys, and what git ignores."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ragdocs.errors import SourceError, SourceTooLarge
from ragdocs.indexing.patterns import RuleSet, ignore_file_patterns
from ragdocs.indexing.reading import read_file

GITIGNORE = ".gitignore"
# Far beyond any ignore file written by hand: what lies in a folder must not stall its scan.
MAX_IGNORE_FILE_BYTES = 64 * 1024
MAX_RULES = 2000
# The same for all ignore files of a tree together: the worst take a scan 3 s of processor time.
MAX_BYTES_IN_ALL = 1024 * 1024
MAX_RULES_IN_ALL = 20_000

_DIRECTORIES = frozenset({"node_modules"})
_LEFTOVER = re.compile(r".*~|#.*#|~\$.*|.*\.(?:sw[nopx]|tmp)", re.DOTALL | re.IGNORECASE)
_KEY = re.compile(r".*\.pem|id_.*", re.DOTALL | re.IGNORECASE)
# A note such as MDN's `id_selectors.md` is not a key; a note named exactly like a key may be one.
_NOTE = re.compile(
    r"id_(?!(?:dsa|ecdsa|ed25519|rsa|xmss)(?![a-z0-9])).*\.(?:md|markdown)",
    re.DOTALL | re.IGNORECASE,
)


def is_hidden(name: str) -> bool:
    """Whether a file is: .env*, .DS_Store, editors' dotted lock files. One that begins with more
    dots (`...md`, `...and then.md`) is a file like any other."""
    return name.startswith(".") and not name.startswith("..")


def is_ignored_directory(name: str) -> bool:
    """Covers .git, .obsidian, .trash, and `..data`, which a mounted configuration is swapped by."""
    return name.startswith(".") or name in _DIRECTORIES


def is_leftover(name: str) -> bool:
    return _LEFTOVER.fullmatch(name) is not None


def is_key(name: str) -> bool:
    """Whether a private key would have this name: `*.pem`, or `id_*` that is not plainly a note."""
    return _KEY.fullmatch(name) is not None and _NOTE.fullmatch(name) is None


class TooManyRules(SourceError):
    """The ignore files of the tree are too much together: this one is not used."""


@dataclass(slots=True)
class IgnoreBudget:
    """How much of ignore files one scan still reads."""

    bytes: int = MAX_BYTES_IN_ALL
    rules: int = MAX_RULES_IN_ALL

    def take(self, size: int, rules: int) -> None:
        """Raises TooManyRules."""
        if size > self.bytes or rules > self.rules:
            raise TooManyRules(
                f"the tree's ignore files have more than {MAX_BYTES_IN_ALL:,} bytes or "
                f"{MAX_RULES_IN_ALL:,} rules together"
            )
        self.bytes -= size
        self.rules -= rules


@dataclass(frozen=True, slots=True)
class GitIgnores:
    """The ignore files in force in one directory, the nearest last.

    `prefix` is where the tree's root lies in its repository. Each layer is the number of leading
    components its patterns do not see, and the patterns.
    """

    prefix: tuple[str, ...] = ()
    layers: tuple[tuple[int, RuleSet], ...] = ()

    def with_file(self, depth: int, data: bytes, budget: IgnoreBudget) -> Self:
        """Also in force: the ignore file of the directory `depth` levels below the root."""
        patterns = ignore_file_patterns(os.fsdecode(data))
        if len(patterns) > MAX_RULES:
            raise SourceTooLarge(f"{len(patterns)} rules, more than {MAX_RULES}")
        budget.take(len(data), len(patterns))
        layer = len(self.prefix) + depth, RuleSet(patterns)
        return type(self)(self.prefix, (*self.layers, layer))

    def ignores(self, parts: tuple[str, ...], is_directory: bool) -> bool:
        if not self.layers:
            return False
        path = self.prefix + parts
        for depth, rules in reversed(self.layers):
            verdict = rules.verdict(path[depth:], is_directory)
            if verdict is not None:
                return verdict
        return False


def ignores_above(
    root: Path, budget: IgnoreBudget, report: Callable[[str, Exception], None]
) -> GitIgnores:
    """What the repository around `root` ignores: its own exclude file, and .gitignore on the way.

    A rule above that names the root itself does not count: the user named it too.
    """
    repository = next((at for at in (root, *root.parents) if os.path.lexists(at / ".git")), None)
    if repository is None:
        return GitIgnores()
    prefix = root.relative_to(repository).parts
    ignores = GitIgnores(prefix)
    for level, file in _files_above(repository, prefix):
        if os.path.lexists(repository / file):
            try:
                data = read_file(repository, file, MAX_IGNORE_FILE_BYTES).data
                ignores = ignores.with_file(level - len(prefix), data, budget)
            except SourceError as error:
                report("../" * len(prefix) + file, error)
    return ignores


def _files_above(repository: Path, prefix: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    if os.path.isdir(repository / ".git"):  # in a worktree it is a file
        yield 0, ".git/info/exclude"
    for level in range(len(prefix)):
        yield level, "/".join((*prefix[:level], GITIGNORE))
