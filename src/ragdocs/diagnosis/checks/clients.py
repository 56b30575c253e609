"""MCP clients that start this program: whether what they start exists, and gets folders that do."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ragdocs.config.locations import folder_of
from ragdocs.config.notation import printable
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.client_files import (
    ClientFile,
    Registration,
    Unreadable,
    client_files,
    registrations,
)
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.wording import advised

_WORKSPACE = "${workspaceFolder}"


def check_clients(case: Case) -> Iterator[Finding]:
    found: list[Finding] = []
    machine = case.machine
    for file in client_files(machine.home, _projects(case), machine.platform, machine.environ):
        try:
            found += [_examined(file, one, case) for one in registrations(file)]
        except Unreadable as error:
            found.append(
                Finding(
                    Level.NOTE,
                    f"{file.client}: {at(file.path)} was not understood: {error}",
                    "its servers are not known, then",
                )
            )
    yield from found
    if not found:
        yield Finding(
            Level.OK, "no client starts this program from here yet", f"{advised('install')} adds it"
        )


def _projects(case: Case) -> list[Path]:
    """The folders that clients may have settings in: this one, and those of the documents."""
    config = case.reading.config
    folders = [case.machine.folder, *map(folder_of, case.reading.files)]
    folders += [tree.root for tree in config.trees] if config else []
    return [folder for folder in dict.fromkeys(folders) if folder != case.machine.home]


def _examined(file: ClientFile, entry: Registration, case: Case) -> Finding:
    who = f"{file.client} ({at(file.path)}) has {printable(entry.name)}"
    runs = f"which runs {printable(entry.command)}"
    missing = _wrong_command(entry, case) or _wrong_folders(entry)
    if missing:
        return Finding(
            Level.WARNING,
            f"{who}, {runs}: {missing}",
            f"put it right in that file; {advised('install')} shows what it should be",
        )
    given = "".join(f" {option} {printable(value)}" for option, value in entry.folders)
    if file.client == "Claude Desktop" and not os.path.dirname(entry.command):
        return Finding(
            Level.NOTE,
            f"{who}, {runs}{given}",
            "a program started from the desktop may not find it: give its whole path",
        )
    return Finding(Level.OK, f"{who}, {runs}{given}")


def _wrong_command(entry: Registration, case: Case) -> str:
    command = os.path.expanduser(_resolved(entry, entry.command))
    if "${" in command:
        return ""  # the client's own names, which only it knows
    if not os.path.dirname(command):
        there = shutil.which(command, path=case.machine.environ.get("PATH"))
        return "" if there else "there is no such command on this PATH"
    place = Path(entry.project or "/") / command
    return "" if os.access(place, os.X_OK) and place.is_file() else "there is no such command"


def _wrong_folders(entry: Registration) -> str:
    for option, value in entry.folders:
        path = Path(os.path.expanduser(_resolved(entry, value)))
        is_relative = not path.is_absolute() and entry.project is None
        if option == "--index" or "${" in str(path) or is_relative:
            continue  # made when it is needed; or only the client knows what it means
        place = Path(entry.project or "/") / path
        if option == "--docs" and not place.is_dir():
            return f"{option} {printable(value)} is not a folder"
        if option == "--config" and not place.is_file():
            return f"{option} {printable(value)} is not a file"
    return ""


def _resolved(entry: Registration, text: str) -> str:
    return text.replace(_WORKSPACE, str(entry.project)) if entry.project else text
