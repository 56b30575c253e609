"""What stands in for a call that a system lacks, and the names and folders of other systems."""

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from time import monotonic

import pytest
import yaml

from ragdocs import files
from ragdocs.config.locations import APPLICATION, base_folder
from ragdocs.diagnosis.clients import CLIENTS, starts_this_program, user_place
from ragdocs.errors import SourceUnreadable
from ragdocs.files import is_link, open_file, replace, without_marker
from ragdocs.indexing import reading
from ragdocs.indexing.reading import PathFolder, is_windows_name, read_file, relative_parts
from ragdocs.mcp_server.answer import without_places
from tests.support.systems import needs

PROJECT = Path(__file__).parents[2]

# Opening without O_NOFOLLOW


@pytest.fixture(params=["with", "without"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With O_NOFOLLOW and without: both refuse the same."""
    if request.param == "without":
        monkeypatch.setattr(files, "_NO_FOLLOW", 0)
        monkeypatch.setattr(files, "_PLAIN", 0)
    return request.param


@pytest.mark.usefixtures("calls")
def test_a_link_is_not_opened_unless_it_may_be_followed(tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "nowhere").symlink_to("nothing")
    for name in ("link", "nowhere"):
        for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
            with pytest.raises(OSError) as caught:  # noqa: PT011 its number is looked at
                open_file(tmp_path / name, flags)
            assert caught.value.errno == errno.ELOOP
    assert not (tmp_path / "nothing").exists()
    descriptor = open_file(tmp_path / "link", os.O_RDONLY, follow=True)
    assert os.read(descriptor, 10) == b"secret"
    os.close(descriptor)


@pytest.mark.usefixtures("calls")
def test_a_file_is_made_once_and_privately(tmp_path: Path):
    path = tmp_path / "a"
    os.close(open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.close(open_file(path, os.O_RDWR | os.O_CREAT))
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "b", os.O_RDWR)


def test_without_nonblock_nothing_but_a_file_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Opening a pipe that nobody writes to would wait for ever."""
    monkeypatch.setattr(files, "_NO_FOLLOW", 0)
    monkeypatch.setattr(files, "_PLAIN", 0)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError):  # noqa: PT011 one for each kind
            open_file(tmp_path / name, os.O_RDONLY)


def test_a_file_that_is_swapped_while_it_is_opened_is_opened_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Between the look and the opening another file comes; then, each time, a link."""
    monkeypatch.setattr(files, "_NO_FOLLOW", 0)
    path, secret = tmp_path / "a", tmp_path / "secret"
    secret.write_bytes(b"secret")
    really_open = os.open

    def swapping(swap: Callable[[], object]) -> Callable[..., int]:
        def open_late(*arguments: object) -> int:
            swap()
            return really_open(*arguments)  # pyright: ignore[reportCallIssue, reportArgumentType]

        return open_late

    def by_a_link() -> None:
        path.unlink()
        path.symlink_to(secret)

    path.write_bytes(b"public")
    monkeypatch.setattr(os, "open", swapping(by_a_link))
    with pytest.raises(OSError) as caught:  # noqa: PT011 its number is looked at
        open_file(path, os.O_RDONLY)
    assert caught.value.errno == errno.ELOOP


def test_a_file_that_is_open_elsewhere_is_replaced_when_it_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Windows refuses meanwhile; what is refused for good is an error."""
    really_replace, refused = os.replace, [PermissionError(errno.EACCES, "in use")] * 2

    def replace_late(source: Path, target: Path) -> None:
        if refused:
            raise refused.pop()
        really_replace(source, target)

    monkeypatch.setattr(os, "replace", replace_late)
    (tmp_path / "new").write_bytes(b"new")
    replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"new"
    refused += [PermissionError(errno.EACCES, "in use")] * 100
    with pytest.raises(PermissionError):
        replace(tmp_path / "old", tmp_path / "new")


# Containment by paths


@pytest.fixture(params=["the system tells", "realpath tells"])
def by_paths(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FolderKind", PathFolder)
    monkeypatch.setattr(files, "_NO_FOLLOW", 0)
    if request.param == "realpath tells":
        monkeypatch.setattr(reading, "path_of", lambda _descriptor: None)


@pytest.mark.parametrize("by_paths", ["the system tells"], indirect=True)
@pytest.mark.usefixtures("by_paths")
def test_by_paths_too_a_swapped_folder_never_gives_what_lies_outside(swapped: Path):
    deadline = monotonic() + 1.0
    while monotonic() < deadline:
        with suppress(SourceUnreadable):
            assert read_file(swapped, "folder/a.md", 1000).data == b"public"


@pytest.mark.usefixtures("by_paths")
def test_by_paths_a_folder_swapped_before_the_look_is_noticed_after_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The folder is a link when the file is looked at and opened: both see the same file."""
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for folder, text in ((root / "folder", b"public"), (tmp_path / "outside", b"secret")):
        (folder / "a.md").write_bytes(text)
    folder = PathFolder.root(root).child("folder")
    (root / "folder").rename(root / "kept")
    (root / "folder").symlink_to("../outside")
    with pytest.raises(OSError):  # noqa: PT011 ELOOP
        folder.open("a.md")
    with pytest.raises(OSError):  # noqa: PT011 ENOENT
        folder.entries()


# Names


@pytest.mark.parametrize(
    "path",
    [
        "C:\\Users\\a.md",
        "C:a.md",
        "c:/a.md",
        "\\\\server\\share\\a.md",
        "\\\\?\\C:\\a.md",
        "..\\a.md",
        "a\\..\\..\\b.md",
        "a.md:stream",
        "a.md::$DATA",
        "a.md.",
        "a.md ",
        "folder./a.md",
        "NUL",
        "con.md",
        "aux .txt",
        "folder/COM1.md",
        "lpt³.md",
        "CONOUT$",
        "a*.md",
        'a".md',
        "a\n.md",
    ],
)
def test_on_windows_a_name_that_means_something_else_is_refused(path: str):
    with pytest.raises(SourceUnreadable, match="relative to its tree"):
        relative_parts(path, windows=True)


@pytest.mark.parametrize("name", ["a.md", "console.md", "COM10.md", "a b.md", ".x.md", "ö…md"])
def test_on_windows_other_names_are_names(name: str):
    assert is_windows_name(name)
    assert relative_parts(f"folder/{name}", windows=True) == ("folder", name)


def test_here_a_backslash_is_a_character_of_a_name(tmp_path: Path):
    if os.sep == "\\":
        pytest.skip("a backslash ends a folder's name here")
    (tmp_path / "a\\b:c.md").write_bytes(b"text")
    assert read_file(tmp_path, "a\\b:c.md", 1000).data == b"text"


def test_the_marker_of_a_long_path_goes():
    assert without_marker("\\\\?\\C:\\notes\\a.md") == "C:\\notes\\a.md"
    assert without_marker("\\\\?\\UNC\\server\\share\\a.md") == "\\\\server\\share\\a.md"
    assert without_marker("C:\\notes") == "C:\\notes"


def test_a_junction_is_a_link(tmp_path: Path):
    """Windows says of it that it is a folder; of a file in the cloud only that it is special."""

    class Status:
        st_mode = os.stat(tmp_path).st_mode

        def __init__(self, tag: int) -> None:
            self.st_reparse_tag = tag

    assert is_link(Status(0xA0000003))  # pyright: ignore[reportArgumentType]
    assert not is_link(Status(0x9000001A))  # pyright: ignore[reportArgumentType]
    assert not is_link(os.lstat(tmp_path))


# Folders and words


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CONFIG_HOME", ".config"),
        ("darwin", "XDG_CONFIG_HOME", "Library/Application Support"),
        ("darwin", "XDG_CACHE_HOME", "Library/Caches"),
        ("darwin", "XDG_DATA_HOME", "Library/Application Support"),
        ("win32", "XDG_CONFIG_HOME", "AppData/Roaming"),
        ("win32", "XDG_DATA_HOME", "AppData/Roaming"),
        ("win32", "XDG_CACHE_HOME", "AppData/Local"),
    ],
)
def test_each_system_has_its_folders(tmp_path: Path, platform: str, variable: str, expected: str):
    below = {"XDG_CONFIG_HOME": ".config", "XDG_CACHE_HOME": ".cache"}.get(variable, ".local/share")
    environ = {"HOME": str(tmp_path)}
    assert base_folder(environ, variable, below, platform) == tmp_path / expected
    own = environ | {"APPDATA": str(tmp_path / "r"), "LOCALAPPDATA": str(tmp_path / "l")}
    if platform == "win32":
        wanted = tmp_path / ("l" if variable == "XDG_CACHE_HOME" else "r")
        assert base_folder(own, variable, below, platform) == wanted
    given = own | {variable: str(tmp_path / "given")}
    assert base_folder(given, variable, below, platform) == tmp_path / "given"


def test_on_a_mac_what_is_at_the_xdg_place_stays_in_use(tmp_path: Path):
    (tmp_path / ".config" / APPLICATION).mkdir(parents=True)
    found = base_folder({"HOME": str(tmp_path)}, "XDG_CONFIG_HOME", ".config", "darwin")
    assert found == tmp_path / ".config"


def test_where_the_clients_files_are_on_windows():
    home, roaming = Path("/users/me"), "/users/me/AppData/Roaming"
    clients = {client.key: client for client in CLIENTS}
    for environ in ({"APPDATA": roaming}, {}, {"XDG_CONFIG_HOME": "/elsewhere"}):
        place = {
            key: PurePosixPath(path)
            for key, client in clients.items()
            if (path := user_place(client, home, "win32", environ))
        }
        desktop = f"{roaming}/Claude/claude_desktop_config.json"
        assert place["claude-desktop"] == PurePosixPath(desktop)
        assert place["vscode"] == PurePosixPath(f"{roaming}/Code/User/mcp.json")
        assert place["zed"] == PurePosixPath(f"{roaming}/zed/settings.json")
        assert place["cursor"] == PurePosixPath("/users/me/.cursor/mcp.json")


@needs.posix
def test_an_entry_of_windows_is_known_as_ours():
    assert starts_this_program({"command": "C:/Python/Scripts/ragdocs.exe", "args": ["mcp"]})
    assert not starts_this_program({"command": "C:/other.exe", "args": []})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D:\\data\\private\\notes\\a.md is damaged", "…/notes\\a.md is damaged"),
        ("\\\\server\\share\\x\\index\\store.db", "…/index\\store.db"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("docs:a.md is gone", "docs:a.md is gone"),
    ],
)
def test_an_answer_names_no_place_of_windows_either(text: str, expected: str):
    assert without_places(text) == expected


# The sources

_POSIX_ONLY = re.compile(
    r"\bos\.(?:O_(?:CLOEXEC|DIRECTORY|NOCTTY|NOFOLLOW|NONBLOCK)|p(?:read|write)|get(?:e?uid|e?gid)"
    r"|fch(?:mod|own)|fork|mkfifo|statvfs|setsid|killpg)\b"
    r"|\bsignal\.(?:SIGALRM|SIGHUP|SIGKILL|alarm)\b|^(?:import|from) (?:fcntl|resource|pwd|grp)\b",
    re.MULTILINE,
)
_ALLOWED = {
    "files.py": {"os.pread", "os.pwrite"},  # asked for by `hasattr`
    "cli/edit_files.py": {"os.fchown"},  # an AttributeError is expected
}


def test_what_only_posix_has_is_asked_for_in_one_place():
    """A module that calls it by itself would fail on Windows, and nobody here would see it."""
    root = Path(files.__file__).parent
    found = {
        path.relative_to(root).as_posix(): set(_POSIX_ONLY.findall(path.read_text("utf-8")))
        for path in root.rglob("*.py")
    }
    assert {name: calls for name, calls in found.items() if calls} == _ALLOWED


# Where the tests are run


def test_the_workflow_runs_the_tests_on_three_systems_and_three_pythons():
    workflow = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text("utf-8"))
    linux, elsewhere = workflow["jobs"]["linux"], workflow["jobs"]["elsewhere"]
    assert linux["runs-on"] == "ubuntu-latest"
    assert linux["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert [step["run"] for step in linux["steps"] if "run" in step] == [".ci/run"]
    assert elsewhere["strategy"]["matrix"]["os"] == ["macos-latest", "windows-latest"]
    assert any("-m pytest" in step.get("run", "") for step in elsewhere["steps"])


def test_a_test_is_skipped_on_windows_for_a_reason_that_is_there():
    for name in needs.WHOLE_FILES:
        assert (PROJECT / "tests" / name).is_file(), name
    here = Path(__file__)
    assert needs.missing(here, "os.mkfifo(path)") == "no named pipes or sockets in folders"
    assert needs.missing(here, "process.send_signal(2)") == "no signals as POSIX has"
    assert needs.missing(here, "assert 1 + 1 == 2") == ""
    assert needs.missing(PROJECT / "tests/unit/test_seal.py", "") != ""
