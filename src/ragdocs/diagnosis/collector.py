"""Collects the status of every part, without ever failing, and derives one state with advice."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragdocs import __version__
from ragdocs.app import App
from ragdocs.config.resolved import Tree
from ragdocs.config.trust import Ignored, in_words
from ragdocs.diagnosis.file_problems import MAX_WARNINGS, warning_counts
from ragdocs.diagnosis.probes import (
    BUSY_SECONDS,
    EngineState,
    StoreProbe,
    disk_use,
    exposure_of,
    is_upgraded,
    probe_keyword,
    probe_model,
    probe_reranker,
    probe_store,
    probe_watcher,
    probe_writer,
    variants_of,
)
from ragdocs.diagnosis.status import (
    Agreement,
    Holdings,
    IgnoredSetting,
    KeywordStatus,
    ModelStatus,
    SettingDifference,
    Status,
    TreeStatus,
    WatchStatus,
    WriterStatus,
)
from ragdocs.errors import (
    ConfigError,
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OtherSettings,
)
from ragdocs.health import Health, unchecked, with_health
from ragdocs.indexing.reading import root_problem
from ragdocs.indexing.service import ServiceState
from ragdocs.search.responses import IndexState, Readiness, state_of
from ragdocs.store.reader import Reader
from ragdocs.store.schema import SCHEMA_VERSION
from ragdocs.text import advised, number_of, printable, process_text, toml_value

# From evidence to one state, and to advice on what to do next. Pure functions.

_WORDS_ONLY = "search uses keywords only, because there is no usable model"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEvidence:
    """Everything that determines the state."""

    holdings: Holdings
    error: IndexStoreError | None
    read_only: str
    """Why this program only reads the index: another one owns it."""
    agreement: Agreement
    trees: Sequence[TreeStatus]
    model: ModelStatus
    reranker: ModelStatus
    keyword: KeywordStatus
    writer: WriterStatus | None
    watcher: WatchStatus | None
    health: Health
    is_upgraded: bool = False
    """Whether there is an index of these documents in the format of another version."""
    exposure: str = ""
    """Why other accounts have access to the index folder."""

    @property
    def worker(self) -> str:
        """The process that works on the index now; empty if none does."""
        at_work = self.watcher or self.writer
        if at_work is None:
            return ""
        if at_work.pid == os.getpid():
            return "this process"
        return process_text(at_work.pid)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state, one line about it, and notes."""

    state: Readiness
    summary: str
    notes: tuple[str, ...]


def judge(evidence: StatusEvidence) -> Verdict:
    if problem := _why_unusable(evidence):
        is_begun = evidence.error is not None and evidence.health.comes_by_waiting(evidence.error)
        state = Readiness.BUILDING if is_begun else Readiness.UNAVAILABLE
        return Verdict(state, f"{state.value}: {problem}", tuple(_notes(evidence, state)))
    found = with_health(_state_of(evidence), evidence.health)
    if evidence.read_only:
        found = found.behind(evidence.read_only)
    if evidence.keyword.state == EngineState.NOT_INSTALLED:
        found = found.behind(evidence.keyword.problem)
    return Verdict(found.state, found.in_words(), tuple(_notes(evidence, found.state)))


def _why_unusable(evidence: StatusEvidence) -> str:
    """What happened and what repairs it; empty if the store can be read."""
    error = evidence.error
    if error is None:
        return ""
    if isinstance(error, IndexMissing):
        return _why_missing(evidence)
    if isinstance(error, IndexIncompatible):
        return _why_incompatible(evidence)
    if isinstance(error, IndexCorrupt):
        return f"the index is damaged; {advised('doctor --fix')} rebuilds it from the files"
    if isinstance(error, IndexLocked):
        return "the index is busy; try again"
    if isinstance(error, IndexFolderForeign):
        return str(error)
    return f"{error}; {advised('doctor')} shows what can be done"


def _why_missing(evidence: StatusEvidence) -> str:
    if evidence.health.error:
        return f"the index cannot be built: {evidence.health.error}"
    if evidence.worker:
        return f"{evidence.worker} has started to build the index: ask again soon"
    if evidence.is_upgraded:
        return (
            "the index is in the format of another version of this program; "
            f"{advised('update')} upgrades it and keeps its vectors, and so does a server"
        )
    away = [tree for tree in evidence.trees if tree.problem]
    if away and len(away) == len(evidence.trees):
        named = ", ".join(f"{tree.root} {tree.problem}" for tree in away)
        return f"there is no index yet, and nothing to build it from: {named}; correct the path"
    return f"there is no index yet; {advised('update')} builds it, and so does a server"


def _why_incompatible(evidence: StatusEvidence) -> str:
    agreement = evidence.agreement
    if agreement.stored_fingerprint is None and agreement.stored_schema is None:
        return "store.db is not an index of this program; move it elsewhere"
    return str(evidence.error)


def _state_of(evidence: StatusEvidence) -> IndexState:
    """The state as in answers, by what is in the store and whether there is a model."""
    holdings = evidence.holdings
    state = state_of(
        generation=holdings.generation,
        documents=holdings.documents,
        passages=holdings.passages,
        vectors_pending=holdings.vectors_pending,
        failed_files=holdings.files_failed,
        files_waiting=holdings.files_waiting,
        has_vectors=not evidence.model.problem,
    )
    return replace(state, reason=_WORDS_ONLY) if state.state is Readiness.DEGRADED else state


