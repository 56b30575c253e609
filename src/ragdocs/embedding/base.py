"""The interface of an embedding model: text in, unit vectors out.

Also what all embedders share: prefixes, windows over long texts, batches and threads. An embedder
loads its model on first use; this module imports numpy only when it computes.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from ragdocs.config.values import AUTO
from ragdocs.errors import EmbeddingError
from ragdocs.text import without_surrogates

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[float32]


@dataclass(frozen=True, slots=True)
class EmbeddingCounts:
    """How documents' texts fitted the model's window; only `cut_*` means that something was lost.

    `split_texts` were longer than the window and were embedded in several pieces. `cut_texts` were
    longer than the limit, by `cut_characters` in total.
    """

    texts: int = 0
    split_texts: int = 0
    cut_texts: int = 0
    cut_characters: int = 0

    def __add__(self, other: EmbeddingCounts) -> EmbeddingCounts:
        return EmbeddingCounts(
            self.texts + other.texts,
            self.split_texts + other.split_texts,
            self.cut_texts + other.cut_texts,
            self.cut_characters + other.cut_characters,
        )


@dataclass(frozen=True, slots=True)
class QueryEmbedding:
    """A query's vector, and how many characters at its end were not embedded."""

    vector: Vectors
    cut_characters: int = 0


class Embedder(Protocol):
    """A model that turns text into unit vectors; safe to call from several threads."""

    @property
    def name(self) -> str:
        """The model's name for people."""
        ...

    @property
    def identity(self) -> str:
        """Identifies everything that decides a vector: embedders with the same identity may share
        an index.

        An index stores and compares it, because several models have 384 dimensions. It is final
        after `load`, which replaces a precision that this machine cannot run.
        """
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """The model's window; longer texts are split, never silently cut."""
        ...

    @property
    def counts(self) -> EmbeddingCounts:
        """The counts of all texts that `embed_documents` was given."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages to the user about how the model was found and runs; usually none."""
        ...

    def load(self) -> None:
        """Loads the model before the first text. Raises ModelMissing or ModelCorrupt."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length for each text, in the given order."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The vector to search with; never waits for `embed_documents`."""
        ...


@runtime_checkable
class WindowedEmbedder(Protocol):
    """An embedder that reads a long query in several windows, each a run of the model."""

    def embed_beginning(self, text: str, windows: int) -> QueryEmbedding:
        """The vector of the part of a query that fits into so many windows."""
        ...


def unit(vectors: Vectors) -> Vectors:
    """Scales each row to length 1; a row of zeros stays as it is."""
    import numpy as np

    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(norms, np.float32(1e-12))).astype(np.float32)


# Splits a text into pieces of token ids that fit the model's window.
#
# A longer text is split into as few pieces of equal length as possible; its vector is the mean of
# theirs, weighted by length, so that its end counts as much as its beginning. A maximum number of
# pieces bounds the work for one text, and the characters beyond it are counted.

MAX_TOKENS = 256
SPECIAL_TOKENS = 2
MAX_WINDOWS = 16
# Tokenising costs time too: only as much of a text is read as could fit into 16 windows (16
# characters for each token, four times as many as in English prose).
MAX_CHARACTERS = MAX_WINDOWS * (MAX_TOKENS - SPECIAL_TOKENS) * 16

_ROOM = MAX_TOKENS - SPECIAL_TOKENS


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, without special tokens; `ends` are character offsets."""

    ids: Sequence[int]
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class WindowedText:
    """The pieces of one text, each within the window, and the number of characters left out."""

    pieces: tuple[Sequence[int], ...]
    cut_characters: int

    @property
    def counts(self) -> EmbeddingCounts:
        cut = self.cut_characters > 0
        return EmbeddingCounts(1, int(len(self.pieces) > 1), int(cut), self.cut_characters)


def split_text(
    text: str, tokenise: Callable[[str], Tokens], windows: int = MAX_WINDOWS
) -> WindowedText:
    """An empty text has one empty piece: the model has a vector for it as well."""
    tokens = tokenise(without_surrogates(text[:MAX_CHARACTERS]))
    most = windows * _ROOM
    end = tokens.ends[most - 1] if len(tokens.ids) > most else MAX_CHARACTERS
    return WindowedText(_pieces(tokens.ids[:most]), len(text[end:].strip()))


def _pieces(ids: Sequence[int]) -> tuple[Sequence[int], ...]:
    number = max(1, -(-len(ids) // _ROOM))
    bounds = [len(ids) * index // number for index in range(number + 1)]
    return tuple(ids[start:end] for start, end in pairwise(bounds))


# Splits a text into pieces of text within a model's window, and combines their vectors.


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one text, and the number of characters left out."""

    texts: tuple[str, ...]
    cut_characters: int = 0

    @property
    def counts(self) -> EmbeddingCounts:
        is_cut = self.cut_characters > 0
        return EmbeddingCounts(1, int(len(self.texts) > 1), int(is_cut), self.cut_characters)


