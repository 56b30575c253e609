"""What a tree holds: every kind of name and object, and what its user is told about the rest."""

import fnmatch
import os
import socket
import subprocess
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdocs.indexing.discovery import (
    FoundFile,
    RootProblem,
    RootUnavailable,
    Scan,
    SkipReason,
    discover,
    look,
)
from ragdocs.indexing.ignore import MAX_RULES_IN_ALL
from ragdocs.indexing.reading import read_file
from ragdocs.parsers.ids import decode_path, encode_path
from tests.support.machine import takes_less_than
from tests.support.storms.hostile_rows import NAMES
from tests.support.systems.needs import resource

DEFAULT_INCLUDE = ("**/*.md", "**/*.markdown", "**/*.txt")


@dataclass(frozen=True)
class Tree:
    root: Path
    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = ()
    within: Path | None = None


def scan(root: Path, *exclude: str, include: tuple[str, ...] = DEFAULT_INCLUDE) -> Scan:
    found = discover(Tree(root, include, exclude))
    assert isinstance(found, Scan)
    return found


def paths(found: Scan) -> list[str]:
    return [file.path for file in found.files]


def reasons(found: Scan) -> dict[str, SkipReason]:
    return {skipped.path: skipped.reason for skipped in found.skipped}


def write(root: Path, *files: str) -> None:
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8", errors="surrogateescape")


# What is a document


def test_markdown_and_text_whatever_the_case_of_the_extension(tmp_path: Path):
    write(tmp_path, "a.md", "b.markdown", "c.txt", "D.MD", "e.Txt", "sub/f.md")
    write(tmp_path, "g.rst", "h.md.bak", "md", "i.mdx", "README")
    assert paths(scan(tmp_path)) == ["D.MD", "a.md", "b.markdown", "c.txt", "e.Txt", "sub/f.md"]


