"""The kinds of parameters: each with its range and its description, for schema and check alike."""

from typing import Annotated

from pydantic import Field
from pydantic.fields import FieldInfo

DEFAULT_TOKENS = 5_000
MAX_TOKENS = 10_000
MIN_TOKENS = 300
"""Less has no room for one citation and the state of the index."""
MAX_LISTED = 50
MAX_WORD_CHARS = 200
MAX_PATH_CHARS = 5_000
MAX_CURSOR_CHARS = 30_000

Path = Annotated[str, Field(max_length=MAX_PATH_CHARS)]
Word = Annotated[str, Field(max_length=MAX_WORD_CHARS)]


def word_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_WORD_CHARS, description=description)


def path_field(description: str) -> FieldInfo:
    return Field(max_length=MAX_PATH_CHARS, description=description)


def listed(description: str) -> FieldInfo:
    """For tuples, which a list may stand for."""
    return Field(strict=False, max_length=MAX_LISTED, description=description)


def share(description: str) -> FieldInfo:
    return Field(ge=0, le=1, description=description)


def number(least: int, most: int, description: str) -> FieldInfo:
    return Field(ge=least, le=most, description=description)


Tokens = Annotated[int, number(MIN_TOKENS, MAX_TOKENS, "Most it may cost.")]
Cursor = Annotated[
    str, Field(max_length=MAX_CURSOR_CHARS, description="From the page before; enough by itself.")
]
