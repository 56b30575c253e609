"""The words of the documents: how many documents have each, and which are near a misspelt one."""

import json
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import (
    MAX_WORD_CHARS,
    Analyzer,
    analysis_fingerprint,
    is_simple,
    text_analyzer,
    word_patterns,
)
from ragdocs.indices.hits import MIDDLE, SHORT, NearWord
from ragdocs.indices.languages import fold_for
from ragdocs.memory import BoundedCache
from ragdocs.store.database import Database
from ragdocs.store.records import Position, StoredDocument, TextHash
from ragdocs.store.schema import row_hash, strings
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.tables import SELECT_DOCUMENTS, read_document

# The words that the documents use: candidates for a misspelt word, and for query expansion.
#
# Each word is stored as written, folded, with its term and the number of documents that have it in
# any searched field. Documents, not passages: a word that one long note repeats is not common, and
# a note changes the count of each of its words once. Numbers and text in scripts without spaces are
# left out: neither is misspelt.

TABLE = "vocabulary"
_LAYOUT_VERSION = 2

MAX_WORDS = 30_000
"""For one document: later words are searched, but no misspelt word is compared with them. Real
pages have up to 2,700, a novel of 3 MB about 18,000."""
MIN_CONCEPT_CHARS = 3
"""The minimum length of words that are added to queries, from the seeds."""
_CHAIN = re.compile("[.:]")
ENTRIES_BYTES = 4 << 20
HASHES_BYTES = 1 << 20

Entry = tuple[str, str, bool]
"""A folded word, its term, and whether it may be added to a query (a concept): three letters or
more, no stop word, no number, no chain of names such as `help.example.org`."""


def term_hash(word: str) -> TextHash:
    """The key of a single word in the cache of embeddings; no passage has the same."""
    return _term_hashes[word]


def _hash_term(word: str) -> TextHash:
    return TextHash(row_hash("term", (word,)))


_term_hashes = BoundedCache(_hash_term, HASHES_BYTES)


class WordList:
    """Lists the distinct words of texts, as written and as analysed."""

    def __init__(self, stemmer: Stemmer) -> None:
        self._analyzer: Analyzer = text_analyzer(stemmer)
        self._fold = fold_for(stemmer)
        self._remembered = BoundedCache(self._entries, ENTRIES_BYTES)

    def of(self, texts: Iterable[str]) -> set[Entry]:
        """Finds distinct words first and analyses them then: most of a text is repetition.

        In the order of first use, so that the limit always cuts at the same word.
        """
        raw: dict[str, None] = {}
        for text in texts:
            raw.update(dict.fromkeys(_raw_words(text)))
            if len(raw) > MAX_WORDS:
                raw = dict.fromkeys(islice(raw, MAX_WORDS))
                break
        found: set[Entry] = set()
        for word in raw:
            is_short = len(word) <= MAX_WORD_CHARS
            found.update(self._remembered[word] if is_short else self._entries(word))
        return found

    def _entries(self, raw: str) -> tuple[Entry, ...]:
        if is_simple(raw):
            # Most words have one token; this is three times as fast.
            words = [(self._fold(raw), term) for term in self._analyzer.terms(raw)]
        else:
            words = [
                (self._fold(raw[token.start : token.end]), token.term)
                for token in self._analyzer.tokens(raw)
            ]
        return tuple(
            (word, term, self._is_concept(word))
            for word, term in words
            if word.isalpha() or any(map(str.isalpha, word))
        )

    def _is_concept(self, word: str) -> bool:
        is_name = len(word) >= MIN_CONCEPT_CHARS and word[0].isalpha() and not _CHAIN.search(word)
        return is_name and not self._analyzer.is_stop_word(word)


@cache
def word_list(stemmer: Stemmer) -> WordList:
    """Shared, because it caches words."""
    return WordList(stemmer)


def _raw_words(text: str) -> Iterable[str]:
    is_ascii = text.isascii()
    pattern = word_patterns(is_ascii=is_ascii, is_code=False).word
    if is_ascii:
        return pattern.findall(text)
    return (match.group() for match in pattern.finditer(text) if not match.lastgroup)


