"""A stranger's repository attacks: through the command line, Python and a real server. And the
command with which the user lets a project's file do more.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragdocs import open_index
from ragdocs.cli.main import main
from tests.support.http_servers import EmbeddingServer
from tests.support.indexes import write, write_all
from tests.support.machine import move_home, trust_files, until
from tests.support.mcp_clients import ServerProcess
from tests.support.processes import environment, run_python
from tests.support.program import run

NOTE = "# Garden\n\nTomatoes need sun and water every day.\n"
SECRET = "# Keys\n\nThe secret is swordfish.\n"
# What a package for embeddings is: a class that loads a model from a folder, with whatever code the
# folder brings along.
PACKAGES = {
    "llama_index/__init__.py": "",
    "llama_index/core/__init__.py": "",
    "llama_index/core/embeddings.py": "class BaseEmbedding:\n    pass\n",
    "hub_embeddings.py": """
import os, runpy
from llama_index.core.embeddings import BaseEmbedding

class HubEmbedding(BaseEmbedding):
    def __init__(self, model_name, embed_batch_size, trust_remote_code=False, run_code=False):
        if trust_remote_code or run_code:
            runpy.run_path(os.path.join(model_name, "modeling.py"))

    def get_text_embedding(self, text):
        return [1.0, float(len(text))]

    def get_text_embedding_batch(self, texts):
        return [self.get_text_embedding(text) for text in texts]

    get_query_embedding = get_text_embedding
