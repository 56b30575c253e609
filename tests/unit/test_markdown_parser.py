import gc
import time
from datetime import UTC, datetime

import pytest

from ragdocs.chunking.chunker import chunk_document
from ragdocs.models import DateSource, LinkKind, LinkSyntax
from tests.support.documents import SEED_SIZES, chunk, leaves, parse


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in parse(text).headings]


def slugs(text: str) -> list[str]:
    return [heading.slug for heading in parse(text).headings]


# Titles and dates


def test_title_is_front_matter_then_first_h1_then_file_name():
    assert parse("---\ntitle: A\n---\n# B\n").title == "A"
    assert parse("## Small\n\n# B\n\n# C\n").title == "B"
    assert parse("no heading", path="dir/my note.md").title == "my note"


@pytest.mark.parametrize("text", ["# {}\n\ntext\n", "---\ntitle: {}\n---\ntext\n"])
def test_a_very_long_title_is_cut(text):
    title = parse(text.format("long " * 2_000)).title
    assert len(title) == 200
    assert title.startswith("long long")


def test_date_is_modified_then_date_then_created_then_mtime():
    full = "created: 2020-01-01\ndate: 2021-01-01\nmodified: 2022-01-01"
    lines = full.split("\n")
    years = []
    while lines:
        document = parse("---\n" + "\n".join(lines) + "\n---\n")
        years.append((document.date.year, document.date_source))
        lines.pop()
    assert years == [
        (2022, DateSource.MODIFIED),
        (2021, DateSource.DATE),
        (2020, DateSource.CREATED),
    ]
    document = parse("text", mtime_ns=86_400 * 10**9)
    assert (document.date, document.date_source) == (
        datetime(1970, 1, 2, tzinfo=UTC),
        DateSource.MTIME,
    )


@pytest.mark.parametrize("mtime_ns", [0, -1, 4_102_444_800 * 10**9, 2**63 - 1, -(2**63)])
def test_any_mtime_gives_a_date(mtime_ns):
    assert parse("text", mtime_ns=mtime_ns).date.tzinfo is UTC


# Headings


@pytest.mark.parametrize(
    "text",
    [
        "```\n# no\n```",
        "~~~\n# no\n~~~",
        "````\n```\n# no\n````",
        "```\n# no",
        "    # no",
        "<!--\n# no\n-->",
        "<!-- # no",
        "<pre>\n# no\n</pre>",
        "<div>\n# no\n</div>",
        "<h1>no</h1>",
        "$$\n# no\n$$",
        "\\# no",
        "#no",
        "####### no",
        "- item\n  ```\n  # no\n  ```",
        "> ```\n> # no\n> ```",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text):
    assert headings(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n\n###### Six", [(1, "One"), (6, "Six")]),
        ("Setext\n===\n\nTwo\n---", [(1, "Setext"), (2, "Two")]),
        ("two\nlines\n===", [(1, "two lines")]),
        ("# Closed ##", [(1, "Closed")]),
        ("#", [(1, "")]),
        ("# **Bold** `code` [link](x.md) &amp; <b>tag</b>", [(1, "Bold code link & tag")]),
        ("# [[Target|shown]] and [[Plain]]", [(1, "shown and Plain")]),
        ("# ![alt text](x.png)", [(1, "alt text")]),
        ("# snake_case *em*", [(1, "snake_case em")]),
        ("<<<<<<< HEAD\n# Ours\n=======\n# Theirs\n>>>>>>> b", [(1, "Ours"), (1, "Theirs")]),
        ("$$ not closed\n\n# Yes", [(1, "Yes")]),
    ],
)
def test_headings_and_their_text(text, expected):
    assert headings(text) == expected


def test_a_heading_inside_a_quote_or_list_is_no_section():
    assert headings("> # quoted\n\n- # listed\n\n# real") == [(1, "real")]


def test_a_heading_knows_its_span():
    document = parse("intro\n\nTitle é\n===\n\ntext")
    span = document.headings[0].span
    assert (span.line_start, span.line_end) == (3, 4)
    assert "intro\n\nTitle é\n===\n\ntext".encode()[span.byte_start : span.byte_end].decode() == (
        "Title é\n===\n"
    )


