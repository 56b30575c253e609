"""The picture of a terminal session shows what the program prints now."""

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("fcntl", reason="a pseudo-terminal needs POSIX")

PROJECT = Path(__file__).parents[2]
_DARK = re.compile(r"@media\(prefers-color-scheme:dark\)\{((?:[^{}]*\{[^{}]*\})*)\}")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recorder():
    """The script, which belongs to no package."""
    path = PROJECT / "scripts" / "record_session.py"
    spec = importlib.util.spec_from_file_location("record_session", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recorded(recorder):
    return recorder.record()


def shown(svg: str) -> list[str]:
    """The text of a picture, line by line."""
    found: dict[str, str] = {}
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        line = found.get(text.attrib["y"], "")
        column = round((float(text.attrib["x"]) - 18) / 7.8)
        found[text.attrib["y"]] = line.ljust(column) + (text.text or "")
    return [line.rstrip() for line in found.values()]


def figures(lines: list[str]) -> list[int]:
    return [int(number) for line in lines for number in re.findall(r"\b(\d+)%", line)]


def without_figures(lines: list[str]) -> list[str]:
    """Other processors round a confidence otherwise."""
    return [re.sub(r" *\b\d+%", " N%", line) for line in lines]


def test_the_picture_is_what_the_program_prints(recorder, recorded):
    picture = recorder.FILE.read_text(encoding="utf-8")
    printed = [line for line in recorder.plain(recorded) if line]
    assert without_figures(shown(picture)) == without_figures(printed)
    root = ElementTree.fromstring(picture)
    described = (root.findtext(f"{SVG}desc") or "").splitlines()
    assert without_figures(described) == without_figures(recorder.plain(recorded))
    # Rounded otherwise or not: a figure that nobody measured is found out.
    pairs = zip(figures(described), figures(recorder.plain(recorded)), strict=True)
    assert all(abs(one - other) <= 3 for one, other in pairs)
    assert root.attrib["aria-labelledby"] == "title description"
    assert root.findtext(f"{SVG}title") == recorder.TITLE


def test_the_readme_shows_what_query_prints_on_a_terminal(recorder):
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    [shown] = re.findall(
        r"^```console\n\$ (ragdocs query .*?)```", readme, re.MULTILINE | re.DOTALL
    )
    command, *output = shown.splitlines()
    printed = recorder.plain(recorder.record([command], columns=84))
    assert without_figures(output) == without_figures(printed[1:])
    assert abs(figures(output)[0] - figures(printed)[0]) <= 3


def test_every_command_is_shown_with_an_answer(recorder, recorded):
    lines = recorder.plain(recorded)
    prompts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert [lines[at] for at in prompts] == [f"$ {command}" for command in recorder.SESSION]
    assert all(lines[at + 1] for at in prompts)


def test_the_picture_has_no_path_of_this_machine(recorder):
    picture = recorder.FILE.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|Users|tmp|var|private)\b", picture)


def test_the_picture_has_colours_for_light_and_dark(recorder, recorded):
    svg = recorder.draw(recorded)
    style = ElementTree.fromstring(svg).findtext(f"{SVG}style") or ""
    dark = "".join(_DARK.findall(style))
    light = _DARK.sub("", style)
    used = {name for kinds in re.findall(r'class="([^"]*)"', svg) for name in kinds.split()}
    assert {"green", "bold"} <= used
    for name in used:
        assert f".{name}{{" in style, name
    for name in used & {"red", "green", "yellow", "blue", "magenta", "cyan", "frame"}:
        assert f".{name}{{" in light, name
        assert f".{name}{{" in dark, name


def test_progress_that_is_erased_is_not_in_the_picture(recorder):
    output = "\x1b[?25lloading\r\n50%\r\x1b[2K\x1b[1A\x1b[2K\x1b[?25h\x1b[1;32mdone\x1b[0m\r\nend"
    assert recorder.plain(recorder.screen(output)) == ["done", "end"]


def test_a_long_line_wraps_at_the_edge_of_the_terminal(recorder):
    lines = recorder.plain(recorder.screen("\x1b[31m" + "ab" * recorder.COLUMNS + "\x1b[0m"))
    assert [len(line) for line in lines] == [recorder.COLUMNS] * 2


@pytest.mark.parametrize("output", ["a\x1b[2Jb", "a\x1b[5;5Hb", "bell\x07", "over\rwritten"])
def test_what_a_picture_cannot_show_is_an_error(recorder, output: str):
    with pytest.raises(ValueError, match="cannot show"):
        recorder.screen(output)


def test_a_link_is_shown_as_its_text(recorder):
    output = "\x1b]8;id=1;file:///home/you/a.md\x1b\\a.md\x1b]8;;\x1b\\ 90%"
    assert recorder.plain(recorder.screen(output)) == ["a.md 90%"]
    assert "home/you" not in recorder.draw(recorder.screen(output))