def test_a_file_comes_with_size_and_times(tmp_path: Path):
    write(tmp_path, "a.md")
    status = (tmp_path / "a.md").stat()
    (found,) = scan(tmp_path).files
    assert found == FoundFile("a.md", status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def test_the_example_of_the_documentation(tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "trees.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    told = dict(line.split(maxsplit=1) for line in block.splitlines())
    write(tmp_path, *told)
    (tmp_path / ".gitignore").write_text("old/\n", encoding="utf-8")
    assert paths(scan(tmp_path)) == sorted(path for path in told if told[path] == "indexed")


def test_an_empty_tree_is_not_a_missing_one(tmp_path: Path):
    assert scan(tmp_path) == Scan((), ())


# Names


AWKWARD_NAMES = (*NAMES, "é" * 123 + ".md", "a.b.c.md", "con.md")


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_a_name_goes_round_exactly(tmp_path: Path, name: str):
    try:
        write(tmp_path, name, f"dir {name}/{name}")
    except (OSError, UnicodeEncodeError):
        if len(os.fsencode(name)) > 245:
            write(tmp_path, name)
        else:
            pytest.skip("this file system does not allow the name")
    found = paths(scan(tmp_path))
    assert name in found
    assert len(found) == sum(len(files) for _, _, files in os.walk(tmp_path))
    for path in found:
        data = read_file(tmp_path, decode_path(encode_path(path)), 10_000).data
        assert data == os.fsencode(path)


def test_a_path_of_1800_characters(tmp_path: Path):
    path = "/".join(["d" * 200] * 8 + ["e" * 180, "a.md"])
    write(tmp_path, path)
    assert len(path) > 1790
    assert paths(scan(tmp_path)) == [path]
    assert read_file(tmp_path, path, 10_000).data == path.encode()


@pytest.fixture
def deep_root() -> Iterator[Path]:
    """Removed by `rm`: Python's own removal, pytest's too, gives up on a thousand levels."""
    folder = tempfile.mkdtemp()
    yield Path(folder)
    subprocess.run(["rm", "-rf", folder], check=True)


def dig(root: Path, name: str, levels: int, beside: str = "") -> None:
    """Folders in folders, each with a file; one at a time, as no path would reach the last."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        if beside:
            os.mkdir(beside, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(os.open("a.md", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(here)
        here = below
    os.close(here)


def test_a_tree_deeper_than_any_path_can_be(deep_root: Path):
    """Longer than PATH_MAX: what no path can name is left out and said, and nothing breaks."""
    dig(deep_root, "d" * 200, levels=25)
    found = scan(deep_root)
    assert len(found.files) == 20
    assert list(reasons(found).values()) == [SkipReason.PATH_TOO_LONG]
    assert read_file(deep_root, max(paths(found), key=len), 10).data == b""


def test_very_many_levels(deep_root: Path):
    """With a second folder at each level, which has to be found again from above."""
    dig(deep_root, "d", levels=1000, beside="e")
    assert paths(scan(deep_root)) == sorted("d/" * level + "a.md" for level in range(1, 1001))


@pytest.mark.parametrize(
    "names",
    [
        ("Case.md", "case.md"),
        (unicodedata.normalize("NFC", "é.md"), unicodedata.normalize("NFD", "é.md")),
        ("a.md", "a.txt"),
        ("a.md", "a.MD"),
        ("a/b.md", "a%2Fb.md"),
    ],
)
def test_twins_are_never_merged(tmp_path: Path, names: tuple[str, str]):
    write(tmp_path, *names)
    if sum(len(files) for _, _, files in os.walk(tmp_path)) < 2:
        pytest.skip("this file system merges them itself")
    assert paths(scan(tmp_path)) == sorted(names)


# What is always left out


def test_what_is_never_indexed(tmp_path: Path):
    ignored = [
        ".git/a.md",
        ".obsidian/a.md",
        ".trash/a.md",
        ".hidden/a.md",
        "node_modules/a.md",
        "sub/node_modules/deep/a.md",
        "sub/.git/a.md",
        ".env",
        ".env.local",
        ".env.md",
        ".hidden.md",
        ".DS_Store",
        "a.md~",
        "#a.md#",
        "~$a.md",
        "a.md.swp",
        ".a.md.swp",
        ".#a.md",
        "a.tmp",
    ]
    write(tmp_path, *ignored, "kept.md")
    found = scan(tmp_path, include=("*", ".*"))
    assert paths(found) == ["kept.md"]
    assert found.skipped == ()


def test_a_name_that_begins_with_several_dots_is_one_like_any_other(tmp_path: Path):
    notes = ["...md", "..md", "...and then.md", "sub/...md", "....txt"]
    write(tmp_path, *notes, ".md", "..data/a.md", ".../b.md")
    assert paths(scan(tmp_path)) == sorted(notes)


def test_names_of_keys_are_left_out_and_said(tmp_path: Path):
    keys = ["id_rsa", "id_ed25519.pub", "id_rsa.md", "id_ecdsa_sk.txt", "server.pem", "id_x.txt"]
    notes = ["id_selectors.md", "id_rsapaper.md", "identity.txt", "pem.md", "id_cards/a.txt"]
    write(tmp_path, *keys, *notes)
    found = scan(tmp_path, include=("*",))
    assert paths(found) == sorted(notes)
    assert reasons(found) == dict.fromkeys(keys, SkipReason.KEY_NAME)


def test_keys_that_nobody_would_index_are_not_mentioned(tmp_path: Path):
    write(tmp_path, "id_rsa", "server.pem")
    assert scan(tmp_path).skipped == ()


def test_a_tree_inside_a_hidden_folder_works(tmp_path: Path):
    root = tmp_path / ".config" / "node_modules" / ".notes"
    write(root, "a.md", "sub/b.md", ".c.md")
    assert paths(scan(root)) == ["a.md", "sub/b.md"]


# What the user chooses


def test_exclude_prunes_folders_and_files(tmp_path: Path):
    write(tmp_path, "a.md", "drafts/b.md", "x/drafts/c.md", "x/d.md", "x/old/e.md", "F.TXT")
    assert paths(scan(tmp_path, "drafts", "/x/old/", "*.txt")) == ["a.md", "x/d.md"]
    assert paths(scan(tmp_path, "x/**", "!x/d.md", "**/*.TXT")) == ["a.md", "drafts/b.md", "x/d.md"]


def test_an_excluded_folder_is_not_even_opened():
    with locked_tree() as root:
        assert reasons(scan(root)) == {"locked": SkipReason.UNREADABLE}
        assert scan(root, "locked").skipped == ()


def test_include_takes_patterns_folders_and_exceptions(tmp_path: Path):
    write(tmp_path, "a.md", "guide/b.md", "guide/pic.png", "guide/sub/C.TXT", "x/guide/d.md")
    assert paths(scan(tmp_path, include=("guide",))) == [
        "guide/b.md",
        "guide/sub/C.TXT",
        "x/guide/d.md",
    ]
    assert paths(scan(tmp_path, include=("/guide/",))) == ["guide/b.md", "guide/sub/C.TXT"]
    assert paths(scan(tmp_path, include=("guide/**",))) == [
        "guide/b.md",
        "guide/pic.png",
        "guide/sub/C.TXT",
    ]
    assert paths(scan(tmp_path, include=("*.MD", "!/a.md"))) == ["guide/b.md", "x/guide/d.md"]
    assert paths(scan(tmp_path, include=("guide", "!guide/sub/"))) == ["guide/b.md", "x/guide/d.md"]


def test_a_hash_in_the_settings_is_no_comment(tmp_path: Path):
    write(tmp_path, "#inbox/a.md", "b.md")
    assert paths(scan(tmp_path, "#inbox")) == ["b.md"]


SEGMENTS = ["a", "b", "*", "**", "*.md", "[ab]*", "?"]
PATTERNS = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "", "/"]),
        st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("/".join),
        st.sampled_from(["", "", "/"]),
    ),
    max_size=3,
).map(tuple)
FILES = st.sets(
    st.builds(
        lambda folders, name: "/".join([*folders, name]),
        st.lists(st.sampled_from(["a", "b", "ab", ".h", "node_modules"]), max_size=3),
        st.sampled_from(["x.md", "Y.MD", "z.txt", "p.png", ".d.md", "x.md~", "n\n.md"]),
    ),
    max_size=8,
)


def naive_match(pattern: list[str], parts: list[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern == ["**"]:
        return True
    if pattern[0] == "**":
        return naive_match(pattern[1:], parts) or naive_match(pattern, parts[1:])
    same = fnmatch.fnmatchcase(parts[0], pattern[0])
    return same and naive_match(pattern[1:], parts[1:])


def naive_any(patterns: tuple[str, ...], parts: list[str], is_directory: bool) -> bool:
    def one(pattern: str) -> bool:
        body = pattern.removesuffix("/")
        if pattern.endswith("/") and not is_directory:
            return False
        if "/" not in body:
            return naive_match([body.replace("**", "*")], parts[-1:])
        return naive_match(body.removeprefix("/").split("/"), parts)

    return any(one(pattern) for pattern in patterns)


def naive_scan(root: Path, include: tuple[str, ...], exclude: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(root):
        for name in names:
            parts = os.path.relpath(os.path.join(folder, name), root).split("/")
            above = [parts[:end] for end in range(1, len(parts))]
            stem, extension = os.path.splitext(name)
            folded = [*parts[:-1], stem + extension.lower()]
            wanted = naive_any(include, folded, False) or (
                extension.lower() in (".md", ".txt")
                and any(naive_any(include, part, True) for part in above)
            )
            unwanted = (
                any(part.startswith(".") for part in parts)
                or "node_modules" in parts[:-1]
                or name.endswith("~")
                or naive_any(exclude, folded, False)
                or any(naive_any(exclude, part, True) for part in above)
            )
            if wanted and not unwanted:
                found.append("/".join(parts))
    return sorted(found)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=FILES, include=PATTERNS, exclude=PATTERNS)
def test_a_scan_is_what_a_naive_walk_finds(
    files: set[str], include: tuple[str, ...], exclude: tuple[str, ...]
):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, *files)
        assert paths(scan(root, *exclude, include=include)) == naive_scan(root, include, exclude)


# .gitignore (the rules themselves: test_patterns.py)


def test_gitignore_counts_without_a_repository_but_only_below_the_root(tmp_path: Path):
    write(tmp_path, "root/a.md", "root/b.md", "root/sub/b.md", "root/sub/c.md")
    (tmp_path / ".gitignore").write_text("a.md\n", encoding="utf-8")
    (tmp_path / "root" / ".gitignore").write_text("/b.md\n", encoding="utf-8")
    (tmp_path / "root" / "sub" / ".gitignore").write_text("c.md\n", encoding="utf-8")
    assert paths(scan(tmp_path / "root")) == ["a.md", "sub/b.md"]


def test_an_ignore_file_that_cannot_be_used_is_said(tmp_path: Path):
    root = tmp_path / "docs"
    write(root, "a.md", "big/b.md", "many/b.md", "odd/c.md")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").mkdir()
    (root / ".gitignore").symlink_to("elsewhere")
    (root / "big" / ".gitignore").write_text("b.md\n" * 100_000, encoding="utf-8")
    (root / "many" / ".gitignore").write_text("b.md\n" * 3000, encoding="utf-8")
    os.mkfifo(root / "odd" / ".gitignore")
    found = scan(root)
    assert paths(found) == ["a.md", "big/b.md", "many/b.md", "odd/c.md"]
    assert reasons(found) == dict.fromkeys(
        ["../.gitignore", ".gitignore", "big/.gitignore", "many/.gitignore", "odd/.gitignore"],
        SkipReason.IGNORE_FILE,
    )


def hundreds_of_ignore_files(root: Path, number: int) -> None:
    for folder in range(number):
        write(root, f"{folder:03}/kept.md", f"{folder:03}/dropped.md")
        rules = "".join(f"*{folder}*[ab]*{rule}*x?\n" for rule in range(1990))
        (root / f"{folder:03}" / ".gitignore").write_text(f"{rules}dropped.md\n", encoding="utf-8")


def test_large_ignore_files_are_bounded_together(tmp_path: Path):
    """Hundreds of them took 45 seconds. Those that are not used any more are named."""
    hundreds_of_ignore_files(tmp_path, 60)
    assert takes_less_than(6, lambda: scan(tmp_path))  # six times as much before
    found = scan(tmp_path)
    assert "000/kept.md" in paths(found)
    assert "000/dropped.md" not in paths(found)
    assert "059/dropped.md" in paths(found)
    used = MAX_RULES_IN_ALL // 1991
    assert reasons(found) == dict.fromkeys(
        [f"{folder:03}/.gitignore" for folder in range(used, 60)], SkipReason.IGNORE_FILE
    )
    assert all("ignore files together" in one.detail for one in found.skipped)


def test_a_look_at_some_paths_says_what_a_scan_of_such_a_tree_says(tmp_path: Path):
    """A look reads fewer ignore files, and must not use one that the scan did not."""
    hundreds_of_ignore_files(tmp_path, 15)
    tree = Tree(tmp_path)
    whole = discover(tree)
    part = look(tree, ["014/dropped.md"])
    assert isinstance(whole, Scan)
    assert isinstance(part, Scan)
    assert "014/dropped.md" in paths(whole)
    assert "014/dropped.md" in paths(part)
    for folder in range(3, 15):
        (tmp_path / f"{folder:03}" / ".gitignore").unlink()
    assert discover(tree) == discover(tree)
    part = look(tree, ["000/dropped.md"])
    assert isinstance(part, Scan)
    assert part.scope == frozenset({"000/dropped.md"})
    assert paths(part) == []


# Objects that are not files


def test_what_is_not_a_regular_file_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path, "kept.md")
    monkeypatch.chdir(tmp_path)  # a socket's address has room for about a hundred characters
    (tmp_path / "folder.md").mkdir()
    os.mkfifo("fifo.md")
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.md")
    found = scan(tmp_path)
    assert paths(found) == ["kept.md"]
    assert reasons(found) == {"fifo.md": SkipReason.SPECIAL, "socket.md": SkipReason.SPECIAL}


def test_devices_are_never_files():
    found = scan(Path("/dev"), "*/", include=("null", "zero"))
    assert found.files == ()
    assert reasons(found) == {"null": SkipReason.SPECIAL, "zero": SkipReason.SPECIAL}


def test_a_folder_named_like_a_file_is_a_folder(tmp_path: Path):
    write(tmp_path, "x.md/y.md")
    assert paths(scan(tmp_path)) == ["x.md/y.md"]


def test_links_are_not_followed_and_losses_are_said(tmp_path: Path):
    root = tmp_path / "root"
    write(tmp_path, "outside/o.md", "root-twin/t.md")
    write(root, "a.md", "sub/b.md", "README", ".hidden/h.md")
    links = {
        "again.md": "a.md",
        "sub/again.md": "../a.md",
        "sub2": "sub",
        "to-root": ".",
        "plain": "a.md",
        "dangling": "nowhere",
        "dangling.md": "nowhere.md",
        "loop.md": "loop.md",
        "sub/parent": "../..",
        "out.md": "../outside/o.md",
        "out": "../outside",
        "twin": "../root-twin",
        "device.md": "/dev/zero",
        "readme.md": "README",
        "hidden.md": ".hidden/h.md",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    found = scan(root)
    assert paths(found) == ["a.md", "sub/b.md"]
    assert reasons(found) == {
        "dangling.md": SkipReason.BROKEN_LINK,
        "loop.md": SkipReason.BROKEN_LINK,
        "sub/parent": SkipReason.LINK_OUTSIDE,
        "out.md": SkipReason.LINK_OUTSIDE,
        "out": SkipReason.LINK_OUTSIDE,
        "twin": SkipReason.LINK_OUTSIDE,
        "device.md": SkipReason.LINK_OUTSIDE,
        "readme.md": SkipReason.LINK_TO_UNINDEXED,
        "hidden.md": SkipReason.LINK_TO_UNINDEXED,
    }
    assert scan(root, "out", "twin", "parent", "*.md").skipped == ()


def test_a_chain_of_very_many_links(tmp_path: Path):
    for number in range(2000):
        (tmp_path / f"{number:04}.md").symlink_to(f"{number + 1:04}.md")
    write(tmp_path, "2000.md")
    found = scan(tmp_path)
    assert paths(found) == ["2000.md"]
    assert set(reasons(found).values()) == {SkipReason.BROKEN_LINK}


def test_hard_links_are_files_of_their_own(tmp_path: Path):
    write(tmp_path, "a.md")
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    assert paths(scan(tmp_path)) == ["a.md", "b.md"]


def test_the_root_may_be_a_link(tmp_path: Path):
    write(tmp_path, "real/a.md", "real/sub/b.md")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "c.md").symlink_to("sub/b.md")
    assert scan(tmp_path / "link") == scan(tmp_path / "real")
    assert paths(scan(tmp_path / "link")) == ["a.md", "sub/b.md"]


# Time, and what could not be seen


@pytest.mark.parametrize("seconds", [0, 4_102_444_800, -86_400], ids=["1970", "2100", "before"])
def test_any_mtime_is_taken_as_it_is(tmp_path: Path, seconds: int):
    write(tmp_path, "a.md")
    os.utime(tmp_path / "a.md", ns=(0, seconds * 10**9 + 7))
    assert scan(tmp_path).files[0].mtime_ns == seconds * 10**9 + 7


def test_an_edit_that_keeps_size_and_mtime_shows_in_ctime(tmp_path: Path):
    write(tmp_path, "a.md")
    (before,) = scan(tmp_path).files
    after = before
    while after.ctime_ns == before.ctime_ns:  # the clock's tick is a few milliseconds
        (tmp_path / "a.md").write_text("A.md", encoding="utf-8")
        os.utime(tmp_path / "a.md", ns=(before.mtime_ns, before.mtime_ns))
        (after,) = scan(tmp_path).files
    assert (after.size, after.mtime_ns) == (before.size, before.mtime_ns)


def test_a_huge_sparse_file_is_only_looked_at(tmp_path: Path):
    write(tmp_path, "big.md")
    os.truncate(tmp_path / "big.md", 1 << 30)
    assert scan(tmp_path).files[0].size == 1 << 30


def test_a_root_that_is_gone_is_not_an_empty_tree(tmp_path: Path):
    root = tmp_path / "root"
    write(root, "a.md")
    before = scan(root)
    root.rename(tmp_path / "away")
    assert discover(Tree(root)) == RootUnavailable(root, RootProblem.MISSING)
    (tmp_path / "away").rename(root)
    assert scan(root) == before


def test_a_root_that_is_not_a_folder(tmp_path: Path):
    write(tmp_path, "a.md")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    for name, problem in [
        ("a.md", RootProblem.NOT_A_DIRECTORY),
        ("a.md/b", RootProblem.NOT_A_DIRECTORY),
        ("fifo", RootProblem.NOT_A_DIRECTORY),
        ("loop", RootProblem.UNREADABLE),
    ]:
        assert discover(Tree(tmp_path / name)) == RootUnavailable(tmp_path / name, problem)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions mean nothing to root, so that root steps down for as long as this lasts."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def locked_tree(mode: int = 0o000) -> Iterator[Path]:
    """A tree with a folder of that mode, seen by someone whom permissions bind."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, "a.md", "locked/b.md", "locked/deep/c.md", "open/d.md")
        root.chmod(0o755)
        (root / "locked").chmod(mode)
        try:
            with unprivileged():
                yield root
        finally:
            (root / "locked").chmod(0o700)


def test_a_folder_that_cannot_be_listed_hides_its_files_but_proves_nothing():
    with locked_tree() as root:
        found = scan(root)
    assert paths(found) == ["a.md", "open/d.md"]
    assert reasons(found) == {"locked": SkipReason.UNREADABLE}
    assert found.skipped[0].detail == "Permission denied"
    assert not found.proves_absent("locked/b.md")
    assert not found.proves_absent("locked/deep/c.md")
    assert found.proves_absent("open/gone.md")
    assert found.proves_absent("locked-not/b.md")


def test_files_that_are_listed_but_cannot_be_looked_at():
    with locked_tree(mode=0o444) as root:
        found = scan(root)
    assert paths(found) == ["a.md", "open/d.md"]
    assert reasons(found) == dict.fromkeys(["locked/b.md", "locked/deep"], SkipReason.UNREADABLE)
    assert not found.proves_absent("locked/b.md")
    assert not found.proves_absent("locked/deep/c.md")


def test_a_root_that_cannot_be_listed():
    with locked_tree() as root:
        found = discover(Tree(root / "locked"))
    assert found == RootUnavailable(root / "locked", RootProblem.UNREADABLE)


def test_without_descriptors_nothing_is_said_to_be_gone(tmp_path: Path):
    """With no descriptor to spare the scan cannot look, and says so instead of finding nothing."""
    write(tmp_path, "a.md", "sub/b.md")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/dev/fd"))
    for spare in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + spare, hard))
        try:
            found = discover(Tree(tmp_path))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if isinstance(found, Scan):
            assert all(
                path in paths(found) or not found.proves_absent(path)
                for path in ("a.md", "sub/b.md")
            )
    assert found == scan(tmp_path)


def test_the_order_is_that_of_the_paths_and_always_the_same(tmp_path: Path):
    names = ["b.md", "a/z.md", "a.md", "a b.md", "a-b.md", "Z.md", "é.md", "10.md", "9.md"]
    write(tmp_path, *names)
    assert paths(scan(tmp_path)) == sorted(names)
    assert scan(tmp_path) == scan(tmp_path)


def test_no_descriptor_is_left_open(tmp_path: Path):
    write(tmp_path, "a.md", "sub/b.md")
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        scan(tmp_path)
        discover(Tree(tmp_path / "none"))
    assert len(os.listdir("/dev/fd")) <= before
