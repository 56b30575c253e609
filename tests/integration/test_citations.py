"""A section is cited under its own heading, wherever its text was joined, merged or widened."""

import random
from pathlib import Path

import pytest

from ragdocs.chunking.chunker import ChunkSizes
from ragdocs.chunking.splitting import Limits
from ragdocs.models import NodeKind
from ragdocs.search.orchestrator import Surroundings
from ragdocs.search.requests import Filters, QueryRequest
from tests.support.documents import SEED_SIZES, chunk, leaves, parse
from tests.support.engine import NOW, Engine

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "eval"
WORDS_ONLY = {"semantic_weight": 0.0, "graph_weight": 0.0}

FILLER = "Nothing of it is told in these words, which only fill the page. " * 5
BIRDS = f"""# Birds

{FILLER}

## Of prey

### Kestrel

It hovers over fields.

### Falcon

It dives upon pigeons.

### Osprey

It takes fish.

## Of the water

{FILLER}

### Heron

It stands still.
"""


@pytest.fixture
def birds(tmp_path):
    with Engine(tmp_path, {"birds.md": BIRDS}, sizes=SEED_SIZES, **WORDS_ONLY) as engine:
        yield engine


def first(engine, query, **settings):
    request = QueryRequest(queries=(query,))
    return engine.answer(request, **(WORDS_ONLY | settings)).results[0]


def lines(text, start, end):
    found = text.split("\n")
    return found.index(start) + 1, found.index(end)


def test_small_sections_that_share_a_leaf_are_cited_apart(birds):
    for name, following in (("Kestrel", "### Falcon"), ("Falcon", "### Osprey")):
        found = first(birds, {"Kestrel": "hovers", "Falcon": "pigeons"}[name])
        assert found.id == f"docs:birds.md#{name.lower()}"
        assert found.heading_path == ("Birds", "Of prey", name)
        place = (found.line_start, found.line_end)
        assert place == lines(BIRDS, f"### {name}", following)


def test_the_wider_section_is_told_beside_it(birds):
    found = first(birds, "pigeons")
    assert found.within.id == "docs:birds.md#birds"
    assert found.within.heading_path == ("Birds",)
    assert (found.within.line_start, found.within.line_end) == (1, BIRDS.count("\n"))
    assert "### Kestrel" in found.text
    assert found.matched.id != found.id


def test_the_text_stands_at_its_own_span_and_the_answer_inside_it(birds):
    found = first(birds, "pigeons")
    data = BIRDS.encode()[slice(*found.text_bytes)]
    assert data.decode() == found.text
    begin, end = found.answer_lines
    assert BIRDS.split("\n")[begin - 1 : end] == ["It dives upon pigeons."]
    assert found.text_lines[0] <= begin <= end <= found.text_lines[1]


@pytest.mark.parametrize("query", ["Of prey", "of PREY", "falcon", "Heron", "Of the water"])
def test_a_heading_that_is_the_query_is_cited(birds, query):
    found = first(birds, query)
    assert found.heading_path[-1].casefold() == query.casefold()


def test_a_bare_heading_is_cited_only_when_it_is_asked_for(tmp_path):
    text = f"# Birds\n\n## Of prey\n\n### Kestrel\n\nA bird of prey. {FILLER * 3}\n"
    with Engine(tmp_path, {"birds.md": text}, sizes=SEED_SIZES, **WORDS_ONLY) as engine:
        assert first(engine, "Of prey").id == "docs:birds.md#of-prey"
        assert first(engine, "which bird is one of prey").id == "docs:birds.md#kestrel"


def test_a_merged_result_is_cited_under_the_section_of_its_best_match(tmp_path):
    sizes = ChunkSizes(leaf=Limits(1, 400), small_document=0, overlap=0)
    with Engine(tmp_path, {"birds.md": BIRDS}, sizes=sizes, **WORDS_ONLY) as engine:
        found = first(engine, "It dives upon fields", merge_threshold=2, first_result_tokens=0)
    assert len(found.parts) > 1
    assert found.id in ("docs:birds.md#falcon", "docs:birds.md#kestrel")
    assert found.within.id == "docs:birds.md#of-prey"
    assert found.parent_chunk_id is None


