"""The folders of whoosh and tantivy: caught up, opened again, damaged, shared and killed."""

import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from ragdocs.config.settings import SearchConfig
from ragdocs.errors import ConfigError, IndexLocked, IndexStoreError
from ragdocs.indices import engine_folder
from ragdocs.indices.analysis import text_analyzer
from ragdocs.indices.engine_folder import DerivedFolder
from ragdocs.indices.engines import keyword_setup
from ragdocs.indices.keyword import compile_query
from ragdocs.search.query_language import parse_query
from tests.support.machine import bound_by_permissions
from tests.support.stores import NOTES, EngineCorpus, FolderCorpus

ENGINES = ["whoosh", "tantivy"]
TURNS = ["zebra", "tiger", "panda", "otter", "camel", "gecko"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """On a busy machine others take their time, which is not what these tests are about."""
    monkeypatch.setattr(engine_folder, "WAIT_SECONDS", 60.0)


@pytest.fixture(params=ENGINES)
def notes(request, tmp_path):
    made = FolderCorpus(tmp_path / "index", NOTES, request.param)
    made.search("engine")
    return made


def answers(corpus):
    return {
        query: sorted(corpus.paths(query)) for query in ("engine", "fruit", '"grow on"', "zebra")
    }


EXPECTED = {
    "engine": ["cars.md", "fuel.md"],
    "fruit": ["apples.md", "pears.md"],
    '"grow on"': ["apples.md", "pears.md"],
    "zebra": [],
}


def test_a_new_engine_on_the_same_folder_does_not_rebuild(notes):
    before = notes.current()
    assert answers(notes.restarted()) == EXPECTED
    assert notes.current() == before


def test_what_is_new_is_replayed_and_the_rest_is_kept(notes):
    before = {path.name: path.stat().st_ino for path in notes.content_files()}
    notes.update({"new.md": "# Zebra\n\nStripes.\n"})
    assert notes.paths("zebra") == ["new.md"]
    after = {path.name: path.stat().st_ino for path in notes.content_files()}
    assert before.items() & after.items()
    assert answers(notes.restarted()) == EXPECTED | {"zebra": ["new.md"]}


def test_what_changed_while_nobody_looked_is_replayed(notes):
    notes.update({"cars.md": "# Cars\n\nA zebra.\n"}, removed=("fuel.md",))
    assert notes.restarted().paths("engine") == []
    assert notes.paths("zebra") == ["cars.md"]


def test_commits_without_text_write_nothing(notes):
    before = (notes.files / "state.json").read_bytes()
    for _ in range(3):
        notes.embed(1)
        assert answers(notes) == EXPECTED
    assert (notes.files / "state.json").read_bytes() == before


def test_too_many_commits_without_text_are_noted(notes, monkeypatch):
    monkeypatch.setattr(engine_folder, "UNSAVED_GENERATIONS", 1)
    before = notes.current()
    for _ in range(3):
        notes.embed(1)
    assert answers(notes) == EXPECTED
    assert notes.current() != before


def test_a_worn_index_is_rebuilt(tmp_path):
    notes = FolderCorpus(tmp_path, {f"{n}.md": f"word{n}\n" for n in range(60)}, "whoosh")
    for turn in TURNS * 2:
        notes.update({f"{n}.md": f"word{n} {turn}\n" for n in range(25)})
        assert len(notes.ask(turn)) == 25
    with notes.snapshot() as snapshot:
        index = notes.engine.current(snapshot)
    assert index.live == 60
    assert index.dead <= 125


@pytest.mark.parametrize("engine", ENGINES)
def test_many_edits_leave_few_files(tmp_path, engine):
    notes = FolderCorpus(tmp_path, {f"{n}.md": f"word{n}\n" for n in range(10)}, engine)
    for turn in TURNS * 5:
        notes.update({"0.md": f"{turn}\n"})
        assert notes.paths(turn) == ["0.md"]
    assert len(notes.ask('"word3"')) == 1
    assert len(notes.content_files()) < 150
    assert len([path for path in notes.files.iterdir() if path.is_dir()]) == 1


def test_another_history_of_the_store_means_a_rebuild(notes, tmp_path):
    other = EngineCorpus(tmp_path / "other", {"z.md": "# Zebra\n\nengine\n"}, "fts5")
    shutil.copy(other.folder / "store.db", notes.folder / "store.db")
    assert notes.restarted().paths("engine") == ["z.md"]
    assert notes.paths("fruit") == []


def test_an_older_copy_of_the_store_means_a_rebuild(notes, monkeypatch):
    old = (notes.folder / "store.db").read_bytes()
    notes.update({"z.md": "# Zebra\n\nengine\n"})
    assert "z.md" in notes.paths("engine")
    (notes.folder / "store.db").write_bytes(old)
    # Within half a minute it could be a late request; a CLI of tomorrow must not think so.
    monkeypatch.setattr(engine_folder, "IN_FLIGHT_SECONDS", 0.0)
    before = notes.current()
    assert answers(notes.restarted()) == EXPECTED
    assert notes.current() != before


def test_a_late_snapshot_in_another_process_changes_nothing(notes):
    query = compile_query(parse_query("engine"), notes.analyzer)
    with notes.snapshot() as before:
        notes.update({"z.md": "# Zebra\n\nengine\n"})
        notes.search("zebra")
        state = notes.current()
        other = notes.restarted().engine
        other.catch_up(before)
        assert notes.current() == state
        assert len(other.search(before, query, 10).hits) == 2


@pytest.mark.parametrize("settings", [{"boosts": {"title": 4.0}}, {"stemmer": "german"}])
def test_other_settings_mean_a_rebuild(notes, settings):
    before = notes.current()
    notes.restarted(**settings)
    notes.analyzer = text_analyzer(notes.settings.stemmer)
    notes.restarted(**settings)
    assert "cars.md" in notes.paths("engine")
    assert notes.current() != before


def test_everything_is_private(notes):
    notes.update({"z.md": "# Zebra\n"})
    notes.search("zebra")
    for path in [notes.files, *notes.files.rglob("*")]:
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else mode & 0o600), path


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def grow(path):
    path.write_bytes(path.read_bytes() + b"x")


