"""What the documentation says is so: its examples run, its links lead somewhere."""

import builtins
import importlib.util
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from ragdocs.app import Assembly
from ragdocs.cli.main import main
from ragdocs.config.loading import load_config, read_config
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.indexing.changes import Scan
from ragdocs.indexing.discovery import discover
from ragdocs.models import TreeName
from ragdocs.store.reader import Reader
from ragdocs.store.records import FileFailure
from ragdocs.store.writer import StoreWriter
from tests.support import stores
from tests.support.documents import parse
from tests.support.indexes import write
from tests.support.machine import move_home
from tests.support.models import CountingEmbedder
from tests.support.processes import environment, run_ragdocs

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(sh|console|toml|json|text|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """One command line of a page, without its comment."""

    page: str
    line: str

    @property
    def words(self) -> list[str]:
        """Of our command, wherever it stands; a shell's part is left out."""
        line = re.split(r" >>? ", self.line)[0]
        if " | " in line:
            line = line.rpartition(" | ")[2]
        return shlex.split(line.rpartition(" -- ")[2])

    def __str__(self) -> str:
        return f"{self.page}: {self.line}"


def blocks(page: Path, kind: str) -> list[str]:
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language == kind]


def examples() -> list[Example]:
    """Each line once, by the page that has it first."""
    found: dict[str, Example] = {}
    for page in PAGES:
        for line in _lines(page):
            found.setdefault(line, Example(page.name, line))
    return list(found.values())


def mentions() -> list[Example]:
    """Commands in running text, as `ragdocs status`."""
    return [
        Example(page.name, line)
        for page in PAGES
        for line in re.findall(r"`(ragdocs [a-z][^`\n]*)`", page.read_text(encoding="utf-8"))
    ]


def session(page: Path, begins: str) -> tuple[str, str]:
    """A command and what the page says that it prints."""
    [text] = [text for text in blocks(page, "console") if text.startswith(f"$ {begins}")]
    command, _, output = text.partition("\n")
    return command.removeprefix("$ "), output


def _lines(page: Path) -> Iterator[str]:
    for text in blocks(page, "sh"):
        yield from (re.split(r"\s+# ", line)[0].strip() for line in text.splitlines() if line)
    for text in blocks(page, "console"):
        yield from re.findall(r"^\$ (.*)$", text, re.MULTILINE)


README = PROJECT / "README.md"
LINKED_PAGES = sorted(
    [
        README,
        PROJECT / "CONTRIBUTING.md",
        *(PROJECT / "docs").rglob("*.md"),
        *PROJECT.glob("specs/*.md"),
    ]
)
AUTH = """# Authentication

## Sign in

Use your e-mail address and the password. A session timeout asks for it again; a token refresh
does not. See [[garden]].

## Sign out

Press the button at the top of every page.
"""
SYNC = "---\nstatus: active\npriority: 2\ndue: 2026-01-31\n---\n# Sync\n\nSync errors.\n"
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
    away = ("make ", "pip ", "pipx ", "claude ", "codex ", "ragdocs mcp", "ragdocs models fetch")
    return line.startswith(away)


SESSION, _ = session(README, "ragdocs query")  # tests/integration/test_recorded_session.py
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
    write(folder, "guides/sync.md", SYNC)
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
    move_home(monkeypatch, project.parent)
    cache = Path(models) / "mcp-markdown-ragdocs"
    monkeypatch.setenv("RAGDOCS_EMBEDDING__CACHE_FOLDER", str(cache))
    tiny = CountingEmbedder(BuiltinEmbedder(cache_dir=cache).identity)
    monkeypatch.setattr(Assembly, "embedder", tiny)  # what is typed is tried here, not the model
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.chdir(project)
    for written in (project / ".ragdocs.toml", project.parent / ".config"):  # by `ragdocs init`
        shutil.rmtree(written) if written.is_dir() else written.unlink(missing_ok=True)
    # The user was asked before, and said yes.
    CliRunner().invoke(main, ["update", "--quiet"])
    if not (project / "index").exists():  # of the examples that name it, in whatever order
        CliRunner().invoke(main, ["update", "--quiet", "--docs", "notes", "--index", "index"])

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
    ours = {"ragdocs mcp", "ragdocs models"}
    assert kinds == {"pipx install", "claude mcp", "codex mcp"} | ours
    assert len(RUN_HERE) > 30