def cut_to_fit(text: str, ends: Sequence[int], room: int, windows: int = MAX_WINDOWS) -> Pieces:
    """`ends` are the ends of the text's tokens, `room` is the maximum number of tokens in a piece,
    `windows` that of pieces."""
    if len(ends) <= room:
        return Pieces((text,))
    kept = ends[: room * windows]
    number = -(-len(kept) // room)
    bounds = [0, *(kept[len(kept) * at // number - 1] for at in range(1, number + 1))]
    texts = tuple(text[start:end] for start, end in pairwise(bounds))
    return Pieces(texts, len(text[bounds[-1] :].strip()))


def combine(vectors: Vectors, pieces: Sequence[Pieces]) -> Vectors:
    """One unit vector for each text: the mean of its pieces' vectors, weighted by length."""
    import numpy as np

    rows = np.empty((len(pieces), vectors.shape[1]), dtype=np.float32)
    start = 0
    for row, one in enumerate(pieces):
        end = start + len(one.texts)
        lengths = np.array([max(1, len(text)) for text in one.texts], dtype=np.float32)
        rows[row] = lengths @ vectors[start:end]
        start = end
    return unit(rows)


# Batches: pieces of equal length, a few hundred tokens at a time.
#
# Equal lengths need no padding, so no work is wasted and no piece depends on the others in its
# batch. Larger batches are not faster: the activations exceed the processor's cache (specs/0015).

BATCH_TOKENS = 512
BATCH_SIZE = 32


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of one run of the model; a single piece is always allowed."""

    tokens: int = BATCH_TOKENS
    size: int = BATCH_SIZE


def batches(lengths: Sequence[int], limits: BatchLimits) -> list[list[int]]:
    """Groups positions by equal length, longest first, so that the last run is a short one."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    groups: list[list[int]] = []
    for position in order:
        length = lengths[position]
        room = min(limits.size, limits.tokens // max(1, length))
        if groups and lengths[groups[-1][0]] == length and len(groups[-1]) < room:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups


# Families of models: the prefixes they need, and whether they know languages other than English.
#
# A model's family is recognised by its name, as the Hub, Ollama or a folder spells it.


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The texts put before every query and every passage."""

    query: str = ""
    passage: str = ""

    @property
    def identity(self) -> str:
        """Part of a model's identity: other prefixes give other vectors."""
        return f"{self.query!r}+{self.passage!r}"


_SEARCHING = "Represent this sentence for searching relevant passages: "
_SEARCHING_CODE = "Represent this query for searching relevant code: "
_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_INSTRUCT = f"Instruct: {_TASK}\nQuery: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章\N{FULLWIDTH COLON}"
_BGE_INSTRUCT = f"<instruct>{_TASK}.\n<query>"
# From the models' pages and the MTEB benchmark, including trailing blanks; the first pattern that
# matches the name counts.
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


# A model that is not listed may be multilingual.
_ENGLISH = re.compile(
    r"^all-minilm|^all-(mpnet|distilroberta|roberta)|^multi-qa-|^msmarco-|[-_]en([-_.]|$)"
    r"|^bge-(small|base|large)$|^gte-(tiny|small|base|large)$|^e5-(small|base|large)"
    r"|^nomic-embed-text(-v1|:|$)|^arctic-embed-(xs|s|m|l)$|^snowflake-arctic-embed(:|-[a-z]+(-v1|$))"
    r"|^mxbai-embed-(large|xsmall)|^potion-(base|retrieval)"
)
_MULTILINGUAL = re.compile(r"multilingual|[-_]m3([-_.]|$)|[-_](de|zh|es|fr|ja|ko)[-_]en|[-_]v2-moe")


def known_prefixes(model: str) -> Prefixes:
    """The prefixes of the model's family; empty for an unknown one."""
    name = _last_part(model)
    found = (prefixes for pattern, prefixes in _FAMILIES if re.search(pattern, name))
    return next(found, Prefixes())


def is_english_only(model: str) -> bool:
    """Whether the model's name shows that it was trained on English only."""
    name = _last_part(model)
    return _ENGLISH.search(name) is not None and _MULTILINGUAL.search(name) is None


def _last_part(model: str) -> str:
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1].lower()


def choose_prefixes(query: str, passage: str, known: Prefixes) -> Prefixes:
    """The settings, or the known prefixes for "auto"."""
    return Prefixes(
        query=known.query if query == AUTO else query,
        passage=known.passage if passage == AUTO else passage,
    )


# Embedders without metadata: the dimension is read from a first vector.

PROBE = "What is this model?"


class ProbedEmbedder(ABC):
    """A model that is known only by its answers."""

    def __init__(self, prefixes: Prefixes) -> None:
        self._prefixes = prefixes
        self._lock = threading.Lock()
        self._dimension = 0
        self._texts = 0

    @property
    def dimension(self) -> int:
        """0 while the model cannot be used."""
        try:
            self._learn()
        except EmbeddingError:
            return 0
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """0: unknown."""
        return 0

    @property
    def counts(self) -> EmbeddingCounts:
        return EmbeddingCounts(texts=self._texts)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def load(self) -> None: ...

    def _learn(self) -> None:
        """Makes the dimension known without embedding a text. Raises EmbeddingError."""
        self.load()

    def _count(self, texts: int) -> None:
        with self._lock:
            self._texts += texts


# Several runs of a model at once, each in its own thread.

NICENESS = 10
"""Bulk work may use every core, but queries come first."""


def run_all(
    run: Callable[[list[int]], None], groups: Sequence[list[int]], threads: int, nice: bool = False
) -> None:
    """Runs every group once, `nice` with low priority; the first failure ends it and is raised."""
    if not nice and (threads == 1 or len(groups) <= 1):
        for group in groups:
            run(group)
        return
    if not groups:
        return
    workers = min(threads, len(groups))
    begin = _be_nice if nice else None
    pool = ThreadPoolExecutor(workers, thread_name_prefix="model", initializer=begin)
    try:
        for _ in pool.map(run, groups):
            pass
    finally:
        # After a failure or an interrupt, starts nothing more and waits for running ones only.
        pool.shutdown(wait=True, cancel_futures=True)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _be_nice() -> None:
    """Lowers the priority of this thread only, which works on Linux alone."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
