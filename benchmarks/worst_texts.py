"""Texts that are dear to search for: what people paste by accident, and what someone might type on
purpose. Each maker fills so many characters; drawn by a seed, so that nothing is remembered of it.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

_IDEOGRAPHS = [chr(0x4E00 + number) for number in range(1200)]
_EMOJI = [chr(0x1F600 + number) for number in range(64)]
_MARKS = "\u0301\u0308\u0323\u20d7"
_FIELDS = ("title", "headers", "tags", "keywords", "description", "aliases", "author", "content")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the documents: the commonest, all of them, and the pairs of ideographs."""

    common: Sequence[str]
    all: Sequence[str]
    pairs: Sequence[str]


Maker = Callable[[random.Random, Vocabulary], Iterator[str]]


def makers() -> Mapping[str, Maker]:
    """Each gives pieces without end; they are joined until a text is full."""
    return {
        "common words": _words(lambda d, v: d.choice(v.common)),
        "any words": _words(lambda d, v: d.choice(v.all)),
        "words that nobody has": _words(lambda d, _: _letters(d, 7)),
        "one word again and again": _words(lambda _, v: v.common[40]),
        "mistyped words": _words(lambda d, v: _mistyped(d, d.choice(v.all))),
        "prefixes of words": _words(lambda d, v: d.choice(v.all)[:4]),
        "ideographs": lambda d, v: (d.choice(v.pairs) for _ in repeat(None)),
        "any ideographs": lambda d, _: (d.choice(_IDEOGRAPHS) for _ in repeat(None)),
        "one ideograph": lambda _d, _v: repeat("一"),
        "one pair of ideographs": lambda _, v: repeat(v.pairs[0]),
        "ideographs with blanks": _words(lambda d, v: d.choice(v.pairs)),
        "one letter": lambda _d, _v: repeat("a"),
        "single letters": _words(lambda d, _: d.choice("abcdefghijklmnopqrstuvwxyz")),
        "one long word": lambda d, _: (_letters(d, 50) for _ in repeat(None)),
        "digits": _words(lambda d, _: str(d.randrange(10**6))),
        "brackets that open": lambda _d, _v: repeat("("),
        "brackets that close": lambda _d, _v: repeat(")"),
        "empty brackets": lambda _d, _v: repeat("()"),
        "brackets of brackets": lambda d, v: chain(["(" * 19], _words(_any)(d, v)),
        "groups": _words(lambda d, v: f"({_any(d, v)} {_any(d, v)})"),
        "nested groups": _words(lambda d, v: f"({_any(d, v)} OR (-{_any(d, v)} {_any(d, v)}))"),
        "quotes": lambda _d, _v: repeat('"'),
        "quoted words": _words(lambda d, v: f'"{_any(d, v)}"'),
        "quoted common words": _words(lambda d, v: f'"{d.choice(v.common)}"'),
        "quoted pairs": _words(lambda d, v: f'"{d.choice(v.common)} {d.choice(v.common)}"'),
        "one long phrase": lambda d, v: chain(['"'], _words(_common)(d, v)),
        "quoted ideographs": _words(lambda d, v: f'"{d.choice(v.pairs)}{d.choice(v.pairs)}"'),
        "OR": _words(lambda d, v: f"{_common(d, v)} OR"),
        "OR of rare words": _words(lambda d, v: f"{_any(d, v)} OR"),
        "OR of ideographs": _words(lambda d, v: f"{d.choice(v.pairs)} OR"),
        "NOT": _words(lambda d, v: f"-{_common(d, v)}"),
        "NOT of phrases": _words(lambda d, v: f'-"{_common(d, v)} {_common(d, v)}"'),
        "boosts": _words(lambda d, v: f"{_any(d, v)}^{d.randrange(1, 100)}"),
        "one word, many boosts": _words(lambda d, v: f"{v.common[0]}^{d.randrange(10**4) / 100}"),
        "fields": _words(lambda d, v: f"{d.choice(_FIELDS)}:{_common(d, v)}"),
        "one field": _words(lambda d, v: f"content:{_common(d, v)}"),
        "paths as filters": _words(lambda d, _: f"path:{d.randrange(50)}/"),
        "paths that are excluded": _words(lambda d, _: f"-path:{d.randrange(50)}/ x"),
        "trees as filters": _words(lambda d, _: f"tree:docs OR tree:{_letters(d, 3)}"),
        "minus signs": _words(lambda _d, _v: "- --"),
        "emoji": lambda d, _: (d.choice(_EMOJI) for _ in repeat(None)),
        "marks": lambda d, _: (d.choice("aeiou") + d.choice(_MARKS) * 3 for _ in repeat(None)),
        "one letter with marks": lambda _d, _v: chain("a", repeat("\u0301")),
        "Hangul": lambda d, _: (chr(0xAC00 + d.randrange(11_172)) for _ in repeat(None)),
        "Thai": lambda d, _: (chr(0x0E01 + d.randrange(46)) for _ in repeat(None)),
        "addresses": _words(lambda d, v: f"https://{_any(d, v)}.{_any(d, v)}.com/{_any(d, v)}?q=1"),
        "paths": lambda d, v: (f"{_any(d, v)}/" for _ in repeat(None)),
        "dotted names": lambda d, v: (f"{_any(d, v)}." for _ in repeat(None)),
        "camel case": lambda d, v: (_any(d, v).capitalize() for _ in repeat(None)),
        "camel case words": _words(lambda d, v: "".join(_any(d, v).capitalize() for _ in range(4))),
        "snake case": lambda d, v: (f"{_any(d, v)}_" for _ in repeat(None)),
        "letters and digits": lambda d, _: (d.choice(("a1", "B2", "c", "3")) for _ in repeat(None)),
        "a stack trace": _words(
            lambda d, v: f'  File "src/{_any(d, v)}.py", line {d.randrange(999)}, in {_any(d, v)}\n'
        ),
        "code": _words(
            lambda d, v: f"def {_any(d, v)}({_any(d, v)}): return {_any(d, v)}[{_any(d, v)}]\n"
        ),
        "punctuation": lambda d, _: (d.choice(".,;:!?'`~@#$%&*+=/\\|<>{}[]^_-") for _ in repeat(0)),
        "zero-width characters": lambda _d, _v: repeat("a\u200b"),
        "SQL": _words(lambda d, v: f"SELECT {_any(d, v)} FROM t WHERE x = '{_any(d, v)}' --"),
        "regular expressions": _words(lambda d, v: f"({_any(d, v)}+)+$"),
    }


