"""Which files are skipped: hidden files, keys, files that git ignores, and those that the settings
exclude.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from ragdocs.errors import SourceError, SourceTooLarge
from ragdocs.indexing.reading import read_file
from ragdocs.memory import BoundedCache

# Path patterns in .gitignore syntax, matched component by component.
#
# Our own code, because the library for it disagreed with `git check-ignore` on 13 of 150 random
# trees and took 14 s for one hostile line (specs/0005). Matching here is polynomial in the lengths
# of pattern and path, for any pattern.

RULES_BYTES = 2 << 20
_DOUBLE_STAR = re.compile(r"\*\*+")
_NEVER = "(?!)"
_WILD = re.compile(r"[*?\[\\]")
_TOKEN = re.compile(
    r"(?P<stars>\*+)"
    r"|(?P<one>\?)"
    # A closing bracket that comes first, or that ends a group such as [:digit:], does not close.
    r"|\[(?P<negated>[!^]?+)(?P<set>(?>\]?(?:\[:[a-z]*:\]|\\.|[^\]\\])*))\]"
    r"|(?P<invalid>\[|\\\Z)"
    r"|\\?(?P<literal>.)",
    re.DOTALL,
)
_SET_ITEM = re.compile(r"\[:(?P<group>[a-z]*):\]|\\?(?P<first>.)(?:-\\?(?P<last>.))?", re.DOTALL)
_SET_GROUPS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Glob:
    """The pattern of one component. Compiled on first use: most rules in a large ignore file are
    never used."""

    __slots__ = ("_expression", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._expression: re.Pattern[str] | None = None

    @property
    def literal(self) -> str | None:
        """The only name it matches, if it has no wildcard."""
        return None if _WILD.search(self._text) else self._text

    @property
    def source(self) -> str:
        """The regular expression."""
        return _expression(self._text)

    def matches(self, name: str) -> bool:
        if self._expression is None:
            if self.literal is not None:
                return name == self._text
            self._expression = re.compile(self.source, re.DOTALL)
        return self._expression.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern: a glob for the last component and one per folder before it; None means `**`.

    With `**` as the only folder, it matches at any depth.
    """

    negated: bool
    directories_only: bool
    name: Glob
    folders: tuple[Glob | None, ...] = (None,)

    def matches_folder(self, folder: Sequence[str]) -> bool:
        return self.folders == (None,) or _match_folders(self.folders, folder)

    def matches_name(self, name: str, is_directory: bool) -> bool:
        return (is_directory or not self.directories_only) and self.name.matches(name)