def test_a_parent_carries_the_matched_child_and_overlaps_what_stands_before(tmp_path):
    paragraphs = [f"Paragraph {n} of many. {'And so on. ' * 30}" for n in range(12)]
    paragraphs[9] += " A kestrel."
    text = "# Long\n\n" + "\n\n".join(paragraphs) + "\n"
    sizes = ChunkSizes(leaf=Limits(400, 600), small_document=0, overlap=0)
    size = Limits(1500, 2000)
    without, overlapping = (
        Surroundings(clock=lambda: NOW, parent_size=size, parent_overlap=overlap)
        for overlap in (0, 200)
    )
    with Engine(tmp_path, {"long.md": text}, sizes=sizes, **WORDS_ONLY) as engine:
        plain = first(engine, "kestrel", surroundings=without)
        wider = first(engine, "kestrel", surroundings=overlapping)
    assert wider.text.endswith(plain.text)
    assert 150 < len(wider.text) - len(plain.text) <= 200
    assert (wider.id, wider.parent_chunk_id) == ("docs:long.md#long", "docs:long.md#long")
    assert wider.matched.id.startswith("docs:long.md#long~")
    assert text[wider.matched.byte_start : wider.matched.byte_end] in wider.text


@pytest.mark.parametrize("field", ["headers", "title"])
def test_headings_inside_a_leaf_are_found_by_their_field(birds, field):
    for name in ("kestrel", "falcon", "osprey"):
        assert first(birds, f"{field}:{name}").id == f"docs:birds.md#{name}"


def corpus(name):
    folder = CORPORA / name / "corpus"
    if not folder.is_dir():
        pytest.skip(f"the set {name} is not beside this clone (../shared/eval)")
    return sorted(folder.rglob("*.md"))


@pytest.mark.parametrize("name", ["obsidian-help", "anthropic-docs-sections", "codebase-qa"])
def test_what_the_page_on_parsing_claims_is_true_of_real_files(name):
    for file in corpus(name):
        data = file.read_bytes()
        document, nodes = parse(data), chunk(data)
        sections = {node.slug: node for node in nodes if node.kind is NodeKind.SECTION}
        assert list(sections) == [heading.slug for heading in document.headings], file
        for number, heading in enumerate(document.headings):
            below = [h for h in document.headings[number + 1 :] if h.level <= heading.level]
            own = sections[heading.slug].span
            assert own.line_start == heading.span.line_start
            assert not below or own.line_end == below[0].span.line_start - 1
        found = leaves(nodes)
        body = document.source.text[document.body_start :]
        assert "".join(leaf.text for leaf in found) == (body if body.strip() else "")
        heads = {h.span.line_start for h in document.headings}
        lines_of_text = {
            at
            for at, line in enumerate(document.source.text.split("\n"), 1)
            if at not in heads and line.strip()
        }
        for leaf in found:
            own = range(leaf.span.line_start, leaf.span.line_end + 1)
            assert not lines_of_text or lines_of_text & set(own), leaf.id


def test_headings_of_a_real_vault_are_cited_under_their_own_names(tmp_path):
    files = corpus("obsidian-help")
    root = CORPORA / "obsidian-help" / "corpus"
    texts = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in files}
    headings = [(path, h.text) for path in texts for h in parse(texts[path], path).headings]
    asked = random.Random(3).sample([one for one in headings if one[1].strip()], 60)
    own = 0
    with Engine(tmp_path, texts, sizes=SEED_SIZES, **WORDS_ONLY) as engine:
        for path, heading in asked:
            request = QueryRequest(queries=(heading,), filters=Filters(paths=(path,)))
            results = engine.answer(request, **WORDS_ONLY).results
            own += bool(results) and results[0].heading_path[-1] == heading
    assert own >= 57


def test_the_end_of_a_long_section_is_cited_under_it_beside_an_empty_heading(tmp_path):
    lines = "".join(f"Paragraph {n} tells of rain and wind.\n\n" for n in range(80))
    text = f"# Doc\n\nBefore.\n\n## Alpha\n\n{lines}The zebra comes last.\n\n## Beta\n"
    with Engine(tmp_path, {"a.md": text}) as engine:
        (result, *_) = engine.ask("zebra", top_n=1).results
    assert result.heading_path[-1] == "Alpha"
