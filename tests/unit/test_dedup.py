from dataclasses import replace
from math import cos, sin

import pytest

from ragdocs.indices.ngrams import (
    SIGNATURE_BITS,
    estimated_jaccard,
    jaccard,
    ngram_signature,
    ngrams,
)
from ragdocs.search.candidates import Stage
from ragdocs.search.dedup import (
    content_hash,
    drop_identical,
    drop_near_copies,
    drop_similar,
    limit_per_document,
    prefer_other_documents,
)
from ragdocs.search.stages import CompressionStats, StageCount, StageName, run_stages
from tests.support.engine import ParsedCorpus, candidates, places, slugs

ABOUT_TOKENS = (
    "OAuth tokens are used for authentication. Refresh tokens allow obtaining new access tokens "
    "without asking the user again, and expire after thirty days unless they are used."
)
EDITED = ABOUT_TOKENS.replace("thirty", "sixty")
ABOUT_BREAD = (
    "Knead the dough until it is smooth, let it rise in a warm place for an hour, and bake it on a "
    "hot stone. Whole grain needs more water and a little more patience."
)


# Nearly the same meaning: vectors (P8).


def test_semantic_dedup_clusters():
    items = candidates(*"abcd", vectors=[(1, 0), (0.99, 0.1), (0, 1), (0.1, 0.99)])
    assert places(drop_similar(items, 0.85)) == [0, 2]


def test_semantic_dedup_threshold():
    items = candidates(*"ab", vectors=[(1, 0), (0.6, 0.8)])  # cosine 0.6
    assert places(drop_similar(items, 0.59)) == [0]
    assert places(drop_similar(items, 0.61)) == [0, 1]


def test_the_same_vector_is_the_same_at_every_threshold():
    vector = (0.1, 0.2, 0.3, 0.7)
    assert places(drop_similar(candidates(*"ab", vectors=[vector, vector]), 1.0)) == [0]


def test_semantic_dedup_needs_no_unit_vectors():
    items = candidates(*"abc", vectors=[(3, 0), (0.2, 0), (0, 0)])
    assert places(drop_similar(items, 0.9)) == [0, 2]


def test_what_has_no_vector_yet_is_like_nothing():
    items = candidates(*"abc", vectors=[(1, 0), None, None])
    assert places(drop_similar(items, 0.0)) == [0, 1, 2]


def test_a_dropped_candidate_drops_no_other():
    # Each is like the one before it, the third is not like the first.
    items = candidates(*"abc", vectors=[(1, 0), (0.8, 0.6), (0.28, 0.96)])
    assert places(drop_similar(items, 0.75)) == [0, 2]


def test_dedup_preserves_order():
    texts = [ABOUT_TOKENS, ABOUT_BREAD, EDITED, "Something else.", ABOUT_BREAD]
    vectors = [(1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)]
    items = candidates(*texts, vectors=vectors)
    assert places(drop_identical(items)) == [0, 1, 2, 3]
    assert places(drop_near_copies(items, 0.7)) == [0, 1, 3]
    assert places(drop_similar(items, 0.85)) == [0, 1, 3]


def test_semantic_dedup_clusters_similar():
    """Of three directions with two passages each, the better of each stays."""
    vectors = [(1, 0, 0), (0, 1, 0), (0.98, 0.1, 0), (0, 0, 1), (0, 0.1, 0.99), (0.1, 0.99, 0)]
    assert places(drop_similar(candidates(*"abcdef", vectors=vectors), 0.85)) == [0, 1, 3]


def test_semantic_dedup_threshold_tuning():
    """A higher threshold never leaves fewer."""
    angles = [n * 0.15 for n in range(10)]
    items = candidates(*"abcdefghij", vectors=[(cos(angle), sin(angle)) for angle in angles])
    left = [len(drop_similar(items, threshold)) for threshold in (0.5, 0.8, 0.85, 0.95, 0.999)]
    assert left == sorted(left)
    assert (left[0], left[-1]) == (2, 10)