class RuleSet:
    """Patterns in order: the last one that matches decides.

    A match applies to exactly this path; the walk decides what it means for everything below.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules = [parse_rule(pattern) for pattern in reversed(list(patterns))]
        # Most names match no rule: a set and one combined expression rule them out quickly. And a
        # walk checks all names of one folder in a row, so we keep the rules that can apply there.
        self._literals = {rule.name.literal for rule in self._rules}
        self._wild: re.Pattern[str] | None = None
        self._folder: Sequence[str] | None = None
        self._rules_here: list[Rule] = []
        self._is_settled_here = False

    def verdict(self, parts: Sequence[str], is_directory: bool) -> bool | None:
        """True for a match, False for a match by a `!pattern`, None for no match at all."""
        if not self._rules:
            return None
        if not self._may_match(parts[-1]):
            return None
        folder, name = parts[:-1], parts[-1]
        if folder != self._folder:
            self._enter(folder)
        if self._is_settled_here:
            return True
        for rule in self._rules_here:
            if rule.matches_name(name, is_directory):
                return not rule.negated
        return None

    def _may_match(self, name: str) -> bool:
        if name in self._literals:
            return True
        if self._wild is None:
            wild = (rule.name for rule in self._rules if rule.name.literal is None)
            sources = dict.fromkeys(glob.source for glob in wild)
            self._wild = re.compile("|".join(map("(?:{})".format, sources)) or _NEVER, re.DOTALL)
        return self._wild.fullmatch(name) is not None

    def _enter(self, folder: Sequence[str]) -> None:
        self._folder = folder
        self._rules_here = [rule for rule in self._rules if rule.matches_folder(folder)]
        # Where every rule applies and all give the same verdict, any match settles it.
        is_plain = not any(rule.negated or rule.directories_only for rule in self._rules)
        self._is_settled_here = is_plain and len(self._rules_here) == len(self._rules)


def ignore_file_patterns(text: str) -> list[str]:
    """The patterns of a .gitignore file, without comments, blank lines and trailing spaces."""
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    trimmed = (_trim(line) for line in lines if not line.startswith("#"))
    return [line for line in trimmed if line]


def _trim(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


def parse_rule(pattern: str) -> Rule:
    return _rules[pattern]


def _make_rule(pattern: str) -> Rule:
    negated = pattern.startswith("!")
    path = pattern[1:] if negated else pattern
    directories_only = path.endswith("/")
    path = path[:-1] if directories_only else path
    if "/" not in path:
        return Rule(negated, directories_only, Glob(path))
    names = path.removeprefix("/").split("/")
    if _DOUBLE_STAR.fullmatch(names[-1]):
        # At the end it matches the contents, not the directory itself.
        names.append("*")
    folders = (None if _DOUBLE_STAR.fullmatch(name) else Glob(name) for name in names[:-1])
    return Rule(negated, directories_only, Glob(names[-1]), tuple(folders))


_rules = BoundedCache(_make_rule, RULES_BYTES)
_NOTHING = Glob("[")
"""An invalid pattern, which matches no name."""


def _match_folders(folders: Sequence[Glob | None], parts: Sequence[str]) -> bool:
    """Without recursion: after a `**`, backtracking only ever moves the last one forward."""
    at = part = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        expected = folders[at] if at < len(folders) else _NOTHING
        if expected is None:
            at += 1
            retry = at, part
        elif expected.matches(parts[part]):
            at, part = at + 1, part + 1
        elif retry is not None:
            at, part = retry[0], retry[1] + 1
            retry = at, part
        else:
            return False
    return all(folder is None for folder in folders[at:])


def _expression(glob: str) -> str:
    pieces = [""]
    for token in _TOKEN.finditer(glob):
        if token["invalid"]:
            return _NEVER
        if token["stars"]:
            pieces.append("")
        else:
            pieces[-1] += _translate(token)
    first, *rest = pieces
    if not rest:
        return first
    # Each star but the last takes the shortest possible match and never gives it up: a longer one
    # would not help, and backtracking is what makes patterns with many stars explode.
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return f"{first}{middle}.*{rest[-1]}"


def _translate(token: re.Match[str]) -> str:
    if token["one"]:
        return "."
    if token["literal"]:
        return re.escape(token["literal"])
    items = [_set_item(item) for item in _SET_ITEM.finditer(token["set"])]
    if None in items:
        return _NEVER
    return f"[{'^' if token['negated'] else ''}{''.join(item or '' for item in items)}]"


def _set_item(item: re.Match[str]) -> str | None:
    if item["group"] is not None:
        return _SET_GROUPS.get(item["group"])
    first, last = item["first"], item["last"]
    if last is None:
        return re.escape(first)
    # A backwards range still matches its first character.
    return re.escape(first) + (f"{re.escape(first)}-{re.escape(last)}" if first <= last else "")


def matches_any(patterns: Iterable[str], path: str) -> bool:
    """Whether patterns like those of a tree match this path, written with `/`."""
    parts = tuple(part for part in path.split("/") if part)
    return bool(parts and RuleSet(patterns).verdict(parts, is_directory=False))


# What every tree skips: hidden names, editors' leftovers, keys, and what git ignores.

GITIGNORE = ".gitignore"
# Far beyond any hand-written ignore file: a folder's contents must not stall its scan.
MAX_IGNORE_FILE_BYTES = 64 * 1024
MAX_RULES = 2000
# The same for all ignore files of a tree together: the worst case costs a scan 3 s of CPU time.
MAX_BYTES_IN_ALL = 1024 * 1024
MAX_RULES_IN_ALL = 20_000

_DIRECTORIES = frozenset({"node_modules"})
_LEFTOVER = re.compile(r".*~|#.*#|~\$.*|.*\.(?:sw[nopx]|tmp)", re.DOTALL | re.IGNORECASE)
_KEY = re.compile(r".*\.pem|id_.*", re.DOTALL | re.IGNORECASE)
# A note such as MDN's `id_selectors.md` is not a key; a note named exactly like a key may be one.
_NOTE = re.compile(
    r"id_(?!(?:dsa|ecdsa|ed25519|rsa|xmss)(?![a-z0-9])).*\.(?:mdx?|markdown)",
    re.DOTALL | re.IGNORECASE,
)


def is_hidden(name: str) -> bool:
    """Whether a file name is hidden: .env*, .DS_Store, editors' dotted lock files. A name that
    starts with several dots (`...md`, `...and then.md`) is not."""
    return name.startswith(".") and not name.startswith("..")


def is_ignored_directory(name: str) -> bool:
    """Covers .git, .obsidian, .trash, and `..data`, which swaps in a mounted configuration."""
    return name.startswith(".") or name in _DIRECTORIES


def is_leftover(name: str) -> bool:
    return _LEFTOVER.fullmatch(name) is not None


def is_key(name: str) -> bool:
    """Whether the name looks like a private key: `*.pem`, or `id_*` that is not clearly a note."""
    return _KEY.fullmatch(name) is not None and _NOTE.fullmatch(name) is None


class TooManyRules(SourceError):
    """The ignore files of the tree together exceed the limit; this one is not used."""


@dataclass(slots=True)
class IgnoreBudget:
    """How much more one scan may read of ignore files."""

    bytes: int = MAX_BYTES_IN_ALL
    rules: int = MAX_RULES_IN_ALL

    def take(self, size: int, rules: int) -> None:
        """Raises TooManyRules."""
        if size > self.bytes or rules > self.rules:
            raise TooManyRules(
                f"the tree's ignore files together have more than {MAX_BYTES_IN_ALL:,} bytes or "
                f"{MAX_RULES_IN_ALL:,} rules"
            )
        self.bytes -= size
        self.rules -= rules


@dataclass(frozen=True, slots=True)
class GitIgnores:
    """The ignore files that apply to one directory, the nearest last.

    `prefix` is the path of the tree's root in its repository. Each layer has the number of leading
    components that its patterns do not see, and the patterns.
    """

    prefix: tuple[str, ...] = ()
    layers: tuple[tuple[int, RuleSet], ...] = ()

    def with_file(self, depth: int, data: bytes, budget: IgnoreBudget) -> Self:
        """Adds the ignore file of the directory `depth` levels below the root."""
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
    """The ignore rules of the repository around `root`: its exclude file and each .gitignore on
    the way down.

    A rule above that matches the root itself does not count, because the user configured the root.
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


