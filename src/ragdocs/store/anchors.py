"""Which heading of a document an anchor means."""

from collections.abc import Iterable
from functools import cached_property

from ragdocs.models import Link, LinkSyntax, Slug
from ragdocs.parsers.identity import collapse_slug, slugify
from ragdocs.store.link_resolution import fold, meaning

_BLOCK = "^"


class Anchors:
    """The headings of one document, by text and by slug; the first of several alike counts."""

    def __init__(self, headings: Iterable[tuple[str, Slug]]) -> None:
        self._headings = [(text.strip(), slug) for text, slug in headings]
        self._slugs: dict[str, Slug] = {slug: slug for _, slug in self._headings}

    # An exact slug is what most anchors are: the rest is made when it is needed.

    @cached_property
    def _texts(self) -> dict[str, Slug]:
        return dict(reversed(self._headings))

    @cached_property
    def _folded(self) -> dict[str, Slug]:
        found: dict[str, Slug] = {}
        for text, slug in self._headings:
            found.setdefault(fold(text), slug)
            found.setdefault(fold(slug), slug)
        return found

    @cached_property
    def _loose(self) -> dict[str, Slug]:
        return {_loose(slug): slug for _, slug in reversed(self._headings)}

    def find(self, link: Link) -> Slug | None:
        """None when there is no such heading, or when a block is meant."""
        anchor = meaning(link)[1].removeprefix("#")
        last = anchor.rpartition("#")[2].strip()
        if not last or last.startswith(_BLOCK):
            return None
        written = (anchor, last) if anchor != last else (last,)
        return next((slug for form in written if (slug := self._named(form, link.syntax))), None)

    def _named(self, anchor: str, syntax: LinkSyntax) -> Slug | None:
        # In a URL the slug is what is usually written; in a wikilink, the heading.
        if syntax is LinkSyntax.MARKDOWN and anchor in self._slugs:
            return self._slugs[anchor]
        for known in (self._texts, self._slugs):
            if anchor in known:
                return known[anchor]
        slug = slugify(anchor)
        for form in (fold(anchor), fold(slug)):
            if form in self._folded:
                return self._folded[form]
        return self._loose.get(_loose(slug))


def _loose(slug: str) -> str:
    """The collapsed form of a slug, in which an underscore, as some sites write, is a hyphen."""
    return collapse_slug(fold(slug).replace("_", "-"))
