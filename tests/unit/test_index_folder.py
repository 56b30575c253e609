"""An index folder is ours or untouched: every way in, on folders that hold something else."""

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ragdocs.app import App
from ragdocs.config.choices import KeywordEngineName
from ragdocs.diagnosis.collector import collect_status
from ragdocs.diagnosis.doctor import examine, repair
from ragdocs.diagnosis.probes import engine_folder
from ragdocs.errors import IndexFolderForeign, IndexStoreError, OthersIndex
from ragdocs.indices.engine_folder import DerivedFolder
from ragdocs.locks import LockAttempt
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import Readiness
from ragdocs.store.folder import (
    MARK,
    MARK_FILE,
    FolderState,
    claim_folder,
    folder_state,
)
from ragdocs.store.lock import try_watch_lock, try_write_lock, watching, write_lock, writing
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import NOTES, Bench, write, write_all
from tests.support.machine import until
from tests.support.models import CountingEmbedder
from tests.support.processes import run_python
from tests.support.stores import FINGERPRINT, file, put

Made = Callable[[Path], None]


def a_wal_database(folder: Path) -> None:
    """As another program keeps it; SQLite leaves its log because a connection stays open."""
    with closing(sqlite3.connect(folder / "other.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE accounts (name)")
        connection.execute("INSERT INTO accounts VALUES ('mine')")
        connection.commit()
        for name in ("", "-wal", "-shm"):
            shutil.copy(folder / f"other.db{name}", folder / f"store.db{name}")
    for path in folder.glob("other.db*"):
        path.unlink()


def names_of_ours(folder: Path) -> None:
    """Every name that an index has, and nothing of it ours."""
    a_wal_database(folder)
    (folder / "write.lock").write_text("4711 theirs", encoding="utf-8")
    (folder / "watch.lock").write_bytes(b"")
    (folder / "store.seal").write_bytes(b"a seal of wax".ljust(512))
    (folder / "vectors").write_bytes(bytes(range(256)))
    (folder / "keyword-whoosh" / "00000001-0badcafe").mkdir(parents=True)
    (folder / "keyword-whoosh" / "state.json").write_text("{}", encoding="utf-8")
    (folder / "keyword-whoosh" / "lock").write_text("theirs", encoding="utf-8")
    (folder / "vectors").chmod(0o644)
    folder.chmod(0o755)


def a_mark_of_another(folder: Path) -> None:
    (folder / MARK_FILE).write_text("my notes on the index of ragdocs\n", encoding="utf-8")


def a_damaged_database(folder: Path) -> None:
    (folder / "store.db").write_bytes(b"SQLite format 3\0" + bytes(4080))


def pipes_and_folders(folder: Path) -> None:
    (folder / "store.db").mkdir()
    os.mkfifo(folder / "write.lock")
    (folder / "watch.lock").symlink_to("nowhere")
    os.mkfifo(folder / MARK_FILE)


def one_note(folder: Path) -> None:
    (folder / "notes.md").write_text("mine\n", encoding="utf-8")


FOREIGN = [
    names_of_ours,
    a_wal_database,
    a_mark_of_another,
    a_damaged_database,
    pipes_and_folders,
    one_note,
]


def look(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything below, itself included: mode, inode, time of change and content."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = os.lstat(path)
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, content)
    return found


WAYS_IN: dict[str, Callable[[Path], object]] = {
    "claim": claim_folder,
    "writer": lambda folder: StoreWriter.open(folder, FINGERPRINT),
    "reader": lambda folder: Reader.open(folder),
    "try_write_lock": try_write_lock,
    "try_watch_lock": try_watch_lock,
    "write_lock": lambda folder: write_lock(folder, timeout=1),
    "engine": lambda folder: DerivedFolder(folder / "keyword-whoosh").lock().__enter__(),
}


@pytest.fixture(params=FOREIGN)
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    request.param(folder)
    return folder


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_foreign_folder_is_refused_before_it_is_touched(foreign: Path, way: str):
    before = look(foreign)
    with pytest.raises(IndexFolderForeign, match="not an index of this program"):
        WAYS_IN[way](foreign)
    assert look(foreign) == before


@pytest.mark.parametrize("ask", [watching, writing])
def test_nobody_asks_the_locks_of_a_foreign_folder(foreign: Path, ask: Callable[[Path], object]):
    before = look(foreign)
    assert ask(foreign) is None
    assert look(foreign) == before


def test_the_whole_application_leaves_a_foreign_folder_alone(foreign: Path, tmp_path: Path):
    bench = Bench(tmp_path)
    write_all(bench.docs, NOTES)
    before = look(foreign)
    with bench.app() as app:
        with pytest.raises(IndexFolderForeign), app.manager() as manager:
            manager.update()
        with pytest.raises(IndexFolderForeign), app.manager() as manager:
            manager.update(rebuild=True)
        status = collect_status(app)
    assert status.state is Readiness.UNAVAILABLE
    assert "not an index of this program" in status.summary
    assert look(foreign) == before


def test_doctor_and_its_repairs_leave_a_foreign_folder_alone(foreign: Path, tmp_path: Path):
    bench = Bench(tmp_path)
    before = look(foreign)
    found = list(examine(bench.case()))
    assert [one for one in found if "not an index of this program" in one.message]
    repaired = list(repair(found))
    assert not [one for one in repaired if str(foreign) in one.message], repaired
    assert look(foreign) == before


def test_an_answer_does_not_tell_where_the_folder_is(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.index.mkdir()
    one_note(bench.index)
    with bench.app() as app:
        app.service.start()
        state = app.index_state()
    assert str(tmp_path) not in state.reason, state.reason


# what is ours


def test_a_new_folder_is_marked_first(tmp_path: Path):
    folder = tmp_path / "cache" / "index"
    with try_watch_lock(folder):
        assert (folder / MARK_FILE).read_bytes() == MARK
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / MARK_FILE).stat().st_mode) == 0o600
    assert folder_state(folder) is FolderState.OURS


