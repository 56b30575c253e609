"""An evaluation: indexes the corpus, asks the questions and reports means, intervals and
differences; an ablation switches off one part at a time.
"""

import hashlib
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from ragdocs.config.loading import load_config
from ragdocs.config.locations import PROJECT_FOLDER, IndexPlace, cache_folder
from ragdocs.config.resolved import Config
from ragdocs.config.values import SettingsSection
from ragdocs.errors import EvaluationError, IndexStoreError, QueryError
from ragdocs.evaluation.labelled_set import (
    LABELS,
    QUERIES,
    LabelledQuery,
    LabelledSet,
    Ranked,
    read_run,
    read_set,
)
from ragdocs.evaluation.metrics import (
    DEPTH,
    METRICS,
    SEED,
    Estimate,
    Scores,
    estimate,
    percentile,
    score_all,
)
from ragdocs.evaluation.reliability import Cited, Honesty, disagrees, honesty
from ragdocs.limits import MAX_TOP_N
from ragdocs.text import toml_value

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.embedding.base import Embedder
    from ragdocs.search.requests import QueryRequest
    from ragdocs.search.responses import SearchResult

# Ablation: switch off one part of the search at a time, to see what it contributes.

_OFF: MappingProxyType[str, tuple[str, object]] = MappingProxyType(
    {
        "vectors": ("search.semantic_weight", 0.0),
        "keywords": ("search.keyword_weight", 0.0),
        "code": ("search.code_search_enabled", False),
        "graph": ("search.graph_weight", 0.0),
        "balance": ("search.balance_enabled", False),
        "document meaning": ("search.document_weight", 0.0),
        "closeness": ("search.closeness_weight", 0.0),
        "resemblance": ("search.resemblance_weight", 0.0),
        "adaptive weights": ("search.adaptive_weights_enabled", False),
        "dynamic weights": ("search.advanced.dynamic_weights_enabled", False),
        "expansion": ("search.query_expansion_enabled", False),
        "synonyms": ("search.synonyms_enabled", False),
        "fuzzy words": ("search.fuzzy_distance", 0),
        "communities": ("search.advanced.community_detection_enabled", False),
        "recency": ("search.recency_bias", 0.0),
        "confidence": ("search.min_confidence", 0.0),
        "cutoff": ("search.cutoff_ratio", 0.0),
        "n-gram dedup": ("search.ngram_dedup_enabled", False),
        "semantic dedup": ("search.dedup_enabled", False),
        "MMR": ("search.mmr_enabled", False),
        "document limit": ("search.max_chunks_per_doc", 0),
        "re-ranking": ("search.rerank_enabled", False),
        "merging": ("search.merge_threshold", 0),
        "parents": ("chunking.parent_retrieval_enabled", False),
    }
)
"""Part → its setting, and the value that switches it off."""


@dataclass(frozen=True, slots=True)
class SettingsVariant:
    """The configuration without one part."""

    part: str
    setting: str
    config: Config


def without_each(config: Config) -> Iterator[SettingsVariant]:
    """One variant for each part that is on."""
    for part, (key, off) in _OFF.items():
        changed = _with(config, key.split("."), off)
        if changed != config:
            yield SettingsVariant(part, f"{key} = {toml_value(off)}", changed)


def _with(config: Config, path: Sequence[str], value: object) -> Config:
    section, *inner, setting = path
    chosen = cast("SettingsSection", getattr(config, section))
    changes: dict[str, object] = {setting: value}
    for name in inner:
        changes = {name: getattr(chosen, name).model_copy(update=changes)}
    return replace(config, **{section: chosen.model_copy(update=changes)})


# One run: every query is asked as a user would ask it, and timed.


@dataclass(frozen=True, slots=True)
class Answers:
    """The result of a run: the documents for each query, and if the search itself was asked, also
    the time of each query and its results in the order shown."""

    ranked: Ranked
    seconds: tuple[float, ...] = ()
    cited: Mapping[str, tuple[Cited, ...]] = field(default_factory=dict[str, tuple[Cited, ...]])

    @property
    def firsts(self) -> dict[str, Cited | None]:
        """Query → its first result, or None."""
        return {query: next(iter(found), None) for query, found in self.cited.items()}


