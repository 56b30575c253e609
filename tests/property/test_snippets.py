"""For any file, passage and query: ranges are right, snippets whole, and no result is lost."""

import re
from itertools import pairwise

from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st

from ragdocs.errors import SourceBinary
from ragdocs.indices.keyword import compile_query
from ragdocs.models import ChunkId, DocId, Span, TreeName
from ragdocs.search.budget import Extent, Item, fences, pack, tokens
from ragdocs.search.passages import REPLACEMENT, Passage, match_ranges
from ragdocs.search.query_language import parse_query
from ragdocs.search.snippets import (
    SNIPPET_CHARS,
    SnippetMaker,
    SnippetQuery,
    Style,
    is_word_border,
    show,
)
from tests.support.documents import parse
from tests.support.stores import ANALYZER

MANY = settings(max_examples=60, deadline=None)

WORDS = st.sampled_from(
    [
        *("zebra", "zebras", "Running", "runs", "the", "error", "handling", "x", "404", "1."),
        *("getUserById", "user_name", "std::vector", "Node.js", "C++", "**bold**", "`a code span`"),
        *("café", "cafe\u0301", "Größe", "日本語", "東京都", "שלום", "مرحبا", "한국어", "สวัสดี"),
        *(
            "👨\u200d👩\u200d👧",
            "🇩🇪",
            "👍🏽",
            "\u202eabc",
            "z\u00adebra",
            "\ufffd",
            "“quoted”",
            "…",
            ".",
        ),
        *("#", "##", "-", ">", "|", "```", "~~~", "a" * 60),
    ]
)
SEPARATORS = st.sampled_from([" ", " ", " ", "\n", "\n\n", "  ", ". ", "。", "", "\t", "-"])


def texts(least, most):
    pairs = st.lists(st.tuples(WORDS, SEPARATORS), min_size=least, max_size=most)
    return pairs.map(lambda found: "".join(word + separator for word, separator in found))


LONG_TEXTS = texts(30, 90)
TEXTS = texts(0, 12) | LONG_TEXTS
QUERIES = st.lists(
    st.sampled_from(
        [
            *("zebra", "run", "error handling", '"error handling"', "user", "getUserById", "404"),
            *("日本", "東京都", "שלום", "café", "Größe", "c++", "title:zebra", '"the zebra"'),
        ]
    ),
    min_size=1,
    max_size=3,
)
ENCODINGS = st.sampled_from(
    ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "cp1252", "broken"]
)
MARKS = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff", "utf-32-le": "\ufeff", "utf-32-be": "\ufeff"}
LINE_ENDS = st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3)


def units_of(queries):
    compiled = [compile_query(parse_query(query), ANALYZER) for query in queries]
    return [unit for query in compiled for unit in query.units]


def written(text, encoding, line_ends):
    """The bytes of a file, with the given line ends in turn."""
    lines = text.split("\n")
    ends = [line_ends[number % len(line_ends)] for number in range(len(lines) - 1)]
    text = MARKS.get(encoding, "") + "".join(map(str.__add__, lines, [*ends, ""]))
    if encoding == "broken":
        return text.replace("x", "\x00").encode().replace(b"r", b"\xff")
    if encoding == "cp1252":
        return text.encode("cp1252", "replace")
    return text.encode(encoding)


def source_of(text, encoding, line_ends):
    try:
        return parse(written(text, encoding, line_ends), "a.txt").source
    except SourceBinary:
        reject()


def in_memory(text):
    return Passage(text, Span(0, len(text.encode()), 1, 1 + text.count("\n")))


@MANY
@given(TEXTS, QUERIES, ENCODINGS, LINE_ENDS, st.data())
def test_bytes_and_lines_are_the_files_own_or_the_bytes_are_not_given(
    text, queries, encoding, line_ends, data
):
    source = source_of(text, encoding, line_ends)
    size = len(source.text)
    assume(size)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), min_size=2, max_size=4, unique=True)))
    pieces = [(source.text[slice(*at)], source.span(*at)) for at in pairwise(cuts)]
    whole = "".join(piece for piece, _ in pieces)
    for passage in (
        Passage.of(pieces, source.encoding),
        Passage(whole, source.span(cuts[0], cuts[-1]), source.encoding),
    ):
        is_plain = encoding != "broken" and REPLACEMENT not in whole
        for match in match_ranges(passage, units_of(queries), ANALYZER):
            real = source.span(cuts[0] + match.start, cuts[0] + match.end)
            assert (match.line_start, match.line_end) == (real.line_start, real.line_end)
            if match.byte_start is not None or (is_plain and len({*line_ends}) == 1):
                assert (match.byte_start, match.byte_end) == (real.byte_start, real.byte_end)


@MANY
@given(TEXTS, QUERIES)
def test_ranges_lie_apart_and_each_has_a_term_that_was_looked_for(text, queries):
    units = units_of(queries)
    matches = match_ranges(in_memory(text), units, ANALYZER)
    for before, after in pairwise(matches):
        assert before.end < after.start
    for match in matches:
        terms = ANALYZER.terms(text[match.start : match.end])
        assert match.units
        for unit in match.units:
            assert set(unit.terms) <= set(terms)
    found = {unit for match in matches for unit in match.units}
    all_terms = set(ANALYZER.terms(text))
    for unit in units:
        if len(unit.terms) == 1 and unit.field is None:
            assert (unit in found) == (unit.terms[0] in all_terms)


