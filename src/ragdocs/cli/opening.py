"""Opens a document from the terminal: the addresses that a click opens, and the user's editor."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ragdocs.config.values import AUTO, LINK_FORMATS, NO_LINKS
from ragdocs.errors import NotThere, RagdocsError, SourceError
from ragdocs.models import DocId
from ragdocs.parsers.ids import decode_path, tree_of
from ragdocs.text import escaped

if TYPE_CHECKING:
    from ragdocs.cli.results import Linker
    from ragdocs.config.resolved import Config, Tree

# The addresses of places, for terminals that open them at a click (OSC 8).

_VAULT = ".obsidian"
_WITHOUT_LINKS = frozenset({"", "dumb", "linux"})
"""Values of TERM whose terminals would print the sequence."""


def linker(config: "Config", environ: Mapping[str, str] = os.environ) -> "Linker | None":
    """Makes addresses by `terminal.links`; None where they are off or not understood."""
    wanted = config.terminal.links
    is_unknown = environ.get("TERM", "") in _WITHOUT_LINKS and os.name != "nt"
    if wanted == NO_LINKS or environ.get("NO_COLOR") or is_unknown:
        return None
    links = {tree.name: _TreeLinks(tree.root, _format_of(wanted, tree)) for tree in config.trees}

    def address(doc_id: DocId, line: int) -> str | None:
        found = links.get(tree_of(doc_id))
        return found.address(doc_id, line) if found else None

    return address


def _format_of(wanted: str, tree: "Tree") -> str:
    if wanted == AUTO:
        wanted = "obsidian" if _is_in_vault(tree.root) else "file"
    return LINK_FORMATS.get(wanted, wanted)


def _is_in_vault(root: Path) -> bool:
    return any((folder / _VAULT).is_dir() for folder in (root, *root.parents))


@dataclass(frozen=True, slots=True)
class _TreeLinks:
    """The folder of a tree, and the form of its addresses."""

    root: Path
    form: str

    def address(self, doc_id: DocId, line: int) -> str:
        file = (self.root / _path_of(doc_id)).as_posix()
        if not file.startswith("/"):  # C:/notes
            file = f"/{file}"
        is_value = "={path}" in self.form  # a value of the address, not its path
        path = quote(os.fsencode(file), safe="" if is_value else "/:")
        host = quote(os.uname().nodename) if hasattr(os, "uname") else ""
        named = self.form.replace("{host}", host).replace("{line}", str(line))
        return named.replace("{path}", path)


def _path_of(doc_id: DocId) -> str:
    """The path in the tree, as the file system has it."""
    return decode_path(doc_id.partition(":")[2])


# `--open`: the user's editor, at the line; else the program that the system has for such files.

_PLUS = "vi vim nvim view gvim mvim nano pico micro emacs emacsclient kak joe jed gedit less"
_GOTO = "code code-insiders codium vscodium cursor windsurf"
_COLON = "subl sublime_text zed zeditor hx helix"
_LINE = "kate idea pycharm webstorm phpstorm goland clion rider rubymine"
_TEXT_SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".txt", ".canvas"})
_OPENERS = ("open",) if sys.platform == "darwin" else ("xdg-open",)


def open_document(
    config: "Config", doc_id: DocId, line: int, environ: Mapping[str, str] = os.environ
) -> None:
    """Waits for an editor in the terminal.

    Raises:
        NotThere: the file is gone, or no longer a regular file inside its tree.
        RagdocsError: there is no program for it, or the program failed.
    """
    file = _contained_file(config, doc_id)
    command = editor_command(file, line, environ)
    if command is None and sys.platform == "win32":
        _check_is_text(file)
        os.startfile(file)
        return
    if command is None:
        raise RagdocsError("no program opens files here: set EDITOR to the name of your editor")
    name = escaped(command[0])
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise RagdocsError(f"{name} cannot be started: {error.strerror}; set EDITOR") from error
    if status:
        raise RagdocsError(f"{name} ended with status {status}")


def editor_command(file: Path, line: int, environ: Mapping[str, str]) -> list[str] | None:
    """A list of arguments, which no shell reads; None if there is no program."""
    for variable in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environ.get(variable, ""), posix=os.name != "nt")
        except ValueError as error:
            raise RagdocsError(f"{variable} cannot be read: {error}") from error
        if words:
            return [*words, *_at_line(words[0], os.fspath(file), line)]
    opener = next(filter(None, map(shutil.which, _OPENERS)), None)
    if opener is None:
        return None
    _check_is_text(file)
    return [opener, os.fspath(file)]


def _check_is_text(file: Path) -> None:
    """The system may run other files, such as *.desktop, *.command and *.bat."""
    if file.suffix.lower() not in _TEXT_SUFFIXES:
        raise RagdocsError(
            f"{escaped(file.name)} is not opened by the system's program, which might run it: "
            "set EDITOR to the name of your editor"
        )


def _at_line(program: str, file: str, line: int) -> list[str]:
    """How this editor is told a line; one that is not known gets the file alone."""
    name = os.path.basename(program).removesuffix(".exe").lower()
    if name in _PLUS.split():
        return [f"+{line}", file]
    if name in _GOTO.split():
        return ["--goto", f"{file}:{line}"]
    if name in _COLON.split():
        return [f"{file}:{line}"]
    if name in _LINE.split():
        return ["--line", str(line), file]
    return [file]


def _contained_file(config: "Config", doc_id: DocId) -> Path:
    """The file of a document, if it can be read without leaving its tree."""
    from ragdocs.indexing.reading import read_file

    tree = next((tree for tree in config.trees if tree.name == tree_of(doc_id)), None)
    if tree is None:
        raise NotThere(f"{doc_id} is in no tree of this configuration")
    path = _path_of(doc_id)
    try:
        read_file(tree.root, path, config.indexing.max_file_bytes, tree.within)
    except SourceError as error:
        raise NotThere(f"it cannot be opened: {error}") from error
    return tree.root / path
