"""Known metadata, cleaned: whatever was written, always these fields and these types."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ragdocs.models import DateSource
from ragdocs.parsers.dates import parse_date

MAX_WARNINGS = 10
_ALIASES = {
    "summary": "description",
    "keyword": "keywords",
    "tag": "tags",
    "alias": "aliases",
    "authors": "author",
    "type": "category",
    "categories": "category",
    "updated": "modified",
    "lastmod": "modified",
    "last_modified": "modified",
}
_DATES = (DateSource.MODIFIED, DateSource.DATE, DateSource.CREATED)
KNOWN_KEYS = frozenset(
    {
        *("title", "description", "keywords", "tags", "aliases", "author", "category", "related"),
        *_DATES,
        *_ALIASES,
    }
)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BETWEEN_COMMAS = re.compile(r"(?:\[\[.*?\]\]|[^,])+", re.DOTALL)
_BLANKS_AND_COMMAS = re.compile(r"[\s,]+")
_WIKILINK = re.compile(r"^!?\[\[(.*)\]\]$", re.DOTALL)
_MARKDOWN_LINK = re.compile(r"^\[[^\]]*\]\(\s*<?([^()<>\s]+)>?[^()]*\)$")
_WEB = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]+:)?//")


@dataclass(frozen=True, slots=True)
class _Value:
    """What a key was given: texts, and whether they were written as a list."""

    texts: list[str]
    is_list: bool


class Fields:
    """The known keys of one block as they were written, and what was wrong with them."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._warnings: list[str] = []
        self._unsaid = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        more = (f"front matter: and {self._unsaid} more like these",) if self._unsaid else ()
        return (*self._warnings, *more)

    def has(self, key: str) -> bool:
        return _ALIASES.get(key, key) in self._values

    def add(self, key: str, texts: Iterable[str], *, is_list: bool) -> None:
        kept = [text.strip() for text in texts if text.strip() not in _NULLS]
        if not kept:
            return
        if self.has(key):
            self.warn(f"{key}: given twice, the first is kept")
        else:
            self._values[_ALIASES.get(key, key)] = _Value(kept, is_list)

    def warn(self, text: str) -> None:
        """A few warnings help; 30,000 of them would bury the rest."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(f"front matter: {text}")
        else:
            self._unsaid += 1

    def cleaned(self) -> dict[str, Any]:
        """By the names of FrontMatter's fields."""
        return {
            "title": self._text("title"),
            "description": self._text("description"),
            "keywords": self._items("keywords"),
            "tags": self._tags(),
            "aliases": self._items("aliases"),
            "author": self._text("author"),
            "category": self._text("category"),
            "related": self._related(),
            "dates": self._dates(),
        }

    def _text(self, key: str) -> str:
        value = self._values.get(key)
        return " ".join(", ".join(value.texts).split()) if value else ""

    def _items(self, key: str) -> tuple[str, ...]:
        """A list as it is; a string is split at its commas, but not inside a wikilink."""
        value = self._values.get(key)
        if value is None:
            return ()
        parts = value.texts if value.is_list else _BETWEEN_COMMAS.findall(value.texts[0])
        return _distinct(" ".join(part.split()) for part in parts)

    def _tags(self) -> tuple[str, ...]:
        """A string of tags is split at blanks too: a tag has none."""
        value = self._values.get("tags")
        if value is None:
            return ()
        parts = value.texts if value.is_list else _BLANKS_AND_COMMAS.split(value.texts[0])
        return _distinct(" ".join(part.split()).lstrip("#") for part in parts)

    def _related(self) -> tuple[str, ...]:
        return tuple(target for entry in self._items("related") if (target := _related(entry)))

    def _dates(self) -> dict[DateSource, datetime]:
        found: dict[DateSource, datetime] = {}
        for source in _DATES:
            value = self._values.get(source)
            moment = parse_date(value.texts[0]) if value else None
            if moment is not None:
                found[source] = moment
            elif value is not None:
                self.warn(f"{source}: {value.texts[0][:40]!r} is not a date, left out")
        return found


def _distinct(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in parts if part))


def _related(entry: str) -> str:
    """The target of an entry, however it is written; empty for one that leads to the web."""
    link = _MARKDOWN_LINK.match(entry)
    target = link[1] if link else _WIKILINK.sub(r"\1", entry).partition("|")[0]
    return "" if _WEB.match(target) else target.strip()
