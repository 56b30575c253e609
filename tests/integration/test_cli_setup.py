"""`init`, `agents`, `models`, `completion`: what one meets first, in a home that is a folder."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from ragdocs.app import index_directory
from ragdocs.cli.install import BEGIN, BLOCK, END, INSTRUCTIONS
from ragdocs.cli.main import main
from ragdocs.config.loading import load_config
from ragdocs.mcp_server.tools import TOOLS
from tests.support.indexes import write
from tests.support.machine import move_home, trust_files
from tests.support.model_files import TinyCrossEncoder
from tests.support.program import run

OWN = ".config/mcp-markdown-ragdocs/config.toml"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder below a home, both empty, and nothing of the real home in sight."""
    folder = tmp_path.resolve() / "home" / "project"
    folder.mkdir(parents=True)
    move_home(monkeypatch, folder.parent)
    monkeypatch.chdir(folder)
    return folder


def roots():
    return {tree.name: tree.root for tree in load_config().trees}


def test_a_projects_configuration(project):
    said = run("init").stdout
    file = project / ".ragdocs.toml"
    assert "Written: ~/project/.ragdocs.toml\n" in said
    assert "Searched from here: project, ~/project\n" in said
    assert "The configuration can be used." in run("check-config").stdout
    assert tomllib.loads(file.read_text(encoding="utf-8"))["indexing"] == {"documents_path": "."}
    assert roots() == {"project": project}


def test_what_is_commented_out_is_the_default(project):
    usual = load_config()
    run("init")
    file = project / ".ragdocs.toml"
    text = file.read_text(encoding="utf-8")
    every = re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE)
    assert every.count("\n") == text.count("\n")
    assert len(re.findall(r"^\w+ = ", every, re.MULTILINE)) > 10
    file.write_text(every, encoding="utf-8")
    now = load_config()
    assert (now.indexing, now.search, now.chunking, now.embedding, now.trees) == (
        usual.indexing,
        usual.search,
        usual.chunking,
        usual.embedding,
        usual.trees,
    )
    assert "note:" not in run("check-config").stdout


def test_nothing_is_overwritten_unasked_and_then_a_copy_is_kept(project):
    file = write(project, ".ragdocs.toml", "[search]\nmin_confidence = 0.5\n")
    file.chmod(0o640)
    mine = file.read_bytes()
    done = run("init", code=1)
    assert "--force" in done.stderr
    assert file.read_bytes() == mine
    assert "Copy of the old file: ~/project/.ragdocs.toml.bak\n" in run("init", "--force").stdout
    assert (project / ".ragdocs.toml.bak").read_bytes() == mine
    assert load_config().search.min_confidence == pytest.approx(0.0)
    assert file.stat().st_mode & 0o777 == 0o640
    write(project, ".ragdocs.toml", "# again\n")
    run("init", "--force")
    assert (project / ".ragdocs.toml.bak").read_bytes() == mine
    assert (project / ".ragdocs.toml.bak2").read_text(encoding="utf-8") == "# again\n"
    assert not [name for name in os.listdir(project) if name.startswith("..")]  # nothing half made


def test_the_other_name_of_a_configuration_counts_too(project):
    file = write(project, ".mcp-markdown-ragdocs/config.toml", "# mine\n")
    run("init", code=1)
    run("init", "--force")
    assert not (project / ".ragdocs.toml").exists()
    assert "documents_path" in file.read_text(encoding="utf-8")
    run("check-config")


def test_folders_of_documents(project):
    for name in ("docs", "~odd", "wiki"):
        (project / name).mkdir()
    (project.parent / "notes").mkdir()
    text = (project / ".ragdocs.toml").read_text
    run("init", "--docs", "docs")
    assert '[tree.docs]\npath = "docs"\n' in text(encoding="utf-8")
    assert roots() == {"docs": project / "docs"}
    run("init", "--force", "--docs", "./~odd")
    assert roots() == {"odd": project / "~odd"}
    run("init", "--force", "--docs", "wiki", "--docs", "~/notes")
    assert roots() == {"wiki": project / "wiki", "notes": project.parent / "notes"}
    assert "documents_path" not in text(encoding="utf-8")
    assert "does not exist" in run("init", "--force", "--docs", "gone", code=2).stderr


def test_a_folder_by_its_path_is_the_tree_that_init_named(project):
    (project / "notes").mkdir()
    write(project, "notes/a.md", "# A\n\nBread.\n")
    assert "Searched from here: notes, ~/project/notes" in run("init", "--docs", "notes").stdout
    run("update")
    known = index_directory(load_config())
    assert f"{known}" in run("update", "--docs", "notes", "--json").stdout
    assert run("ls", "--docs", "notes").stdout.startswith("notes:a.md")