def _notes(evidence: StatusEvidence, state: Readiness) -> Iterator[str]:
    if state is Readiness.BUILDING and evidence.error is None:
        yield _progress_note(evidence)
    if isinstance(evidence.error, IndexCorrupt):
        yield str(evidence.error)
    if evidence.exposure:
        yield evidence.exposure
    if evidence.model.problem:
        yield evidence.model.problem
    yield from evidence.model.notes
    if evidence.reranker.problem:
        yield f"re-ranking has no effect: {evidence.reranker.name} {evidence.reranker.problem}"
    for tree in evidence.trees:
        if tree.problem and tree.documents:
            kept = number_of(tree.documents, "document")
            yield f"the folder of {tree.name} {tree.problem}: keeping its {kept} as last indexed"
    yield from _watcher_notes(evidence)


def _watcher_notes(evidence: StatusEvidence) -> Iterator[str]:
    watcher = evidence.watcher
    if watcher and watcher.trouble:
        yield f"{evidence.worker} reports: {watcher.trouble}"
    if watcher and not watcher.is_heard:
        silent = f"{evidence.worker} should keep the index up to date, but does not respond"
        yield f"{silent}; is it suspended? {advised('update')} also finds changes"


def _progress_note(evidence: StatusEvidence) -> str:
    if not evidence.worker:
        return f"no process is working on it: {advised('update')} continues, and so does a server"
    activity = evidence.watcher.activity if evidence.watcher else ""
    return f"{evidence.worker} is working on it" + (f": {activity}" if activity else "")


# `status`: probes every part and never fails; it reports what could not be read.


def collect_status(app: App, service: ServiceState | None = None) -> Status:
    """`service` is the state of this process's own indexing thread, if there is one."""
    config = app.config
    directory = app.directory
    model = probe_model(app)
    probe = probe_store(directory, model.identity)
    obstacle = _obstacle(app)
    evidence = StatusEvidence(
        holdings=probe.holdings,
        error=probe.error or (obstacle if isinstance(obstacle, IndexStoreError) else None),
        read_only=obstacle if isinstance(obstacle, str) else "",
        agreement=_agreement(app, probe),
        trees=tuple(_tree_status(tree, probe) for tree in config.trees),
        model=model,
        reranker=probe_reranker(app),
        keyword=probe_keyword(directory, config.search.keyword_engine, probe.holdings.generation),
        writer=probe_writer(directory),
        watcher=probe_watcher(directory, service),
        health=_health(app, probe, service),
        is_upgraded=isinstance(probe.error, IndexMissing) and is_upgraded(directory),
        exposure=exposure_of(directory),
    )
    verdict = judge(evidence)
    return Status(
        state=verdict.state,
        summary=verdict.summary,
        notes=(*verdict.notes, *in_words(config.ignored)),
        version=__version__,
        config_files=tuple(printable(str(file)) for file in config.files),
        trees=tuple(evidence.trees),
        holdings=probe.holdings,
        failures=probe.failures,
        warnings=probe.warnings[:MAX_WARNINGS],
        warning_counts=warning_counts(probe.warnings),
        index_directory=printable(str(directory)),
        disk=disk_use(directory),
        variants=variants_of(directory),
        writer=evidence.writer,
        watcher=evidence.watcher,
        model=model,
        reranker=evidence.reranker,
        keyword=evidence.keyword,
        agreement=evidence.agreement,
        ignored=tuple(map(_ignored_setting, config.ignored)),
    )


def _ignored_setting(one: Ignored) -> IgnoredSetting:
    return IgnoredSetting(
        file=printable(one.origin.where),
        line=one.origin.line,
        key=printable(one.key),
        value=printable(toml_value(one.value)) if one.key else "",
        meaning=one.meaning,
        standing=one.standing.value,
    )


def _health(app: App, probe: StoreProbe, service: ServiceState | None) -> Health:
    found = app.health(service)
    if probe.is_as_left or found.doubt:
        return found
    return replace(found, doubt=unchecked())


def _obstacle(app: App) -> IndexStoreError | str:
    """Why a readable store cannot answer (the error: it lacks tables), or why it is only read (in
    words: it has other settings)."""
    try:
        tables = app.tables
    except ConfigError:  # the keyword engine is not installed, which is reported elsewhere
        tables = ()
    making = app.making
    try:
        Reader.open(
            app.directory,
            making.fingerprint,
            settings=making.text,
            indices=tables,
            timeout=BUSY_SECONDS,
        ).close()
    except OtherSettings as error:
        return _why_read_only(app, error)
    except IndexStoreError as error:
        return error
    return ""


def _why_read_only(app: App, error: OtherSettings) -> IndexStoreError | str:
    if app.owns_directory:
        return error
    try:
        return app.why_read_only()
    except IndexStoreError as found:
        return found


def _agreement(app: App, probe: StoreProbe) -> Agreement:
    return Agreement(
        fingerprint=app.fingerprint,
        stored_fingerprint=probe.fingerprint,
        schema=SCHEMA_VERSION,
        stored_schema=probe.schema,
        same_settings=probe.fingerprint == app.fingerprint,
        differences=tuple(
            SettingDifference(key=one.key, stored=printable(one.stored), own=printable(one.own))
            for one in app.differences(probe.settings)
        ),
    )


def _tree_status(tree: Tree, probe: StoreProbe) -> TreeStatus:
    documents, chunks = probe.by_tree.get(tree.name, (0, 0))
    return TreeStatus(
        name=tree.name,
        root=printable(str(tree.root)),
        scope=tree.scope.value,
        documents=documents,
        chunks=chunks,
        problem=root_problem(tree),
        unread=probe.unread.get(tree.name, {}),
    )
