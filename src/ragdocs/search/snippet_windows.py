"""Which characters of a passage a snippet shows: about so many, cut where a reader would.

Counted as they are shown: white space of any length is one character. Everything is looked for
near the cut, so that a line of megabytes costs no more than a short one.
"""

import re

from ragdocs.search.text_borders import Range, best_cut, is_character_border, is_word_border

_FURTHEST = 8
"""Times the characters wanted: so much white space is passed over."""
_INDENT = 40

_INK = re.compile(r"\S")
_RUN = re.compile(r"\s\s")
"""Where there is none, every character is shown, and they need not be gone through."""
_MARKS = re.compile(
    r"[ \t>]*+(?:(?:#{1,6}|[-*+]|\d{1,9}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?"
    r"|(?:`{3,}+|~{3,}+)[^`\n]*+\n\s*+)*+"
)
"""What stands before the words of a heading, a list item, a quotation or a code block."""
_LOOSE_MARKS = re.compile(r"(?:\s++(?:#{1,6}|[-*+>|]|\d{1,9}[.)]))*+\s*+$")


def window_around(text: str, core: Range, length: int) -> Range:
    """The core in the middle, unless the passage begins or ends before."""
    first, last = _whole_words(text, core, length)
    room = max(0, length - _shown(text, first, last))
    start, used = _back(text, first, room // 2)
    end, used_ahead = _ahead(text, last, room - used)
    if used + used_ahead < room:
        start, _ = _back(text, first, room - used_ahead)
    return _cut(text, (start, end), (first, last), length)


def window_from(text: str, begin: int, length: int) -> Range:
    """What begins there, without the marks of its line; from before it only to fill up."""
    first = _without_marks(text, begin, max(begin, len(text) - 1))
    end, used = _ahead(text, first, length)
    start, _ = _back(text, first, length - used)
    return _cut(text, (start, end), (first, min(end, first + 1)), length)


def is_cut_before(text: str, start: int) -> bool:
    """Whether words stand before; the marks of the passage's first line are no words."""
    ink = _INK.search(text, 0, start)
    if ink is None:
        return False
    marks = _MARKS.match(text, ink.start())
    return marks is None or marks.end() < start


def is_cut_after(text: str, end: int) -> bool:
    return _INK.search(text, end) is not None


def _whole_words(text: str, core: Range, length: int) -> Range:
    """A part of an identifier is shown with the rest of it, unless that alone is too long."""
    first, last = core
    lowest, highest = max(-1, first - length // 2), min(len(text) + 1, last + length // 2)
    wider = next((at for at in range(first, lowest, -1) if is_word_border(text, at)), None)
    after = next((at for at in range(last, highest) if is_word_border(text, at)), None)
    while wider is None and not is_character_border(text, first):
        first -= 1
    return first if wider is None else wider, last if after is None else after


def _cut(text: str, window: Range, core: Range, length: int) -> Range:
    (start, end), (first, last) = window, core
    if _shown(text, first, last) > length:
        start, last = first, first
        end, _ = _ahead(text, first, length)
        end = best_cut(text, range(end, first, -1)) if end < len(text) else end
    else:
        start = best_cut(text, range(start, first + 1)) if start > 0 else start
        end = best_cut(text, range(end, last - 1, -1)) if end < len(text) else end
    start = _without_marks(text, start, first)
    if end < len(text):
        loose = _LOOSE_MARKS.search(text, max(last, end - _INDENT), end)
        end = loose.start() if loose else end
    return start, end


def _without_marks(text: str, start: int, first: int) -> int:
    """Past white space and the marks of a line, but never past what must be shown."""
    while start < first and text[start].isspace():
        start += 1
    begin = _line_start(text, start)
    if begin is None:
        return start
    marks = _MARKS.match(text, begin)
    after = marks.end() if marks else start
    return after if start <= after <= first else start


def _line_start(text: str, at: int) -> int | None:
    """Where the line begins, when there is nothing but indentation before."""
    begin = text.rfind("\n", max(0, at - _INDENT), at) + 1
    is_start = begin > 0 or at <= _INDENT
    return begin if is_start and not text[begin:at].strip(" \t>") else None


def _shown(text: str, start: int, end: int) -> int:
    """How many characters a stretch is when shown, or more where it is far too long."""
    if end - start > _FURTHEST * 1000:
        return end - start
    return len(" ".join(text[start:end].split()))


def _back(text: str, at: int, count: int) -> tuple[int, int]:
    """As far back as `count` shown characters go, and how many there were."""
    start = max(0, at - count)
    if not _RUN.search(text, max(0, start - 1), at):
        return start, at - start
    lowest, used = max(0, at - _FURTHEST * count), 0
    while at > lowest and used < count:
        at -= 1
        used += not (text[at].isspace() and text[at - 1 : at].isspace())
    return at, used


def _ahead(text: str, at: int, count: int) -> tuple[int, int]:
    end = min(len(text), at + count)
    if not _RUN.search(text, max(0, at - 1), end):
        return end, end - at
    highest, used = min(len(text), at + _FURTHEST * count), 0
    while at < highest and used < count:
        used += not (text[at].isspace() and text[at - 1 : at].isspace())
        at += 1
    return at, used