def replace_by_a_directory(path):
    path.unlink()
    path.mkdir()


def replace_by_a_link(path):
    copy = path.with_name("elsewhere.lock")
    path.rename(copy)
    path.symlink_to(copy)


def replace_by_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


DAMAGES = [
    truncate,
    empty,
    flip,
    grow,
    Path.unlink,
    replace_by_a_directory,
    replace_by_a_link,
    replace_by_a_pipe,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("engine", ENGINES)
def test_damage_to_any_file_is_noticed_and_repaired(tmp_path, caplog, engine, damage):
    notes = FolderCorpus(tmp_path / "index", NOTES, engine)
    notes.search("engine")
    names = [path.name for path in notes.content_files()] + ["state.json"]
    for number in range(len(names)):
        at = notes.files / "state.json" if number == len(names) - 1 else None
        path = at or notes.content_files()[number]
        if damage in (truncate, flip) and not path.stat().st_size:
            continue
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            damage(path)
            # A state that is gone is no damage, but the same as none yet.
            is_quiet = damage is Path.unlink and at is not None
            assert answers(notes.restarted()) == EXPECTED, path
        said = [record for record in caplog.records if "damaged" in record.message]
        assert len(said) == (0 if is_quiet else 1), path


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_under_a_running_engine_is_noticed(notes, damage):
    for _ in range(2):
        path = max(notes.content_files(), key=lambda path: path.stat().st_size)
        damage(path)
        assert answers(notes) == EXPECTED


def test_an_older_copy_of_the_folder_catches_up(notes, tmp_path):
    shutil.copytree(notes.files, tmp_path / "copy")
    notes.update({"z.md": "# Zebra\n"}, removed=("fuel.md",))
    notes.search("zebra")
    shutil.rmtree(notes.files)
    shutil.copytree(tmp_path / "copy", notes.files)
    assert answers(notes.restarted()) == EXPECTED | {"engine": ["cars.md"], "zebra": ["z.md"]}


def test_an_older_state_beside_newer_files_is_noticed(notes, caplog):
    old = (notes.files / "state.json").read_bytes()
    notes.update({"z.md": "# Zebra\n"}, removed=("fuel.md",))
    notes.search("zebra")
    (notes.files / "state.json").write_bytes(old)
    with caplog.at_level(logging.WARNING):
        answered = answers(notes.restarted())
    assert answered == EXPECTED | {"engine": ["cars.md"], "zebra": ["z.md"]}
    assert "damaged" in caplog.text


def test_an_older_file_under_a_newer_name_is_noticed(notes, caplog):
    old = {path.name: path.read_bytes() for path in notes.content_files()}
    notes.update({"cars.md": "# Zebra\n"})
    notes.search("zebra")
    swapped = [path for path in notes.content_files() if path.name in old]
    changed = [path for path in swapped if path.read_bytes() != old[path.name]]
    for path in changed or swapped[:1]:
        path.write_bytes(old[path.name] + (b"" if changed else b" "))
    with caplog.at_level(logging.WARNING):
        assert notes.restarted().paths("zebra") == ["cars.md"]
    assert "damaged" in caplog.text


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"body": 1, "sha256": 2}', "[" * 100_000, "\xff", "{"]
)
def test_any_state_file_is_survived(notes, text):
    (notes.files / "state.json").write_text(text, encoding="latin-1")
    assert answers(notes.restarted()) == EXPECTED


