"""Values as SQLite keeps them, and the hash by which a damaged row gives itself away.

A row's hash is taken over what the row means (ids, not internal keys), in a canonical encoding:
JSON in ASCII, which no version of Python or SQLite writes differently.
"""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from ragdocs.errors import IndexCorrupt
from ragdocs.models import Span

Value = str | int | bytes | None
Values = tuple[Value, ...]

HASH_BYTES = 16
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, separators=(",", ":"), default=bytes.hex
).encode


def row_hash(kind: str, values: Sequence[Value]) -> bytes:
    return blake2b(_encode((kind, *values)).encode("ascii"), digest_size=HASH_BYTES).digest()


def joint_hash(hashes: Iterable[bytes]) -> bytes:
    return blake2b(b"".join(hashes), digest_size=HASH_BYTES).digest()


def check_row(kind: str, values: Sequence[Value], stored: bytes) -> None:
    """The first value names the row."""
    if row_hash(kind, values) != stored:
        raise IndexCorrupt(f"the stored {kind} {values[0]!r} is damaged: rebuild the index")


def storable(values: Sequence[Value]) -> Values:
    return tuple(clean(value) if isinstance(value, str) else value for value in values)


def clean(text: str) -> str:
    """Lone surrogates, which neither SQLite nor any output can carry, become U+FFFD.

    Only file names may hold them rightfully, and those are percent-encoded before.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def to_json(value: object) -> str:
    return _encode(value)


def strings_json(values: Iterable[str]) -> str:
    return _encode([clean(value) for value in values])


def strings(encoded: str) -> tuple[str, ...]:
    return tuple(json.loads(encoded))


def span_values(span: Span) -> tuple[int, int, int, int]:
    return span.byte_start, span.byte_end, span.line_start, span.line_end
