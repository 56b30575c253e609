"""Words that mean the same in general (P5): weaker than typed ones, and found without any model."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.stemming import fold
from ragdocs.search.understanding import AddedWord, Origin

MAX_SYNONYMS = 3
WEIGHT = 0.3
"""What a synonym counts against a typed word: most words have several meanings."""


class Thesaurus(Protocol):
    """A word, and single words that can stand for it, best first."""

    def related(self, word: str) -> Sequence[str]:
        """Empty for a word it does not know. Raises ConfigError when its data is not there."""
        ...


def synonyms(text: str, analyzer: Analyzer, thesaurus: Thesaurus) -> Iterator[AddedWord]:
    """At most three for each word of a query, as one term each."""
    for token in analyzer.query(text):
        word = fold(text[token.start : token.end])
        if token.is_whole or not word.isalpha():
            continue
        for related in thesaurus.related(word)[:MAX_SYNONYMS]:
            terms = analyzer.query(related)
            if len(terms) == 1:
                yield AddedWord(related, terms[0].term, Origin.SYNONYM, WEIGHT, stands_for=word)
