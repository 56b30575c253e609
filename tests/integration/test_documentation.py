"""What the documentation says is so: its examples run, its links lead somewhere."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ragdocs.assembly import Assembly
from ragdocs.cli.main import main
from ragdocs.config.loading import read_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from tests.documented import PAGES, PROJECT, Example, blocks, examples, mentions, session
from tests.managed_index import CountingEmbedder, write
from tests.parsing import parse

README = PROJECT / "README.md"
LINKED_PAGES = sorted([README, *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("specs/*.md")])
AUTH = """# Authentication

## Sign in

Use your e-mail address and the password. A session timeout asks for it again; a token refresh
does not. See [[garden]].

## Sign out

Press the button at the top of every page.
"""
GARDEN = "# Garden\n\nTomatoes need sun.\n"
SOURCE = "def sign_in(password):\n    return password or sign_in(password)\n"
DIFF = """--- a/src/auth.py
+++ b/src/auth.py
@@ -1 +1,2 @@
+def sign_in(password): return password
+def sign_out(password): return password
"""


def elsewhere(line: str) -> bool:
    """Needs a network or another program, or ends this process; has a test of its own below."""
    return line.startswith(("make ", "pip ", "claude ", "codex ", "ragdocs mcp"))


SESSION, SHOWN = session(README, "ragdocs query")
RUN_ELSEWHERE = [example for example in examples() if elsewhere(example.line)]
RUN_HERE = [
    example for example in examples() if example not in RUN_ELSEWHERE and example.line != SESSION
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The folder that the examples are typed in, below a home with notes."""
    home = tmp_path_factory.mktemp("documentation").resolve()
    folder = home / "project"
    write(folder, "guides/auth.md", AUTH)
    write(folder, "docs/guide.md", GARDEN)
    for root in (home / "notes", folder / "notes", folder / "handbook"):
        write(root, "tomatoes.md", GARDEN)
    write(folder, "notes/.ragdocs.toml", "")
    write(folder, "src/auth.py", SOURCE)
    write(folder, "sets/handbook/corpus/garden.md", GARDEN)
    write(folder, "sets/handbook/queries.jsonl", '{"id": "q", "text": "sun", "kind": "word"}\n')
    write(folder, "sets/handbook/qrels.tsv", "q\tgarden.md\t1\n")
    write(folder, "before.jsonl", '{"id": "q", "results": ["garden.md"]}\n')
    return folder


