"""Confidence: the evidence for a passage as one number, and the curve from it to a probability."""

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
    """`threshold` is the evidence with a confidence of one half, `steepness` the slope there."""

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
    """Computes the confidence from `relevance` alone: the evidence, or a rank sum times the
    `factor` for recency. The score, which includes the boosts and orders results of about the same
    confidence, is only scaled to [0, 1].
    """
    largest = max((item.score for item in candidates), default=0.0)
    divisor = max(1.0, largest)
    scale = {"scale": 1.0 / divisor} if divisor > 1 else {}
    return [
        item.with_changes(
            score=min(1.0, max(0.0, item.score) / divisor),
            confidence=curve.of(item.relevance * factor(item)),
            boosts={**item.boosts, **scale},
        )
        for item in candidates
    ]


# The evidence for a passage, as one number: the basis of its confidence.
#
# It depends on this passage, its document and the question alone. Other results play no part, so a
# second page that also answers, or a copy, changes nothing. Similarity in meaning and coverage of
# the words count, meaning less the longer the question is. The question itself decides how much
# they are worth: rare words are seldom matched by chance, but where all passages are about equally
# near, or where there are many, something always matches. Fitted together with the curve by
# scripts/fit_calibration.py, on questions whose answers are indexed and on the same questions with
# their answers left out; specs/0093 has the measurement.

SIMILARITY_SHARE, SHARE_SLOPE = 0.65, 0.4
"""The share of meaning, against words, in a question of usual length, and how it falls with the
logarithm of the length."""
USUAL_WORDS, FEWEST_WORDS = 5, 4
SMALLEST_SHARE, LARGEST_SHARE = 0.15, 0.9
CODE_PART = 0.6
"""The worth of words in code blocks, relative to prose: code has names by the dozen."""
RARITY_WEIGHT = 0.187
OTHER_PASSAGES, OTHERS_WITH = 200, 2
"""Added to the number of passages, and to those with the word: otherwise, in a folder of five
files, two files would make a word common, and a copy would double its frequency.
"""
RAREST = 1.2
LENGTH_WEIGHT = 0.198
"""How much more similarity in meaning counts in a longer question."""
SPREAD_WEIGHT = 1.86
LEAST_SPREAD, MOST_SPREAD = 0.07, 0.14
SPREAD_PASSAGES = 20
SIZE_WEIGHT = 0.041
"""The more passages there are, the more of them look like an answer."""
FEWEST_PASSAGES, USUAL_PASSAGES, MOST_PASSAGES = 100, 1_000, 20_000
NAMED_WEIGHT = 0.218
"""The question is the heading of the passage, or the title of its document."""
TOKEN_WEIGHT = 0.3
"""For a passage with a code, file name or the like of the question that only one document has, or
with the single word of the question."""
LACK_WEIGHT = 0.15
"""For a passage without it, or if no document has it."""
UNASKED = 0.6
"""The usual similarity in meaning of a passage that has all of the words."""
WISHED = 0.85
"""The evidence of a passage with a rare phrase that the question quotes."""


class Question(NamedTuple):
    """What a question by itself shows in these documents.

    `rarity`: how rare its words are on average, from 0 (in every passage) to 1 (in one or none);
    `spread`: how much the cosines of arbitrary passages with it differ.
    """

    words: int = USUAL_WORDS
    rarity: float = 0.55
    spread: float = 0.1
    passages: int = USUAL_PASSAGES


USUAL = Question()


@dataclass(frozen=True, slots=True)
class Measures:
    """The measurements of one query's candidates. `nearness` is their similarity in meaning, None
    if meaning was not searched; `ideals` is the highest possible score in each index of words. If
    the documents have none of its words, only meaning counts.
    """

    nearness: Mapping[ChunkKey, float] | None
    ideals: Mapping[Strategy, float]
    has_known_words: bool = True
    question: Question = USUAL
    tokens: Sequence[ExactToken] = ()
    wishes: Sequence[tuple[Set[int], float]] = ()
    """For each quotation: the chunks that contain it, and how rare it is."""
    naming: Naming = lambda _: 0


def rarity(total: int, frequencies: Iterable[int]) -> float:
    """The mean idf of words with these frequencies among `total` passages, relative to a word in
    one passage of a corpus of usual size. If no word is known, their rarity says nothing.

    It is not relative to the highest idf in this corpus, because that grows with every document,
    even if the frequencies of the words stay the same."""
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
    constant = question_evidence(measures.question)
    judged: list[Candidate] = []
    for item in candidates:
        grounds = _grounds(item, measures)
        relevance = worth(grounds, measures.question.words) + constant
        judged.append(item.with_changes(grounds=grounds, relevance=relevance))
    return judged


def question_evidence(question: Question) -> float:
    """What the question itself adds to the evidence of every passage."""
    spread, size = SPREAD_WEIGHT * clipped_spread(question), SIZE_WEIGHT * size_of(question)
    return RARITY_WEIGHT * question.rarity - spread - size


def clipped_spread(question: Question) -> float:
    """Of few passages it is close to the usual spread: four passages show little."""
    share = question.passages / (question.passages + SPREAD_PASSAGES)
    spread = share * question.spread + (1.0 - share) * USUAL.spread
    return min(MOST_SPREAD, max(LEAST_SPREAD, spread))


def size_of(question: Question) -> float:
    """The logarithm of the number of passages, relative to the usual number."""
    passages = min(MOST_PASSAGES, max(FEWEST_PASSAGES, question.passages))
    return math.log(passages / USUAL_PASSAGES)


def worth(grounds: Grounds, words: int) -> float:
    """What the passage itself adds to its evidence, for a question of so many words."""
    similarity, coverage = similarity_and_coverage(grounds)
    own = (
        combine(similarity, coverage, words)
        + LENGTH_WEIGHT * length_gain(similarity, words)
        + NAMED_WEIGHT * grounds.is_named
        + TOKEN_WEIGHT * max(0.0, grounds.token)
        - LACK_WEIGHT * max(0.0, -grounds.token)
    )
    return own + grounds.wish * max(0.0, WISHED - own)


def combine(similarity: float, coverage: float, words: int) -> float:
    length = SHARE_SLOPE * math.log(max(FEWEST_WORDS, words) / USUAL_WORDS)
    share = min(LARGEST_SHARE, max(SMALLEST_SHARE, SIMILARITY_SHARE - length))
    if words == 1:  # a name, which a model may not know
        share = min(share, share_of_a_name(similarity))
    return share * similarity + (1.0 - share) * coverage


def length_gain(similarity: float, words: int) -> float:
    return similarity * math.log(max(1, words) / USUAL_WORDS)


def similarity_and_coverage(grounds: Grounds) -> tuple[float, float]:
    """If one of the two was not asked, the usual value beside the other."""
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
