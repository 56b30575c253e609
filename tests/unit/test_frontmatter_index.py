"""Front matter is searched, filtered by and linked along (P9)."""

import pytest

from ragdocs.indices.graph import Edge, GraphIndex
from ragdocs.models import DocId, LinkKind
from ragdocs.search.requests import Filters
from ragdocs.store.reader import Reader
from tests.support.documents import parse
from tests.support.engine import stored_document
from tests.support.models import catch_up
from tests.support.stores import Corpus, is_match

NOTES = {
    "plan.md": """---
title: Quarterly harvest
description: Which fields are sown in autumn.
keywords: [rotation, fallow]
author: Ada Byron
category: Farming
related: [tools.md, missing.md]
---
The text says nothing of it.
""",
    "tools.md": "---\ncategory: Machines\n---\nA plough, and a harrow beside the fallow deer.\n",
    "songs.md": "The text of a song about nothing much.\n",
}


@pytest.fixture
def notes(tmp_path):
    return Corpus(tmp_path, NOTES)


def test_title_indexed(notes):
    assert notes.paths("harvest") == ["plan.md"]


def test_title_field_indexed(notes):
    """As a field of its own, which can be named."""
    assert notes.paths("title:quarterly") == ["plan.md"]
    assert notes.paths("title:autumn") == []


def test_description_indexed(notes):
    assert notes.paths("sown in autumn") == ["plan.md"]


def test_description_field_indexed(notes):
    """What it adds is its own: without weight the same hit is worth nothing."""
    [(_, without)] = notes.ask("sown", description=0)
    [(_, usual)] = notes.ask("sown")
    assert without == 0 < usual


def test_keywords_boost(notes):
    assert notes.paths("fallow") == ["plan.md", "tools.md"]
    assert notes.paths("fallow", keywords=0.1) == ["tools.md", "plan.md"]


def test_author_searchable(notes):
    assert notes.paths("Byron") == ["plan.md"]
    assert notes.paths("author:ada") == ["plan.md"]


def test_category_filterable():
    documents = {path: stored_document(parse(text, path)) for path, text in NOTES.items()}

    def of(category):
        wanted = Filters(category=category)
        return [path for path, document in documents.items() if is_match(wanted, document)]

    assert of("farming") == ["plan.md"]
    assert of("Machines") == ["tools.md"]
    assert of("Farm") == []
    assert of("") == list(NOTES)


def test_related_graph_edges(notes):
    """Only to what exists; what does not is no edge until it does."""
    with Reader.open(notes.folder) as reader:
        graph = catch_up(GraphIndex(), reader)
        plan, tools = DocId("docs:plan.md"), DocId("docs:tools.md")
        assert graph.edges() == {Edge(plan, tools, LinkKind.RELATED)}
        notes.update({"missing.md": "Found again.\n"})
        catch_up(graph, reader)
        assert Edge(plan, DocId("docs:missing.md"), LinkKind.RELATED) in graph.edges()