def test_dedup_preserves_ranking():
    items = candidates(*"abcde", vectors=[(1, 0), (0, 1), (1, 0.01), (0.7, 0.7), (0.01, 1)])
    kept = drop_similar(items, 0.95)
    assert places(kept) == [0, 1, 3]
    assert kept == sorted(kept, key=lambda item: -item.score)
    assert all(item in items for item in kept)


# The same text (hash).


def test_identical_texts_are_one_result_and_the_first_stays():
    items = candidates("Same words.", "Other words.", "Same words.\n\n")
    assert places(drop_identical(items)) == [0, 1]


def test_content_hash_dedup():
    items = candidates(ABOUT_TOKENS, ABOUT_TOKENS, EDITED, ABOUT_TOKENS + "\n", ABOUT_BREAD)
    assert places(drop_identical(items)) == [0, 2, 4]
    assert content_hash(ABOUT_TOKENS) != content_hash(EDITED)


def test_a_stored_hash_is_believed():
    items = [replace(item, content_hash=content_hash("x")) for item in candidates("one", "two")]
    assert places(drop_identical(items)) == [0]


# Nearly the same wording: trigrams (P12).


def test_ngram_extraction():
    expected = {"hel", "ell", "llo", "lo ", "o w", " wo", "wor", "orl", "rld"}
    assert ngrams("Hello   World") == expected
    assert ngrams(" hello\nworld\t") == expected
    assert ngrams("Hi") == {"hi"}
    assert ngrams(" \n") == frozenset()


def test_the_signature_has_a_bit_for_every_ngram():
    assert ngram_signature("") == ngram_signature(" \n ") == 0
    assert ngram_signature("Hi").bit_count() == 1
    assert ngram_signature("Hello World") == ngram_signature("hello\n\n world ")
    assert ngram_signature("caf\u00e9 noir") == ngram_signature("cafe\u0301 noir")
    assert ngram_signature("hello world").bit_count() == 9
    assert ngram_signature(ABOUT_TOKENS).bit_length() <= SIGNATURE_BITS


@pytest.mark.parametrize("text", ["abc", "日本語", "🦊🦊🦊", ABOUT_TOKENS, "\0\0\0"])
def test_the_signature_is_the_same_whoever_computes_it(text):
    """It is to be stored: three code points of 21 bits, Fibonacci hashing, 4096 places."""
    bits = 0
    for one, two, three in ngrams(text):
        packed = ord(one) << 42 | ord(two) << 21 | ord(three)
        bits |= 1 << (packed * 0x9E3779B97F4A7C15 % 2**64 >> 52)
    assert ngram_signature(text) == bits


def test_jaccard_identical():
    assert jaccard(ngrams(ABOUT_TOKENS), ngrams(ABOUT_TOKENS.upper())) == pytest.approx(1.0)
    assert estimated_jaccard(ngram_signature("abc"), ngram_signature("abc")) == pytest.approx(1.0)


def test_jaccard_similarity():
    """Common trigrams by all trigrams; which text comes first does not matter."""
    one, other = ngrams(ABOUT_TOKENS), ngrams(EDITED)
    assert jaccard(one, other) == len(one & other) / len(one | other)
    assert jaccard(one, other) == jaccard(other, one)
    assert 0.8 < jaccard(one, other) < 1


def test_jaccard_disjoint():
    assert jaccard(ngrams("aaaa"), ngrams("bbbb")) == pytest.approx(0.0)
    assert jaccard(ngrams(""), ngrams("")) == pytest.approx(0.0)
    assert estimated_jaccard(ngram_signature(""), ngram_signature("")) == pytest.approx(0.0)


def test_jaccard_partial():
    one, other = "abcdef", "abcdxy"  # abc bcd cde def | abc bcd cdx dxy
    assert jaccard(ngrams(one), ngrams(other)) == pytest.approx(2 / 6)
    estimate = estimated_jaccard(ngram_signature(one), ngram_signature(other))
    assert estimate == pytest.approx(2 / 6, abs=0.01)


