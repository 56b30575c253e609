"""Limits on what is given, said with the limit; what was given is not repeated when it is long."""

from collections.abc import Sized

from ragdocs.errors import QueryError

MAX_REFERENCE_CHARS = 13_000
"""A path has at most 4,096 bytes, three characters each when they are encoded, and an id a slug."""
MAX_CURSOR_CHARS = 30_000


def check_number(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise QueryError(f"{name} must be a whole number from {least:,} to {most:,}")
    if not least <= value <= most:
        raise QueryError(f"{name} must be from {least:,} to {most:,}")


def check_length(name: str, value: Sized, most: int) -> None:
    check_sum(name, len(value), most)


def check_sum(name: str, size: int, most: int) -> None:
    if size > most:
        raise QueryError(f"{name} is too long: {size:,} characters, at most {most:,} are taken")