# The user's choice of files in a tree: the `include` and `exclude` patterns.

TEXT_EXTENSIONS = frozenset({".md", ".markdown", ".mdx", ".canvas", ".txt"})
UNREAD_EXTENSIONS = frozenset(
    {
        *(".pdf", ".doc", ".docx", ".odt", ".rtf", ".pages", ".epub", ".html", ".htm", ".tex"),
        *(".ppt", ".pptx", ".odp", ".key", ".xls", ".xlsx", ".ods", ".numbers", ".csv"),
        *(".ipynb", ".rst", ".adoc", ".asciidoc", ".org"),
    }
)
"""Documents that a user may expect to find, and that are not read. Neither code nor pictures."""


class TreeRules(Protocol):
    """What discovery needs to know about a configured tree."""

    @property
    def root(self) -> Path: ...
    @property
    def within(self) -> Path | None: ...
    @property
    def include(self) -> tuple[str, ...]: ...
    @property
    def exclude(self) -> tuple[str, ...]: ...


class Selection:
    """The user's patterns. Extensions match case-insensitively, the rest exactly."""

    def __init__(self, tree: TreeRules) -> None:
        self._include = RuleSet(tree.include), RuleSet(map(_fold_extension, tree.include))
        self._exclude = RuleSet(tree.exclude), RuleSet(map(_fold_extension, tree.exclude))
        self._has_excludes = bool(tree.exclude)

    def excludes(self, parts: tuple[str, ...], is_directory: bool) -> bool:
        return self._has_excludes and self._verdict(*self._exclude, parts, is_directory) is True

    def includes(self, parts: tuple[str, ...], inside: bool) -> bool:
        verdict = self._verdict(*self._include, parts, False)
        if verdict is not None:
            return verdict
        return inside and os.path.splitext(parts[-1])[1].lower() in TEXT_EXTENSIONS

    def includes_directory(self, parts: tuple[str, ...], inside: bool) -> bool:
        """Whether a pattern matches this folder or a parent: then its text files are included."""
        verdict = self._verdict(*self._include, parts, True)
        return inside if verdict is None else verdict

    @staticmethod
    def _verdict(
        exact: RuleSet, folded: RuleSet, parts: tuple[str, ...], is_directory: bool
    ) -> bool | None:
        if is_directory:
            return exact.verdict(parts, True)
        name = _fold_extension(parts[-1])
        return folded.verdict(parts if name == parts[-1] else (*parts[:-1], name), False)


def _fold_extension(path: str) -> str:
    if path.islower():  # true of most names; saves a third of the time
        return path
    stem, extension = os.path.splitext(path)
    return stem + extension.lower()