class VocabularyIndex:
    """The table: one row for every word, as long as some document has it."""

    name = TABLE

    def __init__(self, stemmer: Stemmer) -> None:
        self._words = word_list(stemmer)
        self.version = f"{_LAYOUT_VERSION};{analysis_fingerprint(stemmer)}"

    def create(self, database: Database) -> None:
        database.run(
            f"""CREATE TABLE {TABLE} (word TEXT PRIMARY KEY, term TEXT NOT NULL,
            is_concept INTEGER NOT NULL, documents INTEGER NOT NULL) WITHOUT ROWID"""
        )
        database.run(f"CREATE INDEX {TABLE}_terms ON {TABLE} (term)")

    def drop(self, database: Database) -> None:
        database.run(f"DROP TABLE IF EXISTS {TABLE}")

    def put(self, database: Database, doc: int) -> None:
        entries = {entry[0]: entry for entry in self._entries(database, doc)}
        words = _json(entries)
        # One statement for all known words: three quarters of the time of one for each.
        new = database.all(
            f"SELECT value FROM json_each(?) WHERE value NOT IN (SELECT word FROM {TABLE})", words
        )
        self._count(database, words, 1)
        database.many(
            f"INSERT INTO {TABLE} (word, term, is_concept, documents) VALUES (?, ?, ?, 1)",
            [entries[word] for (word,) in new],
        )

    def remove(self, database: Database, doc: int) -> None:
        """Reads the document's words again from its rows, which are as they were at `put`."""
        words = _json(entry[0] for entry in self._entries(database, doc))
        self._count(database, words, -1)
        database.run(
            f"""DELETE FROM {TABLE} WHERE documents <= 0
            AND word IN (SELECT value FROM json_each(?))""",
            words,
        )

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        """A word has one row, even if two documents give it different terms: the first counts."""
        counted, entries = Counter[str](), set[Entry]()
        for doc in docs:
            found = self._entries(database, doc)
            counted.update({word for word, _, _ in found})
            entries |= found
        select = f"SELECT documents, word, term, is_concept FROM {TABLE}"
        for documents, word, term, is_concept in database.each(select):
            entry = (word, term, bool(is_concept))
            if counted.pop(word, 0) != documents or entry not in entries:
                return False
        return not counted

    def text_hashes(self, database: Database) -> Iterator[TextHash]:
        """The texts that have vectors only because of this index: no chunk has them."""
        for (word,) in database.each(f"SELECT word FROM {TABLE} WHERE is_concept"):
            yield term_hash(word)

    def _count(self, database: Database, words: tuple[str], change: int) -> None:
        database.run(
            f"""UPDATE {TABLE} SET documents = documents + ?
            WHERE word IN (SELECT value FROM json_each(?))""",
            (change, *words),
        )

    def _entries(self, database: Database, doc: int) -> set[Entry]:
        row = database.one(f"{SELECT_DOCUMENTS} WHERE key = ?", (doc,))
        if row is None:
            return set()
        return self._words.of(_texts(database, doc, read_document(row)))


def _texts(database: Database, doc: int, document: StoredDocument) -> Iterator[str]:
    """All searched texts of a document, each once, in reading order."""
    yield from _own_texts(document)
    seen: set[str] = set()
    # Not checked against their hashes: every read for an answer checks them, and checking would
    # double the time that a document takes here.
    select = "SELECT breadcrumb, text, position FROM chunks WHERE doc = ?"
    for breadcrumb, text, _ in database.paged(select, (doc,), "position", 2):
        if breadcrumb not in seen:
            seen.add(breadcrumb)
            yield from strings(breadcrumb)
        yield text or ""


def _json(words: Iterable[str]) -> tuple[str]:
    return (json.dumps(list(words)),)


def _own_texts(document: StoredDocument) -> tuple[str, ...]:
    """The document's own texts in `field_texts`."""
    metadata = document.front_matter
    return (
        document.title,
        document.path,
        metadata.description,
        metadata.author,
        *metadata.keywords,
        *metadata.aliases,
        *document.tags,
    )


# Reading the vocabulary: which terms are known, which words are near a misspelt one, and common.
#
# Nearness is the optimal string alignment distance: a missing, added or wrong letter, or two
# swapped letters, count one each. The first letter is usually right, and a short word is near too
# many others, so both restrict what counts as near.

LONG = 6
"""Under SHORT letters no word is near; under MIDDLE only one of the same length and first letter;
under LONG only one error is allowed, and the first letter must match."""
MIN_STEM = 4
"""Shorter stems are near too many words: `us`, the stem of use."""
MIN_PART = 5
"""Shorter words are contained in too many others."""
ALIKE = 0.75
"""The least share of letters, in order, that two similarly spelt words have in common."""