OTHER_BLOCKS = {
    ("README.md", "text"): "a picture",
    ("architecture.md", ""): "the layers: make imports",
    ("cli.md", ""): "test_the_page_of_commands_is_what_would_be_generated",
    ("cli.md", "text"): "test_the_page_of_commands_is_what_would_be_generated",
    ("clients.md", "json"): "tests/integration/test_cli_install.py",
    ("clients.md", "text"): "tests/integration/test_plugin.py",
    ("commands.md", ""): "tests/integration/test_cli_index.py",
    ("commands.md", "json"): "tests/integration/test_cli_errors.py",
    ("commands.md", "text"): "test_the_question_that_is_shown_is_asked",
    ("configuration.md", "text"): "test_the_problem_that_is_shown_is_told_so",
    ("evaluation.md", "text"): "figures of one run",
    ("lint.md", "text"): "tests/integration/test_lint.py",
    ("mcp.md", "json"): "tests/integration/test_mcp_documentation.py",
    ("mcp.md", "text"): "tests/integration/test_mcp_documentation.py",
    ("python-api.md", "python"): "tests/integration/test_open_index.py",
    ("search.md", ""): "the steps in a line",
    ("store.md", "python"): "test_the_examples_of_the_store_run",
    ("trees.md", "text"): "test_what_is_said_to_be_indexed_is",
}
"""Blocks of a page by their kind, and what shows that they are right. Commands (sh, console) are
all run, configurations (toml) all loaded."""
RUN_KINDS = {"sh", "console", "toml"}


def test_every_example_is_of_a_kind_that_is_run():
    """A new page, or a new kind of example on one, needs a test first; then its name here."""
    found = set[tuple[str, str]]()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for token in MarkdownIt("commonmark").parse(text):
            if token.type in ("fence", "code_block"):
                found.add((page.name, token.info.strip()))
    assert {each for each in found if each[1] not in RUN_KINDS} == set(OTHER_BLOCKS)
    source = Path(__file__).read_text(encoding="utf-8")
    for check in OTHER_BLOCKS.values():
        is_there = f"def {check}(" in source if check.startswith("test_") else True
        assert is_there, check
        assert not check.startswith("tests/") or (PROJECT / check).exists(), check


def test_every_command_in_a_block_is_one_of_the_examples():
    """However it is written: nothing that looks like ours stands in a block and is not run."""
    known = {example.line for example in [*RUN_HERE, *RUN_ELSEWHERE]} | {SESSION}
    for page in PAGES:
        for text in (*blocks(page, "sh"), *blocks(page, "console")):
            for line in text.splitlines():
                words = re.split(r"\s+# ", line.removeprefix("$ "))[0].strip()
                if re.match(r"\S*ragdocs ", words):
                    assert words in known, f"{page.name}: {line}"


def test_fetching_a_model_without_a_network_is_an_error_that_says_so(typed, monkeypatch):
    [shown] = {tuple(each.words) for each in RUN_ELSEWHERE if each.words[1:2] == ["models"]}
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = typed(list(shown))
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")


def test_the_examples_of_the_store_run(tmp_path):
    writing, reading = blocks(PROJECT / "docs" / "store.md", "python")
    indexed = stores.file("a.md", [stores.Section("A", "text")])
    names = {
        "StoreWriter": StoreWriter,
        "Reader": Reader,
        "directory": tmp_path / "index",
        "fingerprint": stores.FINGERPRINT,
        "indexed_file": indexed,
        "read_ns": stores.READ_NS,
        "doc_id": "docs:gone.md",
        "failure": FileFailure(TreeName("docs"), "b.md", "binary", "no text", None, 1),
        "model": stores.MODEL,
        "text_hash": b"0" * 16,
        "vector": struct.pack("<3f", 1, 0, 0),
        "tables": (),
    }
    exec(compile(writing, "store.md", "exec"), names)
    exec(compile(reading, "store.md", "exec"), names)
    assert names["seen"] == names["transaction"].position


def test_what_is_said_to_be_indexed_is(tmp_path):
    [text] = blocks(PROJECT / "docs" / "trees.md", "text")
    said = dict(re.split(r" {2,}", line) for line in text.splitlines())
    for path in said:
        write(tmp_path, path, "# A\n")
    write(tmp_path, ".gitignore", "old/\n")
    flags = {"indexing": {"documents_path": str(tmp_path)}}
    [tree] = load_config(cwd=tmp_path, environ={"HOME": str(tmp_path)}, flags=flags).trees
    scan = discover(tree)
    assert isinstance(scan, Scan)
    assert {found.path for found in scan.files} == {
        path for path, what in said.items() if what == "indexed"
    }