def ask_all(
    app: "App",
    queries: Sequence[LabelledQuery],
    excluded: Mapping[str, Collection[str]] | None = None,
) -> Answers:
    """Asks the first query twice, because its first time includes loading. `excluded` maps a query
    to the documents that may not answer it.

    Raises EvaluationError for a query that cannot be asked, IndexStoreError without an index.
    """
    top_n = results_for(DEPTH, app.config.search.max_chunks_per_doc)
    left_out = excluded or {}
    requests = [_request(app, query, top_n, left_out.get(query.id, ())) for query in queries]
    for request in requests[:1]:
        _search(app, request)
    ranked: dict[str, Sequence[str]] = {}
    cited: dict[str, tuple[Cited, ...]] = {}
    seconds: list[float] = []
    for query, request in zip(queries, requests, strict=True):
        began = time.perf_counter()
        found = _search(app, request)
        seconds.append(time.perf_counter() - began)
        cited[query.id] = found
        ranked[query.id] = tuple(dict.fromkeys(each.path for each in found))[:DEPTH]
    return Answers(ranked, tuple(seconds), cited)


def results_for(documents: int, per_document: int) -> int:
    """How many passages to ask for to be sure of that many documents."""
    return min(MAX_TOP_N, documents * per_document) or MAX_TOP_N


def _request(
    app: "App", query: LabelledQuery, top_n: int, excluded: Collection[str]
) -> "QueryRequest":
    from ragdocs.parsers.ids import document_id
    from ragdocs.search.requests import Filters, QueryRequest

    # By id: a bare path would also exclude the files in a folder of that name.
    ids = tuple(document_id(tree.name, path) for tree in app.config.trees for path in excluded)
    filters = Filters(excluded_files=ids)
    try:
        return QueryRequest(queries=(query.text,), top_n=top_n, filters=filters)
    except QueryError as error:
        raise EvaluationError(f"the query {query.id!r} cannot be asked: {error}") from error


def _search(app: "App", request: "QueryRequest") -> tuple[Cited, ...]:
    response = app.search(request)
    if not response.index.is_there:
        raise IndexStoreError(f"the corpus cannot be searched: {response.index.in_words()}")
    return tuple(_cite(result) for result in response.results)


def _cite(result: "SearchResult") -> Cited:
    from ragdocs.parsers.ids import decode_path

    path = decode_path(result.doc_id.partition(":")[2])
    return Cited(path, " > ".join(result.heading_path), result.confidence)


# The figures of runs: means with intervals, by group, and the difference between two runs.

Estimates: TypeAlias = Mapping[str, Estimate]
"""Metric → its estimate."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a query took, in milliseconds."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One run against the labels. `unordered` is the share of answers in which a result's
    confidence is more than five points above that of an earlier one. A run from a file has neither
    this nor a latency.
    """

    label: str
    metrics: Estimates
    latency: Latency | None = None
    unordered: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The queries with the same value of a field."""

    value: str
    queries: int
    metrics: Estimates


@dataclass(frozen=True, slots=True)
class Difference:
    """Another run minus this one, query by query."""

    other: Measured
    setting: str
    metrics: Estimates


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured. `unanswerable` is the number of queries without an answer,
    which are not scored; `missing` the number of labelled documents that are not in the corpus.
    """

    name: str
    documents: int
    queries: int
    unanswerable: int
    missing: int
    level: float
    run: Measured
    field: str = ""
    groups: tuple[Group, ...] = ()
    compared: Difference | None = None
    ablated: tuple[Difference, ...] = ()
    honesty: Honesty | None = None


