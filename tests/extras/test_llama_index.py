"""LlamaIndex on both sides: its embeddings in ours, our search and chunker in its pipelines."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from ragdocs import open_index
from ragdocs.config.settings import ChunkingConfig, EmbeddingConfig
from ragdocs.embedding.providers import make_embedder
from ragdocs.errors import ConfigError, EmbeddingError, ModelMissing
from ragdocs.search.requests import Filters
from tests.support.processes import run_python

PROJECT = Path(__file__).parents[2]
MOCK = "llama_index.core.embeddings.mock_embed_model:MockEmbedding"


def embedder(class_name, **settings):
    return make_embedder(EmbeddingConfig(provider="llama-index", class_name=class_name, **settings))


def test_any_embedding_is_ours(models):
    made = embedder(
        "llama_index.embeddings.huggingface:HuggingFaceEmbedding",
        arguments={"model_name": str(models / "a"), "device": "cpu"},
    )
    vectors = made.embed_documents(["tomatoes need sun", "sign in"])
    assert vectors.shape == (2, 32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(made.embed_query("sign in"), vectors[1], atol=1e-5)
    assert made.dimension == 32


def test_its_identity_is_the_class_its_arguments_and_the_prefixes():
    made = [
        embedder(MOCK, arguments={"embed_dim": 8}),
        embedder(MOCK, arguments={"embed_dim": 9}),
        embedder(MOCK, arguments={"embed_dim": 8}, query_prefix="query: "),
    ]
    assert len({one.identity for one in made}) == 3
    assert embedder(MOCK, arguments={"embed_dim": 8}).identity == made[0].identity
    secret = embedder(MOCK, arguments={"embed_dim": 8, "model_name": "secret-word"})
    assert "secret-word" not in secret.identity


@pytest.mark.parametrize("name", ["os", "os:", ":x", "os:path.join"])
def test_what_names_no_class_is_refused(name):
    with pytest.raises(ConfigError, match="module:Class"):
        embedder(name)


def test_a_missing_class_is_refused_by_the_settings():
    with pytest.raises(ValidationError, match="class is missing"):
        embedder("")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("os:system", "BaseEmbedding"),
        ("subprocess:Popen", "BaseEmbedding"),
        ("no_such_module:Thing", "cannot be imported"),
        ("os:NoSuchThing", "cannot be imported"),
    ],
)
def test_only_an_embedding_is_made(name, why, tmp_path):
    made = embedder(name, arguments={"command": f"touch {tmp_path / 'ran'}"})
    with pytest.raises(ModelMissing, match=why):
        made.load()
    assert not (tmp_path / "ran").exists()
    assert made.dimension == 0


def test_arguments_that_do_not_fit_are_an_error():
    with pytest.raises(ModelMissing, match=r"embedding\.arguments"):
        embedder(MOCK, arguments={"embed_dim": "many"}).load()
    with pytest.raises(EmbeddingError):
        embedder(MOCK, arguments={"embed_dim": 0}).load()


def test_the_index_is_made_with_it(docs, models):
    table = {
        "provider": "llama-index",
        "class": "llama_index.embeddings.huggingface:HuggingFaceEmbedding",
        "arguments": {"model_name": str(models / "a"), "device": "cpu"},
    }
    with open_index(docs, settings={"embedding": table}) as index:
        response = index.search("tomatoes need sun", top_n=1)
    assert response.results[0].path == "garden.md"
    assert response.index.complete


@pytest.fixture
def index(docs, models):
    table = {"provider": "huggingface", "model": str(models / "a")}
    with open_index(docs, settings={"embedding": table}) as opened:
        yield opened


def test_our_search_is_a_retriever(index):
    from llama_index.core.schema import MetadataMode

    from ragdocs.integrations.llama_index import RagdocsRetriever

    retriever = RagdocsRetriever(index, top_n=2)
    nodes = retriever.retrieve("tomatoes need sun")
    wanted = index.search("tomatoes need sun", top_n=2).results
    assert [one.node.node_id for one in nodes] == [one.matched.id for one in wanted]
    assert [one.score for one in nodes] == [one.score for one in wanted]
    best = nodes[0].node
    assert best.metadata["citation"] == "garden.md:1-3"
    assert best.metadata["heading_path"] == "Garden"
    assert best.ref_doc_id == "docs:garden.md"
    shown = best.get_content(MetadataMode.LLM)
    assert "garden.md:1-3" in shown
    assert "confidence" not in shown
    again = asyncio.run(retriever.aretrieve("tomatoes need sun"))
    assert [one.node.node_id for one in again] == [one.node.node_id for one in nodes]


def test_its_filters_hold(index):
    from ragdocs.integrations.llama_index import RagdocsRetriever

    retriever = RagdocsRetriever(index, filters=Filters(tags=frozenset({"access"})))
    assert {one.node.metadata["path"] for one in retriever.retrieve("sun storm sign")} == {
        "auth.md"
    }


def test_our_chunker_is_a_node_parser():
    from llama_index.core import Document
    from llama_index.core.ingestion import IngestionPipeline

    from ragdocs.integrations.llama_index import RagdocsNodeParser

    text = "# One\n\n" + "First words. " * 20 + "\n\n# Two\n\n```py\n# no heading\n```\n"
    text += "Second words. " * 20 + "\n"
    document = Document(text=text, metadata={"file_path": "note.md"})
    sizes = ChunkingConfig(min_leaf_chars=10, min_document_chars=10, max_leaf_chars=400)
    parser = RagdocsNodeParser(chunking=sizes)
    nodes = parser.get_nodes_from_documents([document])
    assert [node.metadata["heading_path"].split(" > ")[-1] for node in nodes] == ["One", "Two"]
    assert "".join(node.text for node in nodes) == text
    assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    assert (nodes[1].metadata["line_start"], nodes[1].metadata["file_path"]) == (5, "note.md")
    assert nodes[0].next_node.node_id == nodes[1].node_id
    assert nodes[0].ref_doc_id == document.doc_id
    assert len(IngestionPipeline(transformations=[parser]).run(documents=[document])) == 2


def test_the_example_runs(docs):
    done = run_python(PROJECT / "examples/llama_index_retriever.py", docs, "how do I log in?")
    assert "auth.md:4-6" in done.stdout.splitlines()[0]


def test_what_the_page_shows_runs(docs, capsys):
    page = PROJECT / "docs" / "python-api.md"
    shown = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    (code,) = [code for code in shown if "ragdocs.integrations" in code]
    exec(compile(code, str(page), "exec"), {})
    assert capsys.readouterr().out == "auth.md:4-6\n"
