"""Texts of any size that are heavy to index: each kind makes much of one thing and nothing else."""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import count

Lines = Iterator[str]


def headings(levels: int = 1, *, same: bool = False) -> Lines:
    for number in count():
        marks = "#" * (number % levels + 1)
        yield f"{marks} a\n" if same else f"{marks} h{number}\n"


def sections() -> Lines:
    """Each large enough for a node of its own, below six levels."""
    for number in count():
        yield f"{'#' * (number % 6 + 1)} Part {number}\n\n{'some words here ' * 20}\n\n"


def numbered(line: str) -> Lines:
    for number in count():
        yield line.format(n=number)


def repeated(text: str) -> Lines:
    while True:
        yield text


def after(opening: str, inside: Lines) -> Lines:
    yield opening
    yield from inside


def words(seed: int = 7) -> Lines:
    """All different, so that nothing cached for one helps with another."""
    source = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for number in count():
        word = "".join(source.choices(letters, k=6))
        yield word + ("\n\n" if number % 100 == 99 else " ")


def characters(first: int, last: int, seed: int = 7) -> Lines:
    source = random.Random(seed)
    while True:
        yield "".join(chr(source.randint(first, last)) for _ in range(200)) + "\n"


def mixture(seed: int) -> Lines:
    """Some of everything in a random order."""
    source = random.Random(seed)
    pieces = (
        *("# h{n}\n", "###### h\n", "- a\n", "  - b\n", "> q\n", ">> q\n", "```\n", "~~~py\n"),
        *("| a | b |\n|---|---|\n", "| {n} | x |\n", "[[note {n}]] ", "[x](y{n}.md) ", "[r{n}] "),
        *("[r{n}]: z.md\n", "[^{n}]: foot\n", "#tag{n} ", "`", "``", "*", "**", "_", "~~", "$$\n"),
        *("<div>\n", "<!--", "-->\n", "%%", "](", "[", "]", "![", "(", ")", "\\", "\n", "\n\n"),
        *("word{n} ", "some plain words here. ", "漢字", "é\u0301", "👩\u200d👧", "---\n", "===\n"),
        *("    code\n", "\t", "^block{n}\n", "> [!note] x\n", "&amp;", "<a@b.c>", "https://x.y/z "),
    )
    for number in count():
        yield source.choice(pieces).format(n=number) * source.choice((1, 1, 1, 2, 7, 40))


def same_note() -> Lines:
    """Ordinary prose, to compare with."""
    for number in count():
        yield f"## Part {number}\n\n" if number % 4 == 0 else ""
        yield "Some plain sentences stand here, as they do in a note. " * 6 + "\n\n"


