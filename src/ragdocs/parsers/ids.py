"""Stable names: document ids from paths, and slugs from headings."""

import re
import unicodedata
from collections import Counter

from ragdocs.memory import BoundedCache
from ragdocs.models import PREAMBLE, DocId, Slug, TreeName

MAX_SLUG_CHARS = 200
SLUGS_BYTES = 1 << 20
_EMPTY_SLUG = "section"

# `%`, `#` and `~` are the id's own syntax; controls would break a line of output; a byte that is
# not UTF-8 arrives as a lone surrogate, which neither JSON nor SQLite can carry.
_AWKWARD = re.compile("[%#~\x00-\x1f\x7f\u2028\u2029\udc80-\udcff]")
_ESCAPED = re.compile("(?:%[0-9A-F]{2})+")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_REPEATED_HYPHENS = re.compile(r"-{2,}")


def encode_path(path: str) -> str:
    """A tree-relative POSIX path in the form used in ids: reversible, always valid Unicode."""
    return _AWKWARD.sub(
        lambda found: "".join(
            f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogateescape")
        ),
        path,
    )


def decode_path(encoded: str) -> str:
    return _ESCAPED.sub(
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogateescape"),
        encoded,
    )


def document_id(tree: TreeName, path: str) -> DocId:
    return DocId(f"{tree}:{encode_path(path)}")


def tree_of(doc_id: DocId) -> TreeName:
    return TreeName(doc_id.partition(":")[0])


def slugify(text: str) -> Slug:
    """GitHub's rule: lower case, letters, digits, `-` and `_` kept, each space a hyphen."""
    return _slugs[text]


def _make_slug(text: str) -> Slug:
    slug = _NOT_IN_SLUG.sub(_keep_mark, text.strip().lower()).replace(" ", "-")
    return Slug(slug[:MAX_SLUG_CHARS])


_slugs = BoundedCache(_make_slug, SLUGS_BYTES)


def _keep_mark(found: re.Match[str]) -> str:
    """`\\w` leaves out combining marks, which belong to the words of many scripts."""
    return found[0] if unicodedata.category(found[0])[0] == "M" else ""


def collapse_slug(slug: str) -> Slug:
    """Collapses runs of hyphens: seed 004's form, which links may use too."""
    return Slug(_REPEATED_HYPHENS.sub("-", slug).strip("-"))


class SlugCounter:
    """Gives each heading of one document a unique slug, numbering repeats as GitHub does."""

    def __init__(self) -> None:
        self._repeats: Counter[str] = Counter()
        self._taken: set[str] = {PREAMBLE}

    def unique(self, text: str) -> Slug:
        slug = base = slugify(text) or _EMPTY_SLUG
        while slug in self._taken:
            self._repeats[base] += 1
            slug = f"{base}-{self._repeats[base]}"
        self._taken.add(slug)
        return Slug(slug)
