"""What the documentation says is so: its examples run, its links lead somewhere."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragdocs.cli.main import main
from tests.parsing import parse

PROJECT = Path(__file__).parents[2]
PAGES = sorted(
    [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("specs/*.md")]
)
README = (PROJECT / "README.md").read_text(encoding="utf-8")
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


def test_the_readme_shows_what_inspect_prints(tmp_path):
    (tmp_path / "note.md").write_text(NOTE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ragdocs", "inspect", "doc", "note.md"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    shown = re.search(r"```console\n\$ ragdocs inspect doc note\.md\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert shown[1].replace("2026-11-16", today) == done.stdout


def test_the_readme_names_every_command():
    for name in main.commands:
        assert f"`ragdocs {name}" in README, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_in_the_documentation_lead_somewhere(page):
    document = parse(page.read_bytes())
    for link in document.links:
        target = (page.parent / link.target).resolve() if link.target else page
        assert target.exists(), f"{page.name}: {link.target}"
        if link.anchor and target.suffix == ".md":
            slugs = {heading.slug for heading in parse(target.read_bytes()).headings}
            assert link.anchor in slugs, f"{page.name}: {link.target}#{link.anchor}"


def test_every_page_is_reached_from_the_readme():
    linked = {(PROJECT / link.target).resolve() for link in parse(README).links}
    pages = set((PROJECT / "docs").glob("*.md"))
    assert pages <= linked
