"""What is published agrees with itself: version, changelog, tools, release workflow, templates."""

import re
import shlex
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml
from scripts.generate_server_json import PATH as SERVER_JSON
from scripts.generate_server_json import generate
from scripts.release_notes import newest_entry

from ragdocs import __version__

PROJECT = Path(__file__).parents[2]
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))


def entries():
    """Version, date and text of each."""
    parts = re.split(r"^## (.*)$", CHANGELOG, flags=re.MULTILINE)[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        found = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", title)
        if title != "[Unreleased]":
            yield found[1], date.fromisoformat(found[2]), text


def test_the_newest_entry_of_the_changelog_is_the_version():
    assert next(entries())[0] == __version__
    assert newest_entry(CHANGELOG)[0] == __version__


def test_the_changelog_is_in_the_form_of_keep_a_changelog():
    assert CHANGELOG.startswith("# Changelog\n")
    assert "https://keepachangelog.com/" in CHANGELOG
    versions = [tuple(map(int, version.split("."))) for version, _, _ in entries()]
    days = [day for _, day, _ in entries()]
    assert versions == sorted(set(versions), reverse=True)
    assert days == sorted(days, reverse=True)
    for _, _, text in entries():
        kinds = re.findall(r"^### (.*)$", text, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds]
        for part in re.split(r"^### .*$", text, flags=re.MULTILINE)[1:]:
            assert part.strip().startswith("- ")


def notes(tag):
    return subprocess.run(
        [sys.executable, "scripts/release_notes.py", tag],
        cwd=PROJECT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def test_the_notes_of_a_release_are_its_entry_and_another_tag_stops_it():
    done = notes(f"v{__version__}")
    assert done.returncode == 0
    assert done.stdout.strip() == next(entries())[2].strip()
    for tag in ("v9.9.9", __version__, ""):
        other = notes(tag)
        assert other.returncode == 1
        assert f"version {__version__}" in other.stderr


def test_notes_of_what_is_unreleased_are_not_taken():
    released = "## [1.0.0] - 2026-01-01\n\n- b\n\n## [0.9.0] - 2025-01-01\n\n- c\n"
    text = f"## [Unreleased]\n\n- a\n\n{released}"
    assert newest_entry(text) == ("1.0.0", "- b\n")
    with pytest.raises(SystemExit):
        newest_entry("## [Unreleased]\n\n- a\n")


def test_the_registrys_entry_is_made_from_the_package():
    text = SERVER_JSON.read_text(encoding="utf-8")
    assert generate(text) == text, "run `make docs`"
    assert generate(text.replace(f'"{__version__}"', '"0.0.0"')) == text


def test_pip_and_uv_install_the_same_tools():
    group = PYPROJECT["dependency-groups"]["dev"]
    assert group == PYPROJECT["project"]["optional-dependencies"]["dev"]


def test_every_tool_has_a_floor_and_one_exact_version():
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    exact = {re.sub("[._]", "-", line.partition("==")[0].lower()) for line in lines}
    assert len(exact) == len(lines)
    for requirement in PYPROJECT["dependency-groups"]["dev"]:
        name, floor = requirement.split(">=")
        assert floor
        assert name in exact


def workflow(path):
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 reads that word as a truth value
    return found


def steps(found):
    return [step for job in found["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_workflow_runs_only_what_is_there(path):
    found = workflow(path)
    assert found["name"]
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(found):
        assert ("uses" in step) != ("run" in step)
        command = step.get("run", "")
        assert "${{" not in command  # what a tag or a title says must not become part of a script
        for words in re.findall(r"^\s*make (.*)$", command, re.MULTILINE):
            asked = {word for word in shlex.split(words) if "=" not in word}
            assert asked
            assert asked <= targets
        for script in re.findall(r"(?:scripts|\.ci)/[\w.]+", command):
            assert (PROJECT / script).is_file()
    for job in found["jobs"].values():
        assert job.get("needs") in {None, *found["jobs"]}


def test_a_release_is_built_and_checked_first_and_published_without_a_password():
    path = PROJECT / ".github" / "workflows" / "release.yml"
    found = workflow(path)
    jobs = found["jobs"]
    assert found["on"] == {"push": {"tags": ["v[0-9]*"]}}
    assert found["permissions"] == {}
    assert "secrets." not in path.read_text(encoding="utf-8")
    publish = jobs["publish"]
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert publish["environment"]["url"].endswith(PYPROJECT["project"]["name"])
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    others = [job["permissions"] for name, job in jobs.items() if name != "publish"]
    assert not any("id-token" in permissions for permissions in others)
    script = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert script.index("release_notes.py") < script.index("make test wheel DIST=dist")


def test_every_action_of_a_release_is_pinned_to_a_commit():
    path = PROJECT / ".github" / "workflows" / "release.yml"
    lines = re.findall(r"uses: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)


def test_what_one_job_keeps_the_next_ones_take():
    jobs = workflow(PROJECT / ".github" / "workflows" / "release.yml")["jobs"]
    kept = [step["with"] for step in jobs["build"]["steps"] if "upload-artifact" in str(step)]
    assert {each["name"] for each in kept} == {"packages", "extras"}
    taken = jobs["publish"]["steps"][0]["with"]
    assert (taken["name"], taken["path"]) == ("packages", "dist")
    assert jobs["github"]["steps"][0]["with"]["merge-multiple"] is True


PARTS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_issue_template_is_a_form(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(form) == {"name", "description", "labels", "body"}
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in form["body"]} <= PARTS
    ids = [part["id"] for part in asked]
    assert len(ids) == len(set(ids))
    assert all(part["attributes"]["label"] for part in asked)
    assert any(part.get("validations", {}).get("required") for part in asked)
    for part in form["body"]:
        if part["type"] == "markdown":
            for page in re.findall(r"docs/[\w-]+\.md", part["attributes"]["value"]):
                assert (PROJECT / page).is_file()


def test_a_bug_report_asks_for_the_version_and_what_doctor_finds():
    path = PROJECT / ".github" / "ISSUE_TEMPLATE" / "bug_report.yml"
    body = yaml.safe_load(path.read_text(encoding="utf-8"))["body"]
    needed = {
        part["id"]: str(part["attributes"])
        for part in body
        if part.get("validations", {}).get("required")
    }
    assert "ragdocs --version" in needed["version"]
    assert "ragdocs doctor --json" in needed["doctor"]


def test_there_is_no_blank_issue():
    path = PROJECT / ".github" / "ISSUE_TEMPLATE" / "config.yml"
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == {"blank_issues_enabled": False}
    assert len(TEMPLATES) == 2
