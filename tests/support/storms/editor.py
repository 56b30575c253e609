"""A person, an editor and git at work on one folder: at random, by a seed, and written down.

Nobody else may change the folder: what it holds is known without looking.
"""

import os
import random
import shutil
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

from tests.support.storms.words import Words

NEWEST = 50


class Editor:
    """`words` are the notes that are there, each with the word that finds it alone; `history`
    tells which notes have ever had a word.
    """

    def __init__(self, root: Path, seed: int | str) -> None:
        self.root = root
        self.words: dict[str, str] = {}
        self.history: defaultdict[str, set[str]] = defaultdict(set)
        self.newest: deque[str] = deque(maxlen=NEWEST)
        self.edits = 0
        self._rng = random.Random(seed)
        self._made = Words(self._rng)
        self._outside = root.with_name(f"{root.name}-outside")
        self._number = 0
        self._steps = (
            (self.create, 6),
            (self.edit, 8),
            (self.edit_in_place, 4),
            (self.save_atomically, 6),
            (self.touch, 1),
            (self.delete, 4),
            (self.rename, 4),
            (self.replace_another, 2),
            (self.swap, 1),
            (self.rename_folder, 1),
            (self.delete_folder, 0.2),
            (self.bring_folder, 0.5),
        )

    def populate(self, files: int) -> None:
        """What is there before anything happens: counted as no edit."""
        self.root.mkdir(parents=True, exist_ok=True)
        for _ in range(files):
            self.create()
        self.edits = 0

    def step(self) -> None:
        """One edit, of any kind."""
        steps, weights = zip(*self._steps, strict=True)
        (chosen,) = self._rng.choices(steps, weights)
        if len(self.words) < 20:
            chosen = self.create
        chosen()

    def create(self) -> None:
        self._write(self._new_path(), self._text(word := self._made.new()), word)

    def edit(self) -> None:
        self.rewrite(self._some())

    def rewrite(self, path: str) -> None:
        self._write(path, self._text(word := self._made.new()), word)

    def edit_in_place(self) -> None:
        """Another word of the same length; half the time even the file's time is set back."""
        path = self._some()
        file, word = self.root / path, self._made.new()
        status = file.stat()
        self._tell(path, word)
        text = file.read_text(encoding="utf-8").replace(self.words[path], word)
        with file.open("r+", encoding="utf-8") as opened:
            opened.write(text)
        if self._rng.random() < 0.5:
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        self._note(path, word)

    def save_atomically(self) -> None:
        """As editors do it: a file beside it takes its place."""
        path, word = self._some(), self._made.new()
        self._tell(path, word)
        beside = self.root / f"{path}.tmp"
        beside.write_text(self._text(word), encoding="utf-8")
        beside.replace(self.root / path)
        self._note(path, word)

    def touch(self) -> None:
        path = self._some()
        os.utime(self.root / path)
        self._note(path, self.words[path])

    def delete(self) -> None:
        path = self._some()
        (self.root / path).unlink()
        del self.words[path]
        self.edits += 1

    def rename(self) -> None:
        self._move(self._some(), self._new_path())

    def replace_another(self) -> None:
        old, new = self._rng.sample(list(self.words), 2)
        self._move(old, new)

    def swap(self) -> None:
        """Two files change places: nothing comes or goes, and yet both are wrong."""
        one, other = self._rng.sample(list(self.words), 2)
        first, second = self.words[one], self.words[other]
        self._tell(one, second)
        self._tell(other, first)
        away = self.root / f"{one}.away"
        (self.root / one).rename(away)
        (self.root / other).rename(self.root / one)
        away.rename(self.root / other)
        self._note(one, second)
        self._note(other, first)

    def rename_folder(self) -> None:
        folders = self._folders()
        if not folders:
            return self.create()
        old = self._rng.choice(folders)
        above = self._rng.choice(
            ["", *(at for at in folders if not f"{at}/".startswith(f"{old}/"))]
        )
        new = f"{above}/{self._name('folder')}".lstrip("/")
        moved = {path: new + path.removeprefix(old) for path in self._below(old)}
        for path, there in moved.items():
            self._tell(there, self.words[path])
        (self.root / old).rename(self.root / new)
        for path, there in moved.items():
            self.words[there] = self.words.pop(path)
        self.edits += 1

    def delete_folder(self) -> None:
        """A small one: the folder as a whole should not get empty."""
        folders = [folder for folder in self._folders() if len(self._below(folder)) <= 10]
        if not folders:
            return self.create()
        folder = self._rng.choice(folders)
        shutil.rmtree(self.root / folder)
        for path in self._below(folder):
            del self.words[path]
        self.edits += 1

    def bring_folder(self) -> None:
        """A folder that has files in it before it is there."""
        folder = self._name("brought")
        away = self._outside / folder
        away.mkdir(parents=True)
        for number in range(self._rng.randint(1, 5)):
            self._tell(f"{folder}/note{number}.md", word := self._made.new())
            (away / f"note{number}.md").write_text(self._text(word), encoding="utf-8")
            self._note(f"{folder}/note{number}.md", word)
        away.rename(self.root / folder)

    def check_out(self, files: int) -> None:
        """As git changes branches: old files are unlinked, emptied folders removed, new written."""
        known = self._rng.sample(list(self.words), min(len(self.words), files // 2))
        gone, changed = known[: len(known) // 3], known[len(known) // 3 :]
        for path in gone:
            (self.root / path).unlink()
            del self.words[path]
            self._remove_empty((self.root / path).parent)
        new = [self._new_path() for _ in range(files - len(known))]
        for path in (*changed, *new):
            (self.root / path).unlink(missing_ok=True)
            self._write(path, self._text(word := self._made.new()), word)
        self.edits += len(gone)

    def _move(self, old: str, new: str) -> None:
        self._tell(new, self.words[old])
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)
        self._note(new, self.words.pop(old))

    def _write(self, path: str, text: str, word: str) -> None:
        file = self.root / path
        self._tell(path, word)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self._note(path, word)

    def _tell(self, path: str, word: str) -> None:
        """Before it is done: nobody may see it sooner than it is known here."""
        self.history[word].add(path)

    def _note(self, path: str, word: str) -> None:
        self.words[path] = word
        self.newest.append(path)
        self.edits += 1

    def _text(self, word: str) -> str:
        others = list(self.words)
        link = Path(self._rng.choice(others)).stem if others else "nothing"
        return self._made.note(word, link)

    def _some(self) -> str:
        return self._rng.choice(list(self.words))

    def _new_path(self) -> str:
        folder = self._rng.choice(["", *self._folders()])
        if self._rng.random() < 0.1 and folder.count("/") < 3:
            folder = f"{folder}/{self._name('folder')}".lstrip("/")
        return f"{folder}/{self._name('note')}.md".lstrip("/")

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind} {self._number}"

    def _folders(self) -> list[str]:
        return sorted({path.rpartition("/")[0] for path in self.words} - {""})

    def _below(self, folder: str) -> list[str]:
        return [path for path in self.words if path.startswith(f"{folder}/")]

    def _remove_empty(self, folder: Path) -> None:
        while folder != self.root and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def paced(per_second: float, seconds: float) -> Iterator[int]:
    """A number when each edit is due; who falls behind catches up."""
    began, never = time.monotonic(), threading.Event()
    for number in range(round(per_second * seconds)):
        never.wait(max(0.0, began + number / per_second - time.monotonic()))
        yield number
