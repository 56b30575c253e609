"""Builds the .mcpb bundle: the sources, and a manifest that tells a desktop client how to run them.

python scripts/build_bundle.py [FOLDER]     (dist, unless another is given)

The manifest keeps to version 0.4 of the format, whose server type `uv` has the client install what
pyproject.toml asks for; nothing is bundled but our own files, so one bundle serves every platform.
"""

import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ragdocs import __version__
from ragdocs.mcp_server.tools import TOOLS

PROJECT = Path(__file__).resolve().parents[1]
ENTRY_POINT = "server/main.py"
# A client gives several folders as several arguments, which are not options yet.
MAIN = '''"""What the client runs: the chosen folders, as the server's command line has them."""

import sys

from ragdocs.cli.main import main

if __name__ == "__main__":
    folders = [part for folder in sys.argv[1:] for part in ("--docs", folder)]
    main(["mcp", *folders], prog_name="ragdocs")
'''
_FIRST_SENTENCE = re.compile(r".*?[.](?=\s|$)", re.DOTALL)
_GROUPS = re.compile(r"^\[dependency-groups\]\n.*?(?=^\[)", re.DOTALL | re.MULTILINE)
# The earliest time that the format allows, so that the same files give the same bundle.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def manifest() -> dict[str, object]:
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "manifest_version": "0.4",
        "name": about["name"],
        "display_name": "Markdown search (ragdocs)",
        "version": __version__,
        "description": about["description"],
        "author": {"name": f"The {about['name']} authors"},
        "license": about["license"],
        "keywords": about["keywords"],
        "server": {
            "type": "uv",
            "entry_point": ENTRY_POINT,
            # Optional for this type in the format's text, but not in all of its tools.
            "mcp_config": {
                "command": "uv",
                "args": [
                    "run",
                    "--directory",
                    "${__dirname}",
                    ENTRY_POINT,
                    "${user_config.folders}",
                ],
            },
        },
        "tools": [
            {"name": tool.name, "description": _first_sentence(tool.description)}
            for tool in TOOLS.values()
        ],
        "user_config": {
            "folders": {
                "type": "directory",
                "title": "Folders of Markdown",
                "description": "They are searched, with all below them. Nothing is written there.",
                "multiple": True,
                "required": True,
            }
        },
        "compatibility": {
            "platforms": ["darwin", "linux"],
            "runtimes": {"python": about["requires-python"]},
        },
    }


def build(folder: Path) -> Path:
    """The bundle's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mcp-markdown-ragdocs-{__version__}.mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in _contents():
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return path


def _contents() -> Iterator[tuple[str, bytes]]:
    text = json.dumps(manifest(), ensure_ascii=False, indent=2)
    yield "manifest.json", f"{text}\n".encode()
    yield ENTRY_POINT, MAIN.encode()
    # What the package is built from, and what pyproject.toml names.
    project = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    # `uv run` would install the tools of development on every user's machine.
    yield "pyproject.toml", _GROUPS.sub("", project).encode()
    for name in ("README.md", "LICENSE"):
        yield name, (PROJECT / name).read_bytes()
    for file in sorted((PROJECT / "src" / "ragdocs").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file.relative_to(PROJECT).as_posix(), file.read_bytes()


def _first_sentence(text: str) -> str:
    found = _FIRST_SENTENCE.match(text)
    return found[0] if found else text


if __name__ == "__main__":
    made = build(Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "dist")
    print(f"{made} {made.stat().st_size / 1e3:.0f} kB")