def test_an_empty_folder_becomes_private_when_it_is_claimed(tmp_path: Path):
    folder = tmp_path / "index"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    claim_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_everybody_uses_stays_open(tmp_path: Path):
    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o1777)
    claim_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777


def test_an_index_that_was_opened_wide_keeps_its_mode_until_it_is_repaired(tmp_path: Path):
    claim_folder(tmp_path)
    tmp_path.chmod(0o777)
    with StoreWriter.open(tmp_path, FINGERPRINT):
        pass
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777


@pytest.mark.parametrize("cut", [0, 5, len(MARK) - 1])
def test_a_mark_that_was_cut_short_serves(tmp_path: Path, cut: int):
    (tmp_path / MARK_FILE).write_bytes(MARK[:cut])
    (tmp_path / "store.db").write_bytes(b"damaged")
    assert folder_state(tmp_path) is FolderState.OURS


def older_index(folder: Path) -> Path:
    """As a version without a mark left it."""
    with StoreWriter.open(folder, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    (folder / MARK_FILE).unlink()
    return folder


def test_an_index_from_before_there_was_a_mark_is_ours_and_gets_one(tmp_path: Path):
    older_index(tmp_path)
    with Reader.open(tmp_path) as reader:
        assert reader.position().generation
    assert not (tmp_path / MARK_FILE).exists()
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        assert writer.rebuilt is None
    assert (tmp_path / MARK_FILE).read_bytes() == MARK


@pytest.mark.parametrize("lost", ["store.db", "store.seal"])
def test_an_older_index_is_known_by_its_store_or_its_seal(tmp_path: Path, lost: str):
    older_index(tmp_path)
    (tmp_path / lost).write_bytes(b"\0" * 5000)
    assert folder_state(tmp_path) is FolderState.OURS


def test_an_older_index_whose_header_is_still_in_the_log_is_ours(tmp_path: Path):
    """Killed before SQLite put its log into the file: the header has no number yet."""
    living, dead = tmp_path / "living", tmp_path / "dead"
    with StoreWriter.open(living, FINGERPRINT) as writer:
        put(writer, file("a.md"))
        shutil.copytree(living, dead)
    (dead / MARK_FILE).unlink()
    assert (dead / "store.db").read_bytes()[68:72] == bytes(4)
    assert folder_state(dead) is FolderState.OURS
    with StoreWriter.open(dead, FINGERPRINT) as writer, Reader.open(dead) as reader:
        assert writer.rebuilt is None
        assert reader.position().generation > 1


def test_a_folder_that_is_deleted_while_someone_waits_is_marked_again(tmp_path: Path):
    folder = tmp_path / "index"
    claim_folder(folder)
    held = try_write_lock(folder)
    assert held
    taken: list[IndexStoreError | None] = []

    def wait() -> None:
        try:
            write_lock(folder, timeout=30).close()
            taken.append(None)
        except IndexStoreError as error:
            taken.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    gone = folder.rename(tmp_path / "gone")  # else a file may be put into it while it is deleted
    shutil.rmtree(gone)
    waiting.join(30)
    held.close()
    assert taken == [None]
    assert folder_state(folder) is FolderState.OURS


def test_an_engines_folder_does_not_come_before_the_mark(tmp_path: Path):
    folder = tmp_path / "index"
    with DerivedFolder(engine_folder(folder, KeywordEngineName.WHOOSH)).lock() as is_ours:
        assert is_ours
    assert folder_state(folder) is FolderState.OURS


def test_a_link_to_a_folder_stands_for_it(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    with StoreWriter.open(link, FINGERPRINT) as writer:
        put(writer, file("a.md"))
    assert folder_state(link) is FolderState.OURS
    one_note(tmp_path)
    (other := tmp_path / "other").symlink_to(tmp_path)
    with pytest.raises(IndexFolderForeign):
        claim_folder(other)


# other accounts


CLAIMED_BY_ANOTHER = """
import os
from pathlib import Path
from ragdocs.store.folder import claim_folder
os.setuid(54321)
claim_folder(Path("index"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another account")
def test_a_folder_of_another_account_is_refused(tmp_path: Path):
    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o777)
    tmp_path.chmod(0o755)
    os.chown(folder, 12345, 12345)
    done = run_python("-c", CLAIMED_BY_ANOTHER, cwd=tmp_path, code=1)
    assert "IndexFolderForeign: index belongs to another account (12345)" in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_folder_that_is_open_to_others_is_said_and_repaired(built, tmp_path: Path, mode: int):
    bench = built.copy_to(tmp_path)
    with bench.app() as app:
        assert not [note for note in collect_status(app).notes if "other accounts" in note]
        bench.index.chmod(mode)
        (note,) = [note for note in collect_status(app).notes if "other accounts" in note]
    assert f"{mode:04o}" in note
    assert "doctor --fix" in note
    assert ("can change the index" in note) == bool(mode & 0o022)
    found = [one for one in examine(bench.case()) if one.check == "permissions"]
    assert [one.level.value for one in found] == ["warning"]
    assert all(one.done for one in repair(found))
    assert stat.S_IMODE(bench.index.stat().st_mode) == 0o700


# names with a second one elsewhere: hard links, and links of a file


PRIVATE = b"export PATH=$HOME/bin:$PATH\n" * 2000
NAMES = [
    MARK_FILE,
    "last-used.txt",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "store.seal",
    "write.lock",
    "watch.lock",
    "keyword-whoosh/lock",
    "keyword-whoosh/state.json",
]


def use_all_ways(bench: Bench) -> None:
    """Whatever reads, writes, repairs or tidies an index."""
    engine = {"search": {"keyword_engine": "whoosh"}}
    list(examine(bench.case(**engine)))
    with bench.app(**engine) as app:
        collect_status(app)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ragdocs.store.variants.DAY_SECONDS", 0)
            app.service.start()
            until(lambda: app.index_state().state is Readiness.READY)
        assert search(app, "tomatoes")
    with bench.app(**engine) as app, app.manager() as manager:
        manager.update(rebuild=True)
        manager.fill()
    list(repair(examine(bench.case(**engine))))


def search(app: App, query: str) -> list[str]:
    return [str(result.doc_id) for result in app.search(QueryRequest(queries=(query,))).results]


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard link", "link"])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_someone_else_under_our_name_keeps_every_byte(
    tmp_path: Path, name: str, link: Callable[[Path, Path], None]
):
    """A planted index folder whose lock was a hard link emptied the file behind it."""
    bench = Bench(tmp_path)
    bench.build(search={"keyword_engine": "whoosh"})
    private = tmp_path / "profile"
    private.write_bytes(PRIVATE)
    private.chmod(0o644)
    ours = bench.index / name
    ours.unlink(missing_ok=True)
    ours.parent.mkdir(mode=0o700, exist_ok=True)
    link(private, ours)
    if name == MARK_FILE:
        bench.reseal()  # an index of before there was a mark
    use_all_ways(bench)
    assert private.read_bytes() == PRIVATE
    assert stat.S_IMODE(private.stat().st_mode) == 0o644


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard link", "link"])
def test_another_index_under_the_name_of_our_store_is_not_written_to(
    tmp_path: Path, link: Callable[[Path, Path], None]
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "planted").mkdir()
    mine, planted = Bench(tmp_path / "mine"), Bench(tmp_path / "planted")
    mine.build()
    planted.build({"a.md": "# Planted\n\nTomatoes.\n"})
    planted.store.unlink()
    link(mine.store, planted.store)
    before = look(mine.index)
    with planted.app() as app:
        collect_status(app)
        with suppress(OthersIndex), app.manager() as manager:
            manager.update()
        with app.manager() as manager:
            manager.update(rebuild=True)
        assert search(app, "tomatoes") == ["docs:a.md"]
    list(repair(examine(planted.case())))
    assert look(mine.index) == before


def test_a_backup_by_hard_links_costs_no_vector(tmp_path: Path):
    """As `cp -al` makes it. The index goes on in files of its own."""
    bench = Bench(tmp_path)
    bench.build()
    backup = shutil.copytree(bench.index, tmp_path / "backup", copy_function=os.link)
    before = look(backup)
    embedder = CountingEmbedder()
    write(bench.docs, "new.md", "# New\n\nA pear.\n")
    with bench.app(embedder) as app, app.manager() as manager:
        manager.update()
        manager.fill()
        assert "docs:new.md" in search(app, "pear")
    assert len(embedder.passages) == 1
    assert {*embedder.texts} - {*embedder.passages} == {"new", "pear"}  # no word of before
    assert {path: seen[3] for path, seen in look(backup).items()} == {
        path: seen[3] for path, seen in before.items()
    }
    assert bench.store.stat().st_nlink == 1


def test_a_server_goes_on_when_its_index_is_backed_up_by_hard_links(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.build()
    with bench.app() as app:
        app.service.start()
        until(lambda: app.index_state().state is Readiness.READY)
        shutil.copytree(bench.index, tmp_path / "backup", copy_function=os.link)
        with bench.app() as other, other.manager() as manager:
            write(bench.docs, "new.md", "# New\n\nA pear.\n")
            manager.update()
        assert until(lambda: "docs:new.md" in search(app, "pear"))
        write(bench.docs, "more.md", "# More\n\nA quince.\n")
        assert until(lambda: "docs:more.md" in search(app, "quince"))
        until(lambda: app.index_state().state is Readiness.READY)


def test_a_folder_that_is_deleted_just_after_it_was_made_is_made_again(tmp_path: Path):
    folder, made = tmp_path / "index", list[Path]()

    def prepare(where: Path) -> None:
        where.mkdir(exist_ok=True)
        made.append(where)
        if len(made) == 1:
            where.rmdir()

    with LockAttempt(folder / "write.lock", prepare) as attempt:
        held = attempt.take()
    assert held
    assert held.is_held
    assert made == [folder, folder]
    held.close()
