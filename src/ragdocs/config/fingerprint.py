"""What determines an index: the settings that decide its contents, and the versions of its tables.

The store keeps this as text, so that a program with other settings can report which ones differ.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from ragdocs.text import printable

MAX_NAMED = 5
"""How many differences a message names; `status --json` lists all."""
_NOT_SET = "not set"
_TABLES = "tables"


@dataclass(frozen=True, slots=True)
class FingerprintDifference:
    """One setting, as JSON: its value in the index (`stored`) and in this program (`own`)."""

    key: str
    stored: str
    own: str


@dataclass(frozen=True, slots=True)
class Making:
    """`schema` is the version of the store's own tables, `settings` is the result of
    `Config.fingerprint_settings`, `tables` maps the other tables' names to their versions."""

    schema: int
    settings: Mapping[str, object]
    tables: Mapping[str, str]

    @property
    def text(self) -> str:
        """Canonical: equal for all programs that would build the same index."""
        whole = {"schema": self.schema, "settings": self.settings, _TABLES: self.tables}
        return json.dumps(whole, sort_keys=True)

    @property
    def fingerprint(self) -> str:
        return blake2b(self.text.encode(), digest_size=16).hexdigest()

    @property
    def roots(self) -> dict[str, object]:
        """The folder of each tree."""
        trees = _table(self.settings.get("tree"))
        return {name: _table(tree).get("path") for name, tree in trees.items()}

    @property
    def folders(self) -> str:
        """The folders with their tree names, for messages."""
        found = sorted(self.roots.items())
        return printable(", ".join(f"{root} ({name})" for name, root in found))

    def section(self, name: str) -> object:
        return self.settings.get(name)

    def value(self, section: str, name: str) -> str:
        """Empty if there is no such value."""
        found = _table(self.settings.get(section)).get(name)
        return found if isinstance(found, str) else ""


def read_making(text: str) -> Making | None:
    """None for text that this version did not write."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    whole = _table(found)
    schema, settings = whole.get("schema"), whole.get("settings")
    if not isinstance(settings, dict) or not isinstance(schema, int):
        return None
    tables = _table(whole.get(_TABLES)).items()
    versions = {name: version for name, version in tables if isinstance(version, str)}
    return Making(schema, cast("dict[str, object]", settings), versions)


def differences(stored: Making, own: Making) -> tuple[FingerprintDifference, ...]:
    """Sorted by key; tables only if no differing setting explains the difference."""
    there, here = (dict(_flat(one.settings)) for one in (stored, own))
    found = [
        FingerprintDifference(key, there.get(key, _NOT_SET), here.get(key, _NOT_SET))
        for key in sorted({*there, *here})
        if there.get(key) != here.get(key)
    ]
    names = sorted({*stored.tables, *own.tables})
    unlike = [name for name in names if stored.tables.get(name) != own.tables.get(name)]
    if "search.stemmer" in {one.key for one in found}:
        unlike = [name for name in unlike if name not in stored.tables or name not in own.tables]
    found += [
        FingerprintDifference(
            f"{_TABLES}.{name}", stored.tables.get(name, "none"), own.tables.get(name, "none")
        )
        for name in unlike
    ]
    return tuple(found)


def differences_text(stored: str, own: str) -> str:
    """In brackets, with a leading space; empty if the differences cannot be determined."""
    there, here = read_making(stored), read_making(own)
    if there is None or here is None:
        return ""
    found = differences(there, here)
    said = [f"{one.key}: {one.stored} there, {one.own} here" for one in found[:MAX_NAMED]]
    said += [f"and {len(found) - MAX_NAMED} more"] if len(found) > MAX_NAMED else []
    return f" ({printable('; '.join(said))})" if said else ""


def _flat(value: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    for name, one in value.items():
        key = f"{above}{name}"
        if isinstance(one, dict):
            yield from _flat(cast("dict[str, object]", one), f"{key}.")
        else:
            yield key, json.dumps(one, ensure_ascii=False)


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
