"""Who writes and who watches, as the locks tell; or what this process knows of itself."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ragdocs.diagnosis.status import WatchStatus, WriterStatus
from ragdocs.indexing.lock import SILENT_SECONDS, watching, writing
from ragdocs.indexing.service_state import Duty, ServiceState
from ragdocs.locks import Holder

# Otherwise another process has the index, or nobody.
_AT_WORK = (Duty.STARTING, Duty.WATCHING, Duty.UNWATCHED)


def look_at_writer(directory: Path) -> WriterStatus | None:
    found = writing(directory)
    return WriterStatus(pid=found.pid, since=_iso(found.since)) if found else None


def look_at_watcher(directory: Path, service: ServiceState | None = None) -> WatchStatus | None:
    """None when nobody watches. `service` is this process's own, which knows better."""
    found = watching(directory)
    error = service.error if service else ""
    if service is not None and (service.duty in _AT_WORK or (error and not found)):
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
