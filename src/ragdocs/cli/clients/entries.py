"""What a client's file is to become, and putting it there."""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragdocs.cli.clients.json_text import NotPlain, Taken, with_entry
from ragdocs.cli.clients.launching import Launch
from ragdocs.cli.kept_file import KeptFile, read_kept
from ragdocs.cli.output import shown
from ragdocs.diagnosis.client_files import starts_this_program
from ragdocs.diagnosis.client_table import Client
from ragdocs.errors import FileKept

_HEAD_LINES = 2
"""Of a difference: the two names."""
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')
"""With a colon after it, it is a key."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A file, and the text it is to have."""

    file: KeptFile
    text: str

    @property
    def is_there_already(self) -> bool:
        return self.file.data is not None and self.text == self.file.text()

    @property
    def is_one_line(self) -> bool:
        """Then a difference would show all of it, and other programs' secrets with it."""
        return "\n" not in self.file.text().strip() and bool(self.file.text().strip())

    def difference(self) -> str:
        """What is new in full; of what was there, texts are hidden: some are passwords."""
        before, after = _lines(self.file.text()), _lines(self.text)
        name = str(self.file.path)
        old = name if self.file.data is not None else "/dev/null"
        known = {line.rstrip(",") for line in before}
        head_and_lines = difflib.unified_diff(before, after, old, name, n=1, lineterm="")
        return "\n".join(
            line if number < _HEAD_LINES or _is_new(line, known) else _hidden(line)
            for number, line in enumerate(head_and_lines)
        )

    def carry_out(self) -> Path | None:
        """Where the file as it was is kept; None when there was none."""
        copy = self.file.put_aside() if self.file.data else None
        self.file.replace(self.text)
        return copy


def _lines(text: str) -> list[str]:
    """Not by `splitlines`, which would cut a text in two at rarer characters."""
    return [line.rstrip("\r") for line in text.rstrip("\r\n").split("\n")] if text else []


def _hidden(line: str) -> str:
    return _TEXT.sub(lambda found: found[0] if found[1] else '"…"', line)


def _is_new(line: str, known: set[str]) -> bool:
    """Not one that only got a comma."""
    return line.startswith("+") and line[1:].rstrip(",") not in known


def entry_of(client: Client, launch: Launch) -> Mapping[str, object]:
    kind = {"type": "stdio"} if client.stdio_type else {}
    return {**kind, "command": launch.command, "args": list(launch.arguments)}


def entry_text(client: Client, name: str, launch: Launch) -> str:
    """As it stands in a file that has nothing else."""
    whole = {client.servers: {name: entry_of(client, launch)}}
    return json.dumps(whole, ensure_ascii=False, indent=2)


def plan(
    client: Client, path: Path, name: str, launch: Launch, within: Path | None = None
) -> Planned:
    """`within`: the project whose file it is. Raises FileKept for a file that leads out of it, or
    cannot be changed without losing something."""
    file = read_kept(path, within)
    entry = entry_of(client, launch)
    try:
        text = with_entry(file.text(), (client.servers, name), entry, starts_this_program)
    except NotPlain as error:
        raise FileKept(
            f"{shown(str(path))} was left as it is: {error}. What only a person can write there "
            "(comments, a comma at the end of a list) would be lost. Add the entry yourself"
        ) from error
    except Taken as error:
        raise FileKept(
            f'{shown(str(path))} was left as it is: its entry "{name}" starts another program. '
            "Choose another name with --name"
        ) from error
    return Planned(file, text)
