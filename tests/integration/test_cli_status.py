"""`status` and `doctor` as a user meets them: the real program, its output, its exit code."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from tests.support.indexes import write, write_all
from tests.support.models import CountingEmbedder
from tests.support.processes import environment, run_ragdocs

PAGE = Path(__file__).parents[2] / "docs" / "status-and-doctor.md"
NOTES = {
    "auth.md": "# Authentication\n\nHow to sign in. See [[Garden]] and [[Cellar]].\n",
    "garden.md": "# Garden\n\nTomatoes need sun.\n",
}
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0"
PLACE = ("--docs", "notes", "--index", "index")


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path.resolve()
    (folder / "notes").mkdir()
    # Processes that other tests kill leave their copies in the usual place.
    (folder / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    return folder


def build(home: Path, texts=NOTES, **sections) -> None:
    """By a tiny model that says to be the built-in one: `status` never asks it for a vector."""
    write_all(home / "notes", texts)
    place = {"documents_path": str(home / "notes"), "index_path": str(home / "index")}
    config = load_config(cwd=home, environ={"HOME": str(home)}, flags={"indexing": place})
    app = App(config, CountingEmbedder(BuiltinEmbedder().identity))
    with app, app.manager() as manager:
        manager.update()
        manager.update_communities()
        manager.fill()


def run(home: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    places = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), "")
    env = environment(without=("RAGDOCS_",), HOME=str(home), **places, **environ)
    return run_ragdocs(*arguments, cwd=home, env=env, code=None)


def shown(command: str) -> str:
    """What the page says that a command prints."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"```console\n\$ {re.escape(command)}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def without_figures(text: str) -> str:
    """But for sizes, versions and limits, which differ from machine to machine."""
    text = re.sub(r"[\d.]+ (kB|MB|GB|TB)\b", "SIZE", text)
    text = re.sub(r"(ragdocs|Python|SQLite|generation) [\d.]+", r"\1 N", text)
    text = re.sub(r"fingerprint [0-9a-f]{32}", "fingerprint N", text)
    text = re.sub(r"[\d,]+ can be watched \(max_user_watches\)", "N can be watched", text)
    return re.sub(r"may have (any number of|[\d,]+) files open", "may have N files open", text)


def test_the_page_shows_what_status_prints(home):
    build(home, {**NOTES, "picture.md": PICTURE})
    done = run(home, "status", *PLACE)
    assert (done.returncode, done.stderr) == (0, "")
    page = shown("ragdocs status --docs notes --index index")
    assert without_figures(done.stdout) == without_figures(page)


def test_the_page_names_every_field_of_the_json(home):
    build(home)
    answer = json.loads(run(home, "status", "--json", *PLACE).stdout)
    page = PAGE.read_text(encoding="utf-8").partition("### As JSON")[2].partition("## doctor")[0]
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(told) == sorted(answer)
    for field in ("trees", "holdings", "disk", "agreement", "model", "keyword"):
        inner = answer[field][0] if field == "trees" else answer[field]
        (row,) = [row for row in rows if f"`{field}`" in row[1]]
        missing = [name for name in inner if f"`{name}`" not in row[2] and name != "total"]
        assert missing == []


def test_other_settings_are_told_in_both_forms(home):
    build(home)
    write(home, "other.toml", "[chunking]\nmax_leaf_chars = 900\n")
    done = run(home, "status", *PLACE, "--config", "other.toml")
    answer = json.loads(run(home, "status", "--json", *PLACE, "--config", "other.toml").stdout)
    found = answer["agreement"]
    assert done.returncode == 1
    assert f"fingerprint {found['stored_fingerprint']}; expected" in done.stdout
    assert found["fingerprint"] in done.stdout


def test_the_page_shows_what_doctor_prints(home):
    build(home, {**NOTES, "picture.md": PICTURE})
    (home / "index").chmod(0o755)
    done = run(home, "doctor", *PLACE)
    assert (done.returncode, done.stderr) == (1, "")
    page = shown("ragdocs doctor --docs notes --index index")
    if sys.platform == "linux":
        assert without_figures(done.stdout) == without_figures(page)


def test_doctor_repairs_in_json(home):
    build(home)
    (home / "index").chmod(0o755)
    store = home / "index" / "store.db"
    store.write_bytes(store.read_bytes().replace(b"Tomatoes need", b"Tomatoes knew"))
    done = run(home, "doctor", "--fix", "--json", *PLACE)
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert answer["ok"]
    assert [one["name"].split()[0] for one in answer["repairs"]] == ["set", "rebuild"]
    assert all(one["done"] for one in answer["repairs"])
    assert {one["level"] for one in answer["findings"]} == {"ok", "note"}
    assert not any(one["can_fix"] for one in answer["findings"])


def test_status_before_anything_is_indexed(home):
    done = run(home, "status", "--json", *PLACE)
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert answer["state"] == "unavailable"
    assert "there is no index yet" in answer["summary"]
    assert not (home / "index").exists()


def test_status_and_doctor_of_a_folder_that_is_away_say_which_and_change_nothing(home):
    build(home)
    (home / "notes").rename(home / "taken")
    told = json.loads(run(home, "status", *PLACE, "--json").stdout)
    assert (told["state"], told["trees"][0]["problem"]) == ("degraded", "is missing")
    assert told["trees"][0]["documents"] == len(NOTES)
    examined = run(home, "doctor", *PLACE)
    assert examined.returncode == 1
    assert "is missing" in examined.stdout
    assert "does not exist" in run(home, "query", "sun", *PLACE).stderr
    (home / "taken").rename(home / "notes")
    assert run(home, "status", *PLACE).returncode == 0


def test_a_wrong_configuration(home):
    write(home, ".ragdocs.toml", "[search]\nnothing = 1\n")
    done = run(home, "doctor")
    assert done.returncode == 1
    assert "search.nothing" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_file_name_cannot_speak_to_the_terminal(home):
    build(home, {"\x1b[31mred.md": PICTURE, "b\u202e.md": PICTURE})
    printed = run(home, "status", *PLACE).stdout
    assert "red.md" in printed
    assert not set(printed) & set("\x1b\u202e")


def damaged_word(home: Path) -> None:
    """One letter of a word in the keyword index: every row of the store is whole."""
    write_all(home / "notes", NOTES)
    run(home, "update", *PLACE)
    store = home / "index" / "store.db"
    with closing(sqlite3.connect(store)) as connection:
        (block,) = connection.execute(
            "SELECT block FROM keyword_data WHERE instr(block, 'tomato') LIMIT 1"
        ).fetchone()
    raw = store.read_bytes()
    assert raw.count(block) == 1
    store.write_bytes(raw.replace(block, block.replace(b"tomato", b"tomatu")))


def test_an_index_that_something_else_changed_is_said_to_be_unsure_and_mended_by_update(home):
    """It was taken for whole by every command, and the note was not found."""
    damaged_word(home)
    status = json.loads(run(home, "status", "--json", *PLACE).stdout)
    assert status["state"] == "building"
    advised = "`ragdocs update --docs notes --index index` checks it"
    assert f"changed by another program: {advised}" in status["summary"]
    doctor = run(home, "doctor", *PLACE)
    assert "copied or changed by another program" in doctor.stdout
    run(home, "update", *PLACE)
    assert json.loads(run(home, "status", "--json", *PLACE).stdout)["state"] == "ready"
    asked = json.loads(run(home, "query", '"tomatoes"', "--json", *PLACE).stdout)
    assert [found["path"] for found in asked["results"]] == ["garden.md"]
    assert "intact: 2 documents" in run(home, "doctor", *PLACE).stdout


def test_doctor_repairs_what_something_else_changed(home):
    damaged_word(home)
    done = run(home, "doctor", "--fix", *PLACE)
    assert "the index was intact, and is up to date: 2 documents" in done.stdout
    asked = json.loads(run(home, "query", '"tomatoes"', "--json", *PLACE).stdout)
    assert [found["path"] for found in asked["results"]] == ["garden.md"]


def test_replaced_bytes_are_named_and_counted_by_status_and_doctor(home):
    build(
        home, {"good.md": "# Café\n", **{f"old{n}.md": b"Caf\xe9 \xe0 la carte" for n in range(7)}}
    )
    odd = "notes: old0.md: not valid UTF-8: 2 bytes shown as U+FFFD"

    said = run(home, "status", *PLACE).stdout
    assert f"warnings  {odd}" in said
    assert "and 2 more files (--json lists them)" in said
    status = json.loads(run(home, "status", *PLACE, "--json").stdout)
    assert status["holdings"]["files_with_loss"] == 7
    assert status["warning_counts"] == [{"kind": "replaced_bytes", "files": 7, "count": 14}]
    assert {one["path"] for one in status["warnings"]} == {f"old{n}.md" for n in range(7)}

    assert "7 files indexed, but parts cannot be found" in (run(home, "doctor", *PLACE).stdout)
    findings = json.loads(run(home, "doctor", *PLACE, "--json").stdout)["findings"]
    (found,) = [one for one in findings if one["check"] == "contents"]
    assert (found["level"], found["details"][0]) == ("warning", odd)


def test_without_odd_files_nothing_is_said_of_them(home):
    build(home)
    assert "warnings" not in run(home, "status", *PLACE).stdout
    assert "all indexed files were read in full" in run(home, "doctor", *PLACE).stdout
