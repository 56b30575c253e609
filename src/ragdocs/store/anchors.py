"""Which heading of a document an anchor means."""

from collections.abc import Iterable

from ragdocs.models import Link, LinkSyntax, Slug
from ragdocs.parsers.identity import collapse_slug, slugify
from ragdocs.store.link_resolution import fold, meaning

_BLOCK = "^"


class Anchors:
    """The headings of one document, by text and by slug; the first of several alike counts."""

    def __init__(self, headings: Iterable[tuple[str, Slug]]) -> None:
        self._texts: dict[str, Slug] = {}
        self._slugs: dict[str, Slug] = {}
        self._folded: dict[str, Slug] = {}
        self._loose: dict[str, Slug] = {}
        for text, slug in headings:
            self._texts.setdefault(text.strip(), slug)
            self._slugs.setdefault(slug, slug)
            self._folded.setdefault(fold(text.strip()), slug)
            self._folded.setdefault(fold(slug), slug)
            self._loose.setdefault(_loose(slug), slug)

    def find(self, link: Link) -> Slug | None:
        """None when there is no such heading, or when a block is meant."""
        anchor = meaning(link)[1].removeprefix("#")
        last = anchor.rpartition("#")[2].strip()
        if not last or last.startswith(_BLOCK):
            return None
        written = (anchor, last) if anchor != last else (last,)
        return next((slug for form in written if (slug := self._named(form, link.syntax))), None)

    def _named(self, anchor: str, syntax: LinkSyntax) -> Slug | None:
        exact = (self._texts, self._slugs)
        # In a URL the slug is what is usually written; in a wikilink, the heading.
        for known in reversed(exact) if syntax is LinkSyntax.MARKDOWN else exact:
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