class Judge:
    """The labels of one set, with the lowest grade that counts as relevant."""

    def __init__(self, labelled: LabelledSet, level: float = 1.0) -> None:
        self._labelled = labelled
        self.level = level

    def scores(self, ranked: Ranked) -> dict[str, Scores]:
        return score_all(ranked, self._labelled.labels, self.level)

    def measure(self, label: str, answers: Answers) -> Measured:
        latency = None
        if answers.seconds:
            at = [percentile(answers.seconds, part) * 1000 for part in (0.5, 0.95)]
            latency = Latency(*at)
        metrics = _estimates(list(self.scores(answers.ranked).values()))
        return Measured(label, metrics, latency, _unordered_share(answers))

    def honesty(self, answers: Answers, near: Answers, foreign: Answers) -> Honesty:
        """`near`: the answers without the relevant documents; `foreign`: the answers to questions
        that the corpus does not answer."""
        scores = self.scores(answers.ranked)
        right = {query: scores[query]["Hit@1"] > 0 for query in near.cited}
        return honesty(answers.firsts, near.firsts, foreign.firsts, right)

    def difference(
        self, other: Measured, theirs: Ranked, ours: Ranked, setting: str = ""
    ) -> Difference:
        mine, others = self.scores(ours), self.scores(theirs)
        rows = [
            {metric: others[query][metric] - mine[query][metric] for metric in METRICS}
            for query in mine
        ]
        return Difference(other, setting, _estimates(rows))

    def check_field(self, field: str) -> None:
        """Raises EvaluationError if no query has the field."""
        queries = self._labelled.queries
        if any(field in query.fields for query in queries):
            return
        known = sorted({name for query in queries for name in query.fields} - {"id", "text"})
        choice = f"the fields are {', '.join(known)}" if known else "there is no field to group by"
        file = self._labelled.folder / QUERIES
        raise EvaluationError(f"no query of {file} has the field {field!r}: {choice}")

    def groups(self, field: str, ranked: Ranked) -> tuple[Group, ...]:
        scores = self.scores(ranked)
        rows: defaultdict[str, list[Scores]] = defaultdict(list)
        for query in self._labelled.queries:
            if query.id in scores:
                rows[str(query.fields.get(field, "(none)"))].append(scores[query.id])
        return tuple(
            Group(value, len(found), _estimates(found)) for value, found in sorted(rows.items())
        )


def _unordered_share(answers: Answers) -> Estimate | None:
    if not answers.cited:
        return None
    shown = ([each.confidence for each in found] for found in answers.cited.values())
    return estimate([float(disagrees(confidences)) for confidences in shown])


def _estimates(rows: Sequence[Scores]) -> Estimates:
    return {metric: estimate([row[metric] for row in rows]) for metric in METRICS}


# An evaluation: index the corpus, ask the queries with each variant, report.