@MANY
@given(TEXTS, QUERIES, st.integers(20, 200))
@example("zebra" + " " * 400 + "zebra", ["zebra"], 30)
def test_a_snippet_is_short_and_marks_nothing_but_matches(text, queries, length):
    asked = [SnippetQuery(query, tuple(units_of([query]))) for query in queries]
    matches = match_ranges(in_memory(text), units_of(queries), ANALYZER)
    made = SnippetMaker(ANALYZER, Style(length, "[", "]")).of(text, matches, asked)
    assert len(made.text) <= len(asked) * (length + 2) + 3 * (len(asked) - 1)
    assert "  " not in made.text
    assert "\n" not in made.text
    assert "\u202e" not in made.text
    terms = {term for unit in units_of(queries) for term in unit.terms}
    end = -1
    for first, last in made.highlights:
        assert end < first < last <= len(made.text)
        end = last
        if length > 70:  # a narrower one may have to cut a match
            assert terms & set(ANALYZER.terms(made.text[first:last]))
    assert bool(made.highlights) == bool(matches)
    assert re.sub(r"[\[\]]", "", made.highlighted) == made.text


@MANY
@given(TEXTS, QUERIES)
def test_a_snippet_has_whole_words_of_the_passage_and_says_where_it_is_cut(text, queries):
    asked = [SnippetQuery(query, tuple(units_of([query]))) for query in queries[:1]]
    matches = match_ranges(in_memory(text), asked[0].units, ANALYZER)
    made = SnippetMaker(ANALYZER).of(text, matches, asked)
    visible = re.sub("[\u202e\u00ad]", "", " ".join(text.split()))
    if len(made.text) > SNIPPET_CHARS + 2 or not made.text:
        return
    bodies = {made.text, made.text[1:], made.text[:-1], made.text[1:-1]} - {""}
    # A stretch may occur more than once: one of its places must have whole words at both ends.
    assert any(
        visible.startswith(body, at)
        and is_word_border(visible, at)
        and is_word_border(visible, at + len(body))
        for body in bodies
        for at in range(len(visible))
    )


@st.composite
def items(draw):
    encoding, line_ends = draw(ENCODINGS), draw(LINE_ENDS)
    found = []
    for number, text in enumerate(
        draw(st.lists(TEXTS, max_size=2)) + draw(st.lists(LONG_TEXTS, max_size=2))
    ):
        source = source_of(text, encoding, line_ends)
        passage = Passage(source.text, source.span(0, len(source.text)), source.encoding)
        given_item = Item(
            chunk_id=ChunkId(f"docs:{number}.md"),
            doc_id=DocId(f"docs:{number}.md"),
            tree=TreeName("docs"),
            path=f"{number}.md",
            heading_path=("T",) * (number % 3),
            passage=passage,
            matches=match_ranges(passage, units_of(draw(QUERIES)), ANALYZER),
        )
        found.append((given_item, source))
    return found


@MANY
@given(items(), st.integers(1, 400))
def test_nothing_is_lost_over_the_budget_or_cut_in_the_wrong_place(given_items, budget):
    wanted = [item for item, _ in given_items]
    made = pack(wanted, budget)
    places = [packed.place for packed in made.results]
    assert places == sorted(set(places))
    assert made.tokens == sum(packed.tokens for packed in made.results)
    is_exception = places == [0] and made.results[0].extent is Extent.CITED
    assert made.tokens <= budget or is_exception
    assert bool(made.results) == bool(wanted)
    whole = [packed.place for packed in made.results if packed.extent is Extent.WHOLE]
    reported = [int(gone.path.removesuffix(".md")) for gone in made.left_out]
    assert sorted(whole + reported) == list(range(len(wanted)))
    assert sum(packed.extent is not Extent.WHOLE for packed in made.results) <= 1
    for packed in made.results:
        item, source = given_items[packed.place]
        check_packed(packed, item, source)


def check_packed(packed, item, source):
    text = item.passage.text
    if packed.extent is Extent.WHOLE:
        assert packed.text == text
    if packed.extent is not Extent.SHORTENED:
        return
    starts = [at for at in range(len(text)) if text.startswith(packed.text, at)]
    start = next(at for at in starts if source.span(at, at + len(packed.text)) == packed.span)
    end = start + len(packed.text)
    assert packed.tokens == item.citation_tokens + tokens(packed.text)
    assert is_word_border(text, start)
    assert is_word_border(text, end)
    for first, last in fences(text):
        assert not first < start < last
        assert not first < end < last
    for match in packed.matches:
        assert text[start + match.start : start + match.end]
        assert match.units


@MANY
@given(text=st.text("ab é日\n\t  .", max_size=40), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_what_hides_nothing_is_shown_as_it_is_beside_something_hidden(text, cuts):
    """The quick way, and the one that looks at each character: a hidden one makes it be taken."""
    marked = sorted({(min(pair), max(pair)) for pair in pairwise(cuts)})
    quick = show(text, (0, len(text)), marked)
    slow = show(f"{text}\u200b", (0, len(text) + 1), [m for m in marked if m[0] < len(text)])
    assert (slow.text, slow.ranges) == (quick.text, quick.ranges)
    assert (slow.hidden, quick.hidden) == (1, 0)
