"""What may happen to a file of an index behind the program's back, each kind by its name."""

import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
"""Of SQLite's."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A file that is about to be damaged, and what it was at an earlier time, if it was."""

    path: Path
    old: bytes
    rng: random.Random


def _empty(victim: Victim) -> None:
    os.truncate(victim.path, 0)


def _cut(victim: Victim) -> None:
    os.truncate(victim.path, victim.rng.randrange(max(1, victim.path.stat().st_size)))


def _zero(victim: Victim) -> None:
    _overwrite(victim, 0, bytes(victim.path.stat().st_size))


def _zero_page(victim: Victim) -> None:
    pages = max(1, victim.path.stat().st_size // PAGE)
    _overwrite(victim, victim.rng.randrange(pages) * PAGE, bytes(PAGE))


def _noise(victim: Victim) -> None:
    size = victim.path.stat().st_size
    _overwrite(victim, victim.rng.randrange(max(1, size)), victim.rng.randbytes(64))


def _flip(victim: Victim) -> None:
    size = victim.path.stat().st_size
    if size:
        _flip_at(victim, victim.rng.randrange(size))


def _flip_head(victim: Victim) -> None:
    """In the header, or in the schema that follows it."""
    size = victim.path.stat().st_size
    if size:
        _flip_at(victim, victim.rng.randrange(min(size, victim.rng.choice([100, PAGE]))))


def _old_content(victim: Victim) -> None:
    """An older copy, written over it."""
    victim.path.write_bytes(victim.old)


def _old_file(victim: Victim) -> None:
    """An older copy, put in its place."""
    other = victim.path.with_name("older")
    other.write_bytes(victim.old)
    other.replace(victim.path)


def _delete(victim: Victim) -> None:
    _discard(victim.path)


def _directory(victim: Victim) -> None:
    _discard(victim.path)
    victim.path.mkdir()


def _full_directory(victim: Victim) -> None:
    _directory(victim)
    (victim.path / "something").write_text("of someone else", encoding="utf-8")


def _link_to_nowhere(victim: Victim) -> None:
    _discard(victim.path)
    victim.path.symlink_to("nowhere/at/all")


def _overwrite(victim: Victim, place: int, data: bytes) -> None:
    size = victim.path.stat().st_size
    with victim.path.open("r+b") as opened:
        opened.seek(place)
        opened.write(data[: max(0, size - place)])


def _flip_at(victim: Victim, place: int) -> None:
    with victim.path.open("r+b") as opened:
        opened.seek(place)
        byte = opened.read(1)[0]
        opened.seek(place)
        opened.write(bytes([byte ^ 1 << victim.rng.randrange(8)]))


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


DAMAGES: dict[str, Callable[[Victim], None]] = {
    "emptied": _empty,
    "cut": _cut,
    "zeroed": _zero,
    "a page zeroed": _zero_page,
    "noise": _noise,
    "a bit flipped": _flip,
    "a bit of its head flipped": _flip_head,
    "old content": _old_content,
    "old file": _old_file,
    "deleted": _delete,
    "a directory": _directory,
    "a directory with a file": _full_directory,
    "a link to nowhere": _link_to_nowhere,
}


def shapes_of(index: Path) -> list[str]:
    """Every file below, by its path; in the directories of a keyword engine, whose files have other
    names in every generation, by its suffix."""
    found = (path.relative_to(index) for path in sorted(index.rglob("*")) if path.is_file())
    return sorted({_shape(path) for path in found})


def _shape(path: Path) -> str:
    folders, name = path.parts[:-1], path.name
    if len(folders) < 2:
        return str(path)
    stem, _, suffix = name.rpartition(".")
    return f"{folders[0]}/*/{f'*.{suffix}' if stem else name}"


def copied(index: Path) -> dict[str, bytes]:
    """The content of a file of each shape, to be put back later as an older copy."""
    return {shape: _first(index, shape).read_bytes() for shape in shapes_of(index)}


def _first(index: Path, shape: str) -> Path:
    return min(path for path in index.glob(shape) if path.is_file())


def damage(index: Path, shape: str, kind: str, old: Mapping[str, bytes], seed: object) -> bool:
    """False when there is no such file now."""
    try:
        path = _first(index, shape)
    except ValueError:
        return False
    rng = random.Random(f"{seed} {shape} {kind}")
    DAMAGES[kind](Victim(path, old.get(shape, b""), rng))
    return True


Pair = tuple[str, str]
"""The shape of a file, and a kind of damage."""


def pairs_of(shapes: Iterable[str]) -> list[Pair]:
    return [(shape, kind) for shape in shapes for kind in DAMAGES]


def some_pairs(shapes: Iterable[str], count: int, seed: object) -> list[Pair]:
    """So many, of as many files and kinds as possible."""
    rng = random.Random(f"{seed}")
    files, kinds = list(shapes), list(DAMAGES)
    rng.shuffle(files)
    rng.shuffle(kinds)
    return [(files[n % len(files)], kinds[n % len(kinds)]) for n in range(count)]
