"""Words that no other file has, so that a query has one right answer.

Of consonants only: nothing is taken off them as an ending, and none is common.
"""

import random

LETTERS = "bcdfghjkmpqrtvwxz"
LENGTH = 9
_TEXT = (
    "after again along anchor answer apple autumn basket become before behind below bridge bright "
    "carry castle change circle clear cloud colour corner cotton dance decide distance early "
    "evening every field finger flower forest garden gentle golden harbour honest island journey "
    "ladder letter little market meadow middle mirror morning mountain narrow number ocean orange "
    "pencil people picture planet pocket power quiet reason river silver simple single spring "
    "stone story street summer table thunder travel under valley village water weather window"
)
_COMMON = _TEXT.split()


class Words:
    """Makes words that were not there before, and sentences of common ones."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def new(self) -> str:
        while (word := "".join(self._rng.choices(LETTERS, k=LENGTH))) in self._used:
            pass
        self._used.add(word)
        return word

    def sentences(self, count: int) -> str:
        return " ".join(f"{' '.join(self._rng.choices(_COMMON, k=9))}." for _ in range(count))

    def note(self, word: str, link: str = "") -> str:
        """A note that only this word finds; now and then a long one, of several passages."""
        parts = [f"# About {word}\n", f"{self.sentences(2)} See [[{link}]].\n"]
        if self._rng.random() < 0.1:
            parts += [f"## Part {n}\n\n{self.sentences(9)}\n" for n in range(4)]
        return "\n".join(parts)