def test_the_problem_that_is_shown_is_told_so(tmp_path):
    [text] = blocks(PROJECT / "docs" / "configuration.md", "text")
    write(tmp_path, ".ragdocs.toml", "[chunking]\nmax_leaf_char = 800\n")
    [problem] = read_config(cwd=tmp_path, environ={"HOME": str(tmp_path)}).problems
    assert str(problem).replace(f"{tmp_path}/", "") == " ".join(text.split())


def test_the_question_that_is_shown_is_asked(typed, project, monkeypatch):
    [text] = blocks(PROJECT / "docs" / "commands.md", "text")
    command, *lines, question = text.splitlines()
    assert command == "$ ragdocs trust"
    folder = project.parent / "clones" / "handbook"
    settings = [line.partition(": embedding.")[2] for line in lines if ": embedding." in line]
    write(folder, ".ragdocs.toml", "\n".join(["[embedding]", *settings, ""]))
    monkeypatch.chdir(folder)
    done = typed(command.removeprefix("$ ").split())
    assert done.stdout.splitlines() == lines
    assert "no terminal to ask on" in done.stderr
    assert question == "Do you trust the project with these? [y/N]:"


def test_the_server_that_is_shown_starts_and_ends_with_its_input(project):
    environ = environment(HOME=str(project.parent), XDG_CACHE_HOME=str(project / "cache"))
    shown = {tuple(each.words) for each in RUN_ELSEWHERE if each.words[:2] == ["ragdocs", "mcp"]}
    places = ("~/notes", "/home/you/notes")
    assert shown == {("ragdocs", "mcp", "--docs", place) for place in places}
    done = run_ragdocs("mcp", "--docs", project.parent / "notes", env=environ, cwd=project)
    assert done.stdout == ""


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


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ragdocs query tomatoes --docs notes", 0),
        ("ragdocs query '\"no such phrase\"' --strict --docs notes", 1),
        ("ragdocs query tomatoes --top-n 0 --docs notes", 2),
        ("ragdocs query tomatoes --docs notes --index nowhere --no-update", 3),
        ("ragdocs get tomatoes.md --docs notes", 0),
        ("ragdocs get nothing.md --docs notes", 1),
        ("ragdocs get tomatoes.md#nothing --docs notes", 1),
        ("ragdocs get tomatoes.md:900 --docs notes", 1),
        ("ragdocs get /tomatoes.md --docs notes", 2),
        ("ragdocs related nothing.md --docs notes", 1),
        ("ragdocs related tomatoes.md --docs notes", 1),
        ("ragdocs ls docs --docs notes", 0),
        ("ragdocs ls docs --path nothing --docs notes", 2),
        ("ragdocs ls docs --tree nothing --docs notes", 2),
        ("ragdocs update --docs nowhere", 2),
        ("ragdocs update --docs broken", 1),
    ],
)
def test_exit_codes_are_as_the_tables_say(line: str, code: int, typed, project):
    write(project, "broken/picture.md", b"\x89PNG\r\n\x1a\n\0\0\0")
    done = typed(shlex.split(line))
    assert done.exit_code == code, done.output


