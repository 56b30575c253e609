"""Settings that are one of a fixed list of values."""

from enum import StrEnum


class Fusion(StrEnum):
    """How the rankings of the indices are merged."""

    SCORE = "score"
    RRF = "rrf"


class KeywordEngineName(StrEnum):
    """The keyword engine: SQLite's own, or one of two with files next to the store."""

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
    """How the vectors of a text's tokens are combined into one."""

    AUTO = "auto"
    MEAN = "mean"
    CLS = "cls"
    MAX = "max"
    LAST = "last"


class Stemmer(StrEnum):
    """The language whose word endings are stripped (the eighteen of seed 004)."""

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


class LintRule(StrEnum):
    """What `ragdocs lint` looks for."""

    BROKEN_LINK = "broken-link"
    BROKEN_HEADING = "broken-heading"
    BROKEN_ANCHOR = "broken-anchor"
    BROKEN_BLOCK = "broken-block"
    AMBIGUOUS_LINK = "ambiguous-link"
    AMBIGUOUS_HEADING = "ambiguous-heading"
    AMBIGUOUS_NAME = "ambiguous-name"
    ORPHAN = "orphan"
    NEAR_COPY = "near-copy"
    STALE_PAGE = "stale-page"
    UNDATED_PAGE = "undated-page"
    MISSING_TITLE = "missing-title"
    FRONT_MATTER = "front-matter"
    PARTLY_INDEXED = "partly-indexed"
    NOT_INDEXED = "not-indexed"