# Slugs


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Hello World", "hello-world"),
        ("What's new?", "whats-new"),
        ("A - B", "a---b"),
        ("snake_case `code`", "snake_case-code"),
        ("Überblick", "überblick"),
        ("日本語 見出し", "日本語-見出し"),
        ("हिन्दी शीर्षक", "हिन्दी-शीर्षक"),
        ("C++ & C#", "c--c"),
        ("1. First", "1-first"),
        ("🚀 Launch", "-launch"),
    ],
)
def test_slugs_follow_github(heading, slug):
    assert slugs(f"# {heading}\n") == [slug]


def test_repeated_empty_and_reserved_headings_get_slugs_of_their_own():
    text = "# A\n\n# A\n\n# A-1\n\n# A\n\n#\n\n# ***\n\n# !!!\n\n# Preamble\n"
    assert slugs(text) == [
        "a",
        "a-1",
        "a-1-1",
        "a-2",
        "section",
        "section-1",
        "section-2",
        "preamble-1",
    ]


def test_a_100k_character_heading_has_a_short_slug_and_title():
    chunks = chunk("# " + "h" * 100_000 + "\n\ntext\n")
    assert all(len(node.id) < 300 and len(node.title) <= 200 for node in chunks)


# Links


def links(text: str):
    return [
        (link.kind, link.syntax, link.target, link.anchor, link.text) for link in parse(text).links
    ]


TO, EMBEDS, RELATED = LinkKind.LINKS_TO, LinkKind.EMBEDS, LinkKind.RELATED
WIKI, MD = LinkSyntax.WIKI, LinkSyntax.MARKDOWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[Note]]", (TO, WIKI, "Note", "", "Note")),
        ("[[dir/Note.md]]", (TO, WIKI, "dir/Note.md", "", "dir/Note.md")),
        ("[[Note#Part]]", (TO, WIKI, "Note", "Part", "Note#Part")),
        ("[[Note#A#B]]", (TO, WIKI, "Note", "A#B", "Note#A#B")),
        ("[[Note#^block]]", (TO, WIKI, "Note", "^block", "Note#^block")),
        ("[[Note|shown]]", (TO, WIKI, "Note", "", "shown")),
        ("[[#Here]]", (TO, WIKI, "", "Here", "#Here")),
        ("![[Note]]", (EMBEDS, WIKI, "Note", "", "Note")),
        ("[t](a.md)", (TO, MD, "a.md", "", "t")),
        ("[t](../b/a.md#part)", (TO, MD, "../b/a.md", "part", "t")),
        ("[t](#part)", (TO, MD, "", "part", "t")),
        ("[t](<my file.md>)", (TO, MD, "my file.md", "", "t")),
        ("[t](a.md 'title')", (TO, MD, "a.md", "", "t")),
        ('[t](a(1).md "x")', (TO, MD, "a(1).md", "", "t")),
        ("[t](a\\_b.md)", (TO, MD, "a_b.md", "", "t")),
        ("[t][r]\n\n[r]: a.md", (TO, MD, "a.md", "", "t")),
        ("[r][]\n\n[R]: a.md#x", (TO, MD, "a.md", "x", "r")),
        ("[r]\n\n[r]: a.md", (TO, MD, "a.md", "", "r")),
        ("[![alt](x.png)](a.md)", (TO, MD, "a.md", "", "![alt](x.png)")),
        ("[a `]` b](a.md)", (TO, MD, "a.md", "", "a `]` b")),
        ("# [t](a.md)", (TO, MD, "a.md", "", "t")),
        ("- [t](a.md)", (TO, MD, "a.md", "", "t")),
        ("> [t](a.md)", (TO, MD, "a.md", "", "t")),
        ("| a | [t](a.md) |\n|---|---|", (TO, MD, "a.md", "", "t")),
        ("| a |\n|---|\n| [[Note\\|shown]] |", (TO, WIKI, "Note", "", "shown")),
        ("![](note.md)", (EMBEDS, MD, "note.md", "", "")),
        ("x[^1]\n\n[^1]: see [Paper](paper.md)", (TO, MD, "paper.md", "", "Paper")),
        ("x[^n]\n\n[^n]: [[Note]]", (TO, WIKI, "Note", "", "Note")),
        (
            "---\nrelated: '[[Note#A]]'\n---\n",
            (RELATED, LinkSyntax.FRONT_MATTER, "Note", "A", "Note#A"),
        ),
    ],
)
def test_links_of_every_form(text, expected):
    assert links(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "`[[code]]`",
        "`` [t](a.md) ` ``",
        "```\n[[fenced]]\n```",
        "    [[indented]]",
        "\\[[x]]",
        "\\[t](a.md)",
        "[t](https://example.org/a.md)",
        "[t](mailto:a@example.org)",
        "[t](//host/a)",
        "<https://example.org/[[x]]>",
        "<!-- [[x]] -->",
        "![alt](picture.png)",
        "![[picture.png]]",
        "[t](file.pdf)",
        "[just brackets]",
        "[[]]",
        "[t]()",
        "$$\n[[x]]\n$$",
        "[[two\nlines]]",
        "x[^1]\n\n[^1]: word",
        "a <!-- b > [[hidden]] --> c",
        "%% [[commented]] %%",
    ],
)
def test_what_is_no_link_between_documents(text):
    assert links(text) == []


