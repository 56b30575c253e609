"""`check-config` and `config` as a user meets them: their output and their status."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.processes import environment, run_code, run_python
from tests.support.program import called

PROGRAM = "from ragdocs.cli.main import main; main()"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


def home_of(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder.parent), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}


def run(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return called(folder, *arguments, **home_of(folder), **environ)


def run_process(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The real program, where its streams and its status are what is asked about."""
    env = environment(without=("RAGDOCS_",), **home_of(folder))
    return run_python("-c", PROGRAM, *arguments, cwd=folder, env=env, code=None)


def configure(folder: Path, text: str) -> Path:
    path = folder / ".ragdocs.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_configuration_without_fault(project):
    path = configure(project, "[search]\nmmr_enabled = true\nmmr_lambda = 0.1\n")

    done = run(project, "check-config")

    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"read: {path}", "The configuration can be used."]
    assert done.stderr == ""


def test_a_provider_that_needs_a_class_is_refused_without_one(project):
    path = configure(project, '[embedding]\nprovider = "llama-index"\n')
    done = run(project, "check-config", "--config", str(path))
    assert done.returncode == 2
    assert "embedding.class_name: the embedding class is missing" in done.stderr
    configure(project, '[embedding]\nprovider = "llama-index"\nclass_name = "some:Thing"\n')
    assert run(project, "check-config", "--config", str(path)).returncode == 0


def test_no_configuration_at_all_is_fine(project):
    done = run(project, "check-config")

    assert done.returncode == 0
    assert done.stdout.startswith("read: no file\n")


def test_problems_go_to_stderr_all_of_them_and_the_status_is_2(project):
    path = configure(project, "[search]\nmmr_lamda = 0.1\nmin_confidence = 2\n")

    done = run_process(project, "check-config")

    assert done.returncode == 2
    first, second, last = done.stderr.splitlines()
    assert last == "The configuration cannot be used: 2 problems."
    assert first.startswith(f"error: {path}:2: search.mmr_lamda: ")
    assert "there is no such setting; did you mean mmr_lambda? " in first
    assert second.startswith(f"error: {path}:3: search.min_confidence: 2 is out of range")
    assert "The configuration" not in done.stdout


def test_all_settings_are_listed_even_where_the_configuration_is_wrong(project):
    """It is what the message about an unknown setting advises."""
    configure(project, "[search]\nmmr_lamda = 0.1\n")
    assert "`ragdocs config --defaults` lists all settings" in run(project, "config").stderr
    done = run(project, "config", "--defaults")
    assert done.returncode == 0
    assert "mmr_lambda" in done.stdout
    tomllib.loads(done.stdout)
    listed = json.loads(run(project, "config", "--defaults", "--json").stdout)["settings"]
    assert listed["search.mmr_enabled"]["allowed"] == "true or false"
    assert listed["tree.*.path"]["default"] is None


def test_aliases_are_pointed_out(project):
    path = configure(project, "[chunking]\nmax_chunk_chars = 900\n")

    done = run(project, "check-config")

    assert done.returncode == 0
    assert f"note: {path}:2: chunking.max_chunk_chars: is accepted" in done.stdout


def test_check_config_in_json(project):
    path = configure(project, "[search]\ndedup_threshold = 0.9\nnothing = 1\n")

    done = run(project, "check-config", "--json")
    answer = json.loads(done.stdout)

    assert done.returncode == 2
    assert done.stderr == ""
    assert (answer["ok"], answer["files"]) == (False, [str(path)])
    (problem,) = answer["problems"]
    assert problem["key"] == "search.nothing"
    assert problem["origin"] == {"kind": "project", "where": str(path), "line": 3}
    assert [note["key"] for note in answer["notes"]] == ["search.dedup_threshold"]


def test_the_effective_settings_are_toml_with_their_origins(project):
    path = configure(project, "[search]\nmmr_lambda = 0.1\n[tree.'a.b']\npath = 'x'\n")

    done = run(project, "config", RAGDOCS_SEARCH__MIN_CONFIDENCE="0.6")
    answer = tomllib.loads(done.stdout)

    assert done.returncode == 0
    assert f"mmr_lambda = 0.1  # {path}:2\n" in done.stdout
    assert "min_confidence = 0.6  # RAGDOCS_SEARCH__MIN_CONFIDENCE\n" in done.stdout
    assert "recency_bias = 0.5  # default\n" in done.stdout
    assert f'[tree."a.b"]  # local, {path}:3\n' in done.stdout
    assert answer["search"]["boosts"]["title"] == pytest.approx(3.0)
    assert answer["tree"]["a.b"]["path"] == str(project / "x")


def test_only_what_was_changed(project):
    configure(project, "[search]\nmmr_lambda = 0.1\n")

    answer = tomllib.loads(run(project, "config", "--changed").stdout)

    assert answer["search"] == pytest.approx({"mmr_lambda": 0.1})
    assert set(answer) == {"search", "tree"}


def test_the_effective_settings_in_json(project):
    other = project / "other.toml"
    other.write_text("[search]\nfusion = 'score'\n", encoding="utf-8")
    configure(project, "[search]\nmmr_lambda = 0.1\n")

    answer = json.loads(run(project, "config", "--json", "--config", "other.toml").stdout)

    assert answer["files"] == [str(other)]
    fusion = {"kind": "project", "where": str(other), "line": 2}
    assert answer["settings"]["search.fusion"] == {"value": "score", "origin": fusion}
    assert answer["settings"]["search.mmr_lambda"]["origin"]["kind"] == "default"
    assert answer["trees"][0]["root"] == str(project)
    assert answer["trees"][0]["scope"] == "local"


def test_settings_that_cannot_be_shown(project):
    configure(project, "[search]\nnothing = 1\n")

    done = run(project, "config")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "search.nothing" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = tmp_path.resolve() / os.fsdecode(b"p\xff")
    folder.mkdir()
    configure(folder, "[search]\nnothing = 1\n")

    for command in (["check-config"], ["check-config", "--json"], ["config"]):
        done = run_process(folder, *command)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr

    configure(folder, "")
    assert run_process(folder, "config").returncode == 0


def test_help_loads_nothing_heavy(project):
    code = (
        "import sys\nfrom ragdocs.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'faiss', 'onnxruntime', 'torch', 'llama_index', 'mcp', 'pydantic'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    assert "check-config" in run_code(code, cwd=project)


def test_reading_the_configuration_loads_nothing_heavy(project):
    code = (
        "import sys\nfrom ragdocs.config.loading import load_config\nload_config()\n"
        "heavy = {'numpy', 'faiss', 'onnxruntime', 'torch', 'llama_index', 'mcp'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert run_code(code, cwd=project).strip() == "[]"


def test_the_generator_finds_the_kept_files_up_to_date():
    script = Path(__file__).resolve().parents[2] / "scripts" / "generate_config_docs.py"

    done = run_python(script, "--check")

    assert (done.stdout, done.stderr) == ("", "")
