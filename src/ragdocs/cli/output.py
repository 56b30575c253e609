"""Text from documents on a terminal: shown, never obeyed."""

import re

# Control characters, and the invisible ones that reorder or hide text: bidi overrides, zero-width
# runs, tag characters. A document must not be able to speak to the terminal.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


def shown(text: str) -> str:
    """The text with every such character as its escape, so that it is seen."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_lines(text: str) -> str:
    """The same, with line ends kept."""
    return "\n".join(map(shown, text.split("\n")))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
