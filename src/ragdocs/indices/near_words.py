"""Reading the vocabulary: is a term known, which words are near a misspelt one, which are common.

Nearness is the optimal string alignment distance: letters missing, added, wrong, or two changed
places, each counting one. The first letter is usually right, and a short word is near too many
others, so both narrow what counts as near.
"""

import json
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.vocabulary import TABLE
from ragdocs.store.records import Position
from ragdocs.store.snapshot import Snapshot

SHORT, MIDDLE, LONG = 3, 4, 6
"""Under SHORT letters nothing is near; under MIDDLE only a word of the same length and first
letter; under LONG only one error is forgiven, and the first letter must be there."""
MIN_STEM = 4
"""Shorter stems are near too much: `us` of use."""
MIN_PART = 5
"""Shorter words stand within too many others."""
ALIKE = 0.75
"""The share of letters, in their order, that two words of one spelling family have in common."""


@dataclass(frozen=True, slots=True)
class KnownWord:
    """A word of the documents, its term, and how many documents have it."""

    word: str
    term: str
    documents: int


@dataclass(frozen=True, slots=True)
class NearWord:
    """What a misspelt word may have meant."""

    word: str
    term: str
    documents: int
    distance: int


class Vocabulary:
    """Answers from the table of VocabularyIndex. The words are kept for one commit, because all
    of them are compared with a misspelt one; safe to use from several threads.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._is_stop_word = analyzer.is_stop_word
        self._lock = threading.Lock()
        self._position: Position | None = None
        self._words = _Words((), (), ())

    def known(self, snapshot: Snapshot, terms: Collection[str]) -> set[str]:
        """Those of the terms that some document has."""
        rows = snapshot.select(
            f"""SELECT DISTINCT term FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(terms)),),
        )
        return {term for (term,) in rows}

    def documents(self, snapshot: Snapshot, terms: Collection[str]) -> int:
        """How many documents have the commonest word of these terms."""
        rows = snapshot.select(
            f"""SELECT max(documents) FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(terms)),),
        )
        return next((count for (count,) in rows if count is not None), 0)

    def in_one_document(self, snapshot: Snapshot, words: Collection[str]) -> set[str]:
        """Those of the words, folded, that one document alone has in this form."""
        rows = snapshot.select(
            f"""SELECT word FROM {TABLE}
            WHERE documents = 1 AND word IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(words)),),
        )
        return {word for (word,) in rows}

    def most_frequent(self, snapshot: Snapshot, count: int) -> list[KnownWord]:
        """The words that most documents have, of those that are fit to be added to a query."""
        rows = snapshot.select(
            f"""SELECT word, term, documents FROM {TABLE} WHERE is_concept
            ORDER BY documents DESC, word LIMIT ?""",
            (count,),
        )
        return [KnownWord(*row) for row in rows]

    def near(self, snapshot: Snapshot, word: str, term: str, most: int) -> list[NearWord]:
        """Known words within `most` errors of a word, one for each term, best first.

        When there is none, words whose stem is one error from the word's own: who types `recieved`
        may find only `receive` in the documents.
        """
        within = min(most, _forgiven(word))
        if within < 1:
            return []
        words = self._correctable(snapshot)
        found = _near(word, words.known, words.written, within)
        if not found and len(term) >= MIN_STEM and term != word:
            found = _near(term, words.known, words.terms, within=1)
        if len(word) < MIDDLE:
            # Every short word is near one of them, and nobody looks for them.
            found = [each for each in found if not self._is_stop_word(each.word)]
        return _one_for_each_term(found)

    def alike(self, snapshot: Snapshot, word: str, count: int, *, by_letters: bool) -> list[str]:
        """Known words that begin as this one does or contain it, or, `by_letters`, have most of
        its letters: too far from it to be what was meant, and a place to begin. Likest first.
        """
        from rapidfuzz.distance import Indel
        from rapidfuzz.process import extract

        if len(word) < 2:
            return []
        words = self._correctable(snapshot)
        chosen = {at for at, known in enumerate(words.written) if _is_part(word, known)}
        if by_letters:
            scorer = Indel.normalized_similarity
            like = extract(word, words.written, scorer=scorer, score_cutoff=ALIKE, limit=None)
            chosen.update(at for known, _, at in like if _begins_alike(word, known))
        found = [
            NearWord(known.word, known.term, known.documents, Indel.distance(word, known.word))
            for known in (words.known[at] for at in chosen)
            if not self._is_stop_word(known.word)
        ]
        found.sort(key=lambda each: (each.distance, -each.documents, each.word))
        return [each.word for each in _one_for_each_term(found)[:count]]

    def _correctable(self, snapshot: Snapshot) -> "_Words":
        """Words of letters only: no one means `h264` by a name of letters, or the other way."""
        with self._lock:
            if self._position != snapshot.position:
                rows = snapshot.select(f"SELECT word, term, documents FROM {TABLE} ORDER BY word")
                known = [KnownWord(*row) for row in rows if row[0].isalpha()]
                self._words = _Words(known, [k.word for k in known], [k.term for k in known])
                self._position = snapshot.position
            return self._words


@dataclass(frozen=True, slots=True)
class _Words:
    """Three views of one list, as the comparison wants them."""

    known: Sequence[KnownWord]
    written: Sequence[str]
    terms: Sequence[str]


def _forgiven(word: str) -> int:
    return 0 if len(word) < SHORT else 1 if len(word) < LONG else 2


def _near(
    typed: str, known: Sequence[KnownWord], written: Sequence[str], within: int
) -> list[NearWord]:
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    hits = extract(typed, written, scorer=OSA.distance, score_cutoff=within, limit=None)
    near = [
        NearWord(known[at].word, known[at].term, known[at].documents, int(distance))
        for candidate, distance, at in hits
        if _is_plausible(typed, candidate, int(distance))
    ]
    return sorted(
        near,
        key=lambda each: (
            each.distance,
            not _begins_alike(typed, each.word),
            -each.documents,
            each.word,
        ),
    )


def _is_plausible(typed: str, candidate: str, distance: int) -> bool:
    if len(candidate) < SHORT:
        return False
    if len(typed) < MIDDLE:
        return _begins_alike(typed, candidate) and len(candidate) == len(typed)
    is_long_enough = len(typed) >= LONG and distance == 1
    return is_long_enough or _begins_alike(typed, candidate)


def _begins_alike(typed: str, candidate: str) -> bool:
    """The same first letter, or the first two changed places."""
    return candidate[0] == typed[0] or candidate[:2] == typed[1::-1]


def _is_part(typed: str, known: str) -> bool:
    """One begins with the other, or the typed word stands within the known one."""
    if typed in known:
        return len(typed) >= (SHORT if known.startswith(typed) else MIN_PART)
    return len(known) >= MIN_PART and typed.startswith(known)


def _one_for_each_term(found: Iterable[NearWord]) -> list[NearWord]:
    """Of the forms of a word the best."""
    best: dict[str, NearWord] = {}
    for near in found:
        best.setdefault(near.term, near)
    return list(best.values())
