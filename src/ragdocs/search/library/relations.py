"""What `related` answers with: four kinds of nearness, each in a list of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntry:
    """A link and the document at its other end, from whichever side it is looked at.

    `line` is where the link stands, in the asked document for links out and in the other for
    backlinks. A link that leads nowhere has no document, only the target that was written.
    """

    doc_id: str | None
    path: str
    title: str
    slug: str | None
    kind: str
    text: str
    target: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourEntry:
    """A document of the same community; `is_linked`: a link joins the two, in either direction."""

    doc_id: str
    path: str
    title: str
    is_linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarEntry:
    """The passage of another document that is most like what was asked about.

    `score` is a cosine when found by meaning, and otherwise the part of the most that the words
    could score; `terms` are the words they share, for those found by words.
    """

    id: str
    doc_id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    line_start: int
    line_end: int
    score: float
    snippet: str
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """What goes with a document or section, never itself. The totals count what is not given too.

    `community_size` is None as long as no communities are stored.
    """

    id: str
    doc_id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    links: tuple[LinkEntry, ...]
    links_total: int
    backlinks: tuple[LinkEntry, ...]
    backlinks_total: int
    community: tuple[NeighbourEntry, ...]
    community_size: int | None
    similar_by_meaning: tuple[SimilarEntry, ...]
    similar_by_words: tuple[SimilarEntry, ...]
    notes: tuple[str, ...] = ()
