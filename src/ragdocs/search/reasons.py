"""Why a stage let a candidate fall, in words. Worked out only when somebody asks for it."""

from collections.abc import Callable, Sequence

from ragdocs.indices.signatures import jaccard, ngrams
from ragdocs.search.candidates import Candidate
from ragdocs.search.dedup import content_hash, cosines

Reason = Callable[[Candidate, Sequence[Candidate]], str]
"""Of a fallen candidate and those that were left."""


def always(words: str) -> Reason:
    return lambda _item, _left: words


def unexplained(_item: Candidate, _left: Sequence[Candidate]) -> str:
    """For a stage that lets nothing fall."""
    return ""


def low_confidence(threshold: float) -> Reason:
    return lambda item, _left: f"confidence {item.confidence:.2f} is below {threshold:g}"


def same_text(item: Candidate, left: Sequence[Candidate]) -> str:
    own = content_hash(item.text)
    twin = next((other.id for other in left if content_hash(other.text) == own), "a better one")
    return f"the same text as {twin}"


def same_wording(item: Candidate, left: Sequence[Candidate]) -> str:
    own = ngrams(item.text)
    likeness = [jaccard(own, ngrams(other.text)) for other in left]
    return _like("wording", likeness, left)


def same_meaning(item: Candidate, left: Sequence[Candidate]) -> str:
    row = cosines([item, *left])[0]
    return _like("meaning", [float(cosine) for cosine in row[1:]], left)


def swallowed(item: Candidate, left: Sequence[Candidate]) -> str:
    """Merged into a section, or inside another result's passage."""
    for other in left:
        if any(item.stored.key == leaf.key for leaf in (*other.passage, *other.constituents)):
            return f"part of {other.id}"
    return "overlaps a better result, or is not among the first"


def _like(what: str, likeness: Sequence[float], left: Sequence[Candidate]) -> str:
    if not likeness:
        return f"its {what} is that of a better one"
    best = max(range(len(likeness)), key=likeness.__getitem__)
    return f"its {what} is {likeness[best]:.2f} like that of {left[best].id}"
