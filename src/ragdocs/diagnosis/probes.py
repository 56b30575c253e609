"""Probes, one for each part (folder, store, keyword engine, models, watcher): read-only, and
without loading a model.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.app import App
from ragdocs.config.choices import KeywordEngineName
from ragdocs.config.resolved import Config
from ragdocs.diagnosis.file_problems import (
    FailedFile,
    FileWarning,
    failed_files,
    file_warnings,
)
from ragdocs.diagnosis.status import (
    DiskUse,
    Holdings,
    KeywordStatus,
    ModelStatus,
    VariantStatus,
    WatchStatus,
    WriterStatus,
)
from ragdocs.embedding.base import Embedder, EmbeddingCounts
from ragdocs.embedding.builtin import BuiltinEmbedder
from ragdocs.errors import IndexStoreError, RagdocsError
from ragdocs.files import user_id
from ragdocs.indexing.service import Role, ServiceState
from ragdocs.locks import Holder
from ragdocs.models import TreeName
from ragdocs.store.database import SIDE_FILES, Database, store_path
from ragdocs.store.folder import (
    MARK_FILE,
    SEAL_FILE,
    STORE_FILE,
    FolderState,
    folder_state,
    is_foreign,
    is_own,
)
from ragdocs.store.lock import SILENT_SECONDS, WATCH_LOCK, WRITE_LOCK, watching, writing
from ragdocs.store.reader import Reader
from ragdocs.store.records import UnreadCounts
from ragdocs.store.schema import SCHEMA_VERSION, schema_version
from ragdocs.store.snapshot import Snapshot
from ragdocs.store.variants import (
    ENGINE_PREFIX,
    USED_FILE,
    is_dropped,
    is_variant,
    place_of,
    siblings,
    variants,
)
from ragdocs.text import advised, printable

if TYPE_CHECKING:
    from ragdocs.indices.engine_folder import State

# The files in an index directory: listed, never opened, links never followed.
#
# Only names that this program uses count as its own: the user may have put the index into a folder
# with other files.

MAX_ENTRIES = 20_000
"""No index has so many files; a folder with more is not ours to walk through."""
LOCKS = (WRITE_LOCK, WATCH_LOCK)
_ENGINES = frozenset(f"{ENGINE_PREFIX}{engine.value}" for engine in KeywordEngineName)
_LOGS = frozenset(STORE_FILE + side for side in SIDE_FILES)
_SHARED_MEMORY = "-shm"
_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


class Part(StrEnum):
    """What a file in the index directory belongs to."""

    STORE = "store"
    LOG = "log"
    LOCK = "lock"
    SEAL = "seal"
    MARK = "mark"
    USE = "use"
    """Records when the index was last used."""
    VARIANT = "variant"
    """An index with other settings, or the remains of one."""
    ENGINE = "engine"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """Anything in the directory, or in the folder of a keyword engine."""

    path: Path
    part: Part
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def kind(self) -> str:
        """The kind of file, with its article."""
        return kind_of(self.status.st_mode)


def kind_of(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def entries(directory: Path) -> Iterator[FolderEntry]:
    """Yields everything of ours, and whatever else is directly beside it. Raises OSError."""
    seen = 0
    pending: list[tuple[Path, Part | None]] = [(directory, None)]
    while pending and seen < MAX_ENTRIES:
        folder, within = pending.pop()
        for entry in _list_folder(folder, within):
            seen += 1
            yield entry
            if entry.part is Part.ENGINE and entry.is_folder:
                pending.append((entry.path, Part.ENGINE))


def disk_use(directory: Path) -> DiskUse:
    """Counts what can be read; zero if there is no folder."""
    sizes = dict.fromkeys(Part, 0)
    try:
        for entry in entries(directory):
            # The shared-memory file of readers has no contents of its own.
            is_content = entry.is_file and not entry.path.name.endswith(_SHARED_MEMORY)
            sizes[entry.part] += entry.status.st_size if is_content else 0
    except OSError:
        pass
    return DiskUse(
        store=sizes[Part.STORE],
        log=sizes[Part.LOG],
        engines=sizes[Part.ENGINE],
        other=sizes[Part.FOREIGN],
        total=sizes[Part.STORE] + sizes[Part.LOG] + sizes[Part.ENGINE],
    )


def exposure_of(directory: Path) -> str:
    """Why other accounts can read or change the index; empty if they cannot, or if there is none. A
    folder that is not ours has its own message."""
    try:
        status = os.stat(directory)
        is_index = folder_state(directory) is FolderState.OURS
    except OSError:
        return ""
    if not is_index or user_id() is None:
        return ""
    if not is_own(status.st_uid):
        why = advised("doctor")
        return f"the index folder belongs to another account ({status.st_uid}): see {why}"
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022:
        return (
            f"the index folder is open to other accounts ({mode:04o}), which can change the index: "
            f"{advised('doctor --fix')} makes it yours alone"
        )
    if mode & 0o077:
        return (
            f"the index folder is open to other accounts ({mode:04o}): "
            f"{advised('doctor --fix')} makes it yours alone"
        )
    return ""


def variants_of(directory: Path) -> tuple[VariantStatus, ...]:
    """All indices of the same documents, including our own."""
    return tuple(
        VariantStatus(
            path=printable(str(one.path)),
            is_own=one.path == directory,
            bytes=disk_use(one.path).total,
            last_used=_moment(one.last_used),
        )
        for one in variants(place_of(directory))
    )


def _moment(seconds: float | None) -> str:
    """In UTC; empty if it is not known."""
    try:
        return datetime.fromtimestamp(seconds or 0, UTC).isoformat(timespec="seconds") * bool(
            seconds
        )
    except (ValueError, OverflowError, OSError):
        return ""


def _list_folder(folder: Path, within: Part | None) -> Iterator[FolderEntry]:
    try:
        with os.scandir(folder) as listing:
            found = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        if within is None:
            raise
        return
    for entry in found:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # gone meanwhile
            continue
        yield FolderEntry(Path(entry.path), within or _part_of(entry.name), status)


def _part_of(name: str) -> Part:
    if name == STORE_FILE:
        return Part.STORE
    if name in _LOGS:
        return Part.LOG
    if name in LOCKS:
        return Part.LOCK
    if name == SEAL_FILE:
        return Part.SEAL
    if name == MARK_FILE:
        return Part.MARK
    if name == USED_FILE:
        return Part.USE
    if is_variant(Path(name)) or is_dropped(Path(name)):
        return Part.VARIANT
    return Part.ENGINE if name in _ENGINES else Part.FOREIGN


# The state of the configured keyword engine.

MAX_STATE_BYTES = 10_000_000
"""Our list of files has a few kilobytes; anything larger was not written by us."""


class EngineState(StrEnum):
    """The state of an engine. The next query updates or rebuilds it."""

    INSIDE = "inside the store"
    UP_TO_DATE = "up to date"
    BEHIND = "behind: the next query updates it"
    NOT_BUILT = "not built yet: the next query builds it"
    DAMAGED = "damaged: the next query rebuilds it"
    NOT_INSTALLED = "not installed"


def engine_folder(directory: Path, engine: KeywordEngineName) -> Path:
    """Like `keyword_folder` in `indices/engines.py`, which would import every engine."""
    return directory / f"{ENGINE_PREFIX}{engine.value}"


def probe_keyword(directory: Path, engine: KeywordEngineName, generation: int) -> KeywordStatus:
    """`generation` is that of the store."""
    if engine is KeywordEngineName.FTS5:
        return KeywordStatus(engine=engine.value, state=EngineState.INSIDE, generation=generation)
    if find_spec(engine.value) is None:
        problem = f"the keyword engine {engine.value} is not installed: install it, or set another"
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_INSTALLED, problem=problem)
    from ragdocs.indices.engine_folder import Damaged

    try:
        state = read_engine_state(engine_folder(directory, engine))
    except Damaged as error:
        return KeywordStatus(engine=engine.value, state=EngineState.DAMAGED, problem=str(error))
    if state is None:
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_BUILT)
    at = state.position.generation
    how = EngineState.UP_TO_DATE if at == generation else EngineState.BEHIND
    return KeywordStatus(engine=engine.value, state=how, generation=at)


def read_engine_state(folder: Path) -> "State | None":
    """None if there is none yet. Raises Damaged for a file that cannot be one."""
    from ragdocs.indices.engine_folder import STATE_FILE, Damaged, DerivedFolder

    if is_foreign(folder.parent):
        return None
    try:
        size = os.lstat(folder / STATE_FILE).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Damaged(f"{STATE_FILE} cannot be read: {error.strerror}") from error
    if size > MAX_STATE_BYTES:
        raise Damaged(f"{STATE_FILE} has {size} bytes, which is too large")
    return DerivedFolder(folder).state()


# Which models are available, and where: judged by their files, without loading anything.

_BY_NAME = "is only a name: set rerank_model to a folder, or install `huggingface`"


def probe_model(app: App) -> ModelStatus:
    """The embedding model. It has an identity whenever there is an embedder."""
    try:
        embedder = app.embedder
    except RagdocsError as error:
        return ModelStatus(name=str(app.config.embedding.model), problem=str(error))
    from ragdocs.embedding.onnx import OnnxEmbedder

    place = folder = problem = ""
    notes = embedder.notes
    if isinstance(embedder, BuiltinEmbedder):
        try:
            files = embedder.find()
            place, folder = files.place, printable(str(files.weights.parent))
            notes = tuple(dict.fromkeys((*files.rejected, *notes)))
        except (RagdocsError, OSError) as error:
            problem = str(error)
    elif isinstance(embedder, OnnxEmbedder):
        try:
            export = embedder.find()
            place, folder = export.model.path.name, printable(str(export.folder))
            notes = embedder.notes
        except (RagdocsError, OSError) as error:
            problem = str(error)
    dimension = embedder.dimension
    if not dimension:  # it is missing, or its server does not answer
        problem = problem or f"the model cannot be used now: {advised('doctor')} shows why"
    return ModelStatus(
        name=embedder.name,
        identity=embedder.identity,
        dimension=dimension,
        place=place,
        folder=folder,
        problem=problem,
        notes=notes,
        counts=_counts(embedder),
    )


def probe_reranker(app: App) -> ModelStatus:
    settings = app.config.search
    name = printable(str(settings.rerank_model))
    if not settings.rerank_enabled:
        return ModelStatus(name=name, is_on=False)
    from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, open_cross_encoder

    problem = missing_reranker(app.config)
    if not isinstance(open_cross_encoder(str(settings.rerank_model), 1), OnnxCrossEncoder):
        return ModelStatus(name=name, problem=problem)
    folder = _folder(settings.rerank_model)
    return ModelStatus(
        name=printable(folder.name),
        place="the configured folder",
        folder=printable(str(folder)),
        problem=problem,
    )


def missing_reranker(config: Config) -> str:
    """What is missing for reranking; empty if nothing is. Checks only that the files exist;
    `doctor` loads them."""
    from ragdocs.embedding.cross_encoder import (
        OnnxCrossEncoder,
        TorchCrossEncoder,
        open_cross_encoder,
    )
    from ragdocs.embedding.hub import NEEDED_FILES

    model = str(config.search.rerank_model)
    encoder = open_cross_encoder(model, 1, config.embedding.cache_folder)
    if isinstance(encoder, OnnxCrossEncoder):
        is_there = _is_complete(_folder(config.search.rerank_model))
        return "" if is_there else f"its folder does not have {NEEDED_FILES}"
    if not isinstance(encoder, TorchCrossEncoder):
        return _BY_NAME
    try:
        encoder.find()
    except RagdocsError as error:
        return str(error)
    return ""


def _folder(model: object) -> Path:
    # Not Path.expanduser, which raises for an unknown user.
    return Path(os.path.expanduser(str(model)))


def _counts(embedder: Embedder) -> EmbeddingCounts | None:
    return embedder.counts if embedder.counts.texts else None


def _is_complete(folder: Path) -> bool:
    from ragdocs.embedding.hub import MODELS

    try:
        has_model = any((folder / name).is_file() for name in MODELS)
        return has_model and all(
            (folder / name).is_file() for name in ("config.json", "tokenizer.json")
        )
    except OSError:
        return False


# The contents of the store, or why it cannot be read: read-only, quick, without a model.
#
# Counts come from the ledger if it has them; others are counted along an index, which takes about
# ten milliseconds for 100,000 chunks.

BUSY_SECONDS = 1.0
_PRECISION = re.compile(r";precision=[^;]*")


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """The facts of one generation; or the error that prevents reading them."""

    holdings: Holdings = field(default_factory=Holdings)
    by_tree: Mapping[TreeName, tuple[int, int]] = field(
        default_factory=dict[TreeName, tuple[int, int]]
    )
    """Tree → its documents and chunks."""
    unread: UnreadCounts = field(default_factory=dict[TreeName, dict[str, int]])
    failures: tuple[FailedFile, ...] = ()
    warnings: tuple[FileWarning, ...] = ()
    fingerprint: str | None = None
    settings: str = ""
    """The settings behind the fingerprint."""
    schema: int | None = None
    error: IndexStoreError | None = None
    is_as_left: bool = True
    """Whether the store is unchanged since our last commit."""


def probe_store(directory: Path, model: str) -> StoreProbe:
    """`model` is the identity whose vectors count; empty if there is no model."""
    try:
        with (
            closing(Reader(directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            return replace(_read(snapshot, model), is_as_left=snapshot.state.is_sound)
    except IndexStoreError as error:
        return StoreProbe(error=error, schema=stored_schema(directory))


def stored_schema(directory: Path) -> int | None:
    """None if there is no store of ours."""
    try:
        with closing(Database(store_path(directory), write=False, timeout=BUSY_SECONDS)) as found:
            return schema_version(found)
    except IndexStoreError:
        return None


def is_upgraded(directory: Path) -> bool:
    """Whether there is an index of the same documents in the format of another version."""
    found = (stored_schema(one.path) for one in siblings(directory))
    return any(schema not in (None, SCHEMA_VERSION) for schema in found)


def vectors_model(stored: Mapping[str, int], wanted: str) -> str:
    """The identity under which the wanted model's vectors are stored.

    A precision that this machine cannot run is replaced when the model is loaded; only then does
    the identity change.
    """
    if wanted in stored:
        return wanted
    bare = _PRECISION.sub("", wanted)
    return next((one for one in stored if _PRECISION.sub("", one) == bare), wanted)


def _read(snapshot: Snapshot, model: str) -> StoreProbe:
    warnings = file_warnings(snapshot)
    lossy = {(one.tree, one.path) for one in warnings if one.is_loss}
    return StoreProbe(
        holdings=replace(_holdings(snapshot, model), files_with_loss=len(lossy)),
        by_tree=snapshot.tree_sizes(),
        unread=snapshot.unread,
        failures=failed_files(snapshot),
        warnings=warnings,
        fingerprint=snapshot.fingerprint,
        settings=snapshot.settings,
        schema=SCHEMA_VERSION,
    )


def _holdings(snapshot: Snapshot, model: str) -> Holdings:
    count = snapshot.ledger.count
    passages = snapshot.count_passages()
    pending = passages
    origin = snapshot.communities_origin
    if model and count("embeddings"):
        stored = snapshot.models()
        pending = snapshot.count_missing_embeddings(vectors_model(stored, model))
    return Holdings(
        documents=count("documents"),
        chunks=count("chunks"),
        passages=passages,
        vectors=passages - pending,
        vectors_pending=pending,
        files_waiting=snapshot.waiting,
        files_failed=count("failures"),
        links_unresolved=snapshot.count_unresolved_links(),
        unused_vector_bytes=snapshot.unused_vector_bytes,
        generation=snapshot.position.generation,
        communities=snapshot.count_communities(),
        communities_generation=origin.position.generation if origin else None,
        communities_current=snapshot.has_current_communities(),
    )


# Which process writes and which one watches, by the locks or by this process's own state.

# With any other role, another process or none keeps the index up to date.
_AT_WORK = (Role.STARTING, Role.WATCHING, Role.UNWATCHED)


def probe_writer(directory: Path) -> WriterStatus | None:
    found = writing(directory)
    return WriterStatus(pid=found.pid, since=_iso(found.since)) if found else None


def probe_watcher(directory: Path, service: ServiceState | None = None) -> WatchStatus | None:
    """None if no process is watching. `service` is the state of this process's own service."""
    found = watching(directory)
    error = service.error if service else ""
    if service is not None and (service.role in _AT_WORK or (error and not found)):
        about = Holder(os.getpid(), found.since if found else None)
        return _status(about, service.facts(), error)
    if found is None:
        return None
    is_heard = found.is_heard_within(SILENT_SECONDS)
    return replace(_status(found, found.says, error), is_heard=is_heard)


def _status(found: Holder, says: Mapping[str, str], error: str) -> WatchStatus:
    return WatchStatus(
        pid=found.pid,
        since=_iso(found.since),
        is_ours=found.pid == os.getpid(),
        mode=says.get("mode", ""),
        reason=says.get("reason", ""),
        activity=says.get("activity", ""),
        last_scan=says.get("last_scan", ""),
        trouble=error or says.get("error") or says.get("trouble", ""),
    )


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None