def text_of(maker: Maker, characters: int, drawn: random.Random, words: Vocabulary) -> str:
    """As many characters as there may be; a bracket or quote that is open at the end is closed."""
    found: list[str] = []
    length = 0
    for piece in maker(drawn, words):
        found.append(piece)
        length += len(piece)
        if length >= characters:
            break
    text = "".join(found)[:characters]
    if text.startswith('"') and text.count('"') == 1:
        return text[:-1] + '"'
    depth = len(text) - len(text.lstrip("("))
    return text[:-depth] + ")" * depth if 0 < depth < 20 else text


def mixed(chosen: Sequence[Maker], characters: int, drawn: random.Random, words: Vocabulary) -> str:
    """Equal parts of each: expensive texts need not be expensive alone."""
    share = characters // len(chosen)
    return " ".join(text_of(maker, share - 1, drawn, words) for maker in chosen)


def _words(make: Callable[[random.Random, Vocabulary], str]) -> Maker:
    return lambda drawn, words: (make(drawn, words) + " " for _ in repeat(None))


def _any(drawn: random.Random, words: Vocabulary) -> str:
    return drawn.choice(words.all)


def _common(drawn: random.Random, words: Vocabulary) -> str:
    return drawn.choice(words.common)


def _letters(drawn: random.Random, count: int) -> str:
    return "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=count))


def _mistyped(drawn: random.Random, word: str) -> str:
    at = drawn.randrange(len(word))
    return word[:at] + drawn.choice("xqz") + word[at + 1 :]
