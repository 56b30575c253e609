"""FTS5 tables inside the store: made, filled and dropped."""

from collections.abc import Iterable, Sequence

from ragdocs.indices.analysis import Streams
from ragdocs.indices.table_rows import has_exactly
from ragdocs.store.connection import Database, Row

_GAP = "\u241f"
"""Between a text's words and the wholes behind them, so that no phrase reaches across."""

_WORK_DONE = 2
"""Fewer changes mean, as FTS5's documentation has it, that there was nothing to merge."""


def create_table(database: Database, table: str, columns: str) -> None:
    # The ascii tokenizer takes every character beyond ASCII as part of a word, and our terms hold
    # no others of ASCII's marks than these: a term goes in and comes out as it is.
    database.run(
        f"""CREATE VIRTUAL TABLE {table} USING fts5({columns},
        tokenize = "ascii tokenchars '_.+#-:''/@&$'")"""
    )
    database.run(f"CREATE VIRTUAL TABLE {table}_vocabulary USING fts5vocab({table}, row)")


def drop_table(database: Database, table: str) -> None:
    database.run(f"DROP TABLE IF EXISTS {table}_vocabulary")
    database.run(f"DROP TABLE IF EXISTS {table}")


def check_table(database: Database, table: str) -> None:
    """Compares what is searched with what was put in: a flipped bit in a list of rows would
    otherwise hide some of them, and no page or row would look damaged."""
    database.run(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def compact_table(database: Database, table: str, pages: int) -> bool:
    """Merges some of what was written at different times into one: only then do rows that were
    deleted leave the lists of those that have a word."""
    before = database.changes
    # Negative: all of it is to become one, whatever its age.
    database.run(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-pages,))
    return database.changes - before >= _WORK_DONE


def holds_rows(
    database: Database, table: str, columns: str, expected: Iterable[Sequence[Row]]
) -> bool:
    """What was put in; that it is also what is searched, `check_table` tells."""
    return has_exactly(
        database,
        f"SELECT rowid, {columns} FROM {table} WHERE rowid IN (*)",
        f"SELECT count(*) FROM {table}_docsize",
        expected,
    )


def written(streams: Streams) -> str:
    gap = [_GAP] if streams.wholes else []
    return " ".join([*streams.plain, *gap, *streams.wholes])
