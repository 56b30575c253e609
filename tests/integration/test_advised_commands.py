"""A command that a message advises works when it is copied: it carries what was typed."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ragdocs.cli.main import main
from ragdocs.text import OPTIONS, OPTIONS_OF, advised, remember_typed
from tests.support.indexes import write_all
from tests.support.machine import move_home

SOURCE = Path(__file__).parents[2] / "src" / "ragdocs"
TEXTS = {
    "config/reference.py": "the page and the file of all settings",
    "cli/config.py": "the file that `init` writes",
    "cli/install.py": "the section for an agent's instructions",
    "store/variants.py": "a file in the index folder",
    "wording.py": "the function itself",
}
"""Where a command is named in a text of its own, which nobody's options belong to."""
_ADVISED = re.compile(r"`(ragdocs [^`]+)`")


@pytest.fixture(autouse=True)
def _nothing_typed():
    yield
    remember_typed(())


def docstrings(tree: ast.AST) -> set[int]:
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def test_no_message_names_a_command_without_what_was_typed():
    wrong = []
    for module in SOURCE.rglob("*.py"):
        name = module.relative_to(SOURCE).as_posix()
        tree = ast.parse(module.read_text(encoding="utf-8"))
        passed_over = docstrings(tree)
        wrong += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed_over
            and re.search(r"`ragdocs [a-z]|: ragdocs [a-z]", node.value)
            and name not in TEXTS
        ]
    assert not wrong, f"use wording.advised in {wrong}"


def test_the_options_that_a_command_takes_are_known():
    for name in main.commands:
        command = main.commands[name]
        parts = command.commands.values() if isinstance(command, click.Group) else [command]
        for part in parts:
            taken = {one for parameter in part.params for one in parameter.opts}
            expected = set(OPTIONS_OF.get(name, OPTIONS))
            # Never advised with a place.
            if name not in ("agents", "completion", "init") and part.name != "check":
                assert taken & set(OPTIONS) == expected, (name, part.name)


def test_a_command_is_advised_with_what_was_typed():
    assert advised("update") == "`ragdocs update`"
    remember_typed([("--config", "a.toml"), ("--docs", "my notes"), ("--index", "x;y")])
    assert advised("doctor --fix") == (
        "`ragdocs doctor --fix --config a.toml --docs 'my notes' --index 'x;y'`"
    )
    assert advised("trust 'a b'") == "`ragdocs trust 'a b'`"
    assert advised("models fetch x/y") == "`ragdocs models fetch x/y --config a.toml`"
    remember_typed([("--docs", "\x1b[31mred's")])
    assert advised("update") == "`ragdocs update --docs $'\\x1b[31mred\\'s'`"


@pytest.mark.parametrize("command", [["config"], ["query", "apple", "--no-update"]])
def test_what_was_typed_is_forgotten_when_the_command_ends(folder: Path, command: list[str]):
    """One that ends well, and one that fails: the next command of this program typed nothing."""
    done = CliRunner().invoke(main, [*command, "--docs", str(folder / "my notes")])
    assert (done.exit_code == 0) == (command == ["config"])
    assert advised("update") == "`ragdocs update`"


def run(folder: Path, command: str, code: int | None = None) -> str:
    """As a shell runs it."""
    program = shlex.quote(str(Path(sys.executable).with_name("ragdocs")))
    done = subprocess.run(
        ["bash", "-c", command.replace("ragdocs", program, 1)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if code is not None:
        assert done.returncode == code, (command, done.stdout, done.stderr)
    assert done.returncode != 2, (command, done.stderr)
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    move_home(monkeypatch, tmp_path / "home")
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    write_all(work / "my notes", {"a.md": "# Apples\n\nThe apple is a fruit.\n"})
    (work / "conf.toml").write_text("[search]\nrecency_bias = 0.0\n", encoding="utf-8")
    return work


PLACE = "--docs 'my notes' --index 'the index' --config conf.toml"


def test_what_is_advised_works_on_the_same_documents_when_it_is_copied(folder: Path):
    """`rebuild-index` was advised without the folders, and built an index of another one."""
    said = [run(folder, f"ragdocs status {PLACE}")]
    said.append(run(folder, f"ragdocs doctor {PLACE}"))
    run(folder, f"ragdocs update {PLACE}", 0)
    said.append(run(folder, f"ragdocs query zzz {PLACE} --no-update"))
    (folder / "the index").chmod(0o755)
    said.append(run(folder, f"ragdocs status {PLACE}"))
    said.append(run(folder, f"ragdocs doctor {PLACE}"))
    other = (folder / "conf.toml").read_text("utf-8") + "[chunking]\nmax_leaf_chars = 400\n"
    (folder / "conf.toml").write_text(other, encoding="utf-8")
    said.append(run(folder, f"ragdocs status {PLACE}"))
    said.append(run(folder, f"ragdocs update {PLACE}"))
    commands = {command for text in said for command in _ADVISED.findall(text)}
    names = {command.split()[1] for command in commands}
    assert {"update", "rebuild-index", "doctor"} <= names, commands
    for command in sorted(commands):
        if command.split()[1] not in ("trust", "install"):
            assert "--docs 'my notes'" in command, command
            assert "--config conf.toml --docs 'my notes' --index 'the index'" in command
            run(folder, command)
    assert "ready" in run(folder, f"ragdocs status {PLACE}", 0)
    assert not list((folder.parent / "home").rglob("store.db"))


def test_a_server_advises_whole_paths(folder: Path):
    """Whoever reads its answer may stand elsewhere."""
    from ragdocs.cli.main import CommandPlace

    place = CommandPlace(None, (folder / "my notes",), Path("the index"))
    old = os.getcwd()
    os.chdir(folder)
    try:
        remember_typed(place.as_options(whole_paths=True))
        whole = advised("update")
        remember_typed(place.as_options(whole_paths=False))
        short = advised("update")
    finally:
        os.chdir(old)
    assert whole == f"`ragdocs update --docs '{folder}/my notes' --index '{folder}/the index'`"
    assert short == "`ragdocs update --docs 'my notes' --index 'the index'`"