@dataclass(frozen=True, slots=True)
class KnownWord:
    """A word of the documents, its term, and how many documents have it."""

    word: str
    term: str
    documents: int


class Vocabulary:
    """Reads the table of VocabularyIndex. Keeps the words of one commit, because a misspelt word is
    compared with all of them; safe to use from several threads.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._is_stop_word = analyzer.is_stop_word
        self._lock = threading.Lock()
        self._position: Position | None = None
        self._words = _Words((), (), ())

    def known_terms(self, snapshot: Snapshot, terms: Collection[str]) -> set[str]:
        """The terms that some document has."""
        rows = snapshot.select(
            f"""SELECT DISTINCT term FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(terms)),),
        )
        return {term for (term,) in rows}

    def count_documents_with(self, snapshot: Snapshot, terms: Collection[str]) -> int:
        """How many documents have the most common word with one of these terms."""
        rows = snapshot.select(
            f"""SELECT max(documents) FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(terms)),),
        )
        return next((count for (count,) in rows if count is not None), 0)

    def document_frequencies(self, snapshot: Snapshot, terms: Collection[str]) -> dict[str, int]:
        """How many documents have each of the known terms."""
        most = snapshot.ledger.count("documents")
        rows = snapshot.select(
            f"""SELECT term, sum(documents) FROM {TABLE}
            WHERE term IN (SELECT value FROM json_each(?)) GROUP BY term""",
            (json.dumps(sorted(terms)),),
        )
        return {term: min(count, most) for term, count in rows}

    def words_in_one_document(self, snapshot: Snapshot, words: Collection[str]) -> set[str]:
        """The folded words that exactly one document has in this form."""
        rows = snapshot.select(
            f"""SELECT word FROM {TABLE}
            WHERE documents = 1 AND word IN (SELECT value FROM json_each(?))""",
            (json.dumps(sorted(words)),),
        )
        return {word for (word,) in rows}

    def most_frequent(self, snapshot: Snapshot, count: int) -> list[KnownWord]:
        """The concepts that most documents have."""
        rows = snapshot.select(
            f"""SELECT word, term, documents FROM {TABLE} WHERE is_concept
            ORDER BY documents DESC, word LIMIT ?""",
            (count,),
        )
        return [KnownWord(*row) for row in rows]

    def near_words(self, snapshot: Snapshot, word: str, term: str, most: int) -> list[NearWord]:
        """Known words within `most` errors of a word, one for each term, best first.

        If there is none, words whose stem is one error from the word's stem: for `recieved` the
        documents may have only `receive`.
        """
        within = min(most, _forgiven(word))
        if within < 1:
            return []
        words = self._correctable(snapshot)
        found = _near(word, words.known, words.written, within)
        if not found and len(term) >= MIN_STEM and term != word:
            found = _near(term, words.known, words.terms, within=1)
        if len(word) < MIDDLE:
            # Every short word is near a stop word, and nobody searches for those.
            found = [each for each in found if not self._is_stop_word(each.word)]
        return _one_for_each_term(found)

    def similar_words(
        self, snapshot: Snapshot, word: str, count: int, *, by_letters: bool
    ) -> list[str]:
        """Known words that contain this one or begin with the same letters, or, `by_letters`, have
        most of its letters: too different to be meant, but a place to begin. Most similar first.
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
        """Words of letters only: nobody types letters only and means `h264`, or the reverse."""
        with self._lock:
            if self._position != snapshot.position:
                rows = snapshot.select(f"SELECT word, term, documents FROM {TABLE} ORDER BY word")
                known = [KnownWord(*row) for row in rows if row[0].isalpha()]
                self._words = _Words(known, [k.word for k in known], [k.term for k in known])
                self._position = snapshot.position
            return self._words


@dataclass(frozen=True, slots=True)
class _Words:
    """Three columns of one list, as the comparison needs them."""

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
    """The same first letter, or the first two letters swapped."""
    return candidate[0] == typed[0] or candidate[:2] == typed[1::-1]


def _is_part(typed: str, known: str) -> bool:
    """Whether one begins with the other, or the known word contains the typed one."""
    if typed in known:
        return len(typed) >= (SHORT if known.startswith(typed) else MIN_PART)
    return len(known) >= MIN_PART and typed.startswith(known)


def _one_for_each_term(found: Iterable[NearWord]) -> list[NearWord]:
    """The best form of each word."""
    best: dict[str, NearWord] = {}
    for near in found:
        best.setdefault(near.term, near)
    return list(best.values())