@pytest.fixture
def typed(project, monkeypatch):
    """Runs a line of the documentation there, in this process."""
    # The prepared model is shared with the other tests; making it again takes seconds.
    models = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for name in [name for name in os.environ if name.startswith(("RAGDOCS_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(project.parent))
    cache = Path(models) / "mcp-markdown-ragdocs"
    monkeypatch.setenv("RAGDOCS_EMBEDDING__CACHE_FOLDER", str(cache))
    tiny = CountingEmbedder(BuiltinEmbedder(cache_dir=cache).identity)
    monkeypatch.setattr(Assembly, "embedder", tiny)  # what is typed is tried here, not the model
    monkeypatch.chdir(project)
    for written in (project / ".ragdocs.toml", project.parent / ".config"):  # by `ragdocs init`
        shutil.rmtree(written) if written.is_dir() else written.unlink(missing_ok=True)

    def run(words):
        assert words[0] == "ragdocs"
        plain = [word.replace("~", str(project.parent)) for word in words[1:]]
        return CliRunner().invoke(main, plain, input=DIFF, catch_exceptions=False)

    return run


@pytest.mark.parametrize("example", RUN_HERE, ids=str)
def test_every_example_runs(example: Example, typed):
    done = typed(example.words)
    assert done.exit_code == 0, done.output


def test_the_examples_that_are_not_run_are_these():
    kinds = {" ".join(example.line.split()[:2]) for example in RUN_ELSEWHERE}
    assert kinds == {"make demo", "pip install", "claude mcp", "codex mcp", "ragdocs mcp"}
    assert len(RUN_HERE) > 30


def test_the_server_that_is_shown_starts_and_ends_with_its_input(project):
    environ = {**os.environ, "HOME": str(project.parent), "XDG_CACHE_HOME": str(project / "cache")}
    shown = {tuple(each.words) for each in RUN_ELSEWHERE if each.words[0] == "ragdocs"}
    places = ("~/notes", "/home/you/notes")
    assert shown == {("ragdocs", "mcp", "--docs", place) for place in places}
    done = subprocess.run(
        [sys.executable, "-m", "ragdocs", "mcp", "--docs", str(project.parent / "notes")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environ,
        cwd=project,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("target", ["demo", "test", "stress", "bundle", "docs", "wheel"])
def test_make_knows_what_is_named(target: str):
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=PROJECT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr


def test_the_wheel_that_pip_would_install_is_tested():
    """By installing it, which needs a network."""
    assert "scripts/check_wheel.py" in (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert "make wheel" in (PROJECT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_shows_what_query_prints_in_a_clone(typed, monkeypatch):
    monkeypatch.chdir(PROJECT)
    models = Path(os.environ["RAGDOCS_EMBEDDING__CACHE_FOLDER"])
    monkeypatch.setattr(Assembly, "embedder", BuiltinEmbedder(cache_dir=models))
    done = typed(shlex.split(SESSION))
    assert without_figures(done.stdout) == without_figures(SHOWN)
    # Other processors round otherwise; a figure that nobody measured is still found out.
    assert abs(confidence(done.stdout) - confidence(SHOWN)) <= 3


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ragdocs query tomatoes --docs notes", 0),
        ("ragdocs query '\"no such phrase\"' --docs notes", 1),
        ("ragdocs query tomatoes --top-n 0 --docs notes", 2),
        ("ragdocs query tomatoes --docs notes --index nowhere --no-update", 3),
        ("ragdocs get tomatoes.md --docs notes", 0),
        ("ragdocs get nothing.md --docs notes", 2),
        ("ragdocs related nothing.md --docs notes", 2),
        ("ragdocs ls docs --path nothing --docs notes", 0),
        ("ragdocs update --docs nowhere", 2),
        ("ragdocs update --docs broken", 1),
    ],
)
def test_exit_codes_are_as_the_tables_say(line: str, code: int, typed, project):
    write(project, "broken/picture.md", b"\x89PNG\r\n\x1a\n\0\0\0")
    done = typed(shlex.split(line))
    assert done.exit_code == code, done.output


def test_the_page_on_commands_shows_what_rebuilding_prints(typed, monkeypatch):
    command, shown = session(PROJECT / "docs" / "commands.md", "ragdocs rebuild-index")
    words = shlex.split(command)
    monkeypatch.setenv("RAGDOCS_SEARCH__QUERY_EXPANSION_ENABLED", "true")
    typed(["ragdocs", "update", *words[2:]])
    done = typed(words)
    assert without_figures(done.stdout) == without_figures(shown)


def confidence(text: str) -> int:
    found = re.search(r"  (\d+)%$", text, re.MULTILINE)
    assert found, text
    return int(found[1])


def without_figures(text: str) -> str:
    """Numbers depend on the model's arithmetic, the folder and the machine."""
    one = re.sub(r"\d+(\.\d+)?", "N", re.sub(r"^In .*/index,", "In index,", text, flags=re.M))
    return re.sub(r"\b(document|passage|word)s?\b", r"\1", one)


@pytest.mark.parametrize("example", [*mentions(), *examples()], ids=str)
def test_every_command_that_is_named_has_the_options_that_are_named(example: Example):
    words = re.sub(r"'.*?'|\".*?\"", "TEXT", example.line).split()
    if "ragdocs" not in words:
        return
    name, *rest = words[len(words) - words[::-1].index("ragdocs") :]
    if name.startswith("-") or name == "COMMAND":
        return
    command = main.commands[name]
    if isinstance(command, click.Group) and rest:
        command = command.commands.get(rest[0]) or command
    known = {option for each in command.params for option in each.opts} | {"-h", "--help"}
    named = {re.sub(r"=.*|[,.)]$", "", word) for word in rest if re.match(r"--?[a-z]", word)}
    assert named <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_configuration_that_is_shown_can_be_used(page: Path, tmp_path: Path, monkeypatch):
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    for folder in ("docs", "reference", "vault", "papers"):
        (home / folder).mkdir()
    for text in blocks(page, "toml"):
        write(home, ".ragdocs.toml", text)
        reading = read_config(cwd=home, environ={"HOME": str(home)})
        assert (reading.problems, reading.notes) == ((), ())


def test_the_readme_has_a_configuration_for_each_kind_of_user():
    assert len(blocks(README, "toml")) == 4


def test_the_entries_of_the_readme_are_those_of_the_page_on_clients():
    known = [json.loads(text) for text in blocks(PROJECT / "docs" / "clients.md", "json")]
    shown = [json.loads(text) for text in blocks(README, "json")]
    assert len(shown) == 3
    for entry in shown:
        assert entry in known
    lines = {each.line for each in examples() if each.line.startswith(("claude ", "codex "))}
    page = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
    assert all(line in page for line in lines)


def test_the_readme_names_every_command_in_the_order_of_the_help():
    table = re.findall(r"^\| `ragdocs ([\w-]+)` \|", README.read_text(encoding="utf-8"), re.M)
    assert table == main.list_commands(click.Context(main))


def test_the_page_of_commands_is_what_would_be_generated():
    path = PROJECT / "scripts" / "generate_cli_docs.py"
    spec = importlib.util.spec_from_file_location("generate_cli_docs", path)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    kept = (PROJECT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert kept == script.page(), "run make docs"


def test_what_shows_the_reliability_is_there():
    text = (PROJECT / "docs" / "reliability.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(paths) > 10
    for path in paths:
        assert (PROJECT / path).exists(), path


@pytest.mark.parametrize("page", LINKED_PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_in_the_documentation_lead_somewhere(page: Path):
    document = parse(page.read_bytes())
    for link in document.links:
        target = (page.parent / link.target).resolve() if link.target else page
        assert target.exists(), f"{page.name}: {link.target}"
        if link.anchor and target.suffix == ".md":
            slugs = {heading.slug for heading in parse(target.read_bytes()).headings}
            assert link.anchor in slugs, f"{page.name}: {link.target}#{link.anchor}"


def test_every_page_is_reached_from_the_readme():
    linked = {(PROJECT / link.target).resolve() for link in parse(README.read_bytes()).links}
    pages = set((PROJECT / "docs").glob("*.md"))
    assert pages <= linked
