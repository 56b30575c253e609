"""A start with nothing changed, compared with a bare walk over every file."""

import os
import shutil
import time
from pathlib import Path

from ratios import Rounds
from synthetic_notes import config_of

from ragdocs.app import App

AREAS, TOPICS = 20, 10
SETTLED_SECONDS = 2.5
"""A file that is younger when it is read counts as uncertain and is read again next time."""


def run(folder: Path, files: int, rounds: int) -> None:
    print(f"(d) a start with nothing changed in {files} files")
    write(folder / "docs", files)
    time.sleep(SETTLED_SECONDS)
    app = App(config_of(folder))
    with app.manager() as manager:
        assert manager.update().added == files
    taken = Rounds()
    for number in range(rounds + 2):
        if number == 2:
            taken = Rounds()  # the first ones only warmed the caches
        found = taken.measure("os.walk + os.stat", lambda: walked(folder / "docs"))
        listed = taken.measure("scandir + its stat", lambda: scanned(str(folder / "docs")))
        started = taken.measure("start", lambda: start(app))
        assert found == listed == started == files
    taken.show()
    taken.show_ratio("start", "os.walk + os.stat", "at most 5")
    taken.show_ratio("start", "scandir + its stat", "at most 5")
    shutil.rmtree(folder)


def write(docs: Path, files: int) -> None:
    for number in range(files):
        file = docs / f"area-{number % AREAS}" / f"topic-{number // AREAS % TOPICS}"
        file.mkdir(parents=True, exist_ok=True)
        text = f"# Note {number}\n\nText of note number {number}.\n"
        (file / f"note-{number}.md").write_text(text, encoding="utf-8")


def walked(root: Path) -> int:
    count = 0
    for folder, _, names in os.walk(root):
        for name in names:
            os.stat(os.path.join(folder, name))
            count += 1
    return count


def scanned(root: str) -> int:
    """The least that Python can do."""
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def start(app: App) -> int:
    """The number of unchanged files; nothing else may be found."""
    with app.manager() as manager:
        outcome = manager.update()
    assert outcome.added + outcome.modified + outcome.removed == 0
    return outcome.unchanged
