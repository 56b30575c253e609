"""What `doctor` finds in an index directory, and what it repairs: each fault really made."""

import os
import stat

import pytest

from ragdocs.config.choices import KeywordEngineName
from ragdocs.diagnosis.case import Level, is_fine
from ragdocs.diagnosis.doctor import examine, repair
from ragdocs.diagnosis.probes import engine_folder
from ragdocs.search.requests import QueryRequest
from ragdocs.store.folder import claim_folder
from tests.support.indexes import NOTES, ODD, Bench, holding, levels, only
from tests.support.machine import bound_by_permissions
from tests.support.models import CountingEmbedder
from tests.support.stores import run_sql

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def bench(built, tmp_path):
    return built.copy_to(tmp_path)


def repaired(case, *names):
    """What `--fix` says; afterwards these checks must find nothing."""
    done = list(repair(only(case, *names)))
    assert done, "nothing could be repaired"
    assert all(one.done for one in done), done
    assert is_fine(only(case, *names))
    return " ".join(one.message for one in done)


def test_a_whole_index_has_no_fault(bench):
    found = [one for one in examine(bench.case()) if one.check != "platform"]
    assert {one.level for one in found} == {Level.OK}, found
    assert not [one for one in found if one.repair]


def test_an_index_that_was_copied_is_not_as_it_was_left(bench):
    os.utime(bench.store)
    (found,) = only(bench.case(), "store")
    assert found.level is Level.NOTE
    assert "copied or changed by another program" in found.message
    assert "ragdocs update" in found.advice


# permissions


def test_permissions_that_are_too_open(bench):
    bench.index.chmod(0o755)
    bench.store.chmod(0o644)
    (found,) = only(bench.case(), "permissions")
    assert found.level is Level.WARNING
    assert any("0644, not 0600" in detail for detail in found.details)
    repaired(bench.case(), "permissions")
    assert stat.S_IMODE(bench.index.stat().st_mode) == 0o700
    assert stat.S_IMODE(bench.store.stat().st_mode) == 0o600


def test_files_that_cannot_be_written(bench):
    bench.store.chmod(0o400)
    assert levels(only(bench.case(), "permissions")) == ["warning"]
    repaired(bench.case(), "permissions")


def test_a_folder_that_holds_other_things_keeps_its_permissions(bench):
    bench.index.chmod(0o755)
    mine = bench.index / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    mine.chmod(0o644)
    (found,) = only(bench.case(), "permissions")
    assert found.level is Level.NOTE
    assert found.repair is None
    bench.store.chmod(0o644)
    repaired(bench.case(), "permissions")
    assert stat.S_IMODE(bench.index.stat().st_mode) == 0o755
    assert stat.S_IMODE(mine.stat().st_mode) == 0o644


def test_a_link_is_not_followed_when_permissions_are_set(bench):
    mine = bench.base / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    mine.chmod(0o644)
    (bench.index / "write.lock").unlink()
    (bench.index / "write.lock").symlink_to(mine)
    bench.store.chmod(0o644)
    repaired(bench.case(), "permissions")
    assert stat.S_IMODE(mine.stat().st_mode) == 0o644


@pytest.mark.skipif(not AS_ROOT, reason="only root can give files away")
def test_an_index_of_another_user(bench):
    os.chown(bench.store, 12345, -1)
    (found,) = only(bench.case(), "permissions")
    assert (found.level, found.repair) == (Level.ERROR, None)
    assert any("store.db" in detail for detail in found.details)
    os.chown(bench.index, 12345, -1)
    (found,) = only(bench.case(), "permissions")
    assert "another user" in found.message


def test_a_directory_that_cannot_be_listed(bench):
    bench.index.chmod(0)
    with bound_by_permissions():
        assert levels(only(bench.case(), "permissions")) == ["error"]
        repaired(bench.case(), "permissions")


def test_a_directory_that_can_be_made_or_cannot(tmp_path):
    bench = Bench(tmp_path)
    assert levels(only(bench.case(), "permissions")) == ["ok"]
    bench.index = bench.docs / "note.md" / "index"
    (bench.docs / "note.md").write_text("a file", encoding="utf-8")
    assert levels(only(bench.case(), "permissions")) == ["error"]


# locks


def test_who_holds_the_locks(bench):
    assert only(bench.case(), "locks")[0].message == "no process is writing or watching"
    with holding(bench, "try_watch_lock") as pid:
        (found,) = only(bench.case(), "locks")
    assert found.level is Level.OK
    assert f"process {pid} keeps it up to date" in found.message


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_lock_file_that_is_not_a_regular_file(bench, kind):
    path = bench.index / "write.lock"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(bench.base / "elsewhere")
    else:
        path.mkdir()
    (found,) = only(bench.case(), "locks")
    assert found.level is Level.ERROR
    assert f"a {kind}" in found.message
    assert "removed" in repaired(bench.case(), "locks")