def test_a_link_knows_its_span():
    text = "é [t](a.md)\n"
    span = parse(text).links[0].span
    assert text.encode()[span.byte_start : span.byte_end] == b"[t](a.md)"
    assert (span.line_start, span.line_end) == (1, 1)


def test_links_do_not_nest():
    assert [link[2] for link in links("[a [b](inner.md) c](outer.md)")] == ["inner.md"]


# Tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one and #two/sub and #three-3.", ("one", "two/sub", "three-3")),
        ("#Case #case", ("Case",)),
        ("#日本", ("日本",)),
        ("(#paren)", ("paren",)),
        ("#हिन्दी #cafe\u0301 #🎉party", ("हिन्दी", "cafe\u0301", "🎉party")),
        ("| a |\n|---|\n|#cell|", ("cell",)),
        ("#" + "long" * 40, ("long" * 40,)),
        ("`#code` #real", ("real",)),
        ("```\n#fenced\n```", ()),
        ("#123", ()),
        ("a#b http://x/#c &#39; # heading", ()),
        ("# Heading #tag", ("tag",)),
        ("---\ntags: [a]\n---\n#b #a", ("a", "b")),
    ],
)
def test_inline_tags(text, tags):
    assert parse(text).tags == tags


# Code


def test_code_blocks_with_language_text_and_lines():
    document = parse(
        "intro\n\n```Python title=x\ndef f(): ...\n```\n\n- item\n\n  ~~~\n  nested\n  ~~~\n\n"
        "text\n\n    indented\n\n```{.js}\nx\n```\n"
    )
    assert [
        (block.language, block.code, block.span.line_start, block.span.line_end)
        for block in document.code_blocks
    ] == [
        ("python", "def f(): ...\n", 3, 5),
        ("", "nested\n", 9, 11),
        ("", "indented\n", 15, 15),
        ("js", "x\n", 17, 19),
    ]


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("C++", "c++"),
        ("c#", "c#"),
        ("language-python", "python"),
        ('title="x.py"', ""),
        ("{python echo=true}", "python"),
        ("1c", "1c"),
        ("", ""),
    ],
)
def test_the_language_is_the_first_word_of_the_info(info, language):
    assert parse(f"```{info}\nx\n```\n").code_blocks[0].language == language


# Plain text


def test_plain_text_is_one_document_without_headings():
    text = "# not a heading\n\n[[not a link]] #nor-tag\n"
    document = parse(text, path="notes.txt")
    assert (document.headings, document.links, document.tags) == ((), (), ())
    assert document.title == "notes"
    assert [node.id for node in chunk(text, path="notes.txt")] == ["docs:notes.txt"]


@pytest.mark.parametrize("path", ["a.MD", "a.markdown", "a.mdx"])
def test_markdown_is_known_by_its_suffix(path):
    assert parse("# Yes", path=path).title == "Yes"


# Hostile input: every file under two seconds, no recursion, and nothing of it lost

