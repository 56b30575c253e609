"""How much of a result is shown: the first one with its whole section or document, as far as it
fits, cut between blocks, and always with the lines that answer.
"""

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.search.budget import Extent
from ragdocs.search.requests import QueryRequest
from tests.support.engine import Engine

WORDS_ONLY = {"semantic_weight": 0.0, "graph_weight": 0.0}
SIZES = ChunkSizes(leaf=Limits(1, 600), small_document=0, overlap=0)
SMALL = {"first_result_tokens": 150, "result_tokens": 60}
"""600 bytes for the first, 240 for the others."""


def paragraphs(name, count):
    return "\n\n".join(
        f"{name} {n} is of no use. {'And so on. ' * 8}".strip() for n in range(count)
    )


@pytest.fixture
def ask(tmp_path):
    opened = []

    def ask(text, query, **settings):
        engine = Engine(tmp_path, {"page.md": text}, sizes=SIZES, **WORDS_ONLY)
        opened.append(engine)
        return engine.answer(QueryRequest(queries=(query,)), **(WORDS_ONLY | settings))

    yield ask
    for engine in opened:
        engine.__exit__(None, None, None)


def lines_of(text, result):
    first, last = result.text_lines
    return text.split("\n")[first - 1 : last]


def test_a_small_document_is_whole(ask):
    text = (
        f"# Birds\n\n{paragraphs('Word', 4)}\n\n## Kestrel\n\nIt hovers.\n\n## Owl\n\nIt calls.\n"
    )
    found = ask(text, "hovers").results[0]
    assert (found.text, found.extent) == (text, Extent.WHOLE)
    assert found.heading_path[-1] == "Kestrel"
    assert found.within.id == "docs:page.md#birds"


def test_a_small_section_of_a_long_document_is_whole_with_blocks_beside_it(ask):
    section = f"## Kestrel\n\n{paragraphs('Feather', 2)}\n\nIt hovers.\n\n{paragraphs('Claw', 1)}\n"
    text = f"# Birds\n\n{paragraphs('Word', 30)}\n\n{section}\n## Owl\n\n{paragraphs('Wing', 30)}\n"
    found = ask(text, "hovers", **SMALL).results[0]
    assert section.strip() in found.text
    assert len(found.text) <= 600
    blocks = text.split("\n\n")
    assert all(block in blocks for block in found.text.strip().split("\n\n"))


def test_the_last_lines_of_a_section_are_shown_when_they_answer(ask):
    """The answer ended with the section's last line end, where no text may end: so the first
    paragraphs were shown and not the answer."""
    tip = "> [!tip] Flight\n> A kestrel hovers.\n"
    text = f"# Birds\n\n{paragraphs('Word', 5)}\n\n{tip}\n## Owl\n\nNo.\n"
    found = ask(text, "kestrel hovers", first_result_tokens=0, result_tokens=60).results[0]
    assert "> A kestrel hovers." in found.text
    assert found.text_lines[0] <= found.answer_lines[0] <= found.text_lines[1]


@pytest.mark.parametrize("at", [0, 17, 39])
def test_a_fence_that_is_too_long_is_cut_between_its_lines(ask, at):
    code = [f"value_{n} = compute({n})  # and so on and so on" for n in range(40)]
    code[at] = "kestrel = hover(field)"
    text = "# Code\n\nSome code.\n\n```python\n" + "\n".join(code) + "\n```\n"
    found = ask(text, "kestrel hover", **SMALL).results[0]
    shown = lines_of(text, found)
    assert code[at] in shown
    assert found.text.rstrip("\n") == "\n".join(shown)
    assert len(found.text) <= 600


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_the_text_holds_its_answer_lines_and_keeps_to_its_room(ask, place):
    items = [f"- Item {n} of a list that says nothing" for n in range(10)]
    table = ["| a | b |", "|---|---|", *(f"| {n} | cell |" for n in range(10))]
    blocks = [*paragraphs("Word", 10).split("\n\n"), "\n".join(items), "\n".join(table)]
    lines = "\n\n".join([*blocks, "## Other", *blocks]).split("\n")
    filled = [n for n, line in enumerate(lines) if line and line[0] not in "#|"]
    lines[filled[place]] += " kestrel"
    text = "# Page\n\n" + "\n".join(lines) + "\n"
    for settings in (SMALL, {}, {"first_result_tokens": 0, "result_tokens": 60}):
        found = ask(text, "kestrel", **settings).results[0]
        first, last = found.answer_lines
        assert found.text_lines[0] <= first <= last <= found.text_lines[1]
        assert text.encode()[slice(*found.text_bytes)].decode() == found.text
        rooms = settings.get("first_result_tokens", 500) or 60
        assert len(found.text.encode()) <= 4 * rooms


def test_an_answer_that_a_text_before_shows_is_not_shown_twice(ask):
    hawk = f"## Hawk\n\nA kestrel is smaller. {paragraphs('Feather', 3)}\n"
    text = f"# Birds\n\n{paragraphs('Word', 3)}\n\n## Kestrel\n\nA kestrel.\n\n{hawk}"
    answer = ask(text, "kestrel", merge_threshold=0)
    assert len(answer.results) > 1
    first, *others = answer.within(5_000, 0.01).results
    assert first.text == text
    assert {each.extent for each in others} == {Extent.REPEATED}
    assert not any(each.text for each in others)
    every = answer.within(5_000).results
    assert all(each.text for each in every)
    assert answer.within(5_000, 0.01).left_out == ()


def test_a_small_budget_keeps_the_lines_that_answer(ask):
    text = f"# Birds\n\n{paragraphs('A kestrel', 6)}\n\nThe kestrel hovers over fields.\n"
    found = ask(text, "kestrel hovers fields").within(80).results[0]
    assert found.extent is Extent.SHORTENED
    assert "The kestrel hovers over fields." in found.text


def test_the_first_result_has_its_text_even_if_another_is_slightly_surer(ask):
    """Near ties are ordered by score: the first was one line without text when the second had a
    hundredth more."""
    text = f"# Birds\n\n{paragraphs('Word', 3)}\n\n## Kestrel\n\nA kestrel.\n"
    answer = ask(text, "kestrel")
    found = answer.within(5_000, 1.01).results[0]
    assert found.extent is Extent.WHOLE
    assert "A kestrel." in found.text
