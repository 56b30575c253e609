"""Reads the state of one part each (folder, store, keyword engine, models, watcher), read-only and
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
from ragdocs.embedding.cross_encoder import OnnxCrossEncoder, TorchCrossEncoder, open_cross_encoder
from ragdocs.embedding.hub import MODELS, NEEDED_FILES
from ragdocs.embedding.onnx import OnnxEmbedder
from ragdocs.errors import IndexStoreError, RagdocsError
from ragdocs.files import user_id
from ragdocs.indexing.service import Role, ServiceState
from ragdocs.indices.engine_folder import STATE_FILE, Damaged, DerivedFolder, State
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

# What lies in an index directory: looked at from outside, never opened, and never followed.
#
# Only names that the program gives count as its own: a user may have put the index into a folder
# that holds other things.

MAX_ENTRIES = 20_000
"""No index has so many files; whatever has is not ours to walk through."""
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
    """When it was last used."""
    VARIANT = "variant"
    """An index of other settings, or what is left of one."""
    ENGINE = "engine"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """Something in the directory, or below one of the engines' folders."""

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
        """What it is, with its article."""
        return kind_of(self.status.st_mode)


def kind_of(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def entries(directory: Path) -> Iterator[FolderEntry]:
    """All that is the program's, and what else lies directly beside it. Raises OSError."""
    seen = 0
    pending: list[tuple[Path, Part | None]] = [(directory, None)]
    while pending and seen < MAX_ENTRIES:
        folder, within = pending.pop()
        for entry in _listed(folder, within):
            seen += 1
            yield entry
            if entry.part is Part.ENGINE and entry.is_folder:
                pending.append((entry.path, Part.ENGINE))


def disk_use(directory: Path) -> DiskUse:
    """What can be seen of it: nothing where there is no folder."""
    sizes = dict.fromkeys(Part, 0)
    try:
        for entry in entries(directory):
            # Readers share memory through a file, which holds nothing by itself.
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
    """Why others can read or change the index, in words; empty when they cannot, or when there is
    none. A folder that is not ours has a message of its own."""
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
    """All indices of the same documents, the own one included."""
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
    """In UTC; empty where it is not known."""
    try:
        return datetime.fromtimestamp(seconds or 0, UTC).isoformat(timespec="seconds") * bool(
            seconds
        )
    except (ValueError, OverflowError, OSError):
        return ""


def _listed(folder: Path, within: Part | None) -> Iterator[FolderEntry]:
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


# How far the keyword engine is that the settings choose.

MAX_STATE_BYTES = 10_000_000
"""Its list of files is a few kilobytes; whatever is larger was not written by us."""


class EngineState(StrEnum):
    """Where an engine stands. Whatever lags or is damaged is made good by the next query."""

    INSIDE = "inside the store"
    IN_STEP = "in step"
    BEHIND = "behind: the next query brings it in step"
    NOT_MADE = "not made yet: the next query makes it"
    DAMAGED = "damaged: the next query makes it anew"
    NOT_INSTALLED = "not installed"


def engine_folder(directory: Path, engine: KeywordEngineName) -> Path:
    """As `keyword_engines.keyword_folder`, which loads every engine."""
    return directory / f"{ENGINE_PREFIX}{engine.value}"


def probe_keyword(directory: Path, engine: KeywordEngineName, generation: int) -> KeywordStatus:
    """`generation` is the store's."""
    if engine is KeywordEngineName.FTS5:
        return KeywordStatus(engine=engine.value, state=EngineState.INSIDE, generation=generation)
    if find_spec(engine.value) is None:
        problem = f"the keyword engine {engine.value} is not installed: install it, or set another"
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_INSTALLED, problem=problem)
    try:
        state = read_engine_state(engine_folder(directory, engine))
    except Damaged as error:
        return KeywordStatus(engine=engine.value, state=EngineState.DAMAGED, problem=str(error))
    if state is None:
        return KeywordStatus(engine=engine.value, state=EngineState.NOT_MADE)
    at = state.position.generation
    how = EngineState.IN_STEP if at == generation else EngineState.BEHIND
    return KeywordStatus(engine=engine.value, state=how, generation=at)


def read_engine_state(folder: Path) -> State | None:
    """None when there is none yet; Damaged for what cannot be one."""
    if is_foreign(folder.parent):
        return None
    try:
        size = os.lstat(folder / STATE_FILE).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Damaged(f"{STATE_FILE} cannot be looked at: {error.strerror}") from error
    if size > MAX_STATE_BYTES:
        raise Damaged(f"{STATE_FILE} has {size} bytes, more than it ever could")
    return DerivedFolder(folder).state()


