"""Patterns mean what git says they mean: `git check-ignore` is the oracle."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs.indexing.discovery import Scan, discover
from ragdocs.indexing.ignore import RuleSet, ignore_file_patterns
from tests.support.machine import takes_less_than

FOLDERS = ["", "a", "b", "a/a", "a/foo", "foo", "foo/a", "foo/b", "a/foo/b", "b/v.1", "a b"]
NAMES = ["x.md", "y.md", "foo.txt", "!a", "#b", "[a]", "a-b", "0", "x ", "\\", "n\nl"]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@dataclass(frozen=True)
class Tree:
    root: Path
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    within: Path | None = None


class Repository:
    """A fixed set of files in a real repository; only its ignore files change."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.git("init", "-q", ".")
        for folder, name in product(FOLDERS, NAMES):
            path = top / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.files = sorted(
            os.path.normpath(os.path.join(folder, name)) for folder, name in product(FOLDERS, NAMES)
        )

    def git(self, *arguments: str, given: bytes = b"") -> bytes:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.top),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self.top.parent),
        }
        command = ["git", "-C", str(self.top), *arguments]
        return subprocess.run(
            command, input=given, env=environment, capture_output=True, check=False
        ).stdout

    def write(self, ignore_files: dict[str, str]) -> None:
        for path in [".gitignore", "a/.gitignore", "foo/.gitignore", ".git/info/exclude"]:
            text = ignore_files.get(path, "")
            (self.top / path).write_text(text, encoding="utf-8", newline="")

    def kept_by_git(self, below: str = "") -> list[str]:
        asked = "\0".join(self.files).encode()
        ignored = self.git("check-ignore", "--no-index", "-z", "--stdin", given=asked)
        kept = set(self.files) - set(ignored.decode().split("\0"))
        return sorted(path.removeprefix(below) for path in kept if path.startswith(below))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    top = tmp_path_factory.mktemp("repository")
    top.joinpath("plain").mkdir()
    return Repository(top / "plain")


def kept(tree: Tree, *, respect_gitignore: bool = True) -> list[str]:
    scan = discover(tree, respect_gitignore=respect_gitignore)
    assert isinstance(scan, Scan)
    return [file.path for file in scan.files]


CASES = {
    "allow list": {".gitignore": "*\n!*/\n!*.md\n"},
    "anchored": {".gitignore": "/x.md\n/a/foo\n"},
    "anchored by a slash inside": {".gitignore": "foo/a\n"},
    "any depth": {".gitignore": "foo\n"},
    "directories only": {".gitignore": "foo/\ny.md/\n"},
    "no way back into an ignored folder": {".gitignore": "foo/\n!foo/x.md\n"},
    "back in, folder by folder": {".gitignore": "/*\n!/a\n/a/*\n!/a/foo\n"},
    "nearer file wins": {".gitignore": "*.md\n", "a/.gitignore": "!x.md\n"},
    "nested file is anchored at its folder": {"a/.gitignore": "/foo\nb/x.md\n"},
    "exclude file of the repository": {".git/info/exclude": "y.md\n", "a/.gitignore": "!y.md\n"},
    "double stars": {".gitignore": "**/b/x.md\na/**/y.md\nfoo/**\n"},
    "stars within a name are one star": {".gitignore": "a/f**o\n**.txt\n"},
    "everything below but one": {".gitignore": "foo/**\n!foo/x.md\n"},
    "sets": {".gitignore": "[a-c]\n[!x].md\n[[:digit:]]\n"},
    "odd sets": {".gitignore": "[]a]\n[z-a\n[[:nope:]]\n[!]\n\\[a\\]\n[a\\-z]-b\n"},
    "escapes": {".gitignore": "\\!a\n\\#b\nfoo.t\\xt\n\\\\\n"},
    "trailing backslash": {".gitignore": "x.md\\\n"},
    "comments, blanks and spaces": {".gitignore": "# x.md\n\n  \ny.md   \nx\\ \n"},
    "carriage returns and a byte order mark": {".gitignore": "\ufeffx.md\r\ny.md\r\n"},
    "only slashes": {".gitignore": "/\n//\n/**/\n"},
    "empty segment": {".gitignore": "a//foo\n./x.md\n../x.md\n"},
    "question mark": {".gitignore": "?\n?.md\nf?o/x.md\n"},
    "newline in a name": {".gitignore": "n?l\n"},
    "dot in a folder's name": {".gitignore": "v.1\n"},
}


