"""What a commit left is sealed: whoever reads can tell whether the store is still that."""

import os
import random
import shutil
import threading

import pytest

from ragdocs.errors import IndexCorrupt
from ragdocs.store import writer as writer_module
from ragdocs.store.database import checksum, look_at, reset
from ragdocs.store.folder import SEAL_FILE
from ragdocs.store.integrity import Unsealed, is_broken, is_sealed, read_seal, seal
from ragdocs.store.lock import WRITE_LOCK, try_lock
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.faults.damage import DAMAGES, Victim
from tests.support.indexes import Place, settled
from tests.support.machine import bound_by_permissions, until
from tests.support.processes import ask, read_line, run_code
from tests.support.program import served
from tests.support.stores import (
    FINGERPRINT,
    Section,
    file,
    log_into_store,
    put,
    store_process,
)


@pytest.fixture
def writer(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as opened:
        put(opened, file("a.md"))
        yield opened


def waiting(directory):
    with Reader.open(directory) as reader, reader.snapshot() as snapshot:
        return snapshot.waiting


def told_complete(writer):
    with writer.transaction() as transaction:
        transaction.expect(0)
    return transaction.position


# What is sealed


def test_every_commit_is_sealed(writer, tmp_path):
    assert is_sealed(tmp_path, writer.position)
    position = put(writer, file("b.md"))
    assert is_sealed(tmp_path, position)
    with writer.transaction() as transaction:
        transaction.rebuild_indices(())
    assert is_sealed(tmp_path, writer.position)
    assert not is_sealed(tmp_path, position)


def test_looking_at_it_does_not_break_it(tmp_path):
    """SQLite makes an empty log for those who only read."""
    reports = []
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        position = put(writer, file("a.md"))
    with Reader.open(tmp_path, report=reports.append) as reader:
        assert (tmp_path / "store.db-wal").exists()
        assert reader.position() == position
        assert not reports
    assert is_sealed(tmp_path, position)


def test_the_last_one_that_closes_puts_the_log_into_the_store_and_seals_that(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        position = put(writer, file("a.md"))
        before = look_at(tmp_path / "store.db")
    assert look_at(tmp_path / "store.db") != before
    assert is_sealed(tmp_path, position)


def test_a_failed_write_may_leave_ignored_pages_in_the_log(writer, tmp_path):
    before = writer.position, look_at(tmp_path / "store.db-wal")

    def fail():
        with writer.transaction() as transaction:
            writer._database.run("PRAGMA cache_size = 1")  # so they are written early
            for number in range(200):
                transaction.put(file(f"{number}.md"), 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert before[1] != look_at(tmp_path / "store.db-wal")
    assert is_sealed(tmp_path, before[0])


# What breaks it


@pytest.mark.parametrize("name", ["store.db", "store.db-wal"])
@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_damage_breaks_the_seal(writer, tmp_path, name, kind):
    log_into_store(writer)
    older = (tmp_path / name).read_bytes()
    position = put(writer, file("b.md"))
    DAMAGES[kind](Victim(tmp_path / name, older, random.Random(7)))
    assert not is_sealed(tmp_path, position)


@pytest.mark.parametrize("page", [0, 4, 5, 6, 7])
def test_what_is_said_about_the_log_is_sealed_too(writer, tmp_path, page):
    """SQLite finds no page there then, and takes an older one from the store: a row of before,
    that is whole."""
    position = put(writer, *(file(f"{number}.md") for number in range(40)))
    checked = checksum(tmp_path / "store.db-shm")
    zero_page(tmp_path / "store.db-shm", page)
    if page:
        assert not is_sealed(tmp_path, position)
        return
    # Without its head it is made anew from the log, and is what it was.
    with Reader.open(tmp_path) as reader:
        assert reader.position() == position
    assert checksum(tmp_path / "store.db-shm") == checked
    assert is_sealed(tmp_path, position)


def zero_page(path, page):
    """In another process: closing the file would free the locks that this one has on it."""
    code = (
        "import os, sys; os.pwrite(os.open(sys.argv[1], os.O_RDWR), bytes(4096), int(sys.argv[2]))"
    )
    run_code(code, path, page * 4096)


def test_a_long_log_is_sealed_as_a_whole(writer, tmp_path):
    """More frames than are listed in the first part of the shared memory."""
    writer._database.run("PRAGMA wal_autocheckpoint = 0")
    for number in range(40):
        long = "words and more words\n" * 20_000
        position = put(writer, file(f"{number}.md", [Section("A", f"{number} {long}")]))
    memory = tmp_path / "store.db-shm"
    assert memory.stat().st_size > 32768
    assert is_sealed(tmp_path, position)
    zero_page(memory, 12)
    assert not is_sealed(tmp_path, position)


def test_looking_at_it_frees_no_lock(writer, tmp_path):
    """Whoever comes first makes the shared memory anew: it must not seem to be another process."""
    memory = tmp_path / "store.db-shm"
    ask_for_lock = (
        "import fcntl, struct, sys\n"
        "asked = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 128, 1, 0)\n"
        "with open(sys.argv[1], 'r+b') as opened:\n"
        "    found = fcntl.fcntl(opened, fcntl.F_GETLK, asked)\n"
        "sys.exit(struct.unpack('hhqqi4x', found)[0] == fcntl.F_UNLCK)\n"
    )
    with Reader.open(tmp_path):
        assert is_sealed(tmp_path, writer.position)
        reset(memory)
        run_code(ask_for_lock, memory)


def test_no_descriptor_stays_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with StoreWriter.open(tmp_path, FINGERPRINT) as writer, Reader.open(tmp_path) as reader:
            put(writer, file("a.md"))
            reader.position()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_reader_has_doubts_until_it_is_sealed_again(writer, tmp_path):
    reports = []
    with Reader.open(tmp_path, report=reports.append) as reader:
        os.utime(tmp_path / "store.db")
        for doubts in (1, 2, 3):
            reader.position()
            assert len(reports) == doubts
        seal(tmp_path, writer.position)
        reader.position()
        assert len(reports) == 3


def test_what_cannot_be_read_of_a_changed_store_is_damage(writer, tmp_path):
    def fail():
        with Reader.open(tmp_path) as reader, reader.snapshot():
            raise AttributeError("a number where a word should be")

    with pytest.raises(AttributeError):
        fail()
    os.utime(tmp_path / "store.db")
    with pytest.raises(IndexCorrupt, match="was changed by another program"):
        fail()


def test_nothing_is_written_onto_what_is_not_sealed(writer, tmp_path):
    os.utime(tmp_path / "store.db")
    with pytest.raises(Unsealed):
        put(writer, file("b.md"))


def test_requests_side_by_side_have_no_doubts_while_others_commit(tmp_path):
    """One that had begun before a commit, and compared after another had seen it, took that for
    another history."""
    reports = []
    code = (
        "from ragdocs.store.lock import write_lock\n"
        "writer = StoreWriter.open(directory, FINGERPRINT)\n"
        "print('ready', flush=True)\n"
        "for number, _ in enumerate(sys.stdin):\n"
        "    for turn in range(20):\n"
        "        with write_lock(directory, timeout=60):\n"
        "            put(writer, file('a.md', intro=f'{number} {turn}\\n'))\n"
        "    print(number, flush=True)\n"
    )
    with (
        store_process(code, tmp_path) as process,
        Reader(tmp_path, report=reports.append) as reader,
    ):
        assert read_line(process) == "ready"
        ended = threading.Event()

        def look():
            while not ended.is_set():
                reader.position()

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(15):
                ask(process)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert not reports
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_while_someone_writes_nothing_can_be_told(writer, tmp_path):
    before, position = read_seal(tmp_path), writer.position
    os.utime(tmp_path / "store.db")
    with try_lock(tmp_path / WRITE_LOCK):
        assert not is_broken(tmp_path, position, before)
    assert is_broken(tmp_path, position, before)


def test_a_commit_between_two_looks_is_no_doubt(writer, tmp_path):
    before, position = read_seal(tmp_path), writer.position
    put(writer, file("b.md"))
    assert not is_broken(tmp_path, position, before)
    assert is_broken(tmp_path, position, read_seal(tmp_path))


def test_a_process_that_holds_on_to_deleted_memory_has_doubts(tmp_path):
    """It sees no commit of anyone else, and all it has read is whole: it was silently behind."""
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    code = (
        "reader = Reader.open(directory)\n"
        "with reader.snapshot():\n"  # in use, it keeps the memory of all others
        "    for line in sys.stdin:\n"
        "        reports = []\n"
        "        other = Reader.open(directory, report=reports.append)\n"
        "        print(other.position().generation, bool(reports), flush=True)\n"
    )
    with store_process(code, tmp_path) as process:
        assert ask(process) == "2 False"
        (tmp_path / "store.db-shm").unlink()
        with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
            put(writer, file("b.md"))
            assert ask(process) in ("2 True", "3 False")
            put(writer, file("c.md"))
            assert ask(process) in ("2 True", "4 False")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


# The seal itself, and what becomes of a store that it does not fit


@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_a_damaged_seal_causes_a_check_and_is_rewritten(tmp_path, kind):
    reports = []
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
        older = (tmp_path / SEAL_FILE).read_bytes()
        position = told_complete(writer)
        DAMAGES[kind](Victim(tmp_path / SEAL_FILE, older, random.Random(7)))
        # In what is behind the text, nothing is said.
        is_harmless = read_seal(tmp_path) is not None and is_sealed(tmp_path, position)
        with Reader.open(tmp_path, report=reports.append):
            assert len(reports) == (0 if is_harmless else 1)
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.rebuilt is None
        assert is_sealed(tmp_path, writer.position)
    assert waiting(tmp_path) == (0 if is_harmless else None)


def test_a_seal_that_may_not_be_written_is_replaced(writer, tmp_path):
    """Every look would find it broken, and every second all files would be compared."""
    (tmp_path / SEAL_FILE).chmod(0o400)
    with bound_by_permissions():
        assert is_sealed(tmp_path, put(writer, file("b.md")))


def test_who_writes_goes_on_where_no_seal_can_be_written(writer, tmp_path):
    """Each commit was refused, as one onto a store that something else had changed."""
    reports = []
    (tmp_path / SEAL_FILE).unlink()
    tmp_path.chmod(0o500)
    try:
        with bound_by_permissions():
            put(writer, file("b.md"))
            position = put(writer, file("c.md"))
            assert read_seal(tmp_path) is None
            with Reader.open(tmp_path, report=reports.append) as reader:
                assert reader.position() == position
                assert len(reports) == 2  # for all others it is not sure
    finally:
        tmp_path.chmod(0o700)
    assert is_sealed(tmp_path, put(writer, file("d.md")))


def test_who_closes_without_the_lock_leaves_the_seal_alone(writer, tmp_path):
    """It wrote an older one over that of a commit that another process had just made."""
    with StoreWriter.open(tmp_path, FINGERPRINT) as other:
        position = put(other, file("b.md"))
        before = read_seal(tmp_path)
        writer.abandon()
        assert read_seal(tmp_path) == before
        assert is_sealed(tmp_path, position)


def test_what_was_left_as_it_was_stays_complete(tmp_path):
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        position = told_complete(writer)
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.position == position
    assert waiting(tmp_path) == 0


def test_an_older_copy_is_not_complete_for_anyone_until_all_files_were_looked_at(tmp_path):
    """Whoever opened it first sealed it as it was: then it looked complete to all others."""
    reports = []
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        told_complete(writer)
    shutil.copy2(tmp_path / "store.db", tmp_path / "older")
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    (tmp_path / "older").replace(tmp_path / "store.db")
    with Reader.open(tmp_path, report=reports.append) as reader:
        assert len(reports) == 1
        with StoreWriter.open(tmp_path, FINGERPRINT):
            assert waiting(tmp_path) is None
        generation = reader.position().generation
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.position.generation == generation  # it is said once


def test_while_it_is_checked_it_is_complete_for_nobody(tmp_path, monkeypatch):
    """The check takes seconds in a large store, under the lock, where a seal tells nothing."""
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        told_complete(writer)
    os.utime(tmp_path / "store.db")
    seen = []
    monkeypatch.setattr(writer_module, "check_rows", lambda _: seen.append(waiting(tmp_path)))
    with StoreWriter.open(tmp_path, FINGERPRINT):
        assert seen == [None]


def test_an_older_copy_that_is_written_over_it_with_its_times_and_its_seal(tmp_path):
    """As `cp -a` restores a backup: the inode stays, size and time are those of before."""
    reports = []
    index, backup = tmp_path / "index", tmp_path / "backup"
    with StoreWriter.open(index, FINGERPRINT) as writer:
        told_complete(writer)
    shutil.copytree(index, backup)
    with StoreWriter.open(index, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    for name in ("store.db", SEAL_FILE):
        shutil.copyfile(backup / name, index / name)
        shutil.copystat(backup / name, index / name)
    for side in ("-wal", "-shm"):
        (index / f"store.db{side}").unlink(missing_ok=True)
    with Reader.open(index, report=reports.append):
        assert len(reports) == 1


def test_embedding_that_meets_an_older_copy_does_not_make_it_complete(tmp_path):
    """Vectors are stored whatever became of the rest; the files were not looked at for that."""
    place = Place(tmp_path)
    place.write("a.md", "# A\n\nThe lark sings.\n")
    place.manager.update()
    place.manager.close()
    shutil.copy2(place.index / "store.db", tmp_path / "older")
    place.manager = place.another(settled())
    place.write("b.md", "# B\n\nThe owl does not.\n")
    place.manager.update()
    place.manager.close()
    place.manager = place.another(settled())
    place.manager.open()
    for side in ("-wal", "-shm"):
        (place.index / f"store.db{side}").unlink(missing_ok=True)
    (place.index / "store.db").write_bytes((tmp_path / "older").read_bytes())
    place.manager.fill()
    assert waiting(place.index) is None
    place.update()
    assert waiting(place.index) == 0
    assert place.is_as_new()
    place.manager.close()


@pytest.mark.parametrize("watch", [True, False])
def test_the_updating_process_checks_all_files_if_nobody_has(tmp_path, watch):
    """Another process may have opened the store, and ended before it had looked."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n\nThe lark sings.\n", encoding="utf-8")
    # Vectors of words and communities would be committed, and the store sealed, a moment later.
    search = {"query_expansion_enabled": False, "advanced": {"community_detection_enabled": False}}
    with served(docs, index, indexing={"watch": watch}, search=search) as app:
        app.service.start()
        until(lambda: app.index_state().complete)
        os.utime(index / "store.db")
        with StoreWriter.open(index, app.fingerprint, indices=app.tables):
            assert waiting(index) is None
        until(lambda: waiting(index) == 0)
        until(lambda: app.index_state().complete)
