"""`status`: looks at every part and never fails; what cannot be told is said to be so."""

from dataclasses import replace

from ragdocs import __version__
from ragdocs.app import App
from ragdocs.config.notation import printable, toml_value
from ragdocs.config.resolved import Tree
from ragdocs.config.trust import Ignored, in_words
from ragdocs.diagnosis.index_files import disk_use, exposure_of, variants_of
from ragdocs.diagnosis.keyword_look import look_at_keyword
from ragdocs.diagnosis.model_look import look_at_model, look_at_reranker
from ragdocs.diagnosis.status import (
    Agreement,
    IgnoredSetting,
    SettingDifference,
    Status,
    TreeStatus,
)
from ragdocs.diagnosis.store_look import (
    BUSY_SECONDS,
    MAX_WARNINGS,
    StoreLook,
    is_upgraded,
    look_at_store,
    warning_counts,
)
from ragdocs.diagnosis.verdict import Evidence, judge
from ragdocs.diagnosis.watch_look import look_at_watcher, look_at_writer
from ragdocs.errors import ConfigError, IndexMissing, IndexStoreError, OtherSettings
from ragdocs.indexing.roots import root_problem
from ragdocs.indexing.service_state import ServiceState
from ragdocs.search.upkeep import Upkeep, unchecked
from ragdocs.store.reader import Reader
from ragdocs.store.schema import SCHEMA_VERSION


def gather_status(app: App, service: ServiceState | None = None) -> Status:
    """`service` is what this process's own indexing thread says, where there is one."""
    config = app.config
    directory = app.directory
    model = look_at_model(app)
    look = look_at_store(directory, model.identity)
    hindrance = _hindrance(app)
    evidence = Evidence(
        holdings=look.holdings,
        error=look.error or (hindrance if isinstance(hindrance, IndexStoreError) else None),
        read_only=hindrance if isinstance(hindrance, str) else "",
        agreement=_agreement(app, look),
        trees=tuple(_tree_status(tree, look) for tree in config.trees),
        model=model,
        reranker=look_at_reranker(app),
        keyword=look_at_keyword(directory, config.search.keyword_engine, look.holdings.generation),
        writer=look_at_writer(directory),
        watcher=look_at_watcher(directory, service),
        upkeep=_upkeep(app, look, service),
        is_upgraded=isinstance(look.error, IndexMissing) and is_upgraded(directory),
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
        holdings=look.holdings,
        failures=look.failures,
        warnings=look.warnings[:MAX_WARNINGS],
        warning_counts=warning_counts(look.warnings),
        index_directory=printable(str(directory)),
        disk=disk_use(directory),
        variants=variants_of(directory),
        writer=evidence.writer,
        watcher=evidence.watcher,
        model=model,
        reranker=evidence.reranker,
        keyword=evidence.keyword,
        agreement=evidence.agreement,
        ignored=tuple(map(_ignored, config.ignored)),
    )


def _ignored(one: Ignored) -> IgnoredSetting:
    return IgnoredSetting(
        file=printable(one.origin.where),
        line=one.origin.line,
        key=printable(one.key),
        value=printable(toml_value(one.value)) if one.key else "",
        meaning=one.meaning,
        standing=one.standing.value,
    )


def _upkeep(app: App, look: StoreLook, service: ServiceState | None) -> Upkeep:
    found = app.upkeep(service)
    if look.is_as_left or found.doubt:
        return found
    return replace(found, doubt=unchecked())


def _hindrance(app: App) -> IndexStoreError | str:
    """What keeps answers from a store that can be read: it lacks what they need; or why it is only
    read, in words: it is of other settings."""
    try:
        tables = app.tables
    except ConfigError:  # no such keyword engine is installed, which is said elsewhere
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


def _agreement(app: App, look: StoreLook) -> Agreement:
    return Agreement(
        fingerprint=app.fingerprint,
        stored_fingerprint=look.fingerprint,
        schema=SCHEMA_VERSION,
        stored_schema=look.schema,
        same_settings=look.fingerprint == app.fingerprint,
        differences=tuple(
            SettingDifference(key=one.key, stored=printable(one.stored), own=printable(one.own))
            for one in app.differences(look.settings)
        ),
    )


def _tree_status(tree: Tree, look: StoreLook) -> TreeStatus:
    documents, chunks = look.by_tree.get(tree.name, (0, 0))
    return TreeStatus(
        name=tree.name,
        root=printable(str(tree.root)),
        scope=tree.scope.value,
        documents=documents,
        chunks=chunks,
        problem=root_problem(tree),
    )