""",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path.resolve() / "home"
    folder.mkdir()
    move_home(monkeypatch, folder)
    write(folder, ".aws/credentials.md", SECRET)
    return folder


@pytest.fixture
def repository(home, monkeypatch):
    """Just cloned, and entered."""
    folder = home / "clones" / "repository"
    write(folder, "docs/garden.md", NOTE)
    monkeypatch.chdir(folder)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def ragdocs(folder: Path, *words: str, code: int = 0, **environ: str):
    return run_python(
        "-P", "-m", "ragdocs", *words, cwd=folder, code=code, env=environment(**environ)
    )


def server(repository: Path, **environ: str) -> ServerProcess:
    """As `ragdocs install` has clients start it."""
    return ServerProcess("-P", "-m", "ragdocs", "mcp", "--config", str(repository), **environ)


def answered(process: ServerProcess, number: int, tool: str, **arguments):
    return process.call(number, tool, **arguments)["result"]["structuredContent"]


def complete_search(process: ServerProcess, query: str):
    """The answer once the index has all that the files have."""
    process.initialize()
    found = {}
    numbers = iter(range(1000))

    def is_complete():
        found["answer"] = answered(process, next(numbers), "query_documents", query=query)
        return found["answer"]["index"]["complete"]

    until(is_complete, 120)
    return found["answer"]


@pytest.fixture
def packages(tmp_path):
    """Installed beside the program."""
    return str(write_all(tmp_path / "packages", PACKAGES))


def with_code(repository: Path, marker: Path, argument: str) -> None:
    write(repository, "model/modeling.py", f"open({str(marker)!r}, 'w').close()\n")
    write(
        repository,
        ".ragdocs.toml",
        '[embedding]\nprovider = "llama-index"\nclass_name = "hub_embeddings:HubEmbedding"\n'
        f"[embedding.arguments]\nmodel_name = {json.dumps(str(repository / 'model'))}\n"
        f"{argument} = true\n",
    )


@pytest.mark.parametrize("argument", ["trust_remote_code", "run_code"])
def test_no_code_of_a_repository_is_run_by_a_command(repository, packages, tmp_path, argument):
    marker = tmp_path / "it-ran"
    with_code(repository, marker, argument)
    done = ragdocs(repository, "query", "tomatoes", PYTHONPATH=packages)
    assert not marker.exists()
    assert "garden.md" in done.stdout
    assert "embedding.class_name" in done.stderr
    assert "ragdocs trust" in done.stderr


def test_no_code_of_a_repository_is_run_by_a_server(repository, packages, tmp_path):
    marker = tmp_path / "it-ran"
    with_code(repository, marker, "trust_remote_code")
    with server(repository, PYTHONPATH=packages) as process:
        answer = complete_search(process, "tomatoes")
    assert not marker.exists()
    assert answer["results"][0]["path"] == "docs/garden.md"
    (notice,) = answer["index"]["notices"]
    assert ".ragdocs.toml is not trusted" in notice
    assert str(repository) not in notice


def test_the_users_yes_lets_it_run_and_another_byte_stops_it(repository, packages, tmp_path):
    """So that the tests above would notice code that runs."""
    marker = tmp_path / "it-ran"
    with_code(repository, marker, "run_code")
    shown = ragdocs(repository, "trust", "--yes").stdout
    assert "names Python code to import and run" in shown
    assert str(Path("clones/repository/model")) in shown
    ragdocs(repository, "update", PYTHONPATH=packages)
    assert marker.exists()

    marker.unlink()
    write(repository, "model/modeling.py", f"open({str(marker)!r}, 'x').close()\n")
    done = ragdocs(repository, "update", PYTHONPATH=packages)
    assert "has changed what it asks for" in done.stderr
    assert not marker.exists()


@pytest.mark.parametrize("path", ["~/.aws", "../../.aws", "link", "{home}/.aws"])
def test_no_folder_outside_of_a_repository_is_read(repository, home, path):
    (repository / "link").symlink_to(home / ".aws")
    write(
        repository,
        ".ragdocs.toml",
        f'[tree.x]\npath = "{path.format(home=home)}"\n[tree.own]\npath = "docs"\n',
    )
    done = run("query", "swordfish secret", "--json")
    answer = json.loads(done.stdout)
    assert "swordfish" not in "".join(one["text"] for one in answer["results"])
    (notice,) = answer["index"]["notices"]
    assert "tree.x is ignored" in notice
    assert "tree.x" in done.stderr
    documents = json.loads(run("ls", "--json").stdout)["documents"]
    assert [one["path"] for one in documents] == ["garden.md"]


def test_no_folder_outside_of_a_repository_is_served(repository, home):
    write(repository, ".ragdocs.toml", '[tree.x]\npath = "~/.aws"\n')
    with server(repository) as process:
        answer = complete_search(process, "swordfish secret")
        listed = answered(process, 2000, "list_documents")
        status = answered(process, 2001, "index_status")
        text = process.call(2002, "query_documents", query="sun")["result"]["content"][0]["text"]
    assert "swordfish" not in json.dumps(answer["results"])
    assert [one["path"] for one in listed["documents"]] == ["docs/garden.md"]
    assert [one["key"] for one in status["ignored"]] == ["tree.x"]
    assert "Note for the user: .ragdocs.toml is not trusted: tree.x is ignored" in text


def test_a_folder_that_becomes_a_link_is_not_followed(repository, home):
    """While a server runs, or between two updates: what was inside is led outside."""
    write(repository, ".ragdocs.toml", '[tree.own]\npath = "docs"\n')
    with open_index() as index:
        assert index.search("tomatoes").results
        (repository / "docs").rename(repository / "moved")
        (repository / "docs").symlink_to(home / ".aws")
        index.update(rebuild=True)
        found = index.search("swordfish secret")
        assert "swordfish" not in "".join(one.text for one in found.results)
        assert "is behind a link" in found.index.reason
    # From now on the folder is outside, and asks.
    assert "tree.own is ignored" in run("query", "tomatoes").stderr


def test_nothing_is_written_into_a_repository(repository):
    write(repository, ".ragdocs.toml", '[indexing]\nindex_path = "victim"\n')
    write(repository, "victim/store.db", "somebody else's")
    before = files_of(repository)
    done = CliRunner().invoke(main, ["update", "--no-vectors"])
    assert files_of(repository) == before
    assert done.exit_code == 0, done.output
    assert "indexing.index_path is ignored" in done.stderr


def asks_for(server: EmbeddingServer) -> str:
    return f'[embedding]\nprovider = "http"\nurl = "{server.url}"\nmodel = "theirs"\n'


def test_no_passage_is_posted_to_whom_a_repository_names(repository):
    with EmbeddingServer() as listener:
        write(repository, ".ragdocs.toml", asks_for(listener))
        done = run("query", "tomatoes")
        assert listener.requests == []
        assert "embedding.url" in done.stderr
        with open_index() as index:
            assert index.search("tomatoes").results
        assert listener.requests == []

        trust_files(repository)
        run("query", "tomatoes")
        assert listener.requests


def test_no_passage_is_posted_by_a_server(repository):
    with EmbeddingServer() as listener:
        write(repository, ".ragdocs.toml", asks_for(listener))
        with server(repository) as process:
            answer = complete_search(process, "tomatoes")
        assert answer["results"]
        assert listener.requests == []


def test_a_project_file_here_does_not_govern_documents_elsewhere(repository, home):
    write(repository, ".ragdocs.toml", '[indexing]\nexclude = ["**"]\n')
    write(home, "notes/keys.md", SECRET)
    answer = json.loads(run("query", "swordfish", "--docs", str(home / "notes"), "--json").stdout)
    assert [one["path"] for one in answer["results"]] == ["keys.md"]


def test_every_look_at_the_settings_tells_what_is_ignored(repository, home):
    file = write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    line = "embedding.provider is ignored; `ragdocs trust"
    assert line in run("check-config").stdout
    assert line in run("status", code=1).stdout
    assert line in run("doctor", code=1).stdout.replace("\n", " ")
    assert '# embedding.provider = "http"' in run("config").stdout
    for words, code in ((("check-config",), 0), (("config",), 0), (("status",), 1)):
        (told,) = json.loads(run(*words, "--json", code=code).stdout)["ignored"]
        assert (told["key"], told["standing"]) == ("embedding.provider", "not-trusted")
        assert "program that is given the text" in told["meaning"]
        assert str(file) in json.dumps(told)
    findings = json.loads(run("doctor", "--json", code=1).stdout)["findings"]
    (finding,) = [one for one in findings if line in one["message"]]
    assert (finding["check"], finding["level"]) == ("configuration", "warning")


def test_python_programs_are_warned_about_ignored_settings(repository, caplog):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    with caplog.at_level(logging.WARNING), open_index() as index:
        assert [one.key for one in index.config.ignored] == ["embedding.provider"]
        assert index.state.notices
    assert "embedding.provider is ignored" in caplog.text


def test_without_a_terminal_nothing_is_trusted(repository):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    done = ragdocs(repository, "trust", code=2)
    assert 'line 2: embedding.provider = "http"' in done.stdout
    assert "no terminal to ask on" in done.stderr
    assert "--yes" in done.stderr
    assert "No project file is trusted" in run("trust", "--list").stdout


@pytest.mark.parametrize(("word", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_at_a_terminal_it_is_asked(repository, word, code):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    ours, theirs = pytest.importorskip("pty").openpty()
    try:
        os.write(ours, word.encode())
        command = [sys.executable, "-P", "-m", "ragdocs", "trust"]
        done = subprocess.run(
            command, stdin=theirs, stdout=theirs, stderr=theirs, check=False, timeout=60
        )
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code, shown
    assert "Do you trust the project with these? [y/N]" in shown
    assert run("config").stdout.count('provider = "http"  # ') == 1
    assert ("ignored: not trusted" in run("config").stdout) == (code == 1)


def test_trust_is_listed_and_revoked(repository, home):
    file = write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    told = json.loads(run("trust", "--json", code=1).stdout)
    assert told["trusted"] == []
    (one,) = told["files"]
    assert (one["file"], one["standing"]) == (str(file), "not-trusted")
    assert one["asks"][0]["key"] == "embedding.provider"

    assert json.loads(run("trust", "--yes", "--json").stdout)["trusted"] == [str(file)]
    assert "is trusted." in run("trust").stdout
    (one,) = json.loads(run("trust", "--list", "--json").stdout)["files"]
    assert (one["file"], one["standing"]) == (str(file), "trusted")
    assert one["settings"] == {"embedding.provider": "http"}

    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "huggingface"\n')
    assert "has changed what it asks for" in run("trust", "--list").stdout
    file.unlink()
    assert "is no longer read" in run("trust", "--list").stdout
    assert json.loads(run("trust", str(file), "--revoke", "--json").stdout)["revoked"] == [
        str(file)
    ]
    assert "nothing was trusted here" in run("trust", "--revoke", code=1).stdout
    assert json.loads(run("trust", "--list", "--json").stdout) == {"files": [], "problem": ""}


def test_revoked_from_a_folder_below(repository):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    run("trust", "--yes")
    assert "No longer trusted" in run("trust", "docs", "--revoke").stdout
    assert "embedding.provider" in run("check-config").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("trust", "docs/garden.md"), "is not a project file"),
        (("trust", "gone/.ragdocs.toml"), "does not exist"),
        (("trust", "--yes", "--list"), "use only one of"),
    ],
)
def test_what_cannot_be_trusted_is_said(repository, words, said):
    assert said in run(*words, code=2).stderr


def test_a_broken_file_is_not_trusted(repository):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\nnonsense = 1\n')
    assert "there is no such setting" in run("trust", "--yes", code=2).stderr


def test_a_terminal_is_not_spoken_to_by_a_value(repository):
    write(repository, ".ragdocs.toml", '[embedding]\nurl = "http://x/\\u001b[2J\\u202e"\n')
    shown = run("trust", "--json", code=1).stdout + ragdocs(repository, "trust", code=2).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in ragdocs(repository, "trust", code=2).stdout


def test_commands_at_once_lose_nothing(home):
    files = []
    for number in range(6):
        folder = home / f"clone-{number}"
        files.append(write(folder, ".ragdocs.toml", '[embedding]\nprovider = "http"\n'))
    command = [sys.executable, "-P", "-m", "ragdocs", "trust", "--yes"]
    running = [subprocess.Popen([*command, str(file)], stdout=subprocess.DEVNULL) for file in files]
    assert [process.wait(120) for process in running] == [0] * 6
    kept = json.loads(run("trust", "--list", "--json").stdout)["files"]
    assert {one["file"] for one in kept} == set(map(str, files))


def test_what_was_damaged_is_replaced_and_said(repository, home):
    write(repository, ".ragdocs.toml", '[embedding]\nprovider = "http"\n')
    kept = write(home, ".local/share/mcp-markdown-ragdocs/trust.json", "{")
    kept.parent.chmod(0o700)
    assert "it is damaged" in run("trust", "--list").stdout
    assert "Trust again what you trusted before" in run("trust", "--yes").stderr
    assert "is trusted." in run("trust").stdout


def test_what_init_is_told_is_trusted(repository, home):
    (home / "notes").mkdir()
    done = run("init", "--docs", "docs", "--docs", str(home / "notes"))
    assert "is trusted with the folders" in done.stdout
    assert "Searched from here: notes" in done.stdout
    assert "ignored" not in run("check-config").stdout
    run("trust", "--revoke")
    run("init", "--force", "--docs", "docs")
    assert "No project file is trusted" in run("trust", "--list").stdout


def test_the_command_is_there():
    assert "trust" in main.commands


def test_names_do_not_speak_to_a_terminal_in_json_or_in_errors(tmp_path, monkeypatch):
    """C1 controls and bidi marks went out in JSON as they are; errors named folders as they are."""
    move_home(monkeypatch, tmp_path / "home")
    spoken = "\x1b]0;x\x07\x9b31m\u202e"
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / f"a{spoken}.md").write_text(f"# Head {spoken}\n\nApples.\n", encoding="utf-8")
    listed = run("ls", "docs", "--docs", str(docs), "--json")
    assert spoken in json.dumps(json.loads(listed.stdout), ensure_ascii=False).replace(
        "\\u001b", "\x1b"
    ).replace("\\u0007", "\x07")
    (tmp_path / f"set{spoken}").mkdir()
    failed = run("eval", str(tmp_path / f"set{spoken}"), code=2)
    for text in (listed.output, failed.output):
        assert not set(text) & set(spoken[:1] + "\x07\x9b\u202e"), text