def test_what_is_in_a_folder_in_a_locks_place_is_kept(bench):
    path = bench.index / "write.lock"
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("mine", encoding="utf-8")
    (done,) = repair(only(bench.case(), "locks"))
    assert not done.done
    assert (path / "mine.txt").exists()


# space


def test_an_index_larger_than_what_is_free(bench):
    free = os.statvfs(bench.index).f_bavail * os.statvfs(bench.index).f_frsize
    assert levels(only(bench.case(), "space")) == ["ok"]
    with open(bench.index / "store.db-wal", "wb") as file:
        file.truncate(free + 10_000_000_000)  # sparse: it takes no room
    (found,) = only(bench.case(), "space")
    assert found.level is Level.WARNING
    assert "almost full" in found.message


# store


def flip(bench, text):
    raw = bytearray(bench.store.read_bytes())
    at = raw.index(text)
    raw[at] ^= 1
    bench.store.write_bytes(raw)


def test_a_flipped_bit_in_a_text(bench):
    flip(bench, b"Tomatoes need sun")
    (found,) = only(bench.case(), "store")
    assert found.level is Level.ERROR
    assert "garden.md" in found.message
    assert "rebuilt the index" in repaired(bench.case(), "store", "counts")
    with bench.app() as app, app.reader.snapshot() as snapshot:
        assert snapshot.ledger.count("documents") == len(NOTES)


@pytest.mark.parametrize("damage", ["cut", "noise", "rows"])
def test_a_store_that_is_beyond_reading(bench, damage):
    if damage == "rows":
        run_sql(bench.index, "DELETE FROM headings WHERE text = 'Garden'")
    else:
        raw = bench.store.read_bytes()
        bench.store.write_bytes(raw[:9000] if damage == "cut" else os.urandom(len(raw)))
    assert levels(only(bench.case(), "store")) == ["error"]
    repaired(bench.case(), "store", "counts")


def test_an_index_of_other_settings_is_left_to_who_made_it(bench):
    """Also when nobody works with it: only a rebuild that was asked for takes it over."""
    case = bench.case(chunking={"max_leaf_chars": 900})
    (found,) = only(case, "store")
    assert (found.level, found.repair) == (Level.WARNING, None)
    assert "chunking.max_leaf_chars: 1000 there, 900 here" in found.message
    assert "ragdocs rebuild-index" in found.message
    assert levels(only(bench.case(), "store")) == ["ok"]


def test_an_index_of_another_version_is_left_to_that_one(bench):
    run_sql(bench.index, "ALTER TABLE meta ADD COLUMN novelty TEXT")
    run_sql(bench.index, "PRAGMA user_version = 1")
    before = bench.store.read_bytes()
    (found,) = only(bench.case(), "store")
    assert found.level is Level.NOTE  # its own is below that folder, and not built yet
    assert bench.case().directory.parent == bench.index
    assert bench.store.read_bytes() == before


def test_an_index_with_a_damaged_header(bench):
    run_sql(bench.index, "PRAGMA user_version = 1")
    (found,) = only(bench.case(), "store")
    assert "schema 1" in found.message
    repaired(bench.case(), "store", "counts")


def test_a_database_of_another_program_is_never_touched(tmp_path):
    bench = Bench(tmp_path)
    bench.index.mkdir(mode=0o700)
    run_sql(bench.index, "CREATE TABLE theirs (x)")
    before = bench.store.read_bytes()
    (found,) = only(bench.case(), "store")
    assert (found.level, found.repair) == (Level.ERROR, None)
    assert bench.store.read_bytes() == before


def test_there_is_no_index_yet(tmp_path):
    (found,) = only(Bench(tmp_path).case(), "store")
    assert found.level is Level.NOTE
    assert "ragdocs update" in found.advice


def test_a_pipe_in_the_stores_place(tmp_path):
    bench = Bench(tmp_path)
    claim_folder(bench.index)
    os.mkfifo(bench.store)
    assert levels(only(bench.case(), "store")) == ["error"]
    repaired(bench.case(), "store")


# counts


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("DELETE FROM keyword WHERE rowid IN (SELECT min(rowid) FROM keyword)", "keyword"),
        ("DELETE FROM code_terms", "code_terms"),
        ("DELETE FROM signatures WHERE key IN (SELECT min(key) FROM signatures)", "signatures"),
        ("INSERT INTO keyword (rowid, content) VALUES (9999, 'ghost')", "keyword"),
    ],
)
def test_an_index_that_lacks_or_invents_entries(bench, statement, index):
    run_sql(bench.index, statement)
    assert levels(only(bench.case(), "store")) == ["note"]
    bench.reseal()
    assert levels(only(bench.case(), "store")) == ["ok"]
    (found,) = only(bench.case(), "counts")
    assert found.level is Level.ERROR
    assert any(index in detail for detail in found.details)
    repaired(bench.case(), "counts")


