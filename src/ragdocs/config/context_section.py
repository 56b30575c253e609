"""[context] and [[context.rules]]: how `context` finds the documentation for source files."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ragdocs.config.values import (
    Disagreement,
    Inclusions,
    Lax,
    PatternOrPatterns,
    Section,
    Strings,
    setting,
)


class ContextRule(Section):
    """What `context` adds for source files whose path matches. All matching rules apply."""

    match: PatternOrPatterns = Field(
        description="Pattern, or list of patterns, for the paths of source files.",
        min_length=1,
        json_schema_extra={"aliases": [], "allowed": "a pattern or a list of patterns"},
    )
    trees: Strings = setting((), "Search only these trees; empty is all.")
    terms: Strings = setting((), "Words added to the query.")
    include: Inclusions = setting(
        (), "Documents always given: `tree:path`, or a file seen from the configuration's folder."
    )


class ContextConfig(Section):
    """How `context` turns source files into a query."""

    terms: int = setting(50, "At most this many terms make the query.", within=(1, 1000))
    min_term_frequency: int = setting(
        2, "A term must occur this often in the source file.", within=(1, 1000)
    )
    min_word_length: int = setting(4, "Shorter words are ignored.", within=(1, 1000))
    max_word_length: int = setting(30, "Longer words are ignored.", within=(1, 1000))
    rules: Annotated[tuple[ContextRule, ...], Lax] = setting(
        (), "Rules by file pattern; see [[context.rules]].", allowed="[[context.rules]] tables"
    )

    def disagreements(self) -> Iterator[Disagreement]:
        return self.in_order("min_word_length", "max_word_length")
