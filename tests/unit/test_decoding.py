"""RELIABILITY's rows on bytes and lines: decoded, noted, and every offset leads back."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import SourceBinary
from ragdocs.models import WarningKind
from ragdocs.parsers.decoding import decode


def byte_at(data: bytes, character: str) -> int:
    source = decode(data).source
    return source.byte_of(source.text.index(character))


@pytest.mark.parametrize(
    ("data", "count", "text"),
    [
        ("Café, à la carte".encode("latin-1"), 2, "not valid UTF-8: 2 bytes shown as U+FFFD"),
        (b"a\x93b\x94", 2, "not valid UTF-8: 2 bytes"),
        (b"one \0 two", 1, "1 NUL character shown"),
        (b"\xff\xfea\0b\0c", 1, "the last 1 byte ignored: an incomplete character"),
        (b"\xff\xfea\0\x00\xd8b\0", 1, "not valid UTF-16-LE: 1 character shown"),
        (b"\xff\xfe\0\0a\0\0\0\xff\xff\xff\xff", 1, "not valid UTF-32-LE: 1 character"),
    ],
)
def test_what_is_not_shown_as_it_stands_in_the_file_is_counted(data: bytes, count: int, text: str):
    found = [one for one in decode(data).warnings if one.kind is WarningKind.REPLACED_BYTES]
    assert [one.count for one in found] == [count]
    assert text in found[0].text
    assert found[0].is_loss


def test_another_encoding_that_its_mark_names_is_no_loss():
    found = decode("\ufeffplain \ufffd".encode("utf-32-le")).warnings
    assert [(one.kind, one.is_loss) for one in found] == [(WarningKind.ENCODING, False)]


def test_plain_utf8_has_no_note():
    decoded = decode("naïve café\n".encode())
    assert decoded.source.text == "naïve café\n"
    assert decoded.warnings == ()


@pytest.mark.parametrize(
    "data",
    [
        b"caf\xe9 au lait",
        "日本語のメモ".encode("shift-jis"),
        "smart \x93quotes\x94".encode("cp1252", "ignore") + b"\x93",
        "é".encode()[:1] + b" cut",
        b"a\xed\xa0\x80b",
    ],
    ids=["latin-1", "shift-jis", "cp1252", "cut sequence", "encoded surrogate"],
)
def test_invalid_utf8_is_replaced_and_noted(data):
    decoded = decode(data)
    assert "\ufffd" in decoded.source.text
    assert any("UTF-8" in found.text for found in decoded.warnings)


def test_offsets_behind_an_invalid_byte_are_exact():
    data = b"caf\xe9 \xff\xfe X"
    assert byte_at(data, "X") == data.index(b"X")


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_not_text(mark, encoding):
    data = mark + "# Tïtle 😀\r\nX".encode(encoding)
    decoded = decode(data)
    assert decoded.source.text == "# Tïtle 😀\nX"
    assert byte_at(data, "X") == len(data) - len("X".encode(encoding))


def test_a_cut_utf16_character_is_left_out_and_noted():
    decoded = decode(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"c")
    assert decoded.source.text == "ab"
    assert any("incomplete character" in found.text for found in decoded.warnings)
    assert decoded.source.byte_of(2) == 7


def test_a_lone_utf16_surrogate_is_replaced():
    assert decode(codecs.BOM_UTF16_LE + b"\x00\xd8a\x00").source.text == "\ufffda"


def test_a_few_nuls_are_replaced_and_noted():
    decoded = decode(b"# Title\n\nhello\x00world\n")
    assert decoded.source.text == "# Title\n\nhello\ufffdworld\n"
    assert decoded.warnings


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x06",
        bytes(range(256)) * 9,
        b"\x00" * 500,
        b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\xff\xfe\x80\x90",
    ],
    ids=["png", "all bytes", "zeros", "elf"],
)
def test_binary_is_refused(data):
    with pytest.raises(SourceBinary, match="not text"):
        decode(data)


@pytest.mark.parametrize("data", [b"", codecs.BOM_UTF8, b"\n", b"   "])
def test_empty_and_blank_files_decode(data):
    assert decode(data).source.text.strip() == ""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_make_the_same_text_and_lines(end):
    source = decode(end.join(["one", "two", "three"]).encode()).source
    assert source.text == "one\ntwo\nthree"
    assert source.line_of(source.text.index("three")) == 2


def test_mixed_line_ends_keep_byte_offsets():
    data = b"a\r\nb\rc\nX\r\n"
    assert decode(data).source.text == "a\nb\nc\nX\n"
    assert byte_at(data, "X") == data.index(b"X")


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\v", "\f", "\x1c"])
def test_only_cr_and_lf_end_a_line(character):
    source = decode(f"a{character}b\nc".encode()).source
    assert list(source.line_starts) == [0, 4]


def test_a_byte_in_the_middle_of_a_very_long_line_is_exact():
    data = ("é" * 20_000 + "X" + "ü" * 20_000).encode()
    assert byte_at(data, "X") == data.index(b"X")


@given(
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]) | st.sampled_from("\r\n\t")),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_every_character_knows_its_byte(text, encoding):
    data = text.encode(encoding)
    source = decode(data).source
    unit = encoding.replace("-sig", "") if encoding.startswith("utf-8") else f"{encoding}-le"
    for offset, character in enumerate(source.text):
        if character != "\n":
            expected = character.encode(unit)
            start = source.byte_of(offset)
            assert data[start : start + len(expected)] == expected


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_refused(data):
    try:
        source = decode(data).source
    except SourceBinary:
        return
    assert source.byte_of(len(source.text)) == len(data)
    source.text.encode()