def test_the_users_own_configuration(project):
    (project.parent / "notes").mkdir()
    run("init", "--global", "--docs", "~/notes")
    assert roots() == {"notes": project.parent / "notes"}
    run("init")
    assert roots() == {"project": project, "notes": project.parent / "notes"}
    assert "note:" not in run("check-config").stdout
    run("init", "--global", code=1)
    run("init", "--global", "--force")
    assert "#[tree.notes]" in (project.parent / OWN).read_text(encoding="utf-8")
    assert (project.parent / f"{OWN}.bak").exists()
    assert roots() == {"project": project}


def test_a_home_is_not_a_folder_of_documents(project, monkeypatch):
    monkeypatch.chdir(project.parent)
    for command in (["query", "x"], ["update"], ["rebuild-index"], ["ls"]):
        assert "name a folder with --docs DIR" in run(*command, code=2).stderr
    assert not (project.parent / ".cache" / "mcp-markdown-ragdocs").exists()
    assert "--docs DIR" in run("init", code=2).stderr
    assert not (project.parent / ".ragdocs.toml").exists()
    run("init", "--docs", "project")
    assert roots() == {"project": project}


def test_a_folder_that_is_gone(project):
    project.rmdir()
    assert "working directory" in run("init", code=2).stderr
    assert "working directory" in run("install", "--client", "other", code=2).stderr


def test_a_name_that_is_not_utf_8(project):
    os.mkdir(os.fsencode(project) + b"/\xff")
    odd = os.fsdecode(os.fsencode(project) + b"/\xff")
    assert "UTF-8" in run("init", "--docs", odd, code=1).stderr
    assert not (project / ".ragdocs.toml").exists()


def test_the_instructions_name_the_tools_that_there_are(project):
    said = run("agents").stdout
    assert said == BLOCK
    named = set(re.findall(r"^- `(\w+)`", INSTRUCTIONS, re.MULTILINE))
    assert named == set(TOOLS)
    for command in re.findall(r"`ragdocs (\w+)", INSTRUCTIONS):
        assert command in main.commands
    assert len(said) < 2500


def test_the_instructions_in_a_file(project):
    file = project / "AGENTS.md"
    run("agents", "--write", "AGENTS.md")
    assert file.read_text(encoding="utf-8") == BLOCK
    assert "already" in run("agents", "--write", "AGENTS.md").stdout
    for before, after in (
        ("# Mine\n\n", "\n\nAfter it.\n"),
        ("", ""),
        ("\ufeff# Mine\r\n", "\r\n"),
    ):
        old = f"{before}{BEGIN}\nof an older version\n{END}{after}"
        write(project, "AGENTS.md", old)
        run("agents", "--write", "AGENTS.md")
        block = BLOCK.rstrip("\n").replace("\n", "\r\n" if "\r\n" in old else "\n")
        assert file.read_bytes().decode() == before + block + after
    write(project, "AGENTS.md", "# Mine\n\nOnly this.\n")
    run("agents", "--write", "AGENTS.md")
    assert file.read_text(encoding="utf-8") == f"# Mine\n\nOnly this.\n\n{BLOCK}"
    assert not list(project.glob("*.bak"))


@pytest.mark.parametrize(
    ("link", "target", "words"),
    [
        ("CLAUDE.md", "../.bashrc", ("agents", "--write", "CLAUDE.md")),
        (".ragdocs.toml", "../.bashrc", ("init", "--force")),
        (".mcp.json", "../.bashrc", ("install", "--client", "claude-code", "--project")),
        (".cursor", "../.cursor", ("install", "--client", "cursor", "--project")),
    ],
)
def test_no_link_of_a_project_chooses_which_file_is_written(project, link, target, words):
    kept = [
        write(project.parent, ".bashrc", "{}\n"),
        write(project.parent, ".cursor/mcp.json", "{}"),
    ]
    before = [(file.read_bytes(), file.stat().st_ino) for file in kept]
    (project / link).symlink_to(target)
    assert "is a link to" in run(*words, code=1).stderr
    assert [(file.read_bytes(), file.stat().st_ino) for file in kept] == before
    assert not list(project.parent.rglob("*.bak"))


