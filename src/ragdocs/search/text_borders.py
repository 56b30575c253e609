"""Where a text may be cut for a reader: at spaces, between words, never within what is seen as one
character (an emoji joined of several, a letter with its marks, a flag).
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from re import Pattern

from ragdocs.indices.scripts import HANGUL_TAILS, UNSPACED, marks

Range = tuple[int, int]
IsBorder = Callable[[int], bool]

NEAR = 40
"""Characters: how far a better place for a cut is looked for before a worse one is taken."""

_JOINER = "\u200d"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_MAX_FLAGS = 64
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,300}\1(?!`)")


def is_space_border(text: str, at: int) -> bool:
    return at <= 0 or at >= len(text) or text[at - 1].isspace() or text[at].isspace()


def is_word_border(text: str, at: int) -> bool:
    """Between scripts without spaces every character is a word."""
    if is_space_border(text, at):
        return True
    if not is_character_border(text, at):
        return False
    before, after = text[at - 1], text[at]
    is_inside = bool(_word_character().match(before) and _word_character().match(after))
    return not is_inside or bool(_unspaced().match(before) or _unspaced().match(after))


def is_character_border(text: str, at: int) -> bool:
    if is_space_border(text, at):
        return True
    if text[at - 1] == _JOINER or _follower().match(text[at]):
        return False
    return not (_is_flag_letter(text[at]) and _flag_letters_before(text, at) % 2)


def code_spans(text: str, start: int, end: int) -> list[Range]:
    """Inline code within a stretch; from its line's beginning, where that is near."""
    begin = text.rfind("\n", max(0, start - 2 * NEAR), start) + 1 or max(0, start - 2 * NEAR)
    return [found.span() for found in _CODE_SPAN.finditer(text, begin, min(len(text), end + NEAR))]


def best_cut(text: str, candidates: Sequence[int]) -> int:
    """The best of places given in order of preference: a space near the first, outside inline code
    if it can be; else between words; within a word only when nothing else is there.
    """
    if not candidates:
        raise ValueError("no place to cut")
    inside = code_spans(text, min(candidates[0], candidates[-1]), max(candidates))

    def is_free(at: int) -> bool:
        return is_space_border(text, at) and not any(first < at < last for first, last in inside)

    def is_space(at: int) -> bool:
        return is_space_border(text, at)

    def is_word(at: int) -> bool:
        return is_word_border(text, at)

    def is_whole(at: int) -> bool:
        return is_character_border(text, at)

    near = candidates[:NEAR]
    searches: tuple[tuple[Sequence[int], IsBorder], ...] = (
        (near, is_free),
        (near, is_space),
        (near, is_word),
        (candidates, is_word),
        (candidates, is_whole),
    )
    for places, is_border in searches:
        found = next(filter(is_border, places), None)
        if found is not None:
            return found
    return candidates[0]


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int) -> int:
    count = 0
    while count < min(at, _MAX_FLAGS) and _is_flag_letter(text[at - count - 1]):
        count += 1
    return count


@cache
def _follower() -> Pattern[str]:
    """What belongs to the character before it."""
    return re.compile(f"[{marks()}{HANGUL_TAILS}{_SKIN_TONES}]")


@cache
def _word_character() -> Pattern[str]:
    return re.compile(rf"[\w{marks()}]")


@cache
def _unspaced() -> Pattern[str]:
    return re.compile(f"[{UNSPACED}]")