HOSTILE = {
    "one line of 10 MB": b"a" * 10_000_000,
    "a word of 1 MB": b"x" * 1_000_000,
    "a heading of 100k": b"# " + b"**h** " * 16_000 + b"\n\ntext\n",
    "20k headings": b"".join(b"# h%d\n\ntext\n\n" % n for n in range(20_000)),
    "20k equal headings": b"# same\n\n" * 20_000,
    "a data: URI of 1 MB": b"![x](data:image/png;base64," + b"A" * 1_000_000 + b")\n",
    "quotes 20k deep": b">" * 20_000 + b" a\n",
    "lists 20k deep": b"- " * 20_000 + b"a\n",
    "brackets 20k deep": b"[" * 20_000 + b"a" + b"]" * 20_000,
    "open brackets": b"[" * 20_000 + b"![" * 20_000 + b"[[" * 20_000,
    "open destinations": b"[a](" * 20_000,
    "open titles": b'[x](y "' * 10_000,
    "emphasis 20k deep": b"*" * 20_000 + b"a" + b"*" * 20_000,
    "30k comments": b"<!--" * 30_000,
    "30k comment lines": b"<!--\n" * 30_000,
    "backtick runs": b"".join(b"`" * n + b" " for n in range(600)),
    "20k references": b"".join(b"[r%d]: x%d.md\n" % (n, n) for n in range(20_000)),
    "5,000 links": b"".join(b"[[note %d#h|x]] " % n for n in range(5_000)),
    "unclosed math": b"$$ a\n\n" * 20_000,
    "unclosed HTML": b"<a" * 30_000,
    "a wide table": b"|a" * 20_000 + b"|\n" + b"|-" * 20_000 + b"|\n",
    "a page of dots": b"a " + b"." * 200_000,
    "dots and brackets": b"." * 50_000 + b")" * 50_000,
    "open images before links": b"![" * 20_000 + b"[a](b)" * 20_000,
    "brackets and a reference": b"[" * 50_000 + b"]" * 50_000 + b"\n\n[x]: y\n",
    "a destination of blanks": b"[a](" + b" " * 100_000,
    "headings of brackets": (b"# " + b"[" * 1_990 + b"\n\n") * 200,
    "unclosed comments": b"a <!-- " * 20_000 + b"b %% " * 20_001,
    "combining marks": ("a" + "\u0301" * 50_000).encode(),
    "a million line ends": b"\n" * 1_000_000,
    "zero-width and RTL": "\u200b\u202e\u2066text\u2069 👩\u200d👩\u200d👧 ".encode() * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markdown_is_read_whole_and_soon(name):
    data = HOSTILE[name]
    # What else the machine does, and the collector walking the objects of other tests, is not
    # the parser's time.
    gc.collect()
    gc.freeze()
    for _ in range(3):
        started = time.process_time()
        chunks = chunk_document(parse(data), SEED_SIZES)
        seconds = time.process_time() - started
        if seconds < 2:
            break
    gc.unfreeze()
    assert seconds < 2
    read = b"".join(data[leaf.span.byte_start : leaf.span.byte_end] for leaf in leaves(chunks))
    assert read == data or not data.strip()


MDX = """\
import Tabs from '@theme/Tabs'
import {
  Item,
} from 'items'

export const answer = 42

# Guide

<Tabs>
  <Item value="npm">
    ## With npm

    Run it.

        Deeply indented prose about [zebras](zebras.md).
  </Item>
</Tabs>

import your data first
"""


def test_mdx_has_code_at_import_and_export_and_markdown_between_tags():
    document = parse(MDX, path="guide.mdx")

    assert [heading.text for heading in document.headings] == ["Guide", "With npm"]
    assert [heading.span.line_start for heading in document.headings] == [8, 12]
    assert [link.target for link in document.links] == ["zebras.md"]
    lines = [(one.span.line_start, one.span.line_end) for one in document.code_blocks]
    assert lines[:2] == [(1, 4), (6, 6)]
    assert all(one.language == "jsx" for one in document.code_blocks)
    assert document.source.text == MDX  # nothing is taken out


def test_import_and_tags_are_ordinary_in_markdown():
    document = parse("import x\n\n<Tabs>\n# No heading\n</Tabs>\n")

    assert document.headings == ()
    assert document.code_blocks == ()
