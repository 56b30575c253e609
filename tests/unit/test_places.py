"""What is typed, as documents: from the text and the folders alone; and documents as files."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ragdocs.errors import QueryError
from ragdocs.library.requests import DocumentRequest
from ragdocs.models import TreeName
from ragdocs.places import PathReading, Places, clients_folder, printable_name
from tests.support.machine import takes_less_than

NOWHERE = Places({TreeName("docs"): Path("/nowhere/docs"), TreeName("notes"): Path("/nowhere/n")})


def readings(reference, places=NOWHERE):
    return [one for group in places.readings(reference) for one in group]


@pytest.mark.parametrize(
    ("reference", "reading"),
    [
        ("a.md", PathReading("a.md")),
        ("./guide//a.md", PathReading("guide/a.md")),
        ("guide/../a.md", PathReading("a.md")),
        ("docs:a.md", PathReading("a.md", "docs")),
        ("docs:a.md#intro", PathReading("a.md", "docs", "intro")),
        ("a.md#intro", PathReading("a.md", None, "intro")),
        ("a.md#^a1", PathReading("a.md", None, "^a1")),
        ("a.md:10-40", PathReading("a.md", None, None, (10, 40))),
        ("a.md:7", PathReading("a.md", None, None, (7, 7))),
        ("notes:a.md:7", PathReading("a.md", "notes", None, (7, 7))),
        ("a#b.md#intro", PathReading("a#b.md", None, "intro")),
        ("docs:a%23b.md#intro", PathReading("a#b.md", "docs", "intro")),
        ("100%.md", PathReading("100%.md")),
        ("bad%FF.md", PathReading("bad\udcff.md")),
        ("other:a.md", PathReading("other:a.md")),
        ("two\nlines.md", PathReading("two\nlines.md")),
        ("[[Note]]", PathReading("Note")),
        (" ![[Note#Set up|see here]] ", PathReading("Note", None, "Set up")),
        ("[[a/Note#^b\\|in a table]]", PathReading("a/Note", None, "^b")),
        ("/nowhere/docs/a.md", PathReading("a.md", "docs")),
        ("/nowhere/n/../docs/x/a.md:3", PathReading("x/a.md", "docs", None, (3, 3))),
    ],
)
def test_every_way_to_name_a_place_is_among_the_readings(reference, reading):
    assert reading in readings(reference)


def test_the_literal_reading_comes_first():
    assert readings("a.md:10-40")[0] == PathReading("a.md:10-40")
    assert readings("docs:a.md#b")[0] == PathReading("a.md#b", "docs")


REFUSED = [
    "../../etc/passwd",
    "docs:../../etc/passwd",
    "a/../../b.md",
    "%2E%2E/secret.md",
    "/etc/passwd",
    "/nowhere/docs2/a.md",
    "/nowhere/docs/../secret.md",
    "~/notes.md",
    "C:\\Windows\\win.ini",
    "a\0b.md",
    "a\ud800b.md",
    ".",
    "./",
]


@pytest.mark.parametrize("reference", REFUSED)
def test_what_cannot_be_within_a_tree_is_refused_at_once(reference):
    with pytest.raises(QueryError) as refused:
        readings(reference)
    assert "etc/passwd" not in str(refused.value)
    assert str(refused.value).encode()  # can be written
    assert takes_less_than(0.1, lambda: tried(lambda: readings(reference)))


def tried(read):
    with suppress(QueryError):
        read()


def test_a_reference_of_a_hundred_thousand_characters_is_refused_at_once():
    long = "a/" * 50_000
    with pytest.raises(QueryError, match="13,000"):
        DocumentRequest(reference=long)
    assert takes_less_than(0.1, lambda: tried(lambda: DocumentRequest(reference=long)))


def test_the_longest_reference_taken_is_read_at_once(tmp_path):
    for places in (NOWHERE, NOWHERE.based_on(tmp_path)):
        for text in ("#" * 13_000, ":1" * 6_500, "%23" * 4_333, "../" * 4_333, "a/" * 6_500):
            read = lambda text=text, places=places: tried(lambda: readings(text, places))  # noqa: E731
            assert takes_less_than(0.1, read)


def test_what_is_shown_is_short_and_on_one_line():
    assert printable_name("a\nb") == "a%0Ab"
    assert len(printable_name("x" * 1000)) == 120


# With real folders: a project with two trees, one nested in the other, and one reached by a link.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    found = tmp_path / "my project"
    (found / "docs" / "api").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (found / "linked").symlink_to(tmp_path / "elsewhere")
    return found


@pytest.fixture
def places(project: Path) -> Places:
    roots = {
        "docs": project / "docs",
        "api": project / "docs/api",
        "far": project.parent / "elsewhere",
    }
    return Places({TreeName(name): root for name, root in roots.items()}, project)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("docs/guide.md", [(None, "docs/guide.md"), ("docs", "guide.md")]),
        ("./docs/guide.md", [("docs", "guide.md"), (None, "docs/guide.md")]),
        ("docs/api/x.md", [(None, "docs/api/x.md"), ("api", "x.md"), ("docs", "api/x.md")]),
        ("linked/x.md", [(None, "linked/x.md"), ("far", "x.md")]),
        ("../elsewhere/x.md", [("far", "x.md")]),
        ("{project}/linked/x.md", [("far", "x.md")]),
        ("{project}/docs/x #1 100%.md", [("docs", "x #1 100%.md")]),
    ],
)
def test_paths_from_the_working_directory_and_through_a_linked_root(
    places, project, typed, expected
):
    found = readings(typed.format(project=project), places)
    whole = [(one.tree, one.path) for one in found if not (one.fragment or one.lines)]
    assert whole[: len(expected)] == expected


def test_a_folder_above_trees_means_all_of_them(places, project):
    for typed in (str(project), "."):
        assert {one.tree for one in places.folders(typed)[0]} == {"docs", "api"}
    assert {one.tree for one in places.folders("docs")[1]} == {"docs", "api"}


def test_a_link_out_of_the_trees_is_refused(places, project):
    (project / "docs" / "out").symlink_to("/etc")
    (project / "out").symlink_to("/etc")
    with pytest.raises(QueryError, match="outside"):
        readings(f"{project}/out/passwd", places)
    # As it is spelled it is in the tree; such a path is never indexed, nor opened through a link.
    assert {one.tree for one in readings(f"{project}/docs/out/passwd", places)} == {"docs"}


def test_without_files_absolute_paths_neither_come_in_nor_go_out(places, project):
    distant = replace(places, has_files=False)
    with pytest.raises(QueryError, match="absolute path is not accepted"):
        distant.readings(f"{project}/docs/guide.md")
    assert distant.file_of("docs", "guide.md") is None
    assert readings("docs/guide.md", distant) == [PathReading("docs/guide.md")]


def test_a_file_is_relative_to_the_base_where_it_lies_below_it(places, project):
    assert places.file_of("docs", "a b/c#1.md") == "docs/a b/c#1.md"
    assert places.file_of("far", "x.md") == f"{project.parent}/elsewhere/x.md"
    assert places.based_on(None).file_of("docs", "x.md") == f"{project}/docs/x.md"
    assert places.based_on(project / "docs").file_of("docs", "x.md") == "x.md"
    assert (
        places.based_on(project / "docs/api").file_of("docs", "api/x.md")
        == f"{project}/docs/api/x.md"
    )
    assert places.file_of("gone", "x.md") is None


def test_a_name_that_is_not_utf_8_has_one_spelling_which_is_read_again(places, project):
    raw = os.fsdecode(b"bad\xff.md")
    shown = places.file_of("docs", "bad%FF.md")
    assert shown == "docs/bad%FF.md"
    assert PathReading(raw, "docs") in readings(shown, places)
    odd = Places({TreeName("docs"): project / os.fsdecode(b"100%41 \xff")}, project)
    assert PathReading(raw, "docs") in readings(odd.file_of("docs", "bad%FF.md"), odd)
    assert PathReading("a#b.md", "docs") in readings(odd.file_of("docs", "a#b.md"), odd)


@dataclass(frozen=True)
class Found:
    tree: str
    path: str
    file: str | None = None


@dataclass(frozen=True)
class Answer:
    results: tuple[Found, ...]
    best: Found
    pack: object = None


def test_files_are_added_everywhere_in_an_answer_and_again_when_it_is_packed(places):
    answer = Answer(
        (Found("docs", "a.md"), Found("api", "b.md")),
        Found("docs", ""),
        lambda room: Answer((Found("docs", str(room)),), Found("docs", "x")),
    )
    found = places.with_files(answer)
    assert [one.file for one in found.results] == ["docs/a.md", "docs/api/b.md"]
    assert found.best.file is None
    assert found.pack(3).results[0].file == "docs/3"


def test_a_server_started_in_the_home_folder_names_absolute_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    for folder, expected in ((tmp_path, None), (Path("/"), None), (tmp_path / "project",) * 2):
        monkeypatch.chdir(folder)
        assert clients_folder() == expected
