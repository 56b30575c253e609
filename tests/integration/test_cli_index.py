"""`ragdocs index`: the indices of a machine are listed, and those not needed are deleted."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ragdocs.store.lock import try_watch_lock
from ragdocs.store.variants import DAY_SECONDS, USED_FILE, variants
from tests.support.indexes import write
from tests.support.program import called


class Machine:
    """A home with a cache, in which commands are called."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.environ = {"XDG_CACHE_HOME": str(base / "cache"), "HOME": str(base / "home")}
        self.cache = self.base / "cache" / "mcp-markdown-ragdocs"

    def run(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = called(self.base, *words, **self.environ)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    def index(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run("index", *words, "--json", code=code).stdout)

    def build(self, name: str, days: float = 0, *more: str) -> Path:
        """The folder of the index of a new folder, last used so many days ago."""
        write(self.base / name, "a.md", f"# A\n\n{name}\n")
        before = {*self.cache.glob("index-*/variant-*")}
        self.run("update", "-q", "--no-vectors", "--docs", name, *more)
        (made,) = {*self.cache.glob("index-*/variant-*")} - before
        then = time.time() - days * DAY_SECONDS
        os.utime(made / USED_FILE, (then, then))
        return made


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_list_says_what_an_index_is_of_and_when_it_was_used(machine):
    machine.build("notes", days=3)
    machine.build("wiki")
    shutil.rmtree(machine.base / "notes")

    wiki, notes = machine.index("list")["indices"]
    lines = machine.run("index", "list").stdout.splitlines()

    assert [folder["tree"] for folder in wiki["folders"]] == ["wiki"]
    assert (wiki["gone"], wiki["in_use_by"]) == (False, [])
    assert notes["folders"][0]["path"] == str(machine.base / "notes")
    assert notes["gone"] is True
    assert wiki["bytes"] > 10_000
    assert lines[0].split() == ["name", "size", "last", "used", "folders"]
    assert "3 days ago" in lines[2]
    assert lines[2].endswith("notes (gone)")
    assert lines[-1].startswith("2 indices, ")


def test_settings_that_differ_are_named(machine):
    machine.build("notes")
    machine.build("notes", 0, *_settings(machine, "[chunking]\nmax_leaf_chars = 700\n"))

    (found,) = machine.index("list")["indices"]
    plain = machine.index("show", "notes", "--docs", "notes")

    assert len(found["builds"]) == 2
    used, other = sorted(plain["builds"], key=lambda one: not one["used_here"])
    assert (used["used_here"], used["differing_settings"]) == (True, [])
    assert (other["used_here"], other["differing_settings"]) == (
        False,
        ["chunking.max_leaf_chars"],
    )
    assert "differs in chunking.max_leaf_chars" in machine.run("index", "show", "notes").stdout


def _settings(machine: Machine, text: str) -> tuple[str, str]:
    write(machine.base, "own.toml", text)
    return "--config", str(machine.base / "own.toml")


def test_an_index_is_named_by_its_beginning_its_folder_or_its_documents(machine):
    made = machine.build("notes").parent

    for name in (made.name, made.name[:11], made.name[6:11], str(made), "notes"):
        assert machine.index("show", name)["path"] == str(made)
    missing = machine.index("show", "elsewhere", code=1)
    assert missing["kind"] == "not_there"
    assert missing["advice"] == "`ragdocs index list` lists what there is"
    machine.build("wiki")
    assert "could mean" in machine.index("show", "index-", code=2)["error"]


def test_nothing_is_deleted_without_a_yes(machine):
    made = machine.build("notes", days=40)

    refused = machine.run("index", "prune", code=2)
    said = machine.run("index", "prune", "--dry-run").stdout

    assert "give --yes" in refused.stderr
    assert said.startswith("Would delete ")
    assert variants(made.parent)
    assert machine.index("prune", code=2)["kind"] == "usage_error"


def test_prune_deletes_by_age_and_what_is_gone(machine):
    old, gone, new = (machine.build(*one) for one in (("old", 40), ("gone", 2), ("new", 10)))
    shutil.rmtree(machine.base / "gone")

    by_age = machine.index("prune", "--older-than", "20d", "--dry-run")
    assert [one["path"] for one in by_age["removed"]] == [str(old)]
    by_place = machine.index("prune", "--gone", "--dry-run")
    assert [one["path"] for one in by_place["removed"]] == [str(gone)]

    both = machine.index("prune", "--yes")

    assert {one["path"] for one in both["removed"]} == {str(old), str(gone)}
    assert not old.parent.exists()
    assert not gone.parent.exists()
    assert variants(new.parent)


def test_an_index_in_use_is_never_deleted(machine):
    made = machine.build("notes", days=40)
    lock = try_watch_lock(made)
    assert lock is not None

    with lock:
        (listed,) = machine.index("list")["indices"]
        pruned = machine.index("prune", "--yes")
        kept = machine.index("remove", "notes", "--yes", code=1)

    assert listed["in_use_by"] == [os.getpid()]
    for answer in (pruned, kept):
        assert answer["removed"] == []
        assert [one["reason"] for one in answer["kept"]] == ["a process uses it"]
    assert variants(made.parent)
    assert machine.index("remove", "notes", "--yes")["removed"]


def test_what_is_not_ours_stays(machine):
    made = machine.build("notes", days=40)
    theirs = write(made, "letter.txt", "mine")
    beside = write(machine.cache / "index-0123456789abcdef", "store.db", "not an index")

    answer = machine.index("prune", "--yes")

    assert [one["reason"] for one in answer["kept"]] == ["its folder has files that are not ours"]
    assert theirs.read_text(encoding="utf-8") == "mine"
    assert beside.read_text(encoding="utf-8") == "not an index"
    assert [one["name"] for one in machine.index("list")["indices"]] == [made.parent.name]


def test_an_index_in_a_folder_of_the_users_choice(machine):
    write(machine.base / "notes", "a.md", "# A\n\nword\n")
    own = machine.base / "mine" / "ix"
    write(machine.base / "mine", "other.txt", "mine")
    machine.run("update", "-q", "--no-vectors", "--docs", "notes", "--index", str(own))

    assert machine.index("list", code=1) == {"indices": []}
    (found,) = machine.index("list", "--index", str(own))["indices"]
    assert found["path"] == str(own)
    machine.index("remove", str(own), "--index", str(own), "--yes")

    assert not own.exists()
    assert (machine.base / "mine" / "other.txt").exists()


def test_a_configuration_that_cannot_be_used_hides_no_index(machine):
    machine.build("notes")
    write(machine.base, ".ragdocs.toml", "[search]\nnothing = 1\n")

    (found,) = machine.index("list")["indices"]

    assert found["builds"][0]["differing_settings"] is None


@pytest.mark.parametrize("age", ["30", "d", "1.5d", "-3d", "+3d", "today", "99999y"])
def test_an_age_that_is_none(machine, age):
    assert "30d" in machine.index("prune", f"--older-than={age}", "--dry-run", code=2)["error"]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("typed", "is_deleted"), [(b"n\n", False), (b"y\n", True)])
def test_a_person_is_asked(machine, typed, is_deleted):
    made = machine.build("notes", days=40)
    terminal, child = os.openpty()
    environ = {**os.environ, **machine.environ}
    os.write(terminal, typed)

    done = subprocess.run(
        [sys.executable, "-m", "ragdocs", "index", "prune"],
        stdin=child,
        capture_output=True,
        text=True,
        env=environ,
        cwd=machine.base,
        timeout=60,
        check=False,
    )

    os.close(child)
    os.close(terminal)
    assert "Delete 1 index (" in done.stderr
    assert (done.returncode == 0) is is_deleted
    assert bool(variants(made.parent)) is not is_deleted