def forged_hash(body):
    """As anyone can compute it who may write into the folder."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_state_that_names_files_elsewhere_is_not_followed(notes):
    found = json.loads((notes.files / "state.json").read_bytes())
    assert found["sha256"] == forged_hash(found["body"])
    found["body"]["files"]["../../store.db"] = [1, "x"]
    found["sha256"] = forged_hash(found["body"])
    (notes.files / "state.json").write_text(json.dumps(found), encoding="utf-8")
    assert answers(notes.restarted()) == EXPECTED


class Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (os.fspath(self.folder),)


@pytest.mark.parametrize("is_written", [False, True])
def test_a_planted_index_of_whoosh_runs_no_code(tmp_path, is_written):
    """whoosh unpickles its list of segments, and every hash in the folder can be forged."""
    from whoosh.filedb.filestore import FileStorage
    from whoosh.index import TOC

    notes = FolderCorpus(tmp_path / "index", NOTES, "whoosh")
    notes.search("engine")
    state = json.loads((notes.files / "state.json").read_bytes())
    directory = notes.files / state["body"]["directory"]
    storage = FileStorage(str(directory))
    found = TOC.read(storage, "MAIN")
    found.segments = [*found.segments, Payload(tmp_path / "ran")]
    (toc,) = directory.glob("*.toc")
    toc.unlink()
    found.write(storage, "MAIN")
    data = toc.read_bytes()
    state["body"]["files"][toc.name] = [len(data), hashlib.sha256(data).hexdigest()]
    state["sha256"] = forged_hash(state["body"])
    (notes.files / "state.json").write_text(json.dumps(state), encoding="utf-8")
    if is_written:
        notes.update({"zebra.md": "# Zebra\n\nA zebra.\n"})
    expected = EXPECTED | ({"zebra": ["zebra.md"]} if is_written else {})
    assert answers(notes.restarted()) == expected
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["", "state.json", "lock"])
def test_a_directory_or_a_file_in_the_way_goes(notes, name):
    path = notes.files / name if name else notes.files
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("in the way", encoding="utf-8")
    else:
        path.unlink()
        path.mkdir()
    notes.update({"z.md": "# Zebra\n"})
    assert answers(notes.restarted()) == EXPECTED | {"zebra": ["z.md"]}


def test_foreign_files_in_the_folder_are_left_alone(notes):
    (notes.files / "mine.txt").write_text("mine", encoding="utf-8")
    (notes.current() / "stray.txt").write_text("stray", encoding="utf-8")
    assert answers(notes.restarted()) == EXPECTED
    notes.update({"z.md": "# Zebra\n"})
    assert notes.paths("zebra") == ["z.md"]
    assert (notes.files / "mine.txt").exists()


def test_a_lock_held_for_long_is_said_to_be_busy(notes, monkeypatch):
    monkeypatch.setattr(engine_folder, "WAIT_SECONDS", 0.1)
    notes.update({"z.md": "# Zebra\n"})
    with DerivedFolder(notes.files).lock() as is_ours:
        assert is_ours
        with pytest.raises(IndexLocked, match="try again"):
            notes.search("zebra")
    assert notes.paths("zebra") == ["z.md"]


def test_a_query_does_not_wait_for_another_threads_rebuild(notes, monkeypatch):
    monkeypatch.setattr(engine_folder, "WAIT_SECONDS", 0.1)
    notes.update({"z.md": "# Zebra\n"})
    with notes.engine._catching_up, pytest.raises(IndexLocked, match="try again"):
        notes.search("zebra")
    assert notes.paths("zebra") == ["z.md"]


def test_a_process_that_waited_for_the_lock_uses_what_the_other_built(notes):
    other = FolderCorpus(notes.folder, {}, notes.settings.keyword_engine.value)
    other.search("engine")
    notes.update({"z.md": "# Zebra\n"})
    found = []
    with DerivedFolder(notes.files).lock():
        waiting = threading.Thread(target=lambda: found.append(other.paths("zebra")))
        waiting.start()
        time.sleep(0.1)
    waiting.join(120)
    assert found == [["z.md"]]
    assert notes.paths("zebra") == ["z.md"]


def python(code, *arguments, **options):
    program = "import sys; sys.path.insert(0, sys.argv[1])\n" + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, str(ROOT), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


ASK = """
    from pathlib import Path
    from ragdocs.indices import engine_folder as derived_index
    from tests.support.stores import FolderCorpus
    derived_index.WAIT_SECONDS = 60.0
    folder, engine, words = sys.argv[2:]
    notes = FolderCorpus.__new__(FolderCorpus)
    notes.folder, notes.files = Path(folder), Path(folder) / f"keyword-{engine}"
    from ragdocs.indices.analysis import text_analyzer
    from ragdocs.config.settings import SearchConfig
    notes.settings = SearchConfig(keyword_engine=engine)
    notes.analyzer = text_analyzer(notes.settings.stemmer)
    notes.restarted()
