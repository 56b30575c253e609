"""What a plain question quotes is a wish: passages with the phrase come first, the others follow.

How far first depends on the phrase (specs/0076). A name, which few passages have and whose rarest
word hardly stands elsewhere, is what was meant, wherever the words alone would put it; so are three
words and more. Two common words that somebody happened to quote say little: they bring a passage
forward by a part of the way.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import log

from ragdocs.indices.keyword import KeywordEngine, Quotation, Unit
from ragdocs.search.candidates import Candidate
from ragdocs.search.fusion import Fused
from ragdocs.search.ordering import best_first
from ragdocs.store.snapshot import Snapshot

FEW, FEW_PART = 2, 0.001
"""Up to so many passages, or this part of all, a phrase is as rare as can be."""
MANY, MANY_PART = 20, 0.01
"""From so many on it changes nothing."""
LEAST, SMALL, LARGE = 0.3, 50, 1000
"""How far two common words bring their passages to the front in a folder of so many passages or
more; in a small one all the way, and between the two less by the logarithm."""
NAME = 0.9
"""A phrase outside of which its rarest word hardly stands is a name."""
LONG = 3
"""So many words stand side by side on purpose, stop words not counted."""
ROOM = 0.5
"""How much of what is between the best score and 1, or 0, the wished ones use: little enough that
what follows is not cut off behind them."""
REASON = "phrase"


@dataclass(frozen=True, slots=True)
class Wish:
    """A quoted phrase, the passages that have it, and how far these are brought before all others,
    in [0, 1]; `is_name`: nobody writes it by chance.
    """

    unit: Unit
    keys: Set[int]
    strength: float
    is_name: bool


def look_up(
    quotations: Sequence[Quotation], engine: KeywordEngine, snapshot: Snapshot
) -> tuple[Wish, ...]:
    total = engine.count(snapshot)
    wishes: list[Wish] = []
    for unit, words in quotations:
        keys = engine.matching(snapshot, unit)
        # The engines' counts of words are not exact: one may be less than that of the phrase.
        rarest = max(len(keys), min(engine.frequencies(snapshot, unit.terms).values()))
        by_chance = total > SMALL and words < LONG and len(keys) < NAME * rarest
        far = strength(len(keys), rarest, words, total)
        wishes.append(Wish(unit, keys, far, is_name=bool(keys) and not by_chance))
    return tuple(wishes)


def strength(passages: int, rarest: int, words: int, total: int) -> float:
    """By how many of all passages have the phrase, and how many its rarest word."""
    if not passages:
        return 0.0
    few, many = max(FEW, FEW_PART * total), max(MANY, MANY_PART * total)
    rarity = _falling(passages, few, many)
    if words >= LONG:
        return rarity
    least = LEAST + (1.0 - LEAST) * _falling(total, SMALL, LARGE)
    return rarity * max(least, passages / rarest)


def _falling(count: int, most: float, none: float) -> float:
    """1 up to `most`, 0 from `none` on."""
    return min(1.0, max(0.0, log(none / count) / log(none / most)))


def wished_first(fused: Sequence[Fused], wishes: Sequence[Wish]) -> list[Fused]:
    """In the order in which they would be with their wishes; the scores are as they were."""
    raised = _Raised(wishes, max((item.score for item in fused), default=0.0))
    if not raised.wishes:
        return list(fused)
    return sorted(fused, key=lambda item: -raised.score(item.key, item.score))


def with_wishes(candidates: Sequence[Candidate], wishes: Sequence[Wish]) -> Sequence[Candidate]:
    """Best first; what raised a passage can be told."""
    raised = _Raised(wishes, max((item.score for item in candidates), default=0.0))
    if not raised.wishes:
        return candidates
    return best_first(
        [_raised(item, raised.score(item.stored.key, item.score)) for item in candidates]
    )


def _raised(item: Candidate, score: float) -> Candidate:
    if item.score <= 0 or score <= item.score:
        return item
    return item.changed(score=score, boosts={**item.boosts, REASON: score / item.score})


class _Raised:
    """Scores with the wishes that count; `best` is the best score without them."""

    def __init__(self, wishes: Sequence[Wish], best: float) -> None:
        self.wishes = [wish for wish in wishes if wish.strength > 0]
        self._best = best
        self._all = sum(wish.strength for wish in self.wishes)

    def score(self, key: int, score: float) -> float:
        had = [wish.strength for wish in self.wishes if key in wish.keys]
        if not had:
            return score
        room = ROOM * min(self._best, 1.0 - self._best)
        # First by how many of the wishes, then by what speaks for it otherwise.
        place = (2 * sum(had) / self._all + score) / 3
        target = self._best + room * place
        return score + max(had) * max(0.0, target - score)
