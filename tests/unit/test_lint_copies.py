"""Near-copies among many passages: found as by comparing all pairs, with far less work."""

import random
from datetime import UTC, datetime
from itertools import combinations

import pytest

from ragdocs.indices.hits import PassageSignature
from ragdocs.indices.ngrams import SIGNATURE_BITS, estimated_jaccard, ngram_signature
from ragdocs.lint import copies
from ragdocs.lint.copies import find_copies
from ragdocs.lint.links import NearNames
from ragdocs.models import DateSource, DocId, FrontMatter, TreeName
from ragdocs.store.records import StoredDocument

WORDS = [
    "".join(random.Random(seed).choices("abcdefghijklmnoprstuvw", k=4 + seed % 6))
    for seed in range(900)
]


def passage(seed, length=60):
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def edited(text, seed, count):
    words = text.split()
    for at in random.Random(seed).sample(range(len(words)), count):
        words[at] = "changed"
    return " ".join(words)


def documents_of(texts):
    return {
        DocId(f"docs:{name}"): StoredDocument(
            DocId(f"docs:{name}"), TreeName("docs"), name, name, FrontMatter(), (),
            datetime(2026, 1, 1, tzinfo=UTC), DateSource.MTIME, "utf-8", 1, 1, 0, (),
        )
        for name in texts
    }  # fmt: skip


def signatures_of(texts):
    for name, text in texts.items():
        ngrams = ngram_signature(text).to_bytes(SIGNATURE_BITS // 8, "little")
        yield PassageSignature(DocId(f"docs:{name}"), 1, 9, text.encode(), ngrams)


def found(texts, threshold=0.9):
    return {
        finding.path: finding.related[0].path
        for finding in find_copies(signatures_of(texts), documents_of(texts), threshold)
    }


def test_what_is_found_agrees_with_comparing_all_pairs():
    texts = {f"{number:03}.md": passage(number) for number in range(150)}
    for number in range(40):
        texts[f"copy{number:02}.md"] = edited(texts[f"{number:03}.md"], number, number % 6)
    bitmaps = {name: ngram_signature(text) for name, text in texts.items()}
    expected = {
        max(one, other): min(one, other)
        for one, other in combinations(sorted(texts), 2)
        if estimated_jaccard(bitmaps[one], bitmaps[other]) >= 0.9
    }
    assert 15 < len(expected) < 40
    assert found(texts) == expected


def test_an_edited_copy_is_found_and_another_text_is_not():
    texts = {"a.md": passage(1), "b.md": edited(passage(1), 1, 1), "c.md": passage(2)}
    assert found(texts) == {"b.md": "a.md"}
    assert found(texts, threshold=1.0) == {}


def test_many_copies_are_reported_once_each_against_the_first():
    texts = {f"{number:03}.md": passage(7) for number in range(120)}
    assert found(texts) == {f"{number:03}.md": "000.md" for number in range(1, 120)}


def test_short_passages_are_no_copies():
    assert found({"a.md": "See also the guide.", "b.md": "See also the guide."}) == {}


def test_a_single_document_has_no_copies():
    assert found({}) == {} == found({"a.md": passage(1)})


def test_the_work_grows_with_the_passages_and_not_with_their_square(monkeypatch):
    pairs, alike = [], copies._alike

    def counted(passages):
        for pair in alike(passages):
            pairs.append(pair)
            yield pair

    monkeypatch.setattr(copies, "_alike", counted)
    base = passage(3)
    texts = {f"{number:04}.md": edited(base, number, 2) for number in range(600)}
    assert len(found(texts, threshold=0.8)) > 580
    bands, per_passage = copies.WORDS // copies.BAND, copies.NEIGHBOURS + 1
    assert len(pairs) <= bands * per_passage * len(texts) < len(texts) ** 2 / 4


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("Instalation", "Installation"),
        ("installation", "Installation"),
        ("set up the engine", "Setting up the engine"),
        ("Zebra", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_a_similar_one_or_none(wanted, expected):
    names = ["Installation", "Setting up the engine", "Engine", "Configuration", "Usage"]
    assert NearNames(names).nearest(wanted) == expected
