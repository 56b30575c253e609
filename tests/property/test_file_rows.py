"""A file's row is checked by a quicker way to its hash: it must be the same hash, for any row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import IndexCorrupt
from ragdocs.models import FileState, TreeName
from ragdocs.parsers.ids import document_id
from ragdocs.store.records import ManifestEntry
from ragdocs.store.schema import row_hash
from ragdocs.store.tables import file_values, read_file

NUMBERS = st.integers(-(2**63), 2**63 - 1)
STATES = st.none() | st.builds(FileState, NUMBERS, NUMBERS, st.text("0123456789abcdef"))
# Shorter ones may be a text in hexadecimal, which is how they are hashed.
BLOBS = st.binary(min_size=20)
# Any name a file can have: a byte that is not UTF-8 comes as a surrogate.
NAMES = st.binary(min_size=1).map(lambda name: name.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1
)


@st.composite
def entries(draw: st.DrawFn) -> ManifestEntry:
    tree = TreeName(draw(st.sampled_from(["docs", "träd", 'a"b'])))
    path = draw(NAMES)
    return ManifestEntry(document_id(tree, path), tree, path, draw(STATES), draw(NUMBERS))


def stored(entry: ManifestEntry) -> list[object]:
    values = file_values(entry)
    return [row_hash("file", values), *values]


@given(entries())
def test_every_row_that_was_stored_is_read(entry: ManifestEntry):
    assert read_file(tuple(stored(entry))) == entry


@given(entries(), st.integers(0, 7), st.none() | NUMBERS | st.floats() | st.text() | BLOBS)
def test_any_other_value_is_noticed(entry: ManifestEntry, place: int, value: object):
    row = stored(entry)
    if type(row[place]) is type(value) and row[place] == value:
        return
    row[place] = value
    with pytest.raises(IndexCorrupt):
        read_file(tuple(row))
