"""Nothing that comes from outside leads out of a root."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import SourceUnreadable
from ragdocs.indexing.reading import MAX_PATH_BYTES, open_below, open_root, relative_parts


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "./",
        "//",
        "/etc/passwd",
        "//etc/passwd",
        "..",
        "../secret.md",
        "a/../../secret.md",
        "a/..",
        "a\0.md",
        "\0",
        "lone\ud800surrogate.md",
        "a" * (MAX_PATH_BYTES + 1),
    ],
)
def test_a_path_that_is_not_inside_is_refused_and_not_repeated(path: str):
    with pytest.raises(SourceUnreadable, match="relative to its tree") as caught:
        relative_parts(path)
    assert "passwd" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.md", ("a.md",)),
        ("./a//b/./c.md/", ("a", "b", "c.md")),
        ("..a/...md", ("..a", "...md")),
        ("~/a.md", ("~", "a.md")),
        ("C:\\a.md", ("C:\\a.md",)),
        ("a\nb/\udcff.md", ("a\nb", "\udcff.md")),
        ("%2e%2e/a.md", ("%2e%2e", "a.md")),
    ],
)
def test_a_path_has_one_spelling(path: str, parts: tuple[str, ...]):
    assert relative_parts(path) == parts
    assert relative_parts("/".join(parts)) == parts


@given(st.text(alphabet="ab./\0~\udc80", max_size=12))
def test_what_is_accepted_stays_below_the_root(path: str):
    try:
        parts = relative_parts(path)
    except SourceUnreadable:
        return
    joined = os.path.normpath(os.path.join("/root", *parts))
    assert joined == "/".join(("/root", *parts))


def entries(root: Path, *parts: str) -> list[str]:
    with open_root(root) as top, open_below(top, parts) as folder:
        return sorted(entry.name for entry in folder.entries())


def test_directories_are_opened_below_a_root_that_may_be_a_link(tmp_path: Path):
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("root")
    assert entries(tmp_path / "link") == ["a"]
    assert entries(tmp_path / "link", "a") == ["b"]


@pytest.mark.parametrize("target", ["../outside", "inside", ".", "..", "loop", "missing"])
def test_no_link_on_the_way_is_followed(tmp_path: Path, target: str):
    (tmp_path / "outside").mkdir()
    root = tmp_path / "root"
    (root / "inside" / "deep").mkdir(parents=True)
    (root / "loop").symlink_to(target)
    for parts in (["loop"], ["loop", "deep"]):
        with pytest.raises(OSError):  # noqa: PT011 ELOOP or ENOTDIR, as the system likes
            entries(root, *parts)


def test_a_root_whose_name_begins_like_another_is_another(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes-private").mkdir()
    (tmp_path / "notes" / "x").symlink_to("../notes-private")
    with pytest.raises(OSError):  # noqa: PT011
        entries(tmp_path / "notes", "x")


def test_no_descriptor_is_left_open(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        entries(tmp_path, "a", "b")
        with pytest.raises(FileNotFoundError):
            entries(tmp_path, "a", "none")
    assert len(os.listdir("/dev/fd")) <= before
