"""Writes docs/cli.md from the commands' own help.

    python scripts/generate_cli_docs.py [--check]

With --check nothing is written; the exit status is 1 when the file differs.
"""

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ragdocs.cli.answer_fields import json_fields
from ragdocs.cli.main import main as program

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """\
# Command line

<!-- Made by scripts/generate_cli_docs.py from the commands' help: do not edit. -->

Every command with its arguments, options and examples, as `ragdocs COMMAND --help` shows them.
What holds for all of them, and how indexing behaves, is in [commands.md](commands.md). `ragdocs`
and `mcp-markdown-ragdocs` are the same program; `-h` and `--help` are known to every command.
"""


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
    _, title, *lines = paragraph.splitlines()
    yield f"{title}\n"
    yield "\n".join(["```sh", *(line.strip() for line in lines), "```\n"])


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
