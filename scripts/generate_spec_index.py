"""Writes specs/README.md: the decisions, numbered, each by its title."""

import re
from pathlib import Path

SPECS = Path(__file__).parents[1] / "specs"
HEAD = """# Decisions

One file per decision, or for a few that belong together: the context, the decision, the
measurements and the consequences. Each measurement is given with its command; what was only
reasoned is marked. A reversed decision stays, with a note on what replaced it. This page is
generated (`make docs`).
"""


def page() -> str:
    files = sorted(path for path in SPECS.glob("*.md") if path.name != "README.md")
    return "\n".join([HEAD, "| | decision |", "|---|---|", *map(_row, files), ""])


def _row(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    found = re.fullmatch(r"# (\d{4}): (.+)", first)
    if found is None or not path.name.startswith(f"{found[1]}-"):
        raise SystemExit(f"{path.name} must begin with its number: `# 0001: What was decided`")
    return f"| [{found[1]}]({path.name}) | {found[2]} |"


if __name__ == "__main__":
    (SPECS / "README.md").write_text(page(), encoding="utf-8")
