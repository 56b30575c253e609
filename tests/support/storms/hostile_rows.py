"""Everything that a folder of notes should not hold: a function for each row of the list."""

import os
import socket
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.storms.hostile import Case, Fate, HostileTree
from tests.support.storms.words import Words


def add_bytes(tree: HostileTree) -> None:
    bad = "not valid UTF-8"
    tree.found("bytes/invalid.md", lambda word: f"# {word}\n\n".encode() + b"caf\xff\xfe\n", bad)
    tree.found("bytes/latin1.md", lambda word: f"Café {word}".encode("latin-1"), bad)
    tree.found("bytes/cp1252.md", lambda word: f"“{word}” – so".encode("cp1252"), bad)
    tree.found("bytes/sjis.md", lambda word: f"日本語 {word} です".encode("shift_jis"), bad)
    tree.found("bytes/cut.md", lambda word: f"{word} é".encode()[:-1], bad)
    tree.found("bytes/nul.md", lambda word: f"{word} a\0b {'text ' * 9}".encode(), "NUL")
    tree.found("bytes/bom.md", lambda word: b"\xef\xbb\xbf" + f"# {word}\n".encode())
    matter = "---\ntitle: {}\n---\ntext\n"
    tree.found("bytes/bom-matter.md", lambda word: b"\xef\xbb\xbf" + matter.format(word).encode())
    for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        tree.found(
            f"bytes/{name}.md",
            lambda word, name=name: f"\ufeff# {word}\n\ntext\n".encode(name),
            name.upper(),
        )
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 8
    tree.refused("bytes/picture.md", "SourceBinary", png)
    tree.refused("bytes/picture.txt", "SourceBinary", bytes(2000))


LINE_ENDS = {
    "lf": ("\n", "\n"),
    "crlf": ("\r\n", "\r\n"),
    "cr": ("\r", "\r"),
    "mixed": ("\r", "\r\n"),
}
NOT_LINE_ENDS = {"ls": "\u2028", "nel": "\x85", "vt": "\v", "ff": "\f"}


def add_lines(tree: HostileTree) -> None:
    """The same text, long enough for several passages, in every kind of lines."""
    body = "# Lines\n\n{word} is here.\n\n" + "".join(
        f"## Part {n}\n\n{'Some more text stands here. ' * 20}\n\n" for n in range(3)
    )
    for name, (odd, even) in LINE_ENDS.items():
        lines = body.split("\n")
        text = "".join(
            line + (odd if number % 2 else even) for number, line in enumerate(lines[:-1])
        )
        tree.text(f"lines/{name}.md", text)
    for name, character in NOT_LINE_ENDS.items():
        tree.text(f"lines/{name}.md", f"one{character}{{word}}{character}three\n")


def add_texts(tree: HostileTree) -> None:
    tree.text("texts/nfd.md", "cafe\u0301 {word}\n")
    tree.text("texts/zero-width.md", "\u200b\u200b{word}\u200b \ufeff text\n")
    tree.text("texts/rtl.md", "\u202e\u2066 {word} \u2069 שלום\n")
    tree.text("texts/family.md", "👩\u200d👩\u200d👧 {word} 🏳️\u200d🌈\n")
    tree.text("texts/combining.md", "{word} a" + "\u0301" * 5000 + " b\n")


def add_sizes(tree: HostileTree) -> None:
    tree.silent("sizes/empty.md", b"")
    tree.silent("sizes/blank.md", b" \n\t\n \n")
    tree.silent("sizes/bom.md", b"\xef\xbb\xbf")
    tree.silent("sizes/matter.md", b"---\ntitle: only\n---\n")
    tree.text("sizes/word.md", f"{{word}}\n\n{'x' * 50_000}\n")
    tree.text("sizes/heading.md", f"# {'heading ' * 12_000}\n\n{{word}}\n")
    tree.text("sizes/data-uri.md", f"{{word}} ![](data:image/png;base64,{'A' * 50_000})\n")
    tree.text("sizes/headings.md", "{word}\n\n" + "# h\n\n" * 500)
    for name, size in (("100-mb", 100_000_000), ("1-gb", 1 << 30)):
        os.truncate(tree.refused(f"sizes/{name}.md", "SourceTooLarge"), size)


def add_huge_sizes(tree: HostileTree) -> None:
    line = b"word " * 1_980_000
    tree.found("huge/line-10-mb.md", lambda word: f"{word} ".encode() + line)
    tree.text("huge/uri-1-mb.md", f"{{word}} ![](data:image/png;base64,{'A' * 1_000_000})\n")
    tree.text("huge/word-1-mb.md", f"{{word}}\n\n{'x' * 1_000_000}\n")
    tree.text("huge/headings.md", "".join(f"# h{n}\n\ntext\n\n" for n in range(20_000)) + "{word}")
    tree.refused("huge/text-100-mb.md", "SourceTooLarge", b"text\n" * 20_000_000)


