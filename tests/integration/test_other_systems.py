"""The program on a system without `fcntl`, `resource` and the calls that only POSIX has.

tests/support/systems/sitecustomize.py takes them away in real processes, and lets no file be
deleted or replaced that is open, as Windows does. It stands in for Windows; it is not Windows.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.indexes import write_all
from tests.support.machine import until
from tests.support.mcp_clients import PROJECT, ServerProcess
from tests.support.processes import environment, run_python
from tests.support.systems import needs

HERE = Path(__file__).parents[1] / "support" / "systems"
DEADLINE = 300.0
TAKE_OVER_SECONDS = 60.0
NOTES = {
    "auth.md": "# Signing in\n\nSign in with a token from the console, see [[Backups]].\n",
    "work/backups.md": "# Backups\n\nThe night job copies the ledger to the second site.\n",
}

pytestmark = needs.linux  # what is taken away must be there first, and /proc says what is open


def without_posix(mode: str) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(HERE), str(PROJECT)]), "WITHOUT_POSIX": mode}


def run(*words: str, mode: str = "files") -> str:
    return run_python(*words, cwd=PROJECT, env=environment(**without_posix(mode))).stdout


def test_the_calls_are_gone_and_the_program_is_imported_whole():
    """Every module, not only those that a session needs."""
    said = run(
        "-c",
        "import importlib, os, pkgutil, select, signal, sys\n"
        "import ragdocs\n"
        "left = [name for name in ('O_NOFOLLOW', 'O_NONBLOCK', 'O_DIRECTORY', 'O_CLOEXEC', 'fork',"
        " 'geteuid', 'fchmod', 'pread', 'pwrite', 'register_at_fork')"
        " if hasattr(os, name)]\n"
        "left += [name for name in ('SIGALRM', 'SIGHUP', 'setitimer') if hasattr(signal, name)]\n"
        "left += [name for name in ('fcntl', 'resource') if sys.modules[name] is not None]\n"
        "left += ['poll'] if hasattr(select, 'poll') else []\n"
        "left += ['dir_fd'] if os.supports_dir_fd else []\n"
        "print(left)\n"
        "apart = ('ragdocs.integrations', 'ragdocs.__main__', 'ragdocs.indexing.inotify')\n"
        "names = [one.name for one in pkgutil.walk_packages(ragdocs.__path__, 'ragdocs.')]\n"
        "wanted = [name for name in names if not name.startswith(apart)]\n"
        "for name in wanted:\n"
        "    importlib.import_module(name)\n"
        "print(len(wanted) > 100)\n",
    )
    assert said.split("\n")[:2] == ["[]", "True"]


@pytest.mark.parametrize(
    "file",
    [
        "unit/test_watch_lock.py",
        "unit/test_containment.py",
        "unit/test_reading.py",
        "unit/test_lifecycle.py",
        "unit/test_mcp_transport.py",
    ],
)
def test_the_tests_of_what_differs_pass_there_too(file: str):
    """The same tests in such a process; those of a call that is gone say so and are skipped."""
    said = run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{file}", mode="calls")
    assert " passed" in said


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_all(tmp_path / "notes", NOTES)


@contextmanager
def server(notes: Path, index: Path) -> Iterator[ServerProcess]:
    place = ("--docs", str(notes), "--index", str(index))
    with ServerProcess("-m", "ragdocs", "mcp", *place, **without_posix("files")) as process:
        assert process.initialize()["result"]["serverInfo"]
        yield process


def found(server: ServerProcess, query: str) -> list[str]:
    answer = server.call("q", "query_documents", query=query)["result"]
    return [one["path"] for one in answer["structuredContent"]["results"]]


def status(server: ServerProcess) -> dict[str, Any]:
    return server.call("s", "index_status")["result"]["structuredContent"]


@pytest.mark.parametrize("engine", ["fts5", "whoosh", "tantivy"])
def test_a_session_on_the_command_line(tmp_path: Path, notes: Path, engine: str):
    """Build, question, edit, question, a look at everything, and a rebuild."""
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[search]\nkeyword_engine = "{engine}"\n', encoding="utf-8")
    place = ("--docs", str(notes), "--index", str(tmp_path / "index"), "--config", str(settings))

    def best(query: str) -> str:
        said = json.loads(run("-m", "ragdocs", "query", query, "--json", *place))
        return said["results"][0]["path"]

    assert best("night job ledger") == "work/backups.md"
    (notes / "work" / "backups.md").rename(notes / "work" / "copies.md")
    (notes / "auth.md").write_text("# Passkeys\n\nA fingerprint opens the door.\n", "utf-8")
    assert best("night job ledger") == "work/copies.md"
    assert best("fingerprint") == "auth.md"
    checked = json.loads(run("-m", "ragdocs", "doctor", "--json", *place))
    levels = {one["level"] for one in checked["findings"]}
    assert "error" not in levels, checked
    run("-m", "ragdocs", "rebuild-index", *place)
    assert best("fingerprint") == "auth.md"


def test_two_servers_an_edit_a_kill_and_a_take_over(tmp_path: Path, notes: Path):
    index = tmp_path / "index"
    with server(notes, index) as first:
        until(lambda: found(first, "night job ledger")[:1] == ["work/backups.md"], DEADLINE)
        with server(notes, index) as second:
            until(lambda: found(second, "night job ledger")[:1] == ["work/backups.md"], DEADLINE)
            (notes / "tides.md").write_text("# Tides\n\nSpring tides follow the moon.\n", "utf-8")
            for each in (first, second):
                until(lambda each=each: found(each, "spring tides moon")[:1] == ["tides.md"])
            first.process.kill()
            first.process.wait()
            (notes / "tides.md").unlink()
            (notes / "wind.md").write_text("# Wind\n\nTrade winds blow west.\n", "utf-8")
            until(lambda: found(second, "trade winds")[:1] == ["wind.md"], TAKE_OVER_SECONDS)
            assert "tides.md" not in found(second, "spring tides moon")
            assert status(second)["watcher"]["pid"] == second.process.pid
            assert second.process.stdin
            second.process.stdin.close()
            assert second.ended(DEADLINE) == 0, second.errors


def test_a_damaged_store_is_rebuilt_though_a_server_has_it_open(tmp_path: Path, notes: Path):
    """Deleting it waits for whoever reads it, and that one lets go when it meets the damage."""
    index = tmp_path / "index"
    place = ("--docs", str(notes), "--index", str(index))
    run("-m", "ragdocs", "update", *place)
    with server(notes, index) as one, server(notes, index) as two:
        for each in (one, two):
            until(lambda each=each: found(each, "night job ledger")[:1] == ["work/backups.md"])
        with open(index / "store.db", "r+b") as store:
            store.seek(4096)
            store.write(os.urandom(store.seek(0, os.SEEK_END) - 4096))
        (notes / "wind.md").write_text("# Wind\n\nTrade winds blow west.\n", "utf-8")
        for each in (one, two):
            assert until(
                lambda each=each: (
                    "error" not in each.call("e", "index_status")
                    and found_or_nothing(each, "trade winds")[:1] == ["wind.md"]
                ),
                DEADLINE,
            )


def found_or_nothing(server: ServerProcess, query: str) -> list[str]:
    """While it is damaged, an answer may be an error that says so."""
    answer = server.call("q", "query_documents", query=query)["result"]
    return [one["path"] for one in answer.get("structuredContent", {}).get("results", ())]


def test_a_name_in_another_case_is_the_same_file_there(tmp_path: Path, notes: Path):
    """One document for each file, by the name that its folder lists; found by any case."""
    (notes / "auth.md").write_text("# Signing in\n\nSee [b](WORK/Backups.MD).\n", "utf-8")
    place = ("--docs", str(notes), "--index", str(tmp_path / "index"))

    def listed() -> list[str]:
        said = json.loads(run("-m", "ragdocs", "ls", "--json", *place))
        return [one["path"] for one in said["documents"]]

    assert listed() == ["auth.md", "work/backups.md"]
    said = json.loads(run("-m", "ragdocs", "get", "WORK/BACKUPS.md", "--json", *place))
    assert "night job" in said["text"]
    related = json.loads(run("-m", "ragdocs", "related", "Auth.md", "--json", *place))
    assert [one["path"] for one in related["links"]] == ["work/backups.md"]
    (notes / "auth.md").rename(notes / "AUTH.md")
    assert listed() == ["AUTH.md", "work/backups.md"]
    said = json.loads(run("-m", "ragdocs", "get", "auth.md", "--json", *place))
    assert "Signing in" in said["text"]


def test_names_that_differ_in_case_alone_are_two_documents_here(tmp_path: Path):
    """The same questions where the file system tells them apart."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "Case.md").write_text("# Upper\n\nThe heron.\n", "utf-8")
    (notes / "case.md").write_text("# Lower\n\nThe egret.\n", "utf-8")
    if len(list(notes.iterdir())) == 1:
        pytest.skip("this file system does not tell case apart")
    place = ("--docs", str(notes), "--index", str(tmp_path / "index"))
    for name, word in (("Case.md", "heron"), ("case.md", "egret")):
        said = json.loads(run("-m", "ragdocs", "get", name, "--json", *place, mode=""))
        assert word in said["text"]


def test_an_orphan_ends(tmp_path: Path, notes: Path):
    """The parent's number does not change on Windows: its handle tells."""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'ragdocs', 'mcp', '--docs', sys.argv[1],"
        " '--index', sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        'child.stdin.write(b\'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n\')\n'
        "child.stdin.flush()\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    reading, writing = os.pipe()  # kept open here, so that the server's input does not end
    with subprocess.Popen(
        [sys.executable, "-c", code, str(notes), str(tmp_path / "index")],
        cwd=PROJECT,
        env=environment(**without_posix("files")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(reading, writing),
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        os.close(reading)
        os.close(writing)
        until(lambda: not is_running(pid), DEADLINE)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
