"""Writes config.example.toml and docs/configuration.md from the settings' definitions.

    python scripts/generate_config_docs.py [--check]

With --check nothing is written; the exit status is 1 when a file differs.
"""

import argparse
import sys
from pathlib import Path

from ragdocs.config.reference import example_file, reference_page

REPOSITORY = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the configuration's documents.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on difference")
    check = parser.parse_args().check
    wanted = {
        REPOSITORY / "config.example.toml": example_file(),
        REPOSITORY / "docs" / "configuration.md": reference_page(),
    }
    different = [path for path, text in wanted.items() if _differs(path, text)]
    for path in different:
        print(f"{path.relative_to(REPOSITORY)} {'differs' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if check and different else 0


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main())
