"""What each family of models wants before a query and a passage, word for word and blank for blank.

The texts are those of the models' own pages, and of the MTEB benchmark's runs of these models.
"""

import pytest

from ragdocs.embedding.base import Prefixes, choose_prefixes, known_prefixes

NONE = Prefixes()
SEARCHING = Prefixes(query="Represent this sentence for searching relevant passages: ")
CHINESE = Prefixes(query="为这个句子生成表示以用于检索相关文章：")
INSTRUCT = Prefixes(
    query="Instruct: Given a web search query, retrieve relevant passages that answer the query"
    "\nQuery: "
)
TAGGED = Prefixes(
    query="<instruct>Given a web search query, retrieve relevant passages that answer the query."
    "\n<query>"
)
QUERY_PASSAGE = Prefixes("query: ", "passage: ")
SEARCH_QUERY = Prefixes("search_query: ", "search_document: ")
CODE = Prefixes(query="Represent this query for searching relevant code: ")
ARCTIC_2 = Prefixes(query="query: ")
QWEN_3 = Prefixes(query=INSTRUCT.query[:-1])
GEMMA = Prefixes("task: search result | query: ", "title: none | text: ")
FAMILIES = {
    "BAAI/bge-small-en": SEARCHING,
    "BAAI/bge-base-en": SEARCHING,
    "BAAI/bge-small-en-v1.5": SEARCHING,
    "BAAI/bge-base-en-v1.5": SEARCHING,
    "BAAI/bge-large-en-v1.5": SEARCHING,
    "BAAI/bge-small-zh": CHINESE,
    "BAAI/bge-large-zh-v1.5": CHINESE,
    "BAAI/bge-m3": NONE,
    "BAAI/bge-m3-unsupervised": NONE,
    "BAAI/bge-reranker-base": NONE,
    "BAAI/bge-reranker-v2-m3": NONE,
    "BAAI/bge-multilingual-gemma2": TAGGED,
    "BAAI/bge-en-icl": TAGGED,
    "BAAI/bge-code-v1": TAGGED,
    "intfloat/e5-small": QUERY_PASSAGE,
    "intfloat/e5-base-v2": QUERY_PASSAGE,
    "intfloat/e5-large-v2": QUERY_PASSAGE,
    "intfloat/e5-large-unsupervised": QUERY_PASSAGE,
    "intfloat/multilingual-e5-small": QUERY_PASSAGE,
    "intfloat/multilingual-e5-base": QUERY_PASSAGE,
    "intfloat/multilingual-e5-large": QUERY_PASSAGE,
    "intfloat/multilingual-e5-large-instruct": INSTRUCT,
    "intfloat/e5-mistral-7b-instruct": INSTRUCT,
    "thenlper/gte-small": NONE,
    "thenlper/gte-large": NONE,
    "thenlper/gte-base-zh": NONE,
    "Alibaba-NLP/gte-base-en-v1.5": NONE,
    "Alibaba-NLP/gte-multilingual-base": NONE,
    "Alibaba-NLP/gte-modernbert-base": NONE,
    "Alibaba-NLP/gte-Qwen1.5-7B-instruct": INSTRUCT,
    "Alibaba-NLP/gte-Qwen2-1.5B-instruct": INSTRUCT,
    "Alibaba-NLP/gte-Qwen2-7B-instruct": INSTRUCT,
    "nomic-ai/nomic-embed-text-v1": SEARCH_QUERY,
    "nomic-ai/nomic-embed-text-v1.5": SEARCH_QUERY,
    "nomic-ai/nomic-embed-text-v2-moe": SEARCH_QUERY,
    "nomic-ai/modernbert-embed-base": SEARCH_QUERY,
    "nomic-ai/nomic-embed-code": CODE,
    "nomic-ai/CodeRankEmbed": CODE,
    "Snowflake/snowflake-arctic-embed-xs": SEARCHING,
    "Snowflake/snowflake-arctic-embed-s": SEARCHING,
    "Snowflake/snowflake-arctic-embed-m": SEARCHING,
    "Snowflake/snowflake-arctic-embed-m-long": SEARCHING,
    "Snowflake/snowflake-arctic-embed-l": SEARCHING,
    "Snowflake/snowflake-arctic-embed-m-v1.5": SEARCHING,
    "Snowflake/snowflake-arctic-embed-m-v2.0": ARCTIC_2,
    "Snowflake/snowflake-arctic-embed-l-v2.0": ARCTIC_2,
    "mixedbread-ai/mxbai-embed-large-v1": SEARCHING,
    "Qwen/Qwen3-Embedding-0.6B": QWEN_3,
    "google/embeddinggemma-300m": GEMMA,
    "sentence-transformers/all-MiniLM-L6-v2": NONE,
    "sentence-transformers/all-mpnet-base-v2": NONE,
    "image-512": NONE,
    "nobody/the-best-model": NONE,
}
OTHER_SPELLINGS = {
    "nomic-embed-text:latest": SEARCH_QUERY,  # Ollama
    "snowflake-arctic-embed2": ARCTIC_2,
    "snowflake-arctic-embed2:568m": ARCTIC_2,
    "snowflake-arctic-embed:335m": SEARCHING,
    "bge-m3:567m": NONE,
    "bge-large": SEARCHING,
    "qwen3-embedding:0.6b": QWEN_3,
    "embeddinggemma": GEMMA,
    "hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q4_K_M": SEARCH_QUERY,
    "jeffh/intfloat-multilingual-e5-large:q8_0": QUERY_PASSAGE,
    "text-embedding-multilingual-e5-large-instruct": INSTRUCT,  # LM Studio
    "text-embedding-bge-small-en-v1.5": SEARCHING,
    "text-embedding-snowflake-arctic-embed-l-v2.0": ARCTIC_2,
    "/models/e5-small/": QUERY_PASSAGE,  # folders
    "/models/bge/all-MiniLM-L6-v2": NONE,
    r"C:\models\gte-small": NONE,
}


@pytest.mark.parametrize(("model", "prefixes"), [*FAMILIES.items(), *OTHER_SPELLINGS.items()])
def test_a_family_is_known_by_its_name(model, prefixes):
    assert known_prefixes(model) == prefixes


def test_a_prefix_that_is_set_counts():
    known = Prefixes("query: ", "passage: ")
    assert choose_prefixes("auto", "auto", known) == known
    assert choose_prefixes("", "text: ", known) == Prefixes("", "text: ")
