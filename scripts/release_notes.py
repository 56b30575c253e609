"""Prints what the changelog says of the version that a tag names; fails when they disagree.

python scripts/release_notes.py v0.2.0

It needs nothing but Python, so that a release stops before anything is built.
"""

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_ENTRY = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def package_version() -> str:
    text = (PROJECT / "src" / "ragdocs" / "__init__.py").read_text(encoding="utf-8")
    found = _VERSION.search(text)
    if found is None:
        sys.exit("src/ragdocs/__init__.py has no __version__")
    return found[1]


def newest_entry(changelog: str) -> tuple[str, str]:
    """The version and the text of the first entry that has a date."""
    entries = list(_ENTRY.finditer(changelog))
    for entry, after in zip(entries, [*entries[1:], None], strict=True):
        if entry["date"]:
            text = changelog[entry.end() : after.start() if after else len(changelog)]
            return entry["version"], text.strip() + "\n"
    sys.exit("CHANGELOG.md has no entry with a date")


def main() -> None:
    tag = sys.argv[1] if len(sys.argv) > 1 else ""
    version = package_version()
    written, text = newest_entry((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag or 'missing'}, but the package has version {version}")
    if written != version:
        sys.exit(f"the newest entry of CHANGELOG.md is {written}, but the version is {version}")
    print(text, end="")


if __name__ == "__main__":
    main()