def commands(group: click.Group, before: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.commands[name]
        found[before + name] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{before}{name} ")
    return found


def test_docs_index_and_config_mean_the_same_everywhere():
    """Commands that are about neither documents nor their index are told in docs/commands.md;
    `init` writes a configuration, so that it reads none."""
    without = {"eval", "models", "models fetch", "agents", "completion", "inspect", "trust"}
    without |= {"plugin", "plugin check", "index"}
    for name, command in commands(main).items():
        known = {option: each.help for each in command.params for option in each.opts}
        named = {option for option in ("--docs", "--index", "--config") if option in known}
        if name == "init":
            assert named == {"--docs"}
        elif name in without:
            assert named <= {"--config"}
        else:
            assert named == {"--docs", "--index", "--config"}, name
            usual = {each.opts[0]: each.help for each in main.commands["query"].params}
            assert all(known[option] == usual[option] for option in named), name


def test_every_command_has_an_example_in_its_help():
    for name, command in commands(main).items():
        is_group = isinstance(command, click.Group) and not command.invoke_without_command
        assert is_group or "ragdocs " in str(command.help), name


def test_a_model_that_is_not_the_configured_one_is_told(typed, monkeypatch):
    note = "not used: the configured folder: it has no model"
    monkeypatch.setattr(Assembly.embedder, "notes", (note,))
    done = typed(["ragdocs", "query", "tomatoes", "--docs", "notes", "--json"])
    assert f"note: {note}" in done.stderr
    again = typed(["ragdocs", "rebuild-index", "--docs", "notes"])
    assert note in again.stderr
    assert json.loads(done.stdout)["results"]


def test_the_page_on_commands_shows_what_rebuilding_prints(typed, monkeypatch):
    command, shown = session(PROJECT / "docs" / "commands.md", "ragdocs rebuild-index")
    words = shlex.split(command)
    monkeypatch.setenv("RAGDOCS_SEARCH__QUERY_EXPANSION_ENABLED", "true")
    typed(["ragdocs", "update", *words[2:]])
    done = typed(words)
    assert without_figures(done.stdout) == without_figures(shown)


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
    for folder in ("docs", "notes", "reference", "vault", "papers"):
        (home / folder).mkdir()
    for text in blocks(page, "toml"):
        write(home, ".ragdocs.toml", text)
        reading = read_config(cwd=home, environ={"HOME": str(home)})
        assert (reading.problems, reading.notes) == ((), ())


def test_the_readme_has_a_configuration_for_each_kind_of_user():
    assert len(blocks(README, "toml")) == 4


def test_the_lines_for_clients_are_those_of_the_page_on_clients():
    lines = {each.line for each in examples() if each.line.startswith(("claude ", "codex "))}
    assert len(lines) == 3
    page = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
    assert all(line.replace("~", "/home/you") in page for line in lines)


def test_the_readme_shows_the_picture_of_a_session():
    assert "](docs/session.svg)" in README.read_text(encoding="utf-8")
    assert (PROJECT / "docs" / "session.svg").is_file()


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


def test_the_page_on_architecture_has_a_section_for_every_package():
    """Headed by the question that it answers, with what it is not for."""
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    named = [name for heading, _ in sections for name in re.findall(r"`(\w+)`", heading)]
    package = PROJECT / "src" / "ragdocs"
    parts = {path.stem for path in package.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert sorted(named) == sorted(parts)
    for heading, body in sections:
        assert heading.endswith("?"), heading
        if "`" in heading:
            assert re.search(r"\bNot for\b|, and not for\b", body), heading
        for module in re.findall(r"\b([\w/]+\.py)\b", body):
            assert list(package.rglob(module)), f"{heading}: {module}"


def test_the_drawings_and_texts_on_architecture_name_types_that_are_there():
    """On each arrow is a type, or rows or bytes that need no type."""
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = "".join(
        file.read_text(encoding="utf-8") for file in (PROJECT / "src" / "ragdocs").rglob("*.py")
    )
    known = {*re.findall(r"^class (\w+)", source, re.M), *vars(builtins)}
    arrows = re.findall(r"^ +│  (\w+)", text, re.M)
    assert len(arrows) == text.count("▼") > 20
    assert {name for name in arrows if name not in known} <= {"rows"}
    named = set(re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.\w+)?`", text))
    assert named - known == set()
    for owner, name in re.findall(r"`([A-Z]\w*)\.(\w+)`", text):
        is_there = f"    def {name}(" in source or f"    {name}: " in source
        assert is_there, f"{owner}.{name}"


def test_every_word_of_the_glossary_has_one_meaning():
    text = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| \*\*(\w+)\*\* \| \w", text, re.M)
    assert len(words) == len(set(words)) >= 20


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("query", "query tomatoes --docs notes"),
        ("get", "get tomatoes.md --docs notes"),
        ("ls", "ls chunks --docs notes"),
        ("related", "related auth.md --docs guides"),
        ("context", "context src/auth.py --docs guides"),
        ("status", "status --docs notes"),
        ("inspect query", "inspect query tomatoes --docs notes"),
        ("models", "models"),
        ("config", "config --docs notes"),
        ("check-config", "check-config --docs notes"),
        ("inspect doc", "inspect doc notes/tomatoes.md --docs notes"),
    ],
)
def test_the_fields_of_an_answer_are_those_that_are_documented(command, line, typed):
    page = (PROJECT / "docs" / "cli.md").read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| `{command}` \| (.*) \|$", page, re.M)
    plain = re.sub(r"\(.*?\)", "", row)
    given = json.loads(typed(["ragdocs", *line.split(), "--json"]).stdout)
    named = set(re.findall(r"`(\w+)`", plain))
    if command == "inspect doc":
        assert named <= set(given)
    else:
        assert named == set(given)


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
