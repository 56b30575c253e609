"""[chunking]: how a document is cut into passages."""

from collections.abc import Iterator

from ragdocs.config.values import Disagreement, Section, setting

MAX_CHARS = 100_000


class ChunkingConfig(Section):
    """How a document is cut into the passages that are found and returned."""

    min_leaf_chars: int = setting(
        250,
        "A smaller section joins its parent or neighbour.",
        within=(0, MAX_CHARS),
        aliases=("chunking.min_chunk_chars",),
    )
    max_leaf_chars: int = setting(
        1000,
        "A larger section is split at paragraphs, then sentences.",
        within=(50, MAX_CHARS),
        aliases=("chunking.max_chunk_chars",),
    )
    min_document_chars: int = setting(
        1200, "A smaller document is one passage.", within=(0, MAX_CHARS)
    )
    overlap_chars: int = setting(
        100, "How much of the part before is embedded with a split part.", within=(0, 10_000)
    )
    parent_retrieval_enabled: bool = setting(
        False,
        "Find by small passages (child sizes), return the section around them (parent sizes).",
        aliases=("search.parent_retrieval_enabled",),
    )
    parent_chunk_min_chars: int = setting(
        1500, "The returned section is widened to at least this.", within=(0, MAX_CHARS)
    )
    parent_chunk_max_chars: int = setting(
        2000, "The returned section is never larger than this.", within=(50, MAX_CHARS)
    )
    parent_overlap_chars: int = setting(
        200, "How much of what stands before it a returned section begins with.", within=(0, 10_000)
    )
    child_chunk_min_chars: int = setting(
        400, "Replaces min_leaf_chars with parent retrieval.", within=(0, MAX_CHARS)
    )
    child_chunk_max_chars: int = setting(
        600, "Replaces max_leaf_chars with parent retrieval.", within=(50, MAX_CHARS)
    )

    def disagreements(self) -> Iterator[Disagreement]:
        yield from self.in_order("min_leaf_chars", "max_leaf_chars")
        yield from self.in_order("parent_chunk_min_chars", "parent_chunk_max_chars")
        yield from self.in_order("child_chunk_min_chars", "child_chunk_max_chars")
        longest = "max_leaf_chars"
        if self.parent_retrieval_enabled:
            longest = "child_chunk_max_chars"
            yield from self.in_order(longest, "parent_chunk_max_chars")
        if self.overlap_chars >= getattr(self, longest):
            yield Disagreement(
                f"overlap_chars must be less than {longest}", ("overlap_chars", longest)
            )