# Whether there are models, and where: known by their files, without loading anything.

_BY_NAME = "is known by its name only: name a folder in rerank_model, or install `huggingface`"


def probe_model(app: App) -> ModelStatus:
    """The embedder's; an identity is there whenever there is an embedder."""
    try:
        embedder = app.embedder
    except RagdocsError as error:
        return ModelStatus(name=str(app.config.embedding.model), problem=str(error))
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
    if not dimension:  # it is not there, or its server does not answer
        problem = problem or f"the model cannot be used now: {advised('doctor')} says why"
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
    """What is missing of the model that is to re-rank; empty when it is there. Only whether its
    files are there: what is in them is for `doctor`."""
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
    # Not Path.expanduser, which raises for a user that is not known.
    return Path(os.path.expanduser(str(model)))


def _counts(embedder: Embedder) -> EmbeddingCounts | None:
    return embedder.counts if embedder.counts.texts else None


def _is_complete(folder: Path) -> bool:
    try:
        has_model = any((folder / name).is_file() for name in MODELS)
        return has_model and all(
            (folder / name).is_file() for name in ("config.json", "tokenizer.json")
        )
    except OSError:
        return False


# What the store says of itself, or why it says nothing: read-only, short, and without a model.
#
# Counts come from the ledger where it has them; the others are counted along an index, which takes
# some ten milliseconds at 100,000 chunks.

BUSY_SECONDS = 1.0
_PRECISION = re.compile(r";precision=[^;]*")


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """Facts of one commit; or the error that keeps us from them, with what else can be told."""

    holdings: Holdings = field(default_factory=Holdings)
    by_tree: Mapping[TreeName, tuple[int, int]] = field(
        default_factory=dict[TreeName, tuple[int, int]]
    )
    """Documents and chunks by the tree's name."""
    failures: tuple[FailedFile, ...] = ()
    warnings: tuple[FileWarning, ...] = ()
    fingerprint: str | None = None
    settings: str = ""
    """What the fingerprint is of."""
    schema: int | None = None
    error: IndexStoreError | None = None
    is_as_left: bool = True
    """Whether the store is as the last commit left it."""


def probe_store(directory: Path, model: str) -> StoreProbe:
    """`model`: the identity whose vectors count; empty when there is no model."""
    try:
        with (
            closing(Reader(directory, timeout=BUSY_SECONDS)) as reader,
            reader.snapshot() as snapshot,
        ):
            return replace(_look(snapshot, model), is_as_left=snapshot.state.is_sound)
    except IndexStoreError as error:
        return StoreProbe(error=error, schema=stored_schema(directory))


def stored_schema(directory: Path) -> int | None:
    """None when there is no store, or nothing that could be one of ours."""
    try:
        with closing(Database(store_path(directory), write=False, timeout=BUSY_SECONDS)) as found:
            return schema_version(found)
    except IndexStoreError:
        return None


def is_upgraded(directory: Path) -> bool:
    """Whether another version of this program has an index of the same documents beside it."""
    found = (stored_schema(one.path) for one in siblings(directory))
    return any(schema not in (None, SCHEMA_VERSION) for schema in found)


def vectors_model(stored: Mapping[str, int], wanted: str) -> str:
    """The identity under which the wanted model's vectors are stored.

    A precision that the machine cannot run is replaced when the model is loaded, and only then
    does the identity say so.
    """
    if wanted in stored:
        return wanted
    bare = _PRECISION.sub("", wanted)
    return next((one for one in stored if _PRECISION.sub("", one) == bare), wanted)


def _look(snapshot: Snapshot, model: str) -> StoreProbe:
    warnings = file_warnings(snapshot)
    lossy = {(one.tree, one.path) for one in warnings if one.is_loss}
    return StoreProbe(
        holdings=replace(_holdings(snapshot, model), files_with_loss=len(lossy)),
        by_tree=snapshot.tree_sizes(),
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


# Who writes and who watches, as the locks tell; or what this process knows of itself.

# Otherwise another process has the index, or nobody.
_AT_WORK = (Role.STARTING, Role.WATCHING, Role.UNWATCHED)


def probe_writer(directory: Path) -> WriterStatus | None:
    found = writing(directory)
    return WriterStatus(pid=found.pid, since=_iso(found.since)) if found else None


def probe_watcher(directory: Path, service: ServiceState | None = None) -> WatchStatus | None:
    """None when nobody watches. `service` is this process's own, which knows better."""
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
