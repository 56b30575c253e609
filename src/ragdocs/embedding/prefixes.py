"""What is known of a family of models: what it wants before a query and a passage, and whether it
knows other languages than English.

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
_SEARCHING_CODE = "Represent this query for searching relevant code: "
_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_INSTRUCT = f"Instruct: {_TASK}\nQuery: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章\N{FULLWIDTH COLON}"
_BGE_INSTRUCT = f"<instruct>{_TASK}.\n<query>"
# From the models' own pages and the MTEB benchmark's runs of them, blanks at the end included; the
# first pattern that is found in the name counts.
_FAMILIES = (
    (r"bge[-_](multilingual|en-icl|code)", Prefixes(query=_BGE_INSTRUCT)),
    (r"bge[-_](m3|reranker)", Prefixes()),
    (r"bge[-_][a-z]+-zh", Prefixes(query=_BGE_CHINESE)),
    (r"bge[-_]", Prefixes(query=_SEARCHING)),
    (r"e5-.*instruct|e5-mistral", Prefixes(query=_INSTRUCT)),
    (r"(^|[-_])e5([-_]|$)", Prefixes(query="query: ", passage="passage: ")),
    (r"gte[-_]qwen", Prefixes(query=_INSTRUCT)),
    (r"(^|[-_])gte-", Prefixes()),
    (r"nomic-embed-code|coderankembed", Prefixes(query=_SEARCHING_CODE)),
    (
        r"nomic-embed|modernbert-embed",
        Prefixes(query="search_query: ", passage="search_document: "),
    ),
    (r"arctic-embed(2|-[a-z]+-v2)", Prefixes(query="query: ")),
    (r"arctic-embed", Prefixes(query=_SEARCHING)),
    (r"mxbai-embed", Prefixes(query=_SEARCHING)),
    (r"qwen3-embedding", Prefixes(query=_INSTRUCT.rstrip(" "))),
    (
        r"embedding-?gemma",
        Prefixes(query="task: search result | query: ", passage="title: none | text: "),
    ),
)


# Of what is not here nothing is known: it may be multilingual.
_ENGLISH = re.compile(
    r"^all-minilm|^all-(mpnet|distilroberta|roberta)|^multi-qa-|^msmarco-|[-_]en([-_.]|$)"
    r"|^bge-(small|base|large)$|^gte-(tiny|small|base|large)$|^e5-(small|base|large)"
    r"|^nomic-embed-text(-v1|:|$)|^arctic-embed-(xs|s|m|l)$|^snowflake-arctic-embed(:|-[a-z]+(-v1|$))"
    r"|^mxbai-embed-(large|xsmall)|^potion-(base|retrieval)"
)
_MULTILINGUAL = re.compile(r"multilingual|[-_]m3([-_.]|$)|[-_](de|zh|es|fr|ja|ko)[-_]en|[-_]v2-moe")


def known_prefixes(model: str) -> Prefixes:
    """Of the family that the model's name shows; nothing for one that is not known."""
    name = _last_part(model)
    found = (prefixes for pattern, prefixes in _FAMILIES if re.search(pattern, name))
    return next(found, Prefixes())


def is_english_only(model: str) -> bool:
    """Whether the model's name shows that it was trained with English texts alone."""
    name = _last_part(model)
    return _ENGLISH.search(name) is not None and _MULTILINGUAL.search(name) is None


def _last_part(model: str) -> str:
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1].lower()


def chosen_prefixes(query: str, passage: str, known: Prefixes) -> Prefixes:
    """The settings, where they say something else than "auto"."""
    return Prefixes(
        query=known.query if query == AUTO else query,
        passage=known.passage if passage == AUTO else passage,
    )
