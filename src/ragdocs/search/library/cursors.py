"""Where the next page begins, as one opaque word. Nothing is kept here between two pages: all that
is needed stands in the cursor, with a check that it came back whole.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import cast

from ragdocs.errors import QueryError

CHECK_BYTES = 4
Value = str | int | list[str | int]

_DAMAGED = "the cursor is damaged or of another list: leave it out to begin with the first page"


def encode_cursor(kind: str, values: Mapping[str, Value]) -> str:
    told = json.dumps([kind, values], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(told) + told).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> dict[str, Value]:
    """The values of a cursor of this kind; QueryError when it is not one."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
    except (binascii.Error, ValueError):
        raise QueryError(_DAMAGED) from None
    check, told = raw[:CHECK_BYTES], raw[CHECK_BYTES:]
    if _check(told) != check:
        raise QueryError(_DAMAGED)
    found_kind, values = json.loads(told)
    if found_kind != kind:
        raise QueryError(_DAMAGED)
    return cast("dict[str, Value]", values)


def _check(told: bytes) -> bytes:
    return blake2b(told, digest_size=CHECK_BYTES, key=b"cursor").digest()