KINDS: Mapping[str, Callable[[], Lines]] = {
    "prose": same_note,
    "headings": lambda: headings(same=True),
    "headings, unique": headings,
    "headings, six levels": lambda: headings(6),
    "headings, markup": lambda: numbered("# *h{n}* `x` [a](b.md)\n"),
    "headings, setext": lambda: numbered("h{n}\n=\n"),
    "sections": sections,
    "lists": lambda: numbered("- item {n}\n"),
    "lists, short": lambda: repeated("- a\n"),
    "lists, nested": lambda: repeated("".join("  " * n + "- a\n" for n in range(20))),
    "lists, loose": lambda: repeated("- a\n\n"),
    "tasks": lambda: repeated("- [ ] a\n"),
    "quotes": lambda: repeated("> a\n"),
    "quotes, apart": lambda: repeated("> a\n\n"),
    "quotes, nested": lambda: repeated(">" * 60 + " a\n\n"),
    "quotes, one line": lambda: repeated(">"),
    "callouts": lambda: repeated("> [!note] t\n> a\n\n"),
    "table, rows": lambda: after("| a | b |\n|---|---|\n", repeated("| 1 | 2 |\n")),
    "table, cells": lambda: after("| a |\n|---|\n", repeated("|a" * 500 + "|\n")),
    "table, columns": lambda: repeated("|a"),
    "tables": lambda: repeated("|a|\n|-|\n|b|\n\n"),
    "table, wide rows": lambda: after("|a" * 1000 + "|\n" + "|-" * 1000 + "|\n", repeated("|b\n")),
    "wikilinks": lambda: numbered("[[note {n}]] "),
    "wikilinks, lines": lambda: numbered("[[n{n}]]\n\n"),
    "wikilinks, own anchors": lambda: numbered("[[#h{n}]]\n"),
    "links": lambda: numbered("[a](b{n}.md) "),
    "links, same": lambda: repeated("[a](b) "),
    "images": lambda: repeated("![a](b.md) "),
    "autolinks": lambda: repeated("<https://a.b/c> https://d.e/f "),
    "open wikilinks": lambda: repeated("[["),
    "brackets": lambda: repeated("["),
    "brackets, closed": lambda: repeated("[a]"),
    "link openings": lambda: repeated("[a]("),
    "reference links": lambda: after("[a]: b.md\n\n", repeated("[a][a] ")),
    "references": lambda: numbered("[r{n}]: x{n}.md\n"),
    "references, used": lambda: numbered("[r{n}]: x.md\n\n[r{n}] [r0]\n\n"),
    "references, open": lambda: repeated("[a]: "),
    "footnotes": lambda: numbered("a[^{n}]\n\n[^{n}]: b\n\n"),
    "tags": lambda: numbered("#t{n} "),
    "tags, lines": lambda: numbered("#t{n}\n"),
    "tags, same": lambda: repeated("#a "),
    "block ids": lambda: numbered("a ^b{n}\n\n"),
    "fences": lambda: repeated("```\nx\n```\n"),
    "fences, open": lambda: numbered("```{n}\n"),
    "fences, empty": lambda: repeated("```\n```\n"),
    "fences, python": lambda: numbered("```py\ndef f{n}(): return x_{n}\n```\n"),
    "one fence": lambda: after("```\n", numbered("line {n} of code\n")),
    "code, indented": lambda: repeated("    x = y\n\na\n\n"),
    "ticks": lambda: repeated("`"),
    "ticks, pairs": lambda: repeated("`a` "),
    "ticks, growing": lambda: ("`" * n + " " for n in count(1)),
    "emphasis": lambda: repeated("*a **b "),
    "stars": lambda: repeated("*"),
    "underscores": lambda: repeated("_a"),
    "rules": lambda: repeated("---\n\n"),
    "html": lambda: repeated("<div>\n"),
    "html, blocks": lambda: repeated("<div>\n\na\n\n"),
    "html, comments": lambda: repeated("<!--"),
    "html, open": lambda: repeated("<a "),
    "comments": lambda: repeated("%%"),
    "math": lambda: repeated("$$\nx\n$$\n"),
    "math, open": lambda: repeated("$$\n\n"),
    "math, quoted": lambda: repeated("> $$\n> x\n\n"),
    "one line": lambda: repeated("word "),
    "one line, different words": lambda: (word.replace("\n\n", " ") for word in words()),
    "one word": lambda: repeated("x"),
    "one long name": lambda: numbered("name{n}_"),
    "one chain": lambda: numbered("n{n}."),
    "camel case": lambda: repeated("aBcD"),
    "different words": words,
    "cjk": lambda: characters(0x4E00, 0x9FFF),
    "cjk, one line": lambda: repeated("漢字"),
    "hangul": lambda: characters(0xAC00, 0xD7A3),
    "emoji": lambda: repeated("👩\u200d👩\u200d👧 "),
    "combining": lambda: after("a", repeated("\u0301")),
    "combining, words": lambda: repeated("a" + "\u0301" * 30 + " "),
    "latin-1 letters": lambda: characters(0xC0, 0x17F),
    "blank lines": lambda: repeated("\n"),
    "spaces": lambda: repeated(" "),
    "tabs": lambda: repeated("\ta\n"),
    "short lines": lambda: repeated("a\n"),
    "paragraphs": lambda: repeated("a\n\n"),
    "dots": lambda: repeated("."),
    "sentences": lambda: repeated("A. "),
    "escapes": lambda: repeated("\\*"),
    "entities": lambda: repeated("&amp;"),
    "front matter": lambda: after("---\n", numbered("key{n}: value\n")),
    "front matter, aliases": lambda: after("---\naliases:\n", numbered("- alias {n}\n")),
    "front matter, tags": lambda: after("---\ntags:\n", numbered("- tag{n}\n")),
    "front matter, titles": lambda: after("---\n", repeated("title: a\n")),
    "front matter, one value": lambda: after("---\ntitle: ", repeated("word ")),
    "toml": lambda: after("+++\n", numbered("key{n} = 1\n")),
    "base64": lambda: repeated("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"),
    "json": lambda: numbered('{{"key{n}":[1,2,{{"a":"b"}}],"c":null}},'),
    "csv": lambda: numbered("{n},some,values,here,1.5\n"),
    "controls": lambda: repeated("a\x1b[0m\v\f b\n"),
    "carriage returns": lambda: repeated("a\r"),
    "mixture 1": lambda: mixture(1),
    "mixture 2": lambda: mixture(2),
}


_CLOSINGS = {"front matter": "\n---\n\nword\n", "toml": "+++\n\nword\n", "one fence": "```\n"}


def of_size(kind: str, size: int) -> str:
    """About `size` bytes of a kind, with what must be closed closed."""
    parts: list[str] = []
    made = 0
    for part in KINDS[kind]():
        made += len(part.encode())
        if made > size:
            break
        parts.append(part)
    return "".join(parts) + _CLOSINGS.get(kind.partition(",")[0], "")
