"""Confidence: the evidence for a passage as one figure, and the curve that makes a probability of
it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from ragdocs.indices.keyword import idf
from ragdocs.search.candidates import Candidate, ExactToken, Grounds, Strategy
from ragdocs.search.fusion import share_of_a_name
from ragdocs.search.sections import Naming, is_asked_by_name
from ragdocs.store.records import ChunkKey

# From evidence to confidence: a sigmoid with a threshold and a steepness.


@dataclass(frozen=True, slots=True)
class Calibration:
    """`threshold` is the evidence that means one half, `steepness` how sharply it turns there."""

    threshold: float
    steepness: float

    def of(self, value: float) -> float:
        """1 / (1 + e^(-steepness · (value - threshold))), for any value without overflow."""
        exponent = self.steepness * (value - self.threshold)
        if exponent >= 0:
            return 1.0 / (1.0 + math.exp(-exponent))
        power = math.exp(exponent)
        return power / (1.0 + power)


def calibrate(
    candidates: Sequence[Candidate],
    curve: Calibration,
    factor: Callable[[Candidate], float] = lambda _: 1.0,
) -> list[Candidate]:
    """The confidence is made from `relevance` alone: the evidence, or a rank sum, whose `factor` is
    that of recency. The score, which has the boosts too and orders results of about the same
    confidence, is only brought into [0, 1], in proportion.
    """
    largest = max((item.score for item in candidates), default=0.0)
    divisor = max(1.0, largest)
    scale = {"scale": 1.0 / divisor} if divisor > 1 else {}
    return [
        item.changed(
            score=min(1.0, max(0.0, item.score) / divisor),
            confidence=curve.of(item.relevance * factor(item)),
            boosts={**item.boosts, **scale},
        )
        for item in candidates
    ]


# What speaks for a passage, as one figure: the ground of its confidence and of its place.
#
# It is made from this passage, its document and the question alone: nothing compares it with other
# results, so a second page that answers too, or a copy, changes nothing. How near a passage is in
# meaning and how much of the words it has speak for it, meaning less the longer the question. The
# question itself says how much that is worth: rare words are seldom there by chance, and where all
# passages are about as near, or where there are many, something always is. Fitted together with the
# curve (confidence.py) by scripts/fit_calibration.py, on questions whose answers are there and on
# the same ones with their answers left out; specs/0093 has the measurement.

SIMILARITY_SHARE, SHARE_SLOPE = 0.65, 0.4
"""What meaning counts beside words in a question of usual length, and how much less by the
logarithm of its length."""
USUAL_WORDS, FEWEST_WORDS = 5, 4
SMALLEST_SHARE, LARGEST_SHARE = 0.15, 0.9
CODE_PART = 0.6
"""What words in blocks of code count of those in prose: names stand there by the dozen."""
RARITY_WEIGHT = 0.187
OTHER_PASSAGES, OTHERS_WITH = 200, 2
"""As if there were so many more passages, and so many of them had the word: in a folder of five
files two that have it would otherwise make it common, and a copy would double its frequency."""
RAREST = 1.2
LENGTH_WEIGHT = 0.198
"""What nearness in meaning counts more in a longer question."""
SPREAD_WEIGHT = 1.86
LEAST_SPREAD, MOST_SPREAD = 0.07, 0.14
SPREAD_PASSAGES = 20
SIZE_WEIGHT = 0.041
"""The more passages there are, the more of them look like an answer."""
FEWEST_PASSAGES, USUAL_PASSAGES, MOST_PASSAGES = 100, 1_000, 20_000
NAMED_WEIGHT = 0.218
"""The question is the heading of the passage, or the title of its document."""
TOKEN_WEIGHT = 0.3
"""The passage has a code, a file name or the like of the question that one document has, or the
one word that was asked; as far as that tells anything."""
LACK_WEIGHT = 0.15
"""It does not have it, or no document has it."""
UNASKED = 0.6
"""How near in meaning a passage usually is that has all of the words."""
WISHED = 0.85
"""What a passage is brought to that has what the question quotes, as far as that is rare."""


class Question(NamedTuple):
    """What a question shows by itself in these documents.

    `rarity`: how rare its words are on average, from 0 (every passage has them) to 1 (one or none
    has); `spread`: how much the cosines of any passages with it differ.
    """

    words: int = USUAL_WORDS
    rarity: float = 0.55
    spread: float = 0.1
    passages: int = USUAL_PASSAGES


USUAL = Question()


@dataclass(frozen=True, slots=True)
class Measures:
    """What one query's candidates are measured by. `nearness` is their similarity in meaning, None
    when meaning was not asked; `ideals` the most that the query could score where words were asked
    for. Without any word that the documents have, only meaning can tell.
    """

    nearness: Mapping[ChunkKey, float] | None
    ideals: Mapping[Strategy, float]
    has_known_words: bool = True
    question: Question = USUAL
    tokens: Sequence[ExactToken] = ()
    wishes: Sequence[tuple[Set[int], float]] = ()
    """Of each quotation: the chunks that have it, and how rare it is."""
    naming: Naming = lambda _: 0


def rarity(total: int, frequencies: Iterable[int]) -> float:
    """Of words that so many of all passages have: the mean of their idf, as a part of that of a
    word in one passage of a usual number. Words of which none is known say nothing by being rare.

    Where other documents have a word as often, they leave its idf as it is; so the part is not one
    of the most that this corpus could give, which grows with every document."""
    counts = list(frequencies)
    if not any(counts):
        return USUAL.rarity
    total += OTHER_PASSAGES
    most = idf(USUAL_PASSAGES, 1 + OTHERS_WITH)
    parts = [
        min(RAREST, idf(total, min(total, max(1, count) + OTHERS_WITH)) / most) for count in counts
    ]
    return sum(parts) / len(parts)


def with_evidence(candidates: Sequence[Candidate], measures: Measures) -> list[Candidate]:
    """One query's candidates, each with its `grounds` and its `relevance`."""
    constant = standing(measures.question)
    judged: list[Candidate] = []
    for item in candidates:
        grounds = _grounds(item, measures)
        relevance = worth(grounds, measures.question.words) + constant
        judged.append(item.changed(grounds=grounds, relevance=relevance))
    return judged


