"""`update` and `rebuild-index` as a user meets them: real processes, their output, their status."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragdocs.cli.index_run import IndexingOptions, run
from ragdocs.cli.main import main, name_folders
from ragdocs.cli.progress import ProgressLines, Silence, in_words
from ragdocs.config.loading import load_config
from ragdocs.embedding import model_files
from ragdocs.errors import IndexLocked, IndexStoreError
from ragdocs.indexing.changes import Phase, Progress
from ragdocs.shutdown import Ending
from ragdocs.store.folder import MARK_FILE
from ragdocs.store.lock import try_write_lock, watching, writing
from ragdocs.store.reader import Reader
from ragdocs.store.variants import USED_FILE
from tests.support.children import ALLOWED_SECONDS, LATE_SECONDS
from tests.support.indexes import held, write
from tests.support.machine import bound_by_permissions, until
from tests.support.systems.needs import pty

PROGRAM = (sys.executable, "-m", "ragdocs")
DEADLINE = 120.0
TEXT_ONLY = "--no-vectors"
KEYS = {
    "complete",
    "stopped",
    "trees",
    "index_directory",
    "rebuilt",
    "taken_over",
    "variants_dropped",
    "added",
    "modified",
    "moved",
    "removed",
    "unchanged",
    "failed",
    "warnings",
    "kept",
    "skipped",
    "unread",
    "unsettled",
    "documents",
    "chunks",
    "passages",
    "files_waiting",
    "vectors_made",
    "vectors_taken",
    "vectors_stored",
    "vectors_pending",
    "vectors_forgotten",
    "vectors_lacking",
    "vectors_error",
    "vectors_notes",
    "vocabulary",
    "seconds",
    "seconds_reading",
    "seconds_embedding",
}
COMMANDS_PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
BINARY = bytes(range(32)) * 10


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Folder:
    """A folder of notes, an index beside it, and the program."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.notes, self.index = self.path / "notes", self.path / "index"
        self.notes.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """Without the user's settings. The cache stays: the model's own files are in it."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RAGDOCS_")}
        return kept | {"XDG_CONFIG_HOME": str(self.path / "none")}

    def place(self) -> list[str]:
        return ["--docs", str(self.notes), "--index", str(self.index)]

    def start(self, *arguments: str, program: tuple[str, ...] = PROGRAM) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*program, *arguments, *self.place()],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *arguments: str, program: tuple[str, ...] = PROGRAM) -> Result:
        """As a process of its own."""
        with self.start(*arguments, program=program) as process:
            out, err = process.communicate(timeout=DEADLINE)
        assert "Traceback" not in err
        return Result(process.returncode, out, err)

    def call(self, *arguments: str) -> Result:
        """The same in this process, which costs a tenth: for what has nothing to do with ending."""
        return call(*arguments, *self.place())

    def is_as_new(self) -> bool:
        """Whether it is what a new index of the same files would be."""
        fresh = ["--docs", str(self.notes), "--index", str(self.path / "fresh")]
        assert call("update", TEXT_ONLY, "--quiet", *fresh).code == 0
        return held(self.index) == held(self.path / "fresh")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return Folder(tmp_path)


def call(*arguments: str) -> Result:
    done = CliRunner().invoke(main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


# With the model


def test_from_the_first_build_to_a_rebuild(folder):
    """An edit costs what is new in it, a rebuild nothing; and that forgets what is gone."""
    for name in ("dawn", "dusk", "noon", "storm"):
        write(folder.notes, f"{name}.md", f"# {name}\n\nThe harbour at {name} is quiet.\n")
    settings = folder.path / "settings.toml"
    settings.write_text("[search]\nquery_expansion_enabled = true\n", encoding="utf-8")

    built = folder.run("update", "--json", "--config", str(settings))
    answer = built.json
    assert built.code == 0
    assert set(answer) == KEYS
    assert (answer["complete"], answer["stopped"], answer["rebuilt"]) == (True, None, None)
    assert answer["trees"] == [{"name": "notes", "root": str(folder.notes)}]
    assert answer["index_directory"] == str(folder.index)
    assert (answer["added"], answer["documents"], answer["passages"]) == (4, 4, 4)
    assert (answer["vectors_stored"], answer["vectors_pending"]) == (4, 0)
    words = answer["vocabulary"]
    assert answer["vectors_made"] == 4 + words

    write(folder.notes, "dawn.md", "# dawn\n\nThe harbour at dawn is quiet. Gulls.\n")
    (folder.notes / "dusk.md").unlink()
    (folder.notes / "noon.md").rename(folder.notes / "storm-noon.md")
    answer = folder.call("update", "--json", "--config", str(settings)).json
    counts = ("added", "modified", "moved", "removed", "unchanged", "documents")
    assert [answer[name] for name in counts] == [0, 1, 1, 1, 1, 3]
    assert (answer["complete"], answer["vectors_made"]) == (True, 2)  # a passage, and a word
    assert answer["vocabulary"] == words  # `gulls` for `dusk`
    assert answer["vectors_forgotten"] == 0

    rebuilt = folder.call("rebuild-index", "--config", str(settings))
    assert rebuilt.code == 0
    example = re.search(r"\$ ragdocs rebuild-index .*\n([^`]*)\nIn .* s\n```", COMMANDS_PAGE)
    assert rebuilt.out.splitlines()[:-1] == example[1].splitlines()
    with Reader.open(folder.index) as reader, reader.snapshot() as snapshot:
        assert snapshot.ledger.count("embeddings") == 3 + words


def test_without_a_model_the_text_is_indexed_and_it_says_so(folder, monkeypatch):
    monkeypatch.setattr(model_files, "_CARRIERS", {})
    monkeypatch.setenv("XDG_DATA_HOME", str(folder.path / "none"))
    write(folder.notes, "a.md", "# A\n")

    done = folder.call("update")

    assert done.code == 0
    assert "1 passage: 0 with vectors, 1 still without" in done.out
    assert "search uses keywords only" in done.err
    assert "all-MiniLM-L6-v2 was not found" in done.err
    answer = folder.call("update", "--json").json
    assert (answer["complete"], answer["vectors_pending"]) == (False, 1)
    assert "all-MiniLM-L6-v2 was not found" in answer["vectors_lacking"]


def test_sigterm_ends_it_in_time_whatever_the_model_does(folder):
    code = (
        "import ctypes\n"
        "from ragdocs import shutdown as lifecycle\n"
        # So late that it is its thread that ends it, with last words, on a busy machine too.
        f"lifecycle.ALARM_SECONDS = lifecycle.LAST_SECONDS = {LATE_SECONDS}\n"
        "from ragdocs.embedding.builtin import BuiltinEmbedder\n"
        "def hang(self):\n"
        "    c, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)\n"
        "    c.pthread_mutex_lock(mutex)\n"
        "    print('hangs', flush=True)\n"
        "    c.pthread_mutex_lock(mutex)\n"
        "BuiltinEmbedder.load = hang\n"
        "from ragdocs.cli.main import main\n"
        "main()\n"
    )
    write(folder.notes, "a.md", "# A\n")
    with folder.start("update", program=(sys.executable, "-c", code)) as process:
        assert process.stdout.readline() == "hangs\n"
        began = time.monotonic()
        process.terminate()
        assert process.wait(timeout=DEADLINE) == 143
        assert time.monotonic() - began < ALLOWED_SECONDS
        assert "the next run continues from there" in process.stderr.read()
    assert (writing(folder.index), watching(folder.index)) == (None, None)
    store = {MARK_FILE, USED_FILE, "store.db", "store.db-wal", "store.db-shm", "store.seal"}
    assert {file.name for file in folder.index.iterdir()} <= store | {"write.lock"}
    assert folder.is_as_new()


# What is said


def test_what_a_person_reads(folder):
    write(folder.notes, "a.md", "# A\n")
    write(folder.notes, "sub/b.txt", "Text.\n")

    first, second = folder.run("update", TEXT_ONLY), folder.call("update", TEXT_ONLY, "--quiet")

    files, index, where = first.out.splitlines()
    assert files == "Files: 2 added"
    assert index == "Index: 2 documents, 2 passages: 0 with vectors, 2 still without"
    assert re.fullmatch(rf"In {re.escape(str(folder.index))}, \d+\.\d s", where)
    opening, *_, reading = first.err.splitlines()  # a slow machine tells more in between
    assert opening == f"Indexing notes ({folder.notes})"
    assert re.fullmatch(r"reading: 2 of 2 files, \d chunks, \d+/s", reading)
    assert (first.code, second) == (0, Result(0, "", ""))


def test_on_a_terminal_there_are_bars_and_they_go_away(folder):
    write(folder.notes, "a.md", "# A\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "update", TEXT_ONLY, *folder.place()],
        env=folder.environment | {"TERM": "xterm-256color", "COLUMNS": "80"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + DEADLINE
    try:
        while select.select([ours], [], [], max(0, deadline - time.monotonic()))[0]:
            seen += os.read(ours, 65536)
    except OSError:  # what a terminal whose other side is closed gives
        pass
    finally:
        os.close(ours)
        assert process.wait(timeout=DEADLINE) == 0
    text = seen.decode()
    assert "1/1 files, 2 chunks" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is hidden"
    assert text.rindex("\x1b[2K") < text.rindex("Files: 1 added") > text.rindex("Reading")


def test_numbers_are_told_now_and_then_and_at_the_end_of_a_phase():
    now, said = [0.0], []
    lines = ProgressLines(said.append, lambda: now[0])
    lines.report(Progress(Phase.SCANNING, 0, 1))
    for done in range(0, 951, 10):
        now[0] += 0.25
        lines.report(Progress(Phase.READING, done, 1000, 2 * done))
    assert [one.partition(", ")[0] for one in said] == [
        "reading: 200 of 1,000 files",
        "reading: 400 of 1,000 files",
        "reading: 600 of 1,000 files",
        "reading: 800 of 1,000 files",
    ]
    assert said[0] == "reading: 200 of 1,000 files, 400 chunks, 80/s, about 20 s left"
    lines.begin(Phase.EMBEDDING)
    assert said[-1] == "reading: 950 of 1,000 files, 1,900 chunks, 80/s, about 1 s left"
    lines.report(Progress(Phase.EMBEDDING, 1, 1, 1))
    lines.close()
    lines.close()
    assert said[5:] == ["embedding: 1 of 1 chunk, 1000/s"]
    lines.report(Progress(Phase.READING, 0, 0))
    lines.close()
    assert len(said) == 6


def test_every_field_of_the_summary_is_documented():
    assert [key for key in KEYS if f"`{key}`" not in COMMANDS_PAGE] == []


# Wrong use, and bad files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["update", "--quite"], "Did you mean one of: '--quiet'"),
        (["updat"], "Did you mean 'update'?"),
        (["update", "--docs", "nowhere"], "'--docs': nowhere does not exist"),
        (["rebuild-index", "--docs", "file.md"], "file.md is not a folder"),
        (["update", "--index", "file.md"], "'--index': file.md is not a folder"),
        (["update", "--config", "nowhere.toml"], "nowhere.toml"),
        (["update", "--wait", "-1"], "-1.0 is not in the range"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_wrong_use(tmp_path, monkeypatch, arguments, message):
    write(tmp_path, "file.md", "# A\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert {file.name for file in tmp_path.iterdir()} == {"file.md"}


def test_without_documents_the_working_directory_is_indexed_and_reported(tmp_path, monkeypatch):
    here = tmp_path.resolve() / "here"
    write(here, "a.md", "# A\n")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "")

    done = call("update", TEXT_ONLY)

    assert done.code == 0
    assert f"Indexing here ({here}): the working directory" in done.err
    assert "/.cache/mcp-markdown-ragdocs/index-" in done.out


def test_an_empty_folder_is_no_error_but_is_pointed_out(folder):
    done = folder.call("update")
    assert done.code == 0
    assert done.out.startswith("Files: none\nIndex: 0 documents, 0 passages\n")
    assert "nothing to search" in done.err


def test_several_folders_are_trees_of_their_own_in_whichever_order(tmp_path, monkeypatch):
    one, two = tmp_path / "a" / "My notes!", tmp_path / "b" / "My notes!"
    assert (
        name_folders((two, one)) == name_folders((one, two)) == {"My-notes": one, "My-notes-2": two}
    )
    write(one, "a.md", "# A\n")
    write(two, "a.md", "# B\n")
    write(tmp_path / "_-.", "a.md", "# C\n")
    options = ("--docs", str(tmp_path / "_-."), "--index", str(tmp_path / "x"), TEXT_ONLY, "--json")
    monkeypatch.chdir(tmp_path)

    first = call("update", "--docs", str(one), "--docs", str(two), *options).json
    again = call("update", "--docs", str(two), "--docs", "a/../a/My notes!", *options).json

    assert first["added"] == 3
    assert (again["unchanged"], again["rebuilt"]) == (3, None)
    assert [tree["name"] for tree in again["trees"]] == ["My-notes", "My-notes-2", "docs"]


def test_files_that_cannot_be_indexed_are_named_every_time_until_they_can(folder):
    write(folder.notes, "good.md", "# A\n")
    for number in range(12):
        write(folder.notes, f"bad{number:02}.md", BINARY)
    (folder.notes / "link.md").symlink_to("nowhere.md")

    for _ in range(2):
        done = folder.call("update", TEXT_ONLY)
        assert done.code == 1
        assert "12 files could not be indexed:\n  notes:bad00.md: not text" in done.err
        assert "notes:bad09.md" in done.err
        assert "notes:bad10.md" not in done.err
        assert "  and 2 more (--json lists all)" in done.err
        assert "notes:link.md is a broken symbolic link" in done.err

    answer = folder.call("update", TEXT_ONLY, "--json").json
    assert (answer["complete"], answer["documents"]) == (False, 1)
    assert [one["path"] for one in answer["failed"]] == [f"bad{at:02}.md" for at in range(12)]
    assert set(answer["failed"][0]) == {"tree", "path", "kind", "reason", "new"}
    assert [one["path"] for one in answer["skipped"]] == ["link.md"]

    for number in range(12):
        write(folder.notes, f"bad{number:02}.md", "# Good\n")
    done = folder.call("update", TEXT_ONLY, "--json")
    assert (done.code, done.json["documents"], done.json["failed"]) == (0, 13, [])


def test_files_whose_bytes_are_replaced_are_named_and_counted_every_time(folder):
    write(folder.notes, "good.md", "# Café\n")
    write(folder.notes, "old.md", "# Café à la carte\n".encode("latin-1"))
    write(folder.notes, "...md", "# Dots\n")

    for _ in range(2):
        done = folder.call("update", TEXT_ONLY)
        assert "Indexed, but parts of these files cannot be found:" in done.err
        assert "  notes: old.md: not valid UTF-8: 2 bytes shown as U+FFFD" in done.err
        assert "good.md" not in done.err
    answer = folder.call("update", TEXT_ONLY, "--json").json
    (warning,) = answer["warnings"]
    assert (warning["path"], warning["kind"], warning["count"]) == ("old.md", "replaced_bytes", 2)
    assert (warning["tree"], warning["is_loss"], answer["documents"]) == ("notes", True, 3)

    write(folder.notes, "old.md", "# Café à la carte\n")
    done = folder.call("update", TEXT_ONLY, "--json")
    assert (done.json["warnings"], done.json["modified"]) == ([], 1)


def test_a_file_of_too_many_lines_is_indexed_and_named_by_every_command(folder):
    write(folder.notes, "heavy.md", "# Heavy\n" + "\n" * 250_000 + "# lastword\n")
    kind = "too_many_lines"

    done = folder.call("update", TEXT_ONLY)
    assert "notes: heavy.md: read as plain text after the first 250,000 lines" in done.err
    (warning,) = folder.call("update", TEXT_ONLY, "--json").json["warnings"]
    assert (warning["kind"], warning["is_loss"]) == (kind, True)
    status = folder.call("status", "--json").json
    assert [one["kind"] for one in status["warning_counts"]] == [kind]
    assert "heavy.md: read as plain text" in folder.call("status").out


def test_a_file_that_may_not_be_read_and_a_folder_that_may_not_be_looked_into(folder):
    secret = write(folder.notes, "secret.md", "# A\n")
    closed = write(folder.notes, "closed/a.md", "# A\n").parent
    for path in (secret, closed):
        path.chmod(0)

    with bound_by_permissions():
        done = folder.call("update", TEXT_ONLY, "-q")

    closed.chmod(0o700)
    assert done.code == 1
    assert done.err.splitlines() == [
        "1 file could not be indexed:",
        "  notes:secret.md: permission denied; make it readable or exclude it",
        "notes:closed cannot be read",
    ]


def test_a_folder_that_is_away_keeps_its_documents(folder):
    write(folder.notes, "a.md", "# A\n")
    settings = folder.path / "settings.toml"
    settings.write_text(f"[tree.notes]\npath = '{folder.notes}'\n", encoding="utf-8")
    options = ("--config", str(settings), "--index", str(folder.index), TEXT_ONLY)
    assert call("update", *options).code == 0
    folder.notes.rename(folder.path / "moved away")

    done = call("update", *options)

    assert done.code == 1
    assert "notes is missing: kept its 1 document in the index" in done.err
    assert "Index: 1 document," in done.out


# Ends in between, and others at work

TARRYING = f"""
from ragdocs.indexing import update as batching
from ragdocs.shutdown import Ending

