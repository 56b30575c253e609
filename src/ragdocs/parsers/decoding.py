"""Decodes bytes to text, and maps characters back to bytes of the file."""

import re
from array import array
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from operator import add

from ragdocs.errors import SourceBinary
from ragdocs.models import DocumentWarning, SourceText, WarningKind
from ragdocs.text import number_of

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (BOM_UTF8, "utf-8", 1),
    (BOM_UTF32_LE, "utf-32-le", 4),
    (BOM_UTF32_BE, "utf-32-be", 4),
    (BOM_UTF16_LE, "utf-16-le", 2),
    (BOM_UTF16_BE, "utf-16-be", 2),
)
_UNMARKED = (b"", "utf-8", 1)
_LINE_END = re.compile(r"\r\n?|\n")
_LINE_END_BYTES = re.compile(rb"\r\n?|\n")
_UNSHOWABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
_SAMPLE_BYTES = 8192
_MARK_EVERY = 4096
"""Characters: finding a byte inside a line of megabytes must not encode megabytes."""
_BINARY_SHARE = {True: 0.3, False: 0.02}
"""The share of control bytes that makes a file binary, by whether it is valid UTF-8.

A text may hold a few NULs; a picture or a program is rarely valid UTF-8 and full of them."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, and warnings about its decoding."""

    source: SourceText
    warnings: tuple[DocumentWarning, ...]


@dataclass(frozen=True, slots=True)
class _Encoding:
    name: str
    errors: str
    mark: int
    unit: int

    @property
    def counted(self) -> str:
        """What one lone surrogate stands for."""
        return "byte" if self.unit == 1 else "character"


def decode(data: bytes) -> Decoded:
    """Decodes by the byte-order mark, else as UTF-8; replaces invalid bytes and warns about them.

    Raises:
        SourceBinary: the bytes are not text in any encoding we know.
    """
    encoding, exact, warnings = _decode(data)
    if encoding.unit == 1:
        _refuse_binary(data, is_valid=encoding.errors == "strict")
    lines = _LINE_END.split(exact) if "\r" in exact else exact.split("\n")
    line_starts = _starts(lines, 0)
    line_bytes = _line_bytes(data, exact, encoding, line_starts)
    exact = "\n".join(lines)
    text = exact
    if "\x00" in exact or encoding.errors != "strict":
        text = _UNSHOWABLE.sub("\ufffd", exact)
        warnings += _replacement_warnings(exact, encoding)
    marks, mark_bytes = line_starts, line_bytes
    if max(map(len, lines)) > _MARK_EVERY:
        marks, mark_bytes = _mark_long_lines(lines, encoding, line_starts, line_bytes)
    source = SourceText(
        text=text,
        exact=exact,
        encoding=encoding.name,
        errors=encoding.errors,
        line_starts=line_starts,
        marks=marks,
        mark_bytes=mark_bytes,
        size=len(data),
    )
    return Decoded(source, tuple(warnings))


def _replacement_warnings(exact: str, encoding: _Encoding) -> Iterator[DocumentWarning]:
    """Warnings about characters shown as U+FFFD: invalid bytes and NULs."""
    nuls = exact.count("\x00")
    if bad := len(_UNSHOWABLE.findall(exact)) - nuls:
        what = f"not valid {encoding.name.upper()}: {number_of(bad, encoding.counted)} shown as"
        yield DocumentWarning(WarningKind.REPLACED_BYTES, bad, f"{what} U+FFFD")
    if nuls:
        text = f"{number_of(nuls, 'NUL character')} shown as U+FFFD"
        yield DocumentWarning(WarningKind.REPLACED_BYTES, nuls, text)


def _decode(data: bytes) -> tuple[_Encoding, str, list[DocumentWarning]]:
    mark, name, unit = next((m for m in _MARKS if data.startswith(m[0])), _UNMARKED)
    body = data[len(mark) :]
    if unit == 1:
        return _decode_utf8(body, len(mark))
    read_as = f"decoded as {name.upper()} by its byte-order mark"
    warnings = [DocumentWarning(WarningKind.ENCODING, 1, read_as)]
    if odd := len(body) % unit:
        cut = f"the last {number_of(odd, 'byte')} ignored: an incomplete character"
        warnings.append(DocumentWarning(WarningKind.REPLACED_BYTES, odd, cut))
        body = body[:-odd]
    errors = "surrogatepass" if unit == 2 else "replace"
    exact = body.decode(name, errors)
    if unit == 4 and (bad := exact.count("\ufffd") - body.count("\ufffd".encode(name))) > 0:
        text = f"not valid {name.upper()}: {number_of(bad, 'character')} shown as U+FFFD"
        warnings.append(DocumentWarning(WarningKind.REPLACED_BYTES, bad, text))
    return _Encoding(name, errors, len(mark), unit), exact, warnings


def _decode_utf8(body: bytes, mark: int) -> tuple[_Encoding, str, list[DocumentWarning]]:
    try:
        return _Encoding("utf-8", "strict", mark, 1), body.decode("utf-8"), []
    except UnicodeDecodeError:
        # Each bad byte becomes a lone surrogate, which encodes back to that byte, so that byte
        # offsets stay exact.
        exact = body.decode("utf-8", "surrogateescape")
        return _Encoding("utf-8", "surrogateescape", mark, 1), exact, []


def _refuse_binary(data: bytes, *, is_valid: bool) -> None:
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > _BINARY_SHARE[is_valid] * len(sample):
        raise SourceBinary("not text: too many control bytes; exclude it or save it as text")


def _starts(lines: "Sequence[str] | Sequence[bytes]", first: int) -> "array[int]":
    ends = accumulate(map(len, lines[:-1]), initial=first)
    return array("q", map(add, ends, count()))  # one character more for each line end before


def _line_bytes(data: bytes, exact: str, encoding: _Encoding, starts: "array[int]") -> "array[int]":
    """The byte at which each line begins; in an ASCII file, bytes are characters."""
    if len(data) == len(exact) and b"\r" not in data:
        return starts
    if encoding.unit > 1:
        return _wide_line_bytes(exact, encoding)
    if b"\r" not in data:
        return _starts(data[encoding.mark :].split(b"\n"), encoding.mark)
    ends = (end.end() for end in _LINE_END_BYTES.finditer(data, encoding.mark))
    return array("q", [encoding.mark, *ends])


def _wide_line_bytes(exact: str, encoding: _Encoding) -> "array[int]":
    ends = [0, *(end.end() for end in _LINE_END.finditer(exact))]
    widths = (
        len(exact[start:end].encode(encoding.name, encoding.errors))
        for start, end in pairwise(ends)
    )
    return array("q", accumulate(widths, initial=encoding.mark))


def _mark_long_lines(
    lines: Sequence[str], encoding: _Encoding, starts: "array[int]", line_bytes: "array[int]"
) -> "tuple[array[int], array[int]]":
    marks, mark_bytes = array("q"), array("q")
    for line, start, byte in zip(lines, starts, line_bytes, strict=True):
        for offset in range(0, len(line) or 1, _MARK_EVERY):
            marks.append(start + offset)
            mark_bytes.append(byte)
            step = line[offset : offset + _MARK_EVERY]
            byte += len(step.encode(encoding.name, encoding.errors))
    return marks, mark_bytes