"""


def test_several_processes_share_the_folder(notes):
    engine = notes.settings.keyword_engine.value
    notes.update({f"{n}.md": f"# Zebra {n}\n" for n in range(4)})
    code = ASK + "    print(len(notes.paths(words)))\n"
    others = [python(code, notes.folder, engine, "zebra") for _ in range(3)]
    assert len(notes.paths("zebra")) == 4
    for other in others:
        said, errors = other.communicate(timeout=120)
        assert (said, errors) == ("4\n", "")
    assert len([path for path in notes.files.iterdir() if path.is_dir()]) == 1


FOLLOW = (
    ASK
    + """
    notes.search(words)
    print("ready", flush=True)
    while True:
        notes.search(words)
"""
)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_writer_killed_at_any_moment_leaves_a_whole_state(tmp_path, engine):
    def texts(word, count):
        return {f"{n}.md": f"# Note {n}\n\n{word} " + "common " * 40 for n in range(count)}

    notes = FolderCorpus(tmp_path / "index", texts("first", 120), engine)
    for turn, delay in zip(TURNS, [0, 0.005, 0.01, 0.03, 0.06, 0.1], strict=True):
        other = python(FOLLOW, notes.folder, engine, "common")
        assert other.stdout.readline() == "ready\n"
        notes.update(texts(turn, 50))
        time.sleep(delay)
        os.kill(other.pid, signal.SIGKILL)
        assert other.communicate(timeout=120) == ("", "")
        found = notes.restarted().search(f"{turn} common", limit=200)
        assert sorted(found.frequencies.values()) == [50, 120]
        assert len(found.hits) == 120
    # Each kill may leave a directory; whoever publishes next removes them all.
    notes.update(texts("last", 50))
    assert len(notes.restarted().search("last", limit=200).hits) == 50
    assert len([path for path in notes.files.iterdir() if path.is_dir()]) == 1


def test_a_full_disk_is_a_clear_error_and_recovers(notes):
    engine = notes.settings.keyword_engine.value
    notes.update({"z.md": "# Zebra\n\n" + " ".join(f"w{n}" for n in range(5000))})
    code = (
        ASK
        + """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
    from ragdocs.errors import IndexStoreError
    try:
        print(notes.search(words).hits)
    except IndexStoreError as error:
        print("said:", error)
