"""`ragdocs inspect doc`: once as a real process, and called for the rest."""

import json
import subprocess
from pathlib import Path

from tests.support.processes import run_ragdocs
from tests.support.program import called

NOTE = """---
title: Handbook
tags: [work]
---
# Guide

Hello [[Other]].

```python
print("hi")
```
"""


def run(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return called(cwd, "inspect", "doc", *arguments)


def test_the_tree_is_drawn_with_lines_and_sizes(tmp_path):
    (tmp_path / "a note.md").write_text(NOTE, encoding="utf-8")
    done = run_ragdocs("inspect", "doc", "a note.md", cwd=tmp_path)
    assert done.stdout.startswith(f"Handbook  ({tmp_path.name}:a note.md)\n")
    assert "1 heading, 1 link, 1 code block" in done.stdout
    assert "└─ #guide  lines 5-11, 53 characters" in done.stdout


def test_what_is_embedded_can_be_shown(tmp_path):
    (tmp_path / "a.md").write_text(NOTE, encoding="utf-8")
    assert "Handbook > Guide" in run("a.md", "--embedded", cwd=tmp_path).stdout


def test_json_has_every_node(tmp_path):
    (tmp_path / "a.md").write_text(NOTE, encoding="utf-8")
    found = json.loads(run("a.md", "--json", cwd=tmp_path).stdout)
    assert found["title"] == "Handbook"
    assert [chunk["id"] for chunk in found["chunks"]] == [
        f"{tmp_path.name}:a.md",
        f"{tmp_path.name}:a.md#guide",
    ]
    assert found["chunks"][1]["lines"] == [5, 11]


def test_docs_and_index_mean_what_they_mean_elsewhere(tmp_path):
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "deep" / "a.md").write_text(NOTE, encoding="utf-8")
    index = str(tmp_path / "index")
    done = run("notes/deep/a.md", "--docs", "notes", "--index", index, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["id"] == "notes:deep/a.md"
    assert not Path(index).exists()
    (tmp_path / "others").mkdir()
    outside = run("notes/deep/a.md", "--docs", "others", cwd=tmp_path)
    assert "note: outside every tree" in outside.stdout


def test_inspecting_uses_the_settings(tmp_path):
    (tmp_path / "a.md").write_text("word " * 1000, encoding="utf-8")
    (tmp_path / ".ragdocs.toml").write_text("[chunking]\nmax_leaf_chars = 500\n", encoding="utf-8")
    found = json.loads(run("a.md", "--json", cwd=tmp_path).stdout)
    sizes = [chunk["characters"] for chunk in found["chunks"] if chunk["characters"] is not None]
    assert sizes
    assert max(sizes) <= 500


def test_a_file_outside_every_tree_is_shown_too(tmp_path):
    inside = tmp_path / "docs"
    inside.mkdir()
    (tmp_path / "a.md").write_text(NOTE, encoding="utf-8")
    assert run("../a.md", cwd=inside).stdout.startswith("Handbook  (docs:a.md)")


def test_a_missing_file_and_a_picture_are_plain_errors(tmp_path):
    (tmp_path / "x.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    for name, word in (("gone.md", "No such file"), ("x.md", "not text"), (".", "is a folder")):
        done = run(name, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stdout == ""
        assert name in done.stderr
        assert word in done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_is_not_indexed_is_shown_with_a_note(tmp_path):
    (tmp_path / ".gitignore").write_text("b.md\n", encoding="utf-8")
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(NOTE, encoding="utf-8")
    assert "note:" not in run("a.md", cwd=tmp_path).stdout
    assert "note: not indexed" in run("b.md", cwd=tmp_path).stdout


def test_a_link_named_by_the_user_is_followed(tmp_path):
    (tmp_path / "a.md").write_text(NOTE, encoding="utf-8")
    (tmp_path / "link.md").symlink_to("a.md")
    assert run("link.md", cwd=tmp_path).stdout.startswith(f"Handbook  ({tmp_path.name}:a.md)")


def test_a_document_cannot_speak_to_the_terminal(tmp_path):
    (tmp_path / "a.md").write_text("# a \x1b[31mred \u202eb\n\n#t\u200bag\n", encoding="utf-8")
    for arguments in (("a.md",), ("a.md", "--embedded")):
        printed = run(*arguments, cwd=tmp_path).stdout
        assert not set(printed) & set("\x1b\u202e\u200b")


def test_json_has_headings_links_and_code(tmp_path):
    (tmp_path / "a.md").write_text(NOTE, encoding="utf-8")
    found = json.loads(run("a.md", "--json", cwd=tmp_path).stdout)
    assert found["headings"] == [
        {"level": 1, "text": "Guide", "slug": "guide", "lines": [5, 5], "bytes": [37, 45]}
    ]
    assert [link["target"] for link in found["links"]] == ["Other"]
    assert [block["language"] for block in found["code_blocks"]] == ["python"]
