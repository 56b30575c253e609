"""Draws a terminal session as SVG from what the program really prints.

    python scripts/record_session.py [--check] [FILE]

The commands run in a pseudo-terminal, on a copy of the tests' documents in a new home, so the
picture has no path and no setting of this machine. With --check nothing is written; the exit
status is 1 when the file's text differs. It needs Linux or macOS.
"""

import argparse
import fcntl
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from xml.sax.saxutils import escape

from rich.ansi import AnsiDecoder
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.style import Style
from rich.text import Text

from ragdocs.evaluation.chart import Picture, document

PROJECT = Path(__file__).resolve().parents[1]
DOCUMENTS = PROJECT / "tests" / "fixtures" / "markdown_docs"
FILE = PROJECT / "docs" / "session.svg"
TITLE = "ragdocs in a terminal"
SESSION = (
    "ragdocs query how do I renew a token before it expires -n 2",
    "ragdocs query who waters the office plants -n 1",
    "ragdocs lint",
)
COLUMNS, ROWS = 106, 60
_NOT_RECENT = 1_767_225_600  # 2026-01-01: new files would be ranked higher for some weeks
_SECONDS = 120

_LETTER, _LINE, _EDGE = 7.8, 18.0, 18.0
_COLOURS = (
    "black #1f2328 #e6edf3",
    "red #b42318 #ff7b72",
    "green #1a7f37 #56d364",
    "yellow #8a5a00 #e3b341",
    "blue #0550ae #79c0ff",
    "magenta #8250df #d2a8ff",
    "cyan #0b6b7b #56d4dd",
    "white #1f2328 #e6edf3",
)
"""The eight colours of a terminal, on light and on dark ground; bright ones look the same."""
_NAMES = [each.split()[0] for each in _COLOURS]
_PIECE = re.compile(
    r"(?P<move>\r*\n|\r+(?=\x1b\[)|\x1b\[(?:\d*A|2K|\?25[lh]))"
    r"|(?P<text>(?:[^\x00-\x1f\x7f]|\x1b\[[\d;]*m|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\))+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
"""What progress does to a terminal (next line, up, erase the line, the cursor), text with colours
and links, and anything else, which is an error."""


def record(session: Sequence[str] = SESSION, columns: int = COLUMNS) -> list[Text]:
    """The lines that a reader sees: each command after a prompt, then its output with colours."""
    with tempfile.TemporaryDirectory(prefix="session-") as temporary:
        folder = Path(temporary).resolve() / "home" / "handbook"
        copy_documents(folder)
        environ = environment(folder.parent)
        run("ragdocs update", folder, environ, columns)
        lines: list[Text] = []
        for command in session:
            prompt = Text.assemble(("$ ", "dim"), (command, "bold"))
            lines += [prompt, *show(command, folder, environ, columns)]
        return lines[:-1]


def copy_documents(folder: Path) -> None:
    shutil.copytree(DOCUMENTS, folder)
    (folder / ".ragdocs.toml").write_text("root = true\n", encoding="utf-8")
    for path in folder.rglob("*"):
        os.utime(path, (_NOT_RECENT, _NOT_RECENT))


def environment(home: Path) -> dict[str, str]:
    """Of a new user with a colour terminal."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "TERM": "xterm-256color",
    }


def show(command: str, folder: Path, environ: Mapping[str, str], columns: int) -> list[Text]:
    try:
        return [*screen(run(command, folder, environ, columns), columns), Text("")]
    except ValueError as error:
        sys.exit(f"{command}: {error}")


def screen(output: str, columns: int = COLUMNS) -> list[Text]:
    """The lines that stay on a terminal, wrapped at its edge. Raises ValueError for what a picture
    cannot show."""
    rows, row = [""], 0
    for piece in _PIECE.finditer(output):
        if piece["other"]:
            raise ValueError(f"a picture cannot show {piece[0]!r}")
        if piece["text"]:
            rows[row] += piece["text"]
        elif piece["move"].endswith("\n"):
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif piece["move"].endswith("A"):
            row = max(0, row - int(piece["move"][2:-1] or 1))
        elif piece["move"].endswith("2K"):
            rows[row] = ""
    lines = AnsiDecoder().decode("\n".join(rows).rstrip("\n"))
    return [part for line in lines for part in _wrap(line, columns)]


def _wrap(line: Text, columns: int) -> list[Text]:
    ends = accumulate(map(len, chop_cells(line.plain, columns)))
    return list(line.divide(list(ends)[:-1]))


def run(command: str, folder: Path, environ: Mapping[str, str], columns: int) -> str:
    """What the program prints on a terminal; nobody types anything there."""
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        words = [sys.executable, "-P", "-m", *shlex.split(command)]
        process = subprocess.Popen(
            words, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        output = b"".join(iter(lambda: _read(ours), b""))
        text = output.decode("utf-8")
        if process.wait(_SECONDS) not in (0, 1) or "Traceback" in text:
            sys.exit(f"{command}: exit code {process.returncode}\n{text}")
        return text
    finally:
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux reports the end of the other side as an error
        return b""


def draw(lines: Sequence[Text]) -> str:
    width = COLUMNS * _LETTER + 2 * _EDGE
    height = len(lines) * _LINE + 2 * _EDGE
    size = f'width="{width - 1:.0f}" height="{height - 1:.0f}"'
    frame = f'<rect class="frame" x="0.5" y="0.5" {size} rx="8"/>'
    shapes = [frame, '<g xml:space="preserve">', *_shapes(lines), "</g>"]
    return document(Picture(width, height, tuple(shapes)), TITLE, "\n".join(plain(lines)), _style())


def plain(lines: Sequence[Text]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def _shapes(lines: Sequence[Text]) -> Iterator[str]:
    console = Console(width=COLUMNS)
    for number, line in enumerate(lines):
        y = _EDGE + (number + 0.75) * _LINE
        column = 0
        for part in line.render(console):
            cells = cell_len(part.text)
            if part.text.strip():
                yield _words(_EDGE + column * _LETTER, y, cells * _LETTER, part.text, part.style)
            column += cells


def _words(x: float, y: float, width: float, words: str, style: Style | None) -> str:
    """As wide as its cells, whatever font the reader has."""
    place = f'x="{x:.1f}" y="{y:.1f}" textLength="{width:.1f}"'
    return f'<text {place} class="{" ".join(_classes(style))}">{escape(words)}</text>'


def _classes(style: Style | None) -> Iterator[str]:
    yield "cell"
    if style is None:
        return
    if style.color is not None and style.color.number is not None:
        yield _NAMES[style.color.number % len(_NAMES)]
    yield from (name for name in ("bold", "dim", "italic", "underline") if getattr(style, name))


def _style() -> str:
    font = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
    fixed = (
        f".cell{{font:13px {font};white-space:pre}}.bold{{font-weight:bold}}.dim{{opacity:.7}}"
        ".italic{font-style:italic}.underline{text-decoration:underline}.ground{fill:none}"
    )
    light, dark = (
        "".join(f".{name}{{fill:{shade}}}" for name, shade in zip(_NAMES, shades, strict=True))
        for shades in zip(*(each.split()[1:] for each in _COLOURS), strict=True)
    )
    frames = (
        ".frame{fill:#ffffff;stroke:#d0d7de}",
        ".frame{fill:#0d1117;stroke:#30363d}",
    )
    return f"{fixed}{frames[0]}{light}@media(prefers-color-scheme:dark){{{frames[1]}{dark}}}"


def text_of(svg: str) -> str:
    """The session as text, from the picture's description."""
    found = re.search(r'<desc id="description">(.*?)</desc>', svg, re.DOTALL)
    return found[1] if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    svg = draw(record())
    if not given.check:
        given.file.write_text(svg, encoding="utf-8")
        print(f"{given.file} written")
    elif text_of(svg) != text_of(given.file.read_text(encoding="utf-8")):
        sys.exit(f"{given.file} is not what the program prints: run scripts/record_session.py")


if __name__ == "__main__":
    main()