@needs_git
@pytest.mark.parametrize("ignore_files", CASES.values(), ids=CASES.keys())
def test_the_rules_of_git(repository: Repository, ignore_files: dict[str, str]):
    repository.write(ignore_files)
    assert kept(Tree(repository.top)) == repository.kept_by_git()


SEGMENTS = ["a", "b", "foo", "*", "**", "*.md", "x.*", "f?o", "[ab]", "[!b]", "?", "***", "*o*"]
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)


@needs_git
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(top=TEXTS, nested=TEXTS, other=TEXTS, exclude=TEXTS)
def test_any_rules_in_any_of_the_files(
    repository: Repository, top: str, nested: str, other: str, exclude: str
):
    repository.write(
        {
            ".gitignore": top,
            "a/.gitignore": nested,
            "foo/.gitignore": other,
            ".git/info/exclude": exclude,
        }
    )
    assert kept(Tree(repository.top)) == repository.kept_by_git()


@needs_git
@settings(max_examples=50, deadline=None)
@given(patterns=st.lists(LINES, max_size=5))
def test_exclude_patterns_mean_the_same_as_lines_of_an_ignore_file(
    repository: Repository, patterns: list[str]
):
    repository.write({".gitignore": "\n".join(patterns)})
    as_setting = kept(Tree(repository.top, exclude=tuple(patterns)), respect_gitignore=False)
    assert as_setting == repository.kept_by_git()


@needs_git
def test_a_folder_inside_a_repository_knows_the_rules_above_it(repository: Repository):
    repository.write({".gitignore": "/a/foo/x.md\ny.md\n", "a/.gitignore": "!/foo/y.md\n"})
    found = kept(Tree(repository.top / "a" / "foo"))
    assert found == repository.kept_by_git("a/foo/")
    assert "x.md" not in found
    assert "y.md" in found


@needs_git
def test_a_rule_that_names_the_tree_itself_does_not_empty_it(repository: Repository):
    repository.write({".gitignore": "foo/\n"})
    assert "x.md" in kept(Tree(repository.top / "foo"))


@needs_git
def test_the_ignore_files_can_be_left_aside(repository: Repository):
    repository.write({".gitignore": "*\n", ".git/info/exclude": "*\n"})
    assert kept(Tree(repository.top), respect_gitignore=False) == repository.files


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "b", "**/a/" * 40 + "b", "a/**/" * 40 + "b", "[[" * 2000, "?" * 4000]
)
def test_no_pattern_takes_long(pattern: str):
    rules = RuleSet([pattern])
    for parts in (["a" * 250], ["a"] * 250):
        assert takes_less_than(2, lambda parts=parts: rules.verdict(parts, False))
        assert rules.verdict(parts, False) is None


def test_patterns_of_an_ignore_file():
    text = "\ufeff# note\n\n a \r\nb\\ \nc\\\\ \n!d\n\\#e"
    assert ignore_file_patterns(text) == [" a", "b\\ ", "c\\\\", "!d", "\\#e"]


def test_sets_agree_with_their_definition():
    rules = RuleSet(["[[:upper:]-]", "[^a-c]", "[]]", "[z-a]"])
    kept_names = {name for name in "abcA-]z" if rules.verdict([name], False)}
    assert kept_names == {"A", "-", "]", "z"}
    assert RuleSet(["[z-a]"]).verdict(["z"], False)
    assert RuleSet(["[z-a]"]).verdict(["b"], False) is None