def add_nesting(tree: HostileTree, depth: int) -> None:
    hostile: Mapping[str, str] = {
        "quotes": ">" * depth + " a",
        "lists": "- " * depth + "a",
        "brackets": "[" * depth + "a" + "]" * depth,
        "emphasis": "*" * depth + "a" + "*" * depth,
        "comments": "<!--" * (depth * 3 // 2),
        "backticks": "".join("`" * n + " " for n in range(min(600, depth))),
        "references": "".join(f"[r{n}]: x{n}.md\n" for n in range(depth)),
        "links": "".join(f"[[note {n}#h|x]] " for n in range(depth // 4)),
        "matter": "",
    }
    for name, text in hostile.items():
        tree.text(f"nesting/{name}.md", f"{{word}}\n\n{text}\n")
    deep = "a: " + "[" * depth + "]" * depth
    tree.text("nesting/matter.md", f"---\n{deep}\n---\n{{word}}\n")


def add_structures(tree: HostileTree) -> None:
    tree.text("structure/fence.md", "```\n# {word}\n")
    tree.text("structure/conflict.md", "<<<<<<< HEAD\n# {word}\n=======\n# b\n>>>>>>> other\n")
    tree.text("structure/headings.md", "#\n\n# **\n\n# same\n\n# same\n\n{word}\n")
    tree.text("matter/unclosed.md", "---\ntitle: x\n{word}\n")
    tree.text("matter/tabs.md", "---\n\ttitle: x\n---\n{word}\n")
    tree.text("matter/python.md", "---\nx: !!python/object/apply:os.system [ls]\n---\n{word}\n")
    tree.text("matter/bomb.md", "---\na: &a [*a, *b]\ndate: 2020-13-45\n---\n{word}\n")
    tree.text("links/out.md", "[x](../../../../etc/passwd) [[../outside]] {word}\n")
    tree.text("links/self.md", "[[self]] ![[self]] [[links/self#x]] {word}\n")


NAMES = (
    "with space.md",
    " lead and trail .md",
    "hash#percent%25question?star*.md",
    "quotes'\"`.md",
    "new\nline.md",
    "tab\t.md",
    "back\\slash.md",
    "colon:pipe|.md",
    "brackets[]{}()<>.md",
    "-leading-dash.md",
    "--help.md",
    "emoji 👩\u200d👩\u200d👧.md",
    "rtl \u202egnp.md",
    "שלום.md",
    "x" * 247 + ".md",
    "CAPS.MD",
    "\u2028.md",
    "latin1 \udce9.md",
    "\udcff\udcfe.txt",
    "Case.md",
    "case.md",
    "\u00e9.md",
    "e\u0301.md",
    "a.md",
    "a.txt",
    "a%2Fb.md",
)


def add_names(tree: HostileTree) -> None:
    """A system that does not allow a name, or takes two for one, has fewer of them."""
    for name in (*NAMES, "a/b.md", "/".join(["d" * 200] * 8 + ["e" * 180, "a.md"])):
        path = f"names/{name}"
        with suppress(OSError):
            if not (tree.root / path).exists():
                tree.text(path, "# {word}\n")


def add_left_out(tree: HostileTree) -> None:
    for path in (".git/a.md", ".obsidian/a.md", ".env.md", "node_modules/a.md", "id_rsa.md"):
        tree.absent(f"out/{path}")
    for path in ("a.md~", "~$a.md", "a.rst", "ignored.md"):
        tree.absent(f"out/{path}")
    tree.put("out/.gitignore", b"ignored.md\n")


def add_objects(tree: HostileTree, outside: Path) -> None:
    tree.text("objects/folder.md/note.md", "# {word}\n")
    tree.text("objects/real.md", "# {word}\n")
    outside.mkdir()
    secret = tree.words.new()
    (outside / "secret.md").write_text(f"# {secret}\n", encoding="utf-8")
    links = {
        "dangling.md": "nowhere.md",
        "loop.md": "loop.md",
        "parent": "..",
        "root": str(tree.root),
        "again.md": "real.md",
        "out.md": str(outside / "secret.md"),
        "out": str(outside),
        "zero.md": "/dev/zero",
    }
    for name, target in links.items():
        tree.not_a_file(f"objects/{name}", lambda at, to=target: at.symlink_to(to))
    tree.not_a_file("objects/fifo.md", os.mkfifo)
    tree.not_a_file("objects/null.md", _make_null)
    tree.not_a_file("objects/socket.md", _bind)
    tree.expect(Case("objects/out/secret.md", Fate.ABSENT, secret))


def _make_null(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))


def _bind(path: Path) -> None:
    """By a short name: an address has room for about a hundred characters."""
    with _inside(path.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)


@contextmanager
def _inside(folder: Path) -> Generator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def hostile_tree(root: Path, words: Words, *, depth: int, is_huge: bool = False) -> HostileTree:
    tree = HostileTree(root, words)
    add_bytes(tree)
    add_lines(tree)
    add_texts(tree)
    add_sizes(tree)
    add_nesting(tree, depth)
    add_structures(tree)
    add_names(tree)
    add_left_out(tree)
    add_objects(tree, root.with_name("outside"))
    if is_huge:
        add_huge_sizes(tree)
    return tree
