"""The words that the documents use: what a misspelt word may have meant, what a query may add.

Words stand here as they are written, without case, each with the term that the analysis makes of
it, and the number of documents that have it in any field that keyword search looks at. Documents,
not passages: a word that one long note repeats is not common, and one note changes each of its
words once. Numbers and text without spaces between words are left out: neither is misspelt.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from ragdocs.bounded_cache import BoundedCache
from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import (
    Analyzer,
    analysis_fingerprint,
    text_analyzer,
)
from ragdocs.indices.stemming import fold_for
from ragdocs.indices.words import MAX_WORD_CHARS, is_simple, word_patterns
from ragdocs.store.connection import Database
from ragdocs.store.document_rows import SELECT_DOCUMENTS, read_document
from ragdocs.store.records import StoredDocument, TextHash
from ragdocs.store.rows import row_hash, strings

TABLE = "vocabulary"
_LAYOUT_VERSION = 2

MAX_WORDS = 30_000
"""Of one document, the first ones: the others are searched, but no misspelt word is compared with
them. Real pages have up to 2,700, a novel of 3 MB some 18,000."""
MIN_CONCEPT_CHARS = 3
"""The seeds' minimum for words that are added to queries."""
_CHAIN = re.compile("[.:]")
ENTRIES_BYTES = 4 << 20
HASHES_BYTES = 1 << 20

Entry = tuple[str, str, bool]
"""A word as written, folded; its term; whether it may be added to a query (a concept): of three
letters or more, no stop word, no number, no chain of names such as `help.example.org`."""


def term_hash(word: str) -> TextHash:
    """Stands for a word by itself in the cache of embeddings; no passage has the same."""
    return _term_hashes[word]


def _hash_term(word: str) -> TextHash:
    return TextHash(row_hash("term", (word,)))


_term_hashes = BoundedCache(_hash_term, HASHES_BYTES)


class WordList:
    """Tells the words of texts, each once: as written, and as analysed."""

    def __init__(self, stemmer: Stemmer) -> None:
        self._analyzer: Analyzer = text_analyzer(stemmer)
        self._fold = fold_for(stemmer)
        self._remembered = BoundedCache(self._entries, ENTRIES_BYTES)

    def of(self, texts: Iterable[str]) -> set[Entry]:
        """Distinct words are found first and analysed then: most of a text is repetition.

        In the order in which they are first written, so that the limit always leaves the same.
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
            # Most words: one token, told three times as fast.
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
    """Shared, because it remembers words."""
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
        # All at once, then only the new ones: three quarters of the time of a statement for each.
        new = database.all(
            f"SELECT value FROM json_each(?) WHERE value NOT IN (SELECT word FROM {TABLE})", words
        )
        self._count(database, words, 1)
        database.many(
            f"INSERT INTO {TABLE} (word, term, is_concept, documents) VALUES (?, ?, ?, 1)",
            [entries[word] for (word,) in new],
        )

    def remove(self, database: Database, doc: int) -> None:
        """The document's words are told again from its rows, as they were when it came in."""
        words = _json(entry[0] for entry in self._entries(database, doc))
        self._count(database, words, -1)
        database.run(
            f"""DELETE FROM {TABLE} WHERE documents <= 0
            AND word IN (SELECT value FROM json_each(?))""",
            words,
        )

    def holds(self, database: Database, docs: Iterable[int]) -> bool:
        """A word has one row, though its term may be told in two ways: the first that came."""
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
        """The texts that have vectors for this index's sake: no chunk holds them."""
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
    """All that is searched of a document, each text once, in reading order."""
    yield from _own_texts(document)
    seen: set[str] = set()
    # Not checked against their hashes: whoever reads them to answer does, and this is half of the
    # time that a document takes here.
    select = "SELECT breadcrumb, text, position FROM chunks WHERE doc = ?"
    for breadcrumb, text, _ in database.paged(select, (doc,), "position", 2):
        if breadcrumb not in seen:
            seen.add(breadcrumb)
            yield from strings(breadcrumb)
        yield text or ""


def _json(words: Iterable[str]) -> tuple[str]:
    return (json.dumps(list(words)),)


def _own_texts(document: StoredDocument) -> tuple[str, ...]:
    """What `field_texts` gives of the document itself."""
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
