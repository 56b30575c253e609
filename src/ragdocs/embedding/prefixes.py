"""What a model wants before a query and before a passage: without it, it finds less.

Models are known by their names, as the Hub, Ollama or a folder spells them.
"""

import re
from dataclasses import dataclass

from ragdocs.config.values import AUTO


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Put before every query, and before every passage."""

    query: str = ""
    passage: str = ""

    @property
    def identity(self) -> str:
        """Part of a model's identity: with other prefixes it gives other vectors."""
        return f"{self.query!r}+{self.passage!r}"


_SEARCHING = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章\N{FULLWIDTH COLON}"
# From the models' own pages; the first pattern that is found in the name counts.
_FAMILIES = (
    (r"bge-(m3|multilingual|reranker)", Prefixes()),
    (r"bge-.*zh", Prefixes(query=_BGE_CHINESE)),
    (r"bge-", Prefixes(query=_SEARCHING)),
    (r"e5-.*instruct|e5-mistral", Prefixes(query=_INSTRUCT)),
    (r"(^|[-_])e5([-_]|$)", Prefixes(query="query: ", passage="passage: ")),
    (r"gte-qwen", Prefixes(query=_INSTRUCT)),
    (r"(^|[-_])gte-", Prefixes()),
    (r"nomic-embed", Prefixes(query="search_query: ", passage="search_document: ")),
    (r"arctic-embed(2|-[a-z]+-v2)", Prefixes(query="query: ")),
    (r"arctic-embed", Prefixes(query=_SEARCHING)),
    (r"mxbai-embed", Prefixes(query=_SEARCHING)),
)


def known_prefixes(model: str) -> Prefixes:
    """Of the family that the model's name shows; nothing for one that is not known."""
    name = re.split(r"[/\\]", model.rstrip("/\\"))[-1].lower()
    found = (prefixes for pattern, prefixes in _FAMILIES if re.search(pattern, name))
    return next(found, Prefixes())


def chosen_prefixes(query: str, passage: str, known: Prefixes) -> Prefixes:
    """The settings, where they say something else than "auto"."""
    return Prefixes(
        query=known.query if query == AUTO else query,
        passage=known.passage if passage == AUTO else passage,
    )
