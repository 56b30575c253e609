"""Writes into server.json, the entry for the MCP registry, what is decided elsewhere.

    python scripts/generate_server_json.py [--check]

The version comes from the package, the description from pyproject.toml. With --check nothing is
written; the exit status is 1 when the file differs.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

from ragdocs import __version__

PROJECT = Path(__file__).resolve().parents[1]
PATH = PROJECT / "server.json"


def generate(text: str) -> str:
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entry = json.loads(text)
    entry["version"] = __version__
    entry["description"] = re.sub(r" \([A-Z]+\)", "", about["description"])
    for package in entry["packages"]:
        package["version"] = __version__
        package["identifier"] = about["name"]
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    before = PATH.read_text(encoding="utf-8")
    after = generate(before)
    if is_check:
        return int(before != after)
    PATH.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