def test_the_estimate_is_near_the_truth():
    words = (ABOUT_TOKENS + " " + ABOUT_BREAD).split()
    for cut in range(0, len(words), 3):
        one, other = " ".join(words[: cut + 20]), " ".join(words[cut // 2 :])
        exact = jaccard(ngrams(one), ngrams(other))
        estimate = estimated_jaccard(ngram_signature(one), ngram_signature(other))
        assert estimate == pytest.approx(exact, abs=0.03)


def test_ngram_dedup_removes_exact():
    items = candidates(ABOUT_TOKENS, ABOUT_TOKENS.upper(), ABOUT_BREAD)
    assert places(drop_near_copies(items, 0.7)) == [0, 2]


def test_ngram_dedup_removes_exact_duplicates():
    items = candidates(ABOUT_BREAD, *[ABOUT_TOKENS] * 5, ABOUT_BREAD)
    assert places(drop_near_copies(items, 1.0)) == [0, 1]


def test_ngram_dedup_threshold():
    """What is dropped at a threshold is dropped at every lower one."""
    items = candidates(ABOUT_TOKENS, EDITED, ABOUT_TOKENS[: len(ABOUT_TOKENS) // 2], ABOUT_BREAD)
    left = {threshold: places(drop_near_copies(items, threshold)) for threshold in (0.3, 0.7, 1.0)}
    assert left == {0.3: [0, 3], 0.7: [0, 2, 3], 1.0: [0, 1, 2, 3]}


def test_ngram_dedup_keeps_different():
    items = candidates(ABOUT_TOKENS, ABOUT_BREAD, "Short.")
    assert drop_near_copies(items, 0.7) == items


def test_two_words_whose_bits_fall_together_are_not_copies():
    items = candidates(">BÉ", "𖭽<^")
    assert drop_near_copies(items, 0.7) == items


def test_ngram_dedup_threshold_boundary():
    exact = jaccard(ngrams(ABOUT_TOKENS), ngrams(EDITED))
    items = candidates(ABOUT_TOKENS, EDITED)
    assert places(drop_near_copies(items, exact)) == [0]
    assert places(drop_near_copies(items, exact + 1e-9)) == [0, 1]


def test_large_texts_that_fill_their_bitmaps_are_compared_exactly():
    one = "".join(map(chr, range(0x4E00, 0x4E00 + 18_000)))
    other = "".join(map(chr, range(0x4E00 + 17_000, 0x4E00, -1)))
    assert ngram_signature(one).bit_count() > 0.9 * SIGNATURE_BITS
    assert places(drop_near_copies(candidates(one, other, one + "x"), 0.7)) == [0, 1]


def test_a_stored_signature_is_believed():
    signature = ngram_signature(ABOUT_TOKENS)
    items = [replace(item, ngrams=signature) for item in candidates(ABOUT_BREAD, "Something.")]
    assert places(drop_near_copies(items, 0.7)) == [0]


# Not too many of one document (P8).

MANUAL = "".join(f"# Part {n}\n\nText of part {n}.\n\n" for n in range(4))


def manual():
    corpus = ParsedCorpus().add("manual.md", MANUAL).add("note.md", "# Note\n\nA note.\n")
    scored = {"manual.md#part-0": 0.9, "manual.md#part-1": 0.8, "note.md#note": 0.7}
    scored |= {"manual.md#part-2": 0.6, "manual.md#part-3": 0.5}
    return [corpus.candidate(place, score) for place, score in scored.items()]


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (1, ["part-0", "note"]),
        (2, ["part-0", "part-1", "note"]),
        (9, ["part-0", "part-1", "note", "part-2", "part-3"]),
    ],
)
def test_limit_per_doc(limit, left):
    assert slugs(limit_per_document(manual(), limit)) == left


def test_dedup_limits_per_document():
    for limit in (1, 2, 3):
        documents = [item.document.path for item in limit_per_document(manual(), limit)]
        assert documents.count("manual.md") == limit
        assert documents.count("note.md") == 1


def test_doc_limit_preserves_ranking():
    kept = limit_per_document(manual(), 2)
    scores = [item.score for item in kept]
    assert scores == sorted(scores, reverse=True) == pytest.approx([0.9, 0.8, 0.7])


def trusted(*confidences):
    """Three of the manual, then some of notes, each with its confidence."""
    corpus = ParsedCorpus().add(
        "manual.md", "".join(f"# Part {n}\n\nText {n}.\n\n" for n in range(4))
    )
    places = [f"manual.md#part-{n}" for n in range(3)]
    for n in range(len(confidences) - 3):
        corpus.add(f"note-{n}.md", f"# Note {n}\n\nWords.\n")
        places.append(f"note-{n}.md#note-{n}")
    return [
        corpus.candidate(place, score, confidence=score)
        for place, score in zip(places, confidences, strict=True)
    ]


def test_the_usual_limit_stands_while_others_have_half_the_confidence():
    items = trusted(0.9, 0.9, 0.8, 0.5, 0.4)
    left = prefer_other_documents(items, 2, top_n=4)
    assert slugs(left) == ["part-0", "part-1", "note-0", "note-1"]


def test_the_usual_limit_gives_way_to_what_is_twice_as_sure_as_its_rival():
    items = trusted(0.9, 0.9, 0.8, 0.5, 0.39)
    left = prefer_other_documents(items, 2, top_n=4)
    assert slugs(left)[:4] == ["part-0", "part-1", "part-2", "note-0"]
    assert not any(item.is_over_limit for item in left)


def test_what_gives_way_comes_before_its_rival_wherever_it_stood():
    first, second, third, rival = trusted(0.9, 0.9, 0.8, 0.3)
    left = prefer_other_documents([first, second, rival, third], 2, top_n=3)
    assert slugs(left)[:3] == ["part-0", "part-1", "part-2"]


def test_the_surest_of_those_over_the_limit_is_compared():
    left = prefer_other_documents(trusted(0.9, 0.1, 0.8, 0.3), 1, top_n=2)
    assert slugs(left)[:2] == ["part-0", "part-2"]


def test_the_usual_limit_gives_way_to_nothing_at_all():
    left = prefer_other_documents(trusted(0.9, 0.9, 0.2), 2, top_n=5)
    assert slugs(left) == ["part-0", "part-1", "part-2"]
    assert [item.is_over_limit for item in left] == [False, False, True]


def test_where_places_are_few_nothing_is_taken_beyond_them():
    left = prefer_other_documents(trusted(0.9, 0.9, 0.8, 0.1), 1, top_n=1)
    assert slugs(left)[:1] == ["part-0"]


# Statistics.


def stage(name, left):
    return Stage(name, lambda items: items[:left])


def test_compression_stats():
    items = candidates(*"abcdefghij")
    names = (
        StageName.CONFIDENCE, StageName.IDENTICAL, StageName.NGRAM,
        StageName.SEMANTIC, StageName.DOCUMENT_LIMIT, StageName.TOP_N,
    )  # fmt: skip
    stages = [stage(name, 9 - place) for place, name in enumerate(names)]
    _, counts = run_stages(stages, items)
    assert CompressionStats.from_counts(len(items), counts) == CompressionStats(
        original_count=10,
        after_threshold=9,
        after_content_dedup=8,
        after_ngram_dedup=7,
        after_dedup=6,
        after_doc_limit=5,
        clusters_merged=1,
    )


def test_a_stage_that_is_off_leaves_what_the_one_before_left():
    counts = [StageCount("calibrate", 10, 10), StageCount("filters", 10, 6)]
    counts.append(StageCount("mmr", 6, 5))
    assert CompressionStats.from_counts(10, counts) == CompressionStats(10, 6, 6, 6, 5, 5, 0)
    assert CompressionStats.from_counts(0, []) == CompressionStats(0, 0, 0, 0, 0, 0, 0)
