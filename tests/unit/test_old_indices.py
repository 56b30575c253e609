"""Indices in the cache whose documents are gone: listed by `doctor`, deleted by `doctor --fix`."""

import os
import shutil
import time
from pathlib import Path

import pytest

from ragdocs.app import App
from ragdocs.config.loading import read_config
from ragdocs.diagnosis import folder_checks as checked
from ragdocs.diagnosis.case import Finding
from ragdocs.diagnosis.doctor import open_case, repair
from ragdocs.store.lock import try_write_lock
from ragdocs.store.variants import DAY_SECONDS, USED_FILE, variants
from tests.support.indexes import only, write
from tests.support.models import CountingEmbedder


class Home:
    """A user with a cache of indices."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()

    def app(self, docs: Path, **sections: dict[str, object]) -> App:
        config = self.reading(docs, **sections).config
        assert config
        return App(config, CountingEmbedder())

    def reading(self, docs: Path, **sections: dict[str, object]):
        environ = {"HOME": str(self.base), "XDG_CACHE_HOME": str(self.base / "cache")}
        flags = {"indexing": {"documents_path": str(docs)}, **sections}
        return read_config(cwd=self.base, environ=environ, flags=flags)

    def build(self, docs: Path, days: float = 0, **sections: dict[str, object]) -> Path:
        """The index folder, last used so many days ago."""
        write(docs, "a.md", "# A\n\nApples.\n")
        with self.app(docs, **sections) as app:
            with app.manager() as manager:
                manager.update()
            assert app.reader.position().generation  # which notes the use
            place = app.config.index_place.default
        for one in variants(place):
            then = time.time() - days * DAY_SECONDS
            os.utime(one.path / USED_FILE, (then, then))
        return place

    def findings(self) -> list[Finding]:
        docs = self.base / "mine"
        with self.app(docs) as app:
            return only(open_case(self.reading(docs), app=app), "old indices")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.build(made.base / "mine")
    return made


def test_an_index_whose_documents_are_gone_is_listed_and_deleted(home: Home):
    work = home.base / "work"
    home.build(work / "old", chunking={"max_leaf_chars": 400})
    old = home.build(work / "old", days=31)
    assert len(variants(old)) == 2
    kept = home.build(work / "kept", days=400)
    shutil.rmtree(work / "old")
    (found,) = home.findings()
    assert found.level.value == "note"
    assert "1 index of documents that are gone" in found.message
    (line,) = found.details
    assert line.startswith(f"{old}: ")
    assert "last used 31 days ago" in line
    assert str(work / "old") in line
    (done,) = repair([found])
    assert done.done
    assert done.message == "deleted 1 index of documents that are gone"
    assert not old.exists()
    assert kept.exists()
    assert [one.level.value for one in home.findings()] == ["ok"]


def test_one_that_was_used_of_late_is_listed_and_kept(home: Home):
    old = home.build(home.base / "old", days=29)
    shutil.rmtree(home.base / "old")
    (found,) = home.findings()
    assert found.level.value == "ok"
    assert found.repair is None
    assert "kept until unused for 30 days" in found.details[0]
    assert old.exists()


def unmounted(_home: Home, docs: Path) -> None:
    """The place for the drive is there, and empty."""
    shutil.rmtree(docs)


def where_drives_are(_home: Home, docs: Path) -> None:
    shutil.rmtree(docs)
    write(docs.parent, "another drive", "")


@pytest.mark.parametrize("happens", [unmounted, where_drives_are])
def test_one_whose_drive_may_not_be_mounted_is_kept_and_said(
    home: Home, monkeypatch: pytest.MonkeyPatch, happens
):
    drives = home.base / "drives"
    monkeypatch.setattr(checked, "_MOUNTS", (drives,) if happens is where_drives_are else ())
    old = home.build(drives / "notes", days=99)
    happens(home, drives / "notes")
    (found,) = home.findings()
    assert found.repair is None
    assert "may be on a drive that is not mounted: kept" in found.details[0]
    assert old.exists()


def test_a_top_folder_that_is_missing_may_be_a_drive():
    assert checked.may_come_back(Path("/no-such-folder-anywhere/notes"))


def test_what_may_not_be_looked_at_is_not_gone(home: Home, monkeypatch: pytest.MonkeyPatch):
    home.build(home.base / "old", days=99)
    shutil.rmtree(home.base / "old")
    real = os.lstat

    def lstat(path, *arguments, **options):
        if os.fspath(path) == str(home.base / "old"):
            raise PermissionError(13, "no")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "lstat", lstat)
    assert [one.details for one in home.findings()] == [()]


def test_what_is_back_or_in_use_when_it_is_to_be_deleted_stays(home: Home):
    docs = home.base / "old"
    old = home.build(docs, days=99)
    shutil.rmtree(docs)
    (found,) = home.findings()
    docs.mkdir()
    list(repair([found]))
    assert old.exists()
    docs.rmdir()
    (variant,) = variants(old)
    with try_write_lock(variant.path):
        list(repair([found]))
        assert (variant.path / "store.db").exists()
    list(repair([found]))
    assert not old.exists()


def test_files_of_others_in_the_folder_stay(home: Home):
    docs = home.base / "old"
    old = home.build(docs, days=99)
    shutil.rmtree(docs)
    (old / "mine.txt").write_text("mine", encoding="utf-8")
    (found,) = home.findings()
    list(repair([found]))
    assert [path.name for path in old.iterdir()] == ["mine.txt"]


def test_a_folder_with_bytes_that_are_no_text_is_not_taken_for_gone(home: Home):
    docs = Path(os.fsdecode(os.fsencode(home.base) + b"/ol\xe9d"))
    home.build(docs, days=99)
    assert [one.details for one in home.findings()] == [()]
