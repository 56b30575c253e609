"""What was guessed never outranks what was typed: one search for each, and one list of both.

BM25F adds up over units, so the two searches together are one. Any engine can be asked so.
"""

from collections.abc import Collection
from dataclasses import replace

from ragdocs.indices.hits import Hit, Scope
from ragdocs.indices.keyword import KeywordEngine, KeywordHits, KeywordQuery
from ragdocs.store.records import ChunkKey
from ragdocs.store.snapshot import Snapshot

BELOW = 0.99
"""The best passage found by guesses alone has this part of the score of the last one that has a
typed word."""
DEPTH = 4
"""Guessed words are looked up this many times deeper than results are wanted, so that most of the
passages with typed words, wherever they stand in that list, get what they gain by it."""


def search_in_tiers(
    engine: KeywordEngine,
    snapshot: Snapshot,
    query: KeywordQuery,
    limit: int,
    scope: Scope = None,
) -> KeywordHits:
    """Passages with a typed word first, by all that they match; then those with guessed ones.

    The ideal is that of the typed words: a word that nothing has stays a word not found. Without
    weaker units this is one search of the engine, and nothing else.
    """
    typed = engine.search(snapshot, replace(query, weaker=()), limit, scope)
    if not query.weaker or limit <= 0:
        return typed
    guesses = KeywordQuery(query.weaker, query.condition)
    guessed = engine.search(snapshot, guesses, limit * DEPTH, scope)
    hits = _merged(typed.hits, guessed.hits)[:limit]

    def scores_of(keys: Collection[ChunkKey]) -> dict[ChunkKey, float]:
        """By guesses alone no more than the last of the hits."""
        known, extra = typed.scores_of(keys), guessed.scores_of(keys)
        most = hits[-1].score if hits else 0.0
        return {
            key: known[key] + extra.get(key, 0.0) if key in known else min(most, extra[key])
            for key in {*known, *extra}
        }

    return KeywordHits(
        hits=hits,
        ideal=typed.ideal,
        frequencies={**guessed.frequencies, **typed.frequencies},
        scores_of=scores_of,
    )


def _merged(typed: tuple[Hit, ...], guessed: tuple[Hit, ...]) -> tuple[Hit, ...]:
    extra: dict[ChunkKey, float] = {hit.key: hit.score for hit in guessed}
    first = [Hit(hit.key, hit.score + extra.pop(hit.key, 0.0)) for hit in typed]
    first.sort(key=lambda hit: (-hit.score, hit.key))
    rest = [hit for hit in guessed if hit.key in extra]
    if first and rest:
        factor = min(1.0, BELOW * first[-1].score / rest[0].score) if rest[0].score > 0 else 1.0
        rest = [Hit(hit.key, hit.score * factor) for hit in rest]
    return (*first, *rest)