# On a busy machine it is neither done before the signal comes, nor ended by force after it.
Ending.__init__.__kwdefaults__["limit"] = {LATE_SECONDS}
usual = batching.batches

def batches(files, prepare, stop):
    for number, batch in enumerate(usual(files, prepare, stop)):
        yield batch
        if number == 2:
            stop.wait({LATE_SECONDS})

batching.batches = batches
from ragdocs.cli.main import main
main()
"""


def test_interrupted_it_says_so_and_the_next_run_goes_on(folder):
    for number in range(300):
        write(folder.notes, f"{number % 7}/{number}.md", f"# {number}\n\nSee [[{number // 2}]].\n")

    with folder.start("update", TEXT_ONLY, program=(sys.executable, "-c", TARRYING)) as process:
        until(lambda: _documents(folder.index) or process.poll() is not None, DEADLINE)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
        seconds = time.monotonic() - began

    assert (process.returncode, seconds < ALLOWED_SECONDS) == (130, True)
    assert out.startswith("Stopped early (SIGINT). What was done is kept; the next run continues")
    assert "Traceback" not in err
    stored = _documents(folder.index)
    assert 0 < stored < 300
    assert f"Files: {stored} added" in out
    answer = folder.call("update", TEXT_ONLY, "--json").json
    assert (answer["documents"], answer["added"]) == (300, 300 - stored)
    assert folder.is_as_new()


def test_two_at_once_make_one_index(folder):
    for number in range(130):
        write(folder.notes, f"{number}.md", f"# {number}\n\nSee [[{number // 2}]].\n")

    with (
        folder.start("update", TEXT_ONLY, "--json") as one,
        folder.start("rebuild-index", TEXT_ONLY, "--json") as two,
    ):
        outs = [process.communicate(timeout=DEADLINE) for process in (one, two)]

    assert (one.returncode, two.returncode) == (0, 0), outs
    assert [json.loads(out)["documents"] for out, _ in outs] == [130, 130]
    assert folder.is_as_new()


def test_whoever_keeps_it_from_writing_is_named(folder):
    write(folder.notes, "a.md", "# A\n")
    with try_write_lock(folder.index):
        done = folder.call("update", TEXT_ONLY, "--wait", "0.2")
    assert done.code == 3
    assert f"process {os.getpid()} is writing the index in {folder.index}" in done.err
    assert "--wait" in done.err


def test_only_a_command_that_has_an_option_to_wait_names_it(folder):
    write(folder.notes, "a.md", "# A\n")
    flags = {"indexing": {"documents_path": str(folder.notes), "index_path": str(folder.index)}}
    config = load_config(cwd=folder.notes, environ={"HOME": str(folder.notes)}, flags=flags)
    with (
        try_write_lock(folder.index),
        Ending(watch_parent=False) as ending,
        pytest.raises(IndexLocked, match=r"Try again later\.$"),
    ):
        run(config, IndexingOptions(rebuild=False, wait=0.1), ending, Silence())


def test_files_without_text_give_no_rate():
    said: list[str] = []
    lines = ProgressLines(said.append)
    lines.report(Progress(Phase.READING, 1, 1, 0))
    lines.close()
    assert said == ["reading: 1 of 1 file"]


def test_numeric_libraries_get_one_thread_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")  # so that it is as it was after the test
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert call("check-config").code == 0
    assert (os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]) == ("3", "1")


def _documents(index: Path) -> int:
    try:
        with Reader.open(index) as reader, reader.snapshot() as snapshot:
            return snapshot.ledger.count("documents")
    except IndexStoreError:
        return 0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_the_time_that_is_left_is_told_in_a_fitting_unit(seconds, said):
    assert in_words(seconds) == said
