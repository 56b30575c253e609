"""Tags over many documents: spellings that differ in case alone are one tag."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from ragdocs.search.library.answers import TagEntry
from ragdocs.store.records import StoredDocument


def count_tags(documents: Iterable[StoredDocument]) -> list[TagEntry]:
    """The most used first; of the spellings of a tag the most frequent."""
    spellings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for folded, tag in {tag.casefold(): tag for tag in document.tags}.items():
            spellings[folded][tag] += 1
    found = [
        TagEntry(tag=min(counts, key=lambda tag: (-counts[tag], tag)), documents=counts.total())
        for counts in spellings.values()
    ]
    return sorted(found, key=lambda entry: (-entry.documents, entry.tag.casefold(), entry.tag))