"""
    )
    said, errors = python(code, notes.folder, engine, "zebra").communicate(timeout=120)
    assert said.startswith("said:"), errors
    assert notes.restarted().paths("zebra") == ["z.md"]


def test_a_read_only_folder_is_read_and_said_not_to_be_written(notes):
    notes.files.chmod(0o500)
    try:
        with bound_by_permissions():
            assert answers(notes.restarted()) == EXPECTED
            notes.update({"z.md": "# Zebra\n"})
            with pytest.raises(IndexStoreError, match="cannot be written"):
                notes.search("zebra")
    finally:
        notes.files.chmod(0o700)
    assert notes.paths("zebra") == ["z.md"]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    notes = EngineCorpus(tmp_path / "index", NOTES, "whoosh")
    (tmp_path / "file").write_text("", encoding="utf-8")
    notes.engine = keyword_setup(notes.settings, notes.analyzer, tmp_path / "file").engine
    with pytest.raises(IndexStoreError, match="cannot be written"):
        notes.search("engine")


def test_without_the_extra_the_error_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    settings = SearchConfig(keyword_engine="tantivy")
    with pytest.raises(ConfigError, match=r"pip install 'mcp-markdown-ragdocs\[tantivy\]'"):
        keyword_setup(settings, text_analyzer(settings.stemmer), tmp_path)


def test_choosing_an_engine_imports_no_library(tmp_path):
    code = """
    from ragdocs.config.settings import SearchConfig
    from ragdocs.indices.analysis import text_analyzer
    from ragdocs.indices.engines import keyword_setup
    from pathlib import Path
    for name in ("fts5", "whoosh", "tantivy"):
        settings = SearchConfig(keyword_engine=name)
        keyword_setup(settings, text_analyzer(settings.stemmer), Path(sys.argv[2]))
    print(*[name for name in ("whoosh", "tantivy", "numpy") if name in sys.modules])
    """
    assert python(code, tmp_path).communicate(timeout=120) == ("\n", "")


def test_whoosh_is_imported_without_a_word(tmp_path):
    code = """
    from ragdocs.indices.whoosh_engine import library
    for name in ("fields", "formats", "columns", "index", "writing", "filedb.filestore"):
        library(name)
    """
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    assert python(code, env=quiet).communicate(timeout=120) == ("", "")


def test_queries_and_catch_ups_from_several_threads(notes):
    failures = []

    def ask():
        try:
            for _ in range(10):
                assert notes.paths("fruit") == ["apples.md", "pears.md"]
                assert set(notes.paths('"grow on"')) == {"apples.md", "pears.md"}
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(5):
        notes.update({"z.md": f"# Zebra\n\nturn{turn}\n"})
    for thread in threads:
        thread.join(120)
    assert failures == []