AS_CONFIGURED = "as configured"
FOREIGN = 40
"""How many questions of each other set are asked, chosen with a fixed seed."""
_CONFIG_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """The options of an evaluation. `compare` is a run, or a configuration (`.toml`)."""

    config_file: Path | None = None
    compare: Path | None = None
    by: str = ""
    ablate: bool = False
    level: float = 1.0
    near_miss: bool = False
    foreign: tuple[Path, ...] = ()
    """Sets whose questions this corpus does not answer; `near_miss` asks some of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """What an evaluation leaves to its caller: indexing, and reporting progress."""

    update_index: Callable[[Config], None]
    say: Callable[[str], None] = lambda _: None
    embedder: "Embedder | None" = None


class Evaluation:
    """One set, asked with one configuration and its variants."""

    def __init__(self, labelled: LabelledSet, options: EvaluationOptions, helpers: Helpers) -> None:
        self._labelled = labelled
        self._options = options
        self._helpers = helpers
        self._judge = Judge(labelled, options.level)
        self._embedders: dict[str, Embedder] = {}
        self._documents = 0

    def run(self) -> tuple[Report, Answers]:
        """Raises EvaluationError, ConfigError or IndexStoreError. Wrong options are reported before
        the long work starts.
        """
        config = settings_for(self._labelled.folder, self._options.config_file)
        if self._options.by:
            self._judge.check_field(self._options.by)
        other = self._read_other()
        foreign = self._read_foreign()
        answers = self._ask(config, AS_CONFIGURED)
        scored = self._judge.scores(answers.ranked)
        report = Report(
            name=self._labelled.folder.name,
            documents=self._documents,
            queries=len(scored),
            unanswerable=len(self._labelled.queries) - len(scored),
            missing=self._labelled.missing_documents(),
            level=self._judge.level,
            run=self._judge.measure(AS_CONFIGURED, answers),
        )
        by = self._options.by
        if by:
            report = replace(report, field=by, groups=self._judge.groups(by, answers.ranked))
        if other is not None:
            report = replace(report, compared=self._compare(other, answers))
        if self._options.ablate:
            report = replace(report, ablated=self._ablate(config, answers))
        if self._options.near_miss:
            report = replace(report, honesty=self._honesty(config, answers, foreign))
        return report, answers

    def _read_other(self) -> Config | Ranked | None:
        """The other run or configuration to compare with."""
        other = self._options.compare
        if other is None:
            return None
        if other.suffix == _CONFIG_SUFFIX:
            return settings_for(self._labelled.folder, other)
        return read_run(other)

    def _compare(self, other: Config | Ranked, ours: Answers) -> Difference:
        assert self._options.compare
        label = self._options.compare.name
        theirs = self._ask(other, label) if isinstance(other, Config) else Answers(other)
        measured = self._judge.measure(label, theirs)
        return self._judge.difference(measured, theirs.ranked, ours.ranked)

    def _ablate(self, config: Config, ours: Answers) -> tuple[Difference, ...]:
        found: list[Difference] = []
        for variant in without_each(config):
            label = f"without {variant.part}"
            theirs = self._ask(variant.config, label)
            measured = self._judge.measure(label, theirs)
            ranked = (theirs.ranked, ours.ranked)
            found.append(self._judge.difference(measured, *ranked, variant.setting))
        return tuple(found)

    def _read_foreign(self) -> list[LabelledQuery]:
        """Raises EvaluationError if there is no set, or if it is the same one."""
        found: list[LabelledQuery] = []
        for folder in self._options.foreign:
            other = read_set(folder)
            if other.folder == self._labelled.folder:
                raise EvaluationError(
                    f"{folder} is the set being measured; choose one whose questions its documents "
                    "do not answer"
                )
            answerable = [query for query in other.queries if query.id in other.labels]
            some = random.Random(SEED).sample(answerable, min(FOREIGN, len(answerable)))
            found += [replace(query, id=f"{other.folder}: {query.id}") for query in some]
        return found

    def _honesty(
        self, config: Config, answers: Answers, foreign: Sequence[LabelledQuery]
    ) -> Honesty:
        """Raises EvaluationError if the corpus has no relevant document."""
        relevant = self._labelled.answers()
        if not relevant:
            raise EvaluationError(
                f"{self._labelled.corpus} has none of the relevant documents in {LABELS}, so there "
                "are no near misses"
            )
        asked = [query for query in self._labelled.queries if query.id in relevant]
        near = self._ask(config, "without the relevant documents", asked, relevant)
        own = {query.id for query in self._labelled.queries if not self._is_answerable(query)}
        others = self._ask(config, "from other sets", foreign) if foreign else Answers({})
        unanswerable = {query: found for query, found in answers.cited.items() if query in own}
        return self._judge.honesty(answers, near, Answers({}, (), {**unanswerable, **others.cited}))

    def _is_answerable(self, query: LabelledQuery) -> bool:
        return any(grade > 0 for grade in self._labelled.labels.get(query.id, {}).values())

    def _ask(
        self,
        config: Config,
        label: str,
        queries: Sequence[LabelledQuery] | None = None,
        excluded: Mapping[str, Collection[str]] | None = None,
    ) -> Answers:
        """Asks `queries`, or every query of the set."""
        from ragdocs.app import App

        asked = self._labelled.queries if queries is None else queries
        self._helpers.update_index(config)
        self._helpers.say(f"{label}: asking {len(asked)} queries")
        with App(config, self._shared_embedder(config)) as app:
            self._documents = _count_documents(app)
            return ask_all(app, asked, excluded)

    def _shared_embedder(self, config: Config) -> "Embedder":
        """Shares one model among all variants of a configuration: loading it takes longer than many
        queries."""
        from ragdocs.app import App

        if self._helpers.embedder is not None:
            return self._helpers.embedder
        key = config.embedding.model_dump_json()
        if key not in self._embedders:
            self._embedders[key] = App(config).embedder
        return self._embedders[key]


def settings_for(folder: Path, config_file: Path | None) -> Config:
    """The effective settings for the set's corpus, with an index in the user's cache: one for each
    set of index settings, so that compared indices coexist.

    Raises ConfigError.
    """
    flags = {"indexing": {"documents_path": str(folder / "corpus"), "index_path": ""}}
    # Settings are searched from the working directory, not from the corpus: these are measured.
    config = load_config(config_file or Path(), flags=flags)
    return replace(config, index_place=IndexPlace(index_folder(folder)))


def index_folder(folder: Path) -> Path:
    """Outside the set, and always the same for one set."""
    cache = cache_folder(os.environ) or Path.cwd() / PROJECT_FOLDER
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return cache / "eval" / f"{folder.name[:60]}-{digest}"


def _count_documents(app: "App") -> int:
    """Raises EvaluationError if there are none."""
    found = app.index_state().documents
    if not found:
        roots = ", ".join(str(tree.root) for tree in app.config.trees)
        raise EvaluationError(f"{roots} has no documents to index: check `include` and `exclude`")
    return found
