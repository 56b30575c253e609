"""`doctor`: runs every check in order, none of which can stop the others, and the repairs."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ragdocs.app import App
from ragdocs.config.loading import ConfigReading
from ragdocs.diagnosis.case import Case, Finding, Level, Machine, Repair, Repaired
from ragdocs.diagnosis.folder_checks import (
    check_engine,
    check_gone,
    check_leftovers,
    check_locks,
    check_variants,
)
from ragdocs.diagnosis.index_checks import (
    check_counts,
    check_failures,
    check_links,
    check_store,
    check_vectors,
    check_warnings,
)
from ragdocs.diagnosis.machine_checks import (
    check_clients,
    check_configuration,
    check_descriptors,
    check_model,
    check_permissions,
    check_platform,
    check_reranker,
    check_space,
    check_trees,
    check_watching,
)
from ragdocs.errors import RagdocsError
from ragdocs.text import printable

QUICK_SECONDS = 20.0
LONG_SECONDS = 300.0
"""For checks that read the whole store or load a model."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. Without a usable configuration, only checks that need none are run."""

    name: str
    examine: Callable[[Case], Iterable[Finding]]
    seconds: float = QUICK_SECONDS
    needs_config: bool = True


# An earlier check often explains what a later one finds. Permissions and locks come before what
# they protect, so that they are repaired first.
CHECKS = (
    Check("platform", check_platform, needs_config=False),
    Check("configuration", check_configuration, needs_config=False),
    Check("trees", check_trees),
    Check("permissions", check_permissions),
    Check("locks", check_locks),
    Check("space", check_space),
    Check("store", check_store, LONG_SECONDS),
    Check("counts", check_counts, LONG_SECONDS),
    Check("vectors", check_vectors, LONG_SECONDS),
    Check("engine", check_engine, LONG_SECONDS),
    Check("files", check_failures),
    Check("contents", check_warnings),
    Check("links", check_links),
    Check("model", check_model, LONG_SECONDS),
    Check("re-ranker", check_reranker, LONG_SECONDS),
    Check("watching", check_watching),
    Check("descriptors", check_descriptors, needs_config=False),
    Check("variants", check_variants),
    Check("old indices", check_gone),
    Check("leftovers", check_leftovers),
    Check("clients", check_clients, needs_config=False),
)


def open_case(
    reading: ConfigReading, machine: Machine | None = None, app: App | None = None
) -> Case:
    """`app`: an open application with the same configuration."""
    opened = app or (App(reading.config) if reading.config else None)
    return Case(reading, machine or Machine(), opened)


def examine(case: Case, checks: Iterable[Check] = CHECKS) -> Iterator[Finding]:
    """Yields the findings of each check when it ends."""
    for check in checks:
        if case.opened is not None or not check.needs_config:
            yield from (
                replace(found, check=check.name) for found in _run_with_timeout(check, case)
            )


def repair(findings: Iterable[Finding]) -> Iterator[Repaired]:
    """Makes each repair once, in the order of the checks."""
    repairs = {found.repair.name: found.repair for found in findings if found.repair}
    return map(_make_repair, repairs.values())


def _run_with_timeout(check: Check, case: Case) -> list[Finding]:
    """A check may block on a dead network drive; its thread is then abandoned."""
    found: list[Finding] = []
    thread = threading.Thread(target=_examine, args=(check, case, found), daemon=True)
    thread.start()
    thread.join(check.seconds)
    if not thread.is_alive():
        return found
    message = f"this check did not finish within {check.seconds:.0f} seconds"
    return [*found, Finding(Level.WARNING, message, "is a disk or a network drive not answering?")]


def _examine(check: Check, case: Case, found: list[Finding]) -> None:
    try:
        found.extend(check.examine(case))
    except RagdocsError as error:
        found.append(Finding(Level.ERROR, str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        what = printable(f"{where}{error.strerror or error}")
        advice = "make it readable for you, or change its path in the configuration"
        found.append(Finding(Level.ERROR, what, advice))
    except Exception as error:  # a check that fails must not stop the others
        what = f"this check failed ({type(error).__name__}: {error})"
        found.append(Finding(Level.ERROR, what, "please report it"))


def _make_repair(one: Repair) -> Repaired:
    try:
        return Repaired(one.name, True, one.run())
    except (RagdocsError, OSError) as error:
        return Repaired(one.name, False, str(error))
