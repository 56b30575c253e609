"""Documents in formats that are not read are counted, and told by `update` and `status`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.indexes import write
from tests.support.program import called


class Folder:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.notes = base / "notes"
        write(self.notes, "a.md", "# A\n\nword\n")

    def run(self, *words: str) -> Any:
        done = called(self.base, *words, "--docs", "notes", "--index", "ix")
        assert done.returncode == 0, done.stderr
        return done

    def updated(self) -> dict[str, Any]:
        return json.loads(self.run("update", "--no-vectors", "--json").stdout)["unread"]

    def status(self) -> dict[str, int]:
        (tree,) = json.loads(self.run("status", "--json").stdout)["trees"]
        return tree["unread"]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_they_are_counted_by_kind_and_told(folder):
    for name in ("a.pdf", "deep/b.PDF", "c.docx", "picture.png", "code.py"):
        write(folder.notes, name, b"\x00binary")

    assert folder.updated() == {"notes": {".docx": 1, ".pdf": 2}}
    assert folder.status() == {".docx": 1, ".pdf": 2}
    said = folder.run("update", "--no-vectors").stderr
    assert said.count("Not read in notes: 3 documents of other formats (2 .pdf, 1 .docx)") == 1
    assert "not read  notes: 2 .pdf, 1 .docx" in folder.run("status").stdout


def test_ignored_and_excluded_files_do_not_count(folder):
    for name in ("secret/a.pdf", ".hidden/b.pdf", ".c.pdf", "node_modules/d.pdf", "~$e.docx"):
        write(folder.notes, name, b"x")
    write(folder.notes, ".gitignore", "secret/\n")
    write(folder.notes, "out/f.pdf", b"x")
    write(folder.base, ".ragdocs.toml", '[indexing]\nexclude = ["out/"]\n')
    write(folder.notes, "git/ignored.pdf", b"x")
    write(folder.notes, "git/.gitignore", "*.pdf\n")

    assert folder.updated() == {}
    assert "not read" not in folder.run("status").stdout


def test_the_count_follows_files_even_when_nothing_else_changes(folder):
    assert folder.updated() == {}

    write(folder.notes, "a.pdf", b"x")
    assert folder.updated() == {"notes": {".pdf": 1}}
    assert folder.status() == {".pdf": 1}

    (folder.notes / "a.pdf").unlink()
    assert folder.updated() == {}
    assert folder.status() == {}


def test_a_file_that_is_included_counts_as_read(folder):
    write(folder.notes, "page.rst", "words\n")
    write(folder.base, ".ragdocs.toml", '[indexing]\ninclude = ["*.md", "*.rst"]\n')

    assert folder.updated() == {}