def standing(question: Question) -> float:
    """What the question itself adds to the evidence of every passage."""
    spread, size = SPREAD_WEIGHT * clipped_spread(question), SIZE_WEIGHT * size_of(question)
    return RARITY_WEIGHT * question.rarity - spread - size


def clipped_spread(question: Question) -> float:
    """Of few passages it is about the usual one: four say little about all that there may be."""
    share = question.passages / (question.passages + SPREAD_PASSAGES)
    spread = share * question.spread + (1.0 - share) * USUAL.spread
    return min(MOST_SPREAD, max(LEAST_SPREAD, spread))


def size_of(question: Question) -> float:
    """The logarithm of how many passages there are, beside the usual number."""
    passages = min(MOST_PASSAGES, max(FEWEST_PASSAGES, question.passages))
    return math.log(passages / USUAL_PASSAGES)


def worth(grounds: Grounds, words: int) -> float:
    """What the passage itself adds to its evidence, for a question of so many words."""
    similarity, coverage = asked_for(grounds)
    own = (
        fused(similarity, coverage, words)
        + LENGTH_WEIGHT * longer(similarity, words)
        + NAMED_WEIGHT * grounds.is_named
        + TOKEN_WEIGHT * max(0.0, grounds.token)
        - LACK_WEIGHT * max(0.0, -grounds.token)
    )
    return own + grounds.wish * max(0.0, WISHED - own)


def fused(similarity: float, coverage: float, words: int) -> float:
    length = SHARE_SLOPE * math.log(max(FEWEST_WORDS, words) / USUAL_WORDS)
    share = min(LARGEST_SHARE, max(SMALLEST_SHARE, SIMILARITY_SHARE - length))
    if words == 1:  # a name, of which a model may know nothing
        share = min(share, share_of_a_name(similarity))
    return share * similarity + (1.0 - share) * coverage


def longer(similarity: float, words: int) -> float:
    return similarity * math.log(max(1, words) / USUAL_WORDS)


def asked_for(grounds: Grounds) -> tuple[float, float]:
    """Similarity and coverage. Of what could not be asked for, as much as there usually is with so
    much of the other."""
    similarity, coverage = grounds.similarity, grounds.coverage
    if similarity is None:
        words = coverage or 0.0
        return UNASKED * words, words
    return similarity, similarity if coverage is None else coverage


def _grounds(item: Candidate, measures: Measures) -> Grounds:
    key = item.stored.key
    similarity = coverage = None
    if measures.nearness is not None:
        similarity = max(0.0, measures.nearness.get(key, 0.0))
    is_asked = Strategy.KEYWORD in measures.ideals
    if is_asked and (measures.has_known_words or similarity is None):
        code = CODE_PART * _coverage(item, Strategy.CODE, measures)
        coverage = max(_coverage(item, Strategy.KEYWORD, measures), code)
    return Grounds(
        similarity,
        coverage,
        is_named=is_asked_by_name(item, measures.naming),
        token=_by_token(key, measures.tokens),
        wish=max((far for keys, far in measures.wishes if key in keys), default=0.0),
    )


def _by_token(key: ChunkKey, tokens: Sequence[ExactToken]) -> float:
    if has := [token.strength for token in tokens if key in token.keys]:
        return max(has)
    return 0.0 - max((token.lack for token in tokens), default=0.0)


def _coverage(item: Candidate, kind: Strategy, measures: Measures) -> float:
    found, ideal = item.evidence.get(kind), measures.ideals.get(kind, 0.0)
    return min(1.0, max(0.0, found.score / ideal)) if found and ideal > 0 else 0.0
