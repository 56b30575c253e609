"""A second opinion by a cross-encoder (P6): it reads the query and each passage together."""

from collections.abc import Sequence

from ragdocs.chunking.embedding_text import heading_path
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.search.candidates import Candidate
from ragdocs.search.query_language import parse_query


class Reranker:
    """One request's judge: made for it, called by the pipeline, then asked for its notes.

    It judges by the queries; by the hypothesis only where nothing else is asked, for such models
    are trained on questions.
    """

    def __init__(self, encoder: CrossEncoder, queries: Sequence[str], hypothesis: str = "") -> None:
        self._encoder = encoder
        # What is looked for, without operators, exclusions and filters: the model knows none.
        # A hypothesis is prose, and has no operators.
        texts = [parse_query(query).text.strip() for query in queries]
        asked = tuple(dict.fromkeys(text for text in texts if text))
        self._queries = asked or ((hypothesis,) if hypothesis.strip() else ())
        self.notes: tuple[str, ...] = ()

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """For each candidate the best score that any of the queries gives it; none when the model
        fails or there is nothing to ask, and then the candidates stay as they are."""
        if not candidates or not self._queries:
            return []
        passages = [passage_text(item) for item in candidates]
        try:
            found = [self._encoder.score(query, passages) for query in self._queries]
        except EmbeddingError as error:
            self.notes = (f"not re-ranked: {error}",)
            return []
        return [max(scores) for scores in zip(*found, strict=True)]


def passage_text(candidate: Candidate) -> str:
    """What the model reads: where the passage stands, as the embedder sees it, and its words."""
    parts = (heading_path(candidate.stored.chunk), candidate.text.strip())
    return "\n\n".join(part for part in parts if part)
