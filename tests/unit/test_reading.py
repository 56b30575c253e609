"""Files are read whole, regular, inside their root, and never beyond the limit."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from time import monotonic

import pytest

from ragdocs.errors import SourceTooLarge, SourceUnreadable
from ragdocs.indexing.reading import content_hash, read_file
from ragdocs.parsers.ids import encode_path
from tests.support.machine import takes_less_than

LIMIT = 10_000_000


def test_a_file_comes_with_its_state(tmp_path: Path):
    data = b"\xef\xbb\xbfbytes \x00 as they are\r\n"
    path = tmp_path / "a" / "note.md"
    path.parent.mkdir()
    path.write_bytes(data)
    read = read_file(tmp_path, "a/note.md", LIMIT)
    assert read.data == data
    assert read.state.size == len(data)
    assert read.state.mtime_ns == path.stat().st_mtime_ns
    assert read.state.content_hash == blake2b(data, digest_size=16).hexdigest()


@pytest.mark.parametrize("seconds", [0, 1, 4_102_444_800, -86_400], ids=str)
def test_any_time_is_kept_exactly(tmp_path: Path, seconds: int):
    (tmp_path / "a.md").touch()
    os.utime(tmp_path / "a.md", ns=(0, seconds * 10**9 + 123))
    assert read_file(tmp_path, "a.md", LIMIT).state.mtime_ns == seconds * 10**9 + 123


def test_an_edit_of_the_same_size_and_time_has_another_hash(tmp_path: Path):
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    first = read_file(tmp_path, "a.md", LIMIT).state
    path.write_bytes(b"two")
    os.utime(path, ns=(first.mtime_ns, first.mtime_ns))
    second = read_file(tmp_path, "a.md", LIMIT).state
    assert (first.size, first.mtime_ns) == (second.size, second.mtime_ns)
    assert first.content_hash != second.content_hash == content_hash(b"two")


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_limit_itself_is_allowed(tmp_path: Path, size: int):
    (tmp_path / "a.md").write_bytes(b"x" * size)
    assert len(read_file(tmp_path, "a.md", size).data) == size


@pytest.mark.parametrize("size", [LIMIT + 1, 100_000_000, 1 << 30], ids=str)
def test_a_file_over_the_limit_is_not_read(tmp_path: Path, size: int):
    (tmp_path / "big.md").touch()
    os.truncate(tmp_path / "big.md", size)

    def read() -> None:
        with pytest.raises(SourceTooLarge, match=rf"^big\.md: {size} bytes.*max_file") as caught:
            read_file(tmp_path, "big.md", LIMIT)
        assert str(LIMIT) in str(caught.value)
        assert str(tmp_path) not in str(caught.value)

    assert takes_less_than(0.2, read)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)  # relative: the address has room for about a hundred characters


def make_link_out(path: Path) -> None:
    (path.parent.parent / "secret.md").write_text("secret", encoding="utf-8")
    path.symlink_to("../secret.md")


def make_link_inside(path: Path) -> None:
    (path.parent / "other.md").write_text("other", encoding="utf-8")
    path.symlink_to("other.md")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere.md")


@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        make_fifo,
        make_socket,
        make_link_out,
        make_link_inside,
        make_loop,
        make_dangling_link,
    ],
)
def test_only_regular_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
):
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.chdir(root)
    make(root / "x.md")
    with pytest.raises(SourceUnreadable, match=r"^x\.md: it is (not a regular file|a link)"):
        read_file(root, "x.md", LIMIT)


def test_a_device_is_not_read():
    with pytest.raises(SourceUnreadable, match="not a regular file"):
        read_file(Path("/dev"), "zero", LIMIT)


def test_a_folder_that_is_a_link_is_not_walked_through(tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("secret", encoding="utf-8")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to("../outside")
    with pytest.raises(SourceUnreadable, match=r"^out/a\.md: .*links are not followed"):
        read_file(tmp_path / "root", "out/a.md", LIMIT)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("gone.md", "no such file, or it was deleted"),
        ("gone/a.md", "no such file, or it was deleted"),
        ("a.md/b.md", "it is a link or behind one"),
    ],
)
def test_a_file_deleted_since_the_scan_is_unreadable(tmp_path: Path, path: str, reason: str):
    (tmp_path / "a.md").touch()
    with pytest.raises(SourceUnreadable) as caught:
        read_file(tmp_path, path, LIMIT)
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert str(tmp_path) not in str(caught.value)


def test_a_root_that_moved_away_and_back(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").write_bytes(b"text")
    root.rename(tmp_path / "away")
    with pytest.raises(SourceUnreadable):
        read_file(root, "a.md", LIMIT)
    (tmp_path / "away").rename(root)
    assert read_file(root, "a.md", LIMIT).data == b"text"


@pytest.mark.parametrize("path", ["../a.md", "/etc/passwd", "", "a\0.md"])
def test_a_path_from_outside_is_contained(tmp_path: Path, path: str):
    (tmp_path / "root").mkdir()
    (tmp_path / "a.md").touch()
    with pytest.raises(SourceUnreadable):
        read_file(tmp_path / "root", path, LIMIT)


@pytest.mark.parametrize(
    "name",
    ["a b.md", "#%?*'\"\n\t\\:|[]{}.md", "-rf.md", "🙂\u202e.md", "x" * 247 + ".md", "\udcff.md"],
)
def test_any_name_is_read_and_named_in_messages_as_text(tmp_path: Path, name: str):
    try:
        (tmp_path / name).write_bytes(b"text")
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system does not allow the name")
    assert read_file(tmp_path, name, LIMIT).data == b"text"
    with pytest.raises(SourceTooLarge) as caught:
        read_file(tmp_path, name, 1)
    shown = str(caught.value)
    assert shown.startswith(encode_path(name))
    assert "\n" not in shown
    shown.encode("utf-8")


def test_a_name_that_is_too_long_is_unreadable(tmp_path: Path):
    with pytest.raises(SourceUnreadable):
        read_file(tmp_path, "x" * 300 + ".md", LIMIT)


def test_a_file_that_changes_while_it_is_read_is_not_half_read(tmp_path: Path):
    """A writer that never stops: a read either fails as such, or gives a whole file."""
    path = tmp_path / "a.md"
    sizes = [16_000_000, 24_000_000]
    path.touch()
    os.truncate(path, sizes[0])
    stop = threading.Event()

    def keep_changing() -> None:
        while not stop.is_set():
            for size in sizes:
                os.truncate(path, size)

    writer = threading.Thread(target=keep_changing)
    writer.start()
    noticed = 0
    try:
        deadline = monotonic() + 60
        while noticed < 3 and monotonic() < deadline:
            try:
                read = read_file(tmp_path, "a.md", 32_000_000)
            except SourceUnreadable as error:
                noticed += "kept changing" in str(error)
            else:
                assert len(read.data) == read.state.size
                assert read.state.size in sizes
    finally:
        stop.set()
        writer.join()
    assert noticed == 3
    assert read_file(tmp_path, "a.md", 32_000_000).state.size == path.stat().st_size


def test_a_file_swapped_for_a_link_never_gives_what_lies_outside(swapped: Path):
    """The race that checking first and opening later would lose."""
    deadline = monotonic() + 0.5
    while monotonic() < deadline:
        with suppress(SourceUnreadable):
            assert read_file(swapped, "folder/a.md", LIMIT).data == b"public"


def test_no_descriptor_is_left_open(tmp_path: Path):
    (tmp_path / "a.md").write_bytes(b"text")
    os.mkfifo(tmp_path / "fifo.md")
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        read_file(tmp_path, "a.md", LIMIT)
        for path, limit in [("a.md", 1), ("fifo.md", LIMIT), ("gone.md", LIMIT), ("..", LIMIT)]:
            with pytest.raises((SourceTooLarge, SourceUnreadable)):
                read_file(tmp_path, path, limit)
    assert len(os.listdir("/dev/fd")) <= before
