"""The configuration: which files were read, what is wrong with them, what should be known."""

from collections.abc import Iterator

from ragdocs.config.loading import Reading
from ragdocs.config.locations import SINGLE_FILE
from ragdocs.config.notation import printable
from ragdocs.config.problems import Problem
from ragdocs.config.trust import in_words
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.wording import advised

_RERANKING = "search.rerank_enabled"
_SYNONYMS = "search.synonyms_enabled"


def absent_parts(reading: Reading) -> Iterator[Problem]:
    """What is set and has no effect because something outside of the settings is not there."""
    from ragdocs.diagnosis.model_look import missing_reranker
    from ragdocs.search.wordnet import wordnet_folder

    config = reading.config
    if config is None:
        return
    if config.search.rerank_enabled and (problem := missing_reranker(config)):
        model = printable(str(config.search.rerank_model))
        message = f"has no effect while the model {model} is not there: {problem}"
        yield Problem(config.origins[_RERANKING], _RERANKING, message)
    if config.search.synonyms_enabled and wordnet_folder() is None:
        message = "has no effect while there is no WordNet: install the extra `synonyms`"
        yield Problem(config.origins[_SYNONYMS], _SYNONYMS, message)


def check_configuration(case: Case) -> Iterator[Finding]:
    reading = case.reading
    for problem in reading.problems:
        yield Finding(
            Level.ERROR, str(problem), f"put it right; {advised('check-config')} checks it"
        )
    for note in (*reading.notes, *absent_parts(reading)):
        yield Finding(Level.NOTE, str(note))
    for line in in_words(reading.ignored):
        yield Finding(Level.WARNING, line, "trust it only if you know who wrote it")
    if reading.problems:
        yield Finding(Level.ERROR, "without a usable configuration most checks cannot be made")
        return
    files = ", ".join(map(at, reading.files))
    yield Finding(Level.OK, files or f"no file ({SINGLE_FILE}): the defaults are in force")