def test_words_that_the_keyword_index_has_lost(bench):
    """The row is there and counts its words, but not all of them can be found."""
    rows = "(SELECT max(id) FROM keyword_docsize)"
    run_sql(
        bench.index, f"UPDATE keyword_docsize SET sz = x'00000000000000008901' WHERE id = {rows}"
    )
    (found,) = only(bench.case(), "counts")
    assert any("words" in detail for detail in found.details)


def test_a_signature_that_was_changed(bench):
    run_sql(bench.index, "UPDATE signatures SET ngrams = zeroblob(length(ngrams))")
    (found,) = only(bench.case(), "counts")
    assert "signature" in found.details[0]


def test_an_index_that_missed_a_commit(bench):
    run_sql(bench.index, "UPDATE stored_indices SET generation = 0 WHERE name = 'vocabulary'")
    (found,) = only(bench.case(), "counts")
    assert "vocabulary has missed a commit" in found.details[0]
    repaired(bench.case(), "counts")


# vectors


def test_vectors_that_are_missing_and_vectors_that_nobody_uses(bench):
    (found,) = only(bench.case(CountingEmbedder("words@2")), "vectors")
    assert found.level is Level.NOTE
    assert "0 of 3" in found.message
    assert "17 more are kept" in found.message  # of the other model: 3 passages, 14 words


# engine


@pytest.fixture
def whoosh(bench):
    settings = {"search": {"keyword_engine": "whoosh"}}
    take_over(bench, **settings)
    with bench.app(**settings) as app:
        app.search(QueryRequest(queries=("sun",)))
    return settings


def take_over(bench, **settings):
    with bench.app(**settings) as app, app.manager() as manager:
        manager.update(rebuild=True)


def test_an_engine_that_is_whole(bench, whoosh):
    (found,) = only(bench.case(**whoosh), "engine")
    assert (found.level, found.message) == (Level.OK, "whoosh: up to date")


@pytest.mark.parametrize("damage", ["flip", "grown", "gone", "state", "huge state"])
def test_an_engine_whose_files_are_damaged(bench, whoosh, damage):
    folder = engine_folder(bench.index, KeywordEngineName.WHOOSH)
    (state,) = folder.glob("state.json")
    largest = max(folder.glob("*-*/*"), key=lambda path: path.stat().st_size)
    if damage == "flip":
        raw = bytearray(largest.read_bytes())
        raw[len(raw) // 2] ^= 1
        largest.write_bytes(raw)
    elif damage == "gone":
        largest.unlink()
    elif damage == "state":
        state.write_bytes(state.read_bytes().replace(b"whoosh", b"hoowsh"))
    else:
        os.truncate(largest if damage == "grown" else state, 10**12)  # sparse
    (found,) = only(bench.case(**whoosh), "engine")
    assert found.level is Level.WARNING
    assert "deleted" in repaired(bench.case(**whoosh), "engine")
    assert not folder.exists()


# leftovers, as far as they lie here


def test_the_folder_of_an_engine_that_is_not_in_use(bench, whoosh):
    for settings in (whoosh, {}):  # another program's engine is not left over
        assert levels(only(bench.case(**settings), "leftovers")) == ["ok"]
    take_over(bench)
    (found,) = only(bench.case(), "leftovers")
    assert found.level is Level.NOTE
    assert "keyword-whoosh" in found.message
    repaired(bench.case(), "leftovers")
    assert not engine_folder(bench.index, KeywordEngineName.WHOOSH).exists()


# all of it


@pytest.mark.parametrize("make", ODD)
def test_whatever_lies_there_every_check_ends(tmp_path, make):
    bench = Bench(tmp_path)
    make(bench)
    found = list(examine(bench.case()))
    assert not [one for one in found if "this check" in one.message], found
    wrong = [one for one in found if one.level in (Level.WARNING, Level.ERROR)]
    assert not [one for one in wrong if not one.advice], wrong
    list(repair(found))
    after = list(examine(bench.case()))
    assert not [one for one in after if "this check" in one.message], after


def test_nothing_is_changed_by_looking(bench):
    bench.index.chmod(0o755)
    flip(bench, b"Tomatoes need sun")
    before = bench.store.read_bytes()
    list(examine(bench.case()))
    assert bench.store.read_bytes() == before
    assert stat.S_IMODE(bench.index.stat().st_mode) == 0o755


def test_a_repair_that_two_checks_ask_for_is_made_once(bench):
    run_sql(bench.index, "DELETE FROM headings WHERE text = 'Garden'")
    found = only(bench.case(), "store", "counts")
    assert levels(found) == ["error", "error"]
    assert len(list(repair(found))) == 1
