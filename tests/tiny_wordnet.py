"""A tiny, valid WordNet database, written on the spot (wndb(5WN))."""

from collections.abc import Mapping, Sequence
from pathlib import Path

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
HEAD = b"  1 This is a tiny database for tests.  \n  2 It has two lines of notes.  \n"

SENSES: Mapping[str, Sequence[Sequence[str]]] = {
    "noun": (
        ("car", "auto", "automobile", "motor_vehicle"),
        ("car", "carriage"),
        ("car", "gondola"),
        ("image", "picture"),
        ("child", "kid"),
        ("study", "survey"),
    ),
    "verb": (("remove", "erase", "withdraw", "delete", "cancel"), ("study", "analyse")),
    "adj": (("quick", "fast(p)", "speedy(a)"),),
    "adv": (("quickly", "rapidly"),),
}
EXCEPTIONS = {"noun": "children child\n", "verb": "", "adj": "", "adv": ""}


def write_wordnet(folder: Path, newline: bytes = b"\n") -> Path:
    """With other line ends than LF the offsets no longer count bytes: so comes one real copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, kind in PARTS.items():
        data, offsets = HEAD, []
        for words in SENSES[part]:
            offsets.append(len(data))
            listed = " ".join(f"{word} 0" for word in words)
            line = f"{len(data):08d} 00 {kind} {len(words):02x} {listed} 000 | a gloss  \n"
            data += line.encode()
        (folder / f"data.{part}").write_bytes(data.replace(b"\n", newline))
        index = HEAD + b"".join(_index_lines(part, kind, offsets))
        (folder / f"index.{part}").write_bytes(index.replace(b"\n", newline))
        (folder / f"{part}.exc").write_text(EXCEPTIONS[part], encoding="ascii")
    return folder


def _index_lines(part: str, kind: str, offsets: Sequence[int]) -> list[bytes]:
    senses: dict[str, list[int]] = {}
    for words, offset in zip(SENSES[part], offsets, strict=True):
        for word in words:
            senses.setdefault(word.partition("(")[0], []).append(offset)
    uses = 9 if part == "verb" else 1
    lines = []
    for word, found in sorted(senses.items(), key=lambda item: item[0].encode()):
        places = " ".join(f"{offset:08d}" for offset in found)
        lines.append(f"{word} {kind} {len(found)} 2 @ ~ {len(found)} {uses} {places}  \n".encode())
    return lines
