"""The settings that choose one of a few things."""

from enum import StrEnum


class Fusion(StrEnum):
    """How the lists of the several indices become one."""

    SCORE = "score"
    RRF = "rrf"


class KeywordEngineName(StrEnum):
    """What finds words: SQLite's own engine, or one of two that live beside the store."""

    FTS5 = "fts5"
    WHOOSH = "whoosh"
    TANTIVY = "tantivy"


class EmbeddingProvider(StrEnum):
    """What turns text into vectors."""

    BUILTIN = "builtin"
    HUGGINGFACE = "huggingface"
    LLAMA_INDEX = "llama-index"
    HTTP = "http"
    ONNX = "onnx"


class Pooling(StrEnum):
    """How the vectors of a text's tokens become one."""

    AUTO = "auto"
    MEAN = "mean"
    CLS = "cls"
    MAX = "max"
    LAST = "last"


class Stemmer(StrEnum):
    """The language whose endings are taken off words (seed 004's eighteen)."""

    ARABIC = "arabic"
    DANISH = "danish"
    DUTCH = "dutch"
    ENGLISH = "english"
    FINNISH = "finnish"
    FRENCH = "french"
    GERMAN = "german"
    GREEK = "greek"
    HUNGARIAN = "hungarian"
    ITALIAN = "italian"
    NORWEGIAN = "norwegian"
    PORTUGUESE = "portuguese"
    ROMANIAN = "romanian"
    RUSSIAN = "russian"
    SPANISH = "spanish"
    SWEDISH = "swedish"
    TAMIL = "tamil"
    TURKISH = "turkish"
