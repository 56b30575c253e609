"""Writes docs/cli.md from the commands' own help and the types of their answers.

    python scripts/generate_cli_docs.py [--check]

With --check nothing is written; the exit status is 1 when the file differs.
"""

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import click

from ragdocs.cli.main import main as program
from ragdocs.cli.model_list import Models
from ragdocs.cli.plugin import BuiltPlugin, CheckedPlugin
from ragdocs.diagnosis.status import Status
from ragdocs.evaluation.run import Report
from ragdocs.library.answers import ContextAnswer, DocumentText, Listing, Related
from ragdocs.lint.findings import LintReport
from ragdocs.search.query_inspection import InspectedQuery
from ragdocs.search.responses import SearchResponse

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """\
# Command line

<!-- Made by scripts/generate_cli_docs.py from the commands' help: do not edit. -->

Every command with its arguments, options and examples, as `ragdocs COMMAND --help` shows them.
What holds for all of them, and how indexing behaves, is in [commands.md](commands.md). `ragdocs`
and `mcp-markdown-ragdocs` are the same program; `-h` and `--help` are known to every command.
"""

ANSWERS: dict[str, type[Any]] = {
    "query": SearchResponse,
    "get": DocumentText,
    "ls": Listing,
    "related": Related,
    "context": ContextAnswer,
    "lint": LintReport,
    "status": Status,
    "inspect query": InspectedQuery,
    "eval": Report,
    "models": Models,
    "plugin build": BuiltPlugin,
    "plugin check": CheckedPlugin,
}
_JSON_HEAD = """\
## JSON

`--json` prints one value, indented. A field is always present; an unknown value is null or empty.
Words with a / between them are alternatives; the second table has the types. Fields may be added;
before version 1.0 other changes are listed in the [changelog](../CHANGELOG.md). The
answers of `update` and `rebuild-index` are in [commands.md](commands.md#the-summary-as-json), those
of `doctor` in [status-and-doctor.md](status-and-doctor.md).

| command | fields |
|---|---|
| `config` | `files`, `index_directory`, `settings` (`value`, `origin` by key), `trees`, `ignored` |
| `config --defaults` | `settings` (`default`, `allowed`, `description` by key) |
| `check-config` | `ok`, `files`, `ignored`, `problems`, `notes` (each with `origin`, `key`, …) |
| `trust` | `files` (each with `file`, `standing`, `asks`, `loaded`), `trusted` |
| `inspect doc` | those of the document, `headings`, `links`, `code_blocks`, `chunks`, `note` |"""
_PLAIN_WORDS = (
    (r"\btuple\[int, int\]", "pair of numbers"),
    (r"\b(?:tuple|frozenset|Sequence)\[(.+?)(?:, \.\.\.)?\]", r"list of \1"),
    (r"\b(?:dict|Mapping)\[(.+?), (.+)\]", r"\2 by \1"),
    (r"\b(?:str|datetime|ChunkId|DocId|TreeName)\b", "text"),
    (r"\b(?:int|float)\b", "number"),
    (r"\bbool\b", "true or false"),
    (r"\bNone\b", "null"),
)


def page() -> str:
    sections = (line for each in commands() for line in section(each))
    return "\n".join([HEAD, *sections, *json_fields()])


def commands() -> Iterator[click.Context]:
    """Every command that does something, in the order of `ragdocs --help`."""
    root = click.Context(program, info_name="ragdocs")
    yield from _below(root)


def _below(context: click.Context) -> Iterator[click.Context]:
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        inner = click.Context(command, info_name=name, parent=context)
        is_group = isinstance(command, click.Group)
        if not is_group or command.invoke_without_command:
            yield inner
        if is_group:
            yield from _below(inner)


def section(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path.removeprefix('ragdocs ')}\n"
    yield f"    {' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from _example(paragraph)
        else:
            yield f"{paragraph}\n"
    yield from _options(context)


def _example(paragraph: str) -> Iterator[str]:
    """Commands to type, or a table of words."""
    _, title, *lines = paragraph.splitlines()
    kind = "sh" if title.startswith("Example") else "text"
    yield f"{title}\n"
    yield "\n".join([f"```{kind}", *(line.strip() for line in lines), "```\n"])


def _options(context: click.Context) -> Iterator[str]:
    rows = [
        record
        for option in context.command.get_params(context)
        if isinstance(option, click.Option)
        and "--help" not in option.opts
        and (record := option.get_help_record(context))
    ]
    if not rows:
        return
    yield "| option | meaning |\n|---|---|"
    for names, meaning in rows:
        yield f"| `{_cell(names)}` | {_cell(meaning)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def json_fields() -> Iterator[str]:
    yield _JSON_HEAD
    yield from (f"| `{command}` | {_fields(kind)} |" for command, kind in ANSWERS.items())
    yield "\n| type | what it is |\n|---|---|"
    for kind in sorted(_types_below(ANSWERS.values()), key=lambda kind: kind.__name__):
        yield f"| {kind.__name__} | {_described(kind)} |"
    yield ""


def _described(kind: type[Any]) -> str:
    if dataclasses.is_dataclass(kind):
        return _fields(kind)
    hints = get_type_hints(kind)
    names = cast("tuple[str, ...]", getattr(kind, "_fields", ()))
    return ", ".join(f"`{name}` ({_type(hints[name])})" for name in names)


def _fields(kind: type[Any]) -> str:
    shown = (each for each in dataclasses.fields(kind) if each.repr)
    return ", ".join(f"`{each.name}` ({_type(each.type)})" for each in shown)


def _type(given: Any) -> str:  # noqa: ANN401  an annotation
    """The type in the words of JSON."""
    text = given.__name__ if isinstance(given, type) and not get_args(given) else str(given)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+|'", "", text)
    for pattern, plain in _PLAIN_WORDS:
        text = re.sub(pattern, plain, text)
    for kind in _named(given):
        if isinstance(kind, type) and issubclass(kind, Enum):
            text = text.replace(kind.__name__, "/".join(str(each.value) for each in kind))
    return text.replace("|", "or")


def _types_below(kinds: Iterable[type[Any]]) -> set[type[Any]]:
    """All types that their fields name, at any depth."""
    found: set[type[Any]] = set()
    waiting = [inner for kind in kinds for inner in _inside(kind)]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.add(kind)
            waiting += _inside(kind)
    return found


def _inside(kind: type[Any]) -> list[type[Any]]:
    if not dataclasses.is_dataclass(kind):
        return []
    shown = (each for each in dataclasses.fields(kind) if each.repr)
    named = (inner for each in shown for inner in _named(each.type))
    return [inner for inner in named if isinstance(inner, type) and _is_ours(inner)]


def _is_ours(kind: type[Any]) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _named(given: Any) -> list[Any]:  # noqa: ANN401  an annotation
    parts = get_args(given)
    return [inner for part in parts for inner in _named(part)] if parts else [given]


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the commands' reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on difference")
    check = parser.parse_args().check
    wanted = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"docs/{PAGE.name} {'differs' if check else 'written'}")
    if not check:
        PAGE.write_text(wanted, encoding="utf-8")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