def test_a_link_that_stays_in_the_project_is_followed(project):
    file = write(project, "AGENTS.md", "# Mine\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    run("agents", "--write", "CLAUDE.md")
    assert (project / "CLAUDE.md").is_symlink()
    assert BLOCK in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [BEGIN, END, f"{END}\n{BEGIN}", BLOCK + BLOCK])
def test_marks_that_make_no_sense_are_left_alone(project, text):
    file = write(project, "AGENTS.md", text)
    assert "was left as it is" in run("agents", "--write", "AGENTS.md", code=1).stderr
    assert file.read_text(encoding="utf-8") == text


def test_models_are_listed_with_their_state(project):
    shown = run("models").stdout
    assert "Built in: all-MiniLM-L6-v2, 384 dimensions\n  90.8 MB from " in shown
    assert "verified by sha256" in shown
    told = json.loads(run("models", "--json").stdout)
    assert told["builtin"]["verified"] is True
    assert Path(told["builtin"]["folder"]).is_dir()
    assert told["embedding"] == {
        "provider": "builtin",
        "model": "all-MiniLM-L6-v2",
        "problem": "",
    }
    assert [extra["name"] for extra in told["extras"]] == ["huggingface", "llama-index"]
    assert told["cross_encoder"]["enabled"] is False
    assert "only its name is set" in told["cross_encoder"]["problem"]


def test_models_that_are_not_there(project):
    write(
        project,
        ".ragdocs.toml",
        '[embedding]\nprovider = "huggingface"\n[search]\nrerank_model = "./reader"\n',
    )
    trust_files(project)
    told = json.loads(run("models", "--json", code=1).stdout)
    assert told["embedding"]["problem"]
    assert told["builtin"]["problem"] == ""
    assert told["cross_encoder"]["folder"] == str(project / "reader")
    assert "does not exist" in told["cross_encoder"]["problem"]
    assert "cannot be used" in run("models", code=1).stdout
    TinyCrossEncoder(meanings=["a"]).write(project / "reader")
    trust_files(project)  # what is loaded has changed
    told = json.loads(run("models", "--json", code=1).stdout)
    assert told["cross_encoder"]["problem"] == ""
    assert "its folder is complete" in run("models", code=1).stdout


def test_check_config_tells_that_the_re_ranking_model_is_not_there(project):
    write(project, ".ragdocs.toml", "[search]\nrerank_enabled = true\n")
    told = run("check-config").stdout
    assert "search.rerank_enabled: has no effect while the model cross-encoder/ms-marco" in told
    assert "The configuration can be used." in told
    write(project, ".ragdocs.toml", '[search]\nrerank_enabled = true\nrerank_model = "./reader"\n')
    trust_files(project)
    (note,) = json.loads(run("check-config", "--json").stdout)["notes"]
    assert note["key"] == "search.rerank_enabled"
    assert note["origin"]["line"] == 2
    assert "does not have config.json" in note["message"]
    TinyCrossEncoder(meanings=["a"]).write(project / "reader")
    trust_files(project)  # what is loaded has changed
    assert "note:" not in run("check-config").stdout


def test_a_model_folder_without_a_model_is_told(project):
    (project / "model").mkdir()
    write(project, ".ragdocs.toml", '[embedding]\nmodel = "./model"\n')
    trust_files(project)
    told = json.loads(run("models", "--json").stdout)
    assert told["builtin"]["verified"] is True
    assert any(str(project / "model") in note for note in told["builtin"]["notes"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(project, shell):
    script = run("completion", shell).stdout
    assert f"_RAGDOCS_COMPLETE={shell}_complete" in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, encoding="utf-8", check=True, timeout=30)


def test_commands_and_options_are_completed():
    complete = ShellComplete(main, {}, "ragdocs", "_RAGDOCS_COMPLETE")

    def offered(*words):
        return {item.value for item in complete.get_completions(list(words[:-1]), words[-1])}

    assert offered("in") == {"index", "init", "inspect", "install"}
    assert offered("install", "--client", "claude") == {"claude-desktop", "claude-code"}
    assert "--global" in offered("init", "--")


@pytest.mark.parametrize(
    ("typed", "meant"), [("instal", "install"), ("modles", "models"), ("qurey", "query")]
)
def test_a_mistyped_command(typed, meant):
    said = run(typed, code=2).stderr
    assert re.search(rf"Did you mean .*'{meant}'", said)


@pytest.mark.parametrize("name", ["init", "agents", "install", "models", "completion"])
def test_the_help_has_an_example(name):
    said = run(name, "--help").stdout
    assert re.search(rf"Examples?:\n    ragdocs {name}", said)
