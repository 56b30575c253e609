"""`status` and `doctor`: show the state of the index, find problems and fix what is safe to fix."""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.main import CommandPlace, json_option, tolerant_place_options
from ragdocs.text import advised, escaped, json_text, kinds_text, number_of, size_text

if TYPE_CHECKING:
    from ragdocs.diagnosis.case import Case, Finding, Repaired
    from ragdocs.diagnosis.file_problems import FileWarning
    from ragdocs.diagnosis.status import Status, TreeStatus, VariantStatus, WatchStatus

# `doctor`: reports problems and advice, and with --fix makes the repairs that are safe.

NOT_WELL = 1
"""The exit status when warnings or errors remain."""
_SEVERITY_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red"}
_LEVEL_WIDTH = len("warning")
_CHECK_WIDTH = len("configuration")


@click.command("doctor")
@tolerant_place_options
@click.option("--fix", is_flag=True, help="Make the repairs that are safe, and list them.")
@json_option
@click.pass_context
def run_doctor(context: click.Context, place: CommandPlace, fix: bool, as_json: bool) -> None:
    """Check everything: settings, folders, every row of the index, the model, clients.

    Without --fix nothing is changed. With it, permissions are set; leftovers, damaged engine
    folders and indices not used for 30 days are deleted; and a damaged index is rebuilt. Your
    documents and the settings of other programs are never touched. Exits with 1 when warnings or
    errors remain, otherwise with 0.

    \b
    Example:
      ragdocs doctor --fix
    """
    from ragdocs.diagnosis.case import is_fine
    from ragdocs.diagnosis.doctor import open_case

    case = open_case(place.reading())
    try:
        remaining = _as_json(case, fix) if as_json else print_examination(case, fix=fix)
    finally:
        if case.opened:
            case.opened.close()
    context.exit(0 if is_fine(remaining) else NOT_WELL)


def print_examination(case: "Case", *, fix: bool) -> "list[Finding]":
    """Prints each finding at once, since a large store takes long. Returns those that remain."""
    from ragdocs.diagnosis.doctor import examine, repair

    found = _show(examine(case))
    if fix and any(one.repair for one in found):
        click.echo("\nRepairing ...")
        _show_repairs(repair(found))
        known = {(one.check, one.level, one.message) for one in found if not one.repair}
        found = list(examine(case))
        click.echo("\nAfter the repairs:")
        _show(one for one in found if (one.check, one.level, one.message) not in known)
    click.echo(f"\n{_summary(found, fix)}")
    return found


def _show_repairs(repairs: "Iterable[Repaired]") -> None:
    for one in repairs:
        mark = click.style("done", fg="green") if one.done else click.style("failed", fg="red")
        click.echo(f"{mark}: {_readable(one.message)}")


def _as_json(case: "Case", fix: bool) -> "list[Finding]":
    from ragdocs.diagnosis.case import is_fine
    from ragdocs.diagnosis.doctor import examine, repair

    found = list(examine(case))
    repaired = list(repair(found)) if fix else []
    remaining = list(examine(case)) if repaired else found
    answer = {
        "ok": is_fine(remaining),
        "findings": [_value(one) for one in remaining],
        "repairs": repaired,
    }
    click.echo(json_text(answer))
    return remaining


def _value(found: "Finding") -> dict[str, object]:
    return {
        "check": found.check,
        "level": found.level.value,
        "message": found.message,
        "advice": found.advice,
        "details": found.details,
        "can_fix": found.repair is not None,
    }


def _show(findings: "Iterable[Finding]") -> "list[Finding]":
    kept: list[Finding] = []
    for found in findings:
        is_first = not kept or kept[-1].check != found.check
        for line in _finding_lines(found, found.check if is_first else ""):
            click.echo(line)
        kept.append(found)
    return kept


def _finding_lines(found: "Finding", name: str) -> Iterator[str]:
    level = click.style(
        found.level.value.ljust(_LEVEL_WIDTH), fg=_SEVERITY_COLOURS[found.level.value]
    )
    indent = " " * (_LEVEL_WIDTH + _CHECK_WIDTH + 4)
    first, *more = _readable(found.message).split("\n")
    yield f"{level}  {name.ljust(_CHECK_WIDTH)}  {first}"
    for line in (*more, *map(_readable, found.details)):
        yield f"{indent}  {line.strip()}"
    if found.advice:
        yield f"{indent}→ {_readable(found.advice)}"


def _readable(text: str) -> str:
    """With `~` for the home folder, as people write it."""
    home = os.path.join(os.path.expanduser("~"), "")
    return escaped(text if home == "/" else text.replace(home, "~/"))


def _summary(findings: "list[Finding]", fix: bool) -> str:
    levels = [found.level.value for found in findings]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    said = ", ".join(number_of(number, level) for number, level in counts if number)
    fixable = sum(found.repair is not None for found in findings)
    if not said:
        return "No problems found."
    if not fixable or fix:
        return f"{said}."
    what = "one of them" if fixable == 1 else f"{fixable} of them"
    return f"{said}. {advised('doctor --fix')} can repair {what}."


# `status`: the contents and the state of the index, at a glance.

MAX_FAILURES = 5
_STATE_COLOURS = {"ready": "green", "building": "cyan", "degraded": "yellow", "unavailable": "red"}
Field = tuple[str, list[str]]
"""A name, and its lines."""


@click.command("status")
@tolerant_place_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all details.")
@click.pass_context
def show_status(context: click.Context, place: CommandPlace, as_json: bool) -> None:
    """Show what is in the index, and whether it is usable and up to date.

    Quick: loads no model and changes nothing; `doctor` checks more. Exits with 0 when the index is
    ready or building, 1 when it is degraded or unavailable, 2 when the command or the configuration
    is wrong.

    \b
    Example:
      ragdocs status --docs notes
    """
    from ragdocs.app import App
    from ragdocs.diagnosis.collector import collect_status

    with App(place.config(warn=False)) as app:
        status = collect_status(app)
    if as_json:
        click.echo(json_text(status))
    else:
        for line in _status_lines(status):
            click.echo(line)
    context.exit(0 if status.is_usable else NOT_WELL)


def short(path: str) -> str:
    """With `~` for the home folder, as people write it."""
    home = os.path.expanduser("~")
    inside = home != "/" and Path(path).is_relative_to(home)
    return escaped("~" + path[len(home) :] if inside else path)


def _status_lines(status: "Status") -> Iterator[str]:
    state = status.state.value  # the summary begins with this word
    colour = _STATE_COLOURS[state]
    yield f"{click.style(state, fg=colour, bold=True)}{escaped(status.summary[len(state) :])}"
    for note in status.notes:
        yield "  " + escaped(note).replace("\n", "\n  ")
    yield ""
    fields = [field for field in _fields(status) if field[1]]
    width = max(len(name) for name, _ in fields)
    for name, lines in fields:
        for number, line in enumerate(lines):
            label = name if number == 0 else ""
            yield f"{click.style(label.ljust(width), dim=True)}  {line}"


def _fields(status: "Status") -> Iterator[Field]:
    is_known = status.agreement.stored_fingerprint is not None
    yield "trees", [_tree(tree, is_known) for tree in status.trees]
    if is_known:
        yield "holds", [_holdings(status)]
    yield "not read", [_unread(tree) for tree in status.trees if tree.unread]
    yield "failed", _failures(status)
    yield "warnings", _warnings(status)
    yield "index", [_index(status)]
    yield "others", [_variant(one) for one in status.variants if not one.is_own]
    yield "words", [_keyword(status)]
    yield "meaning", [_model(status)]
    yield "re-rank", [_reranker(status)]
    yield "watching", [_watch(status.watcher)]
    if status.writer:
        yield "writing", [f"{_process(status.writer.pid)}{_since(status.writer.since)}"]
    yield "settings", [", ".join(map(short, status.config_files)) or "defaults, no file"]
    yield "format", [_agreement(status)]


def _tree(tree: "TreeStatus", is_known: bool) -> str:
    said = [escaped(tree.name), short(tree.root)]
    said += ["(yours, in every project)"] if tree.scope == "global" else []
    said += [number_of(tree.documents, "document")] if is_known else []
    said += [click.style(tree.problem, fg="yellow")] if tree.problem else []
    return "  ".join(said)


def _unread(tree: "TreeStatus") -> str:
    return f"{escaped(tree.name)}: {kinds_text(tree.unread)}"


def _holdings(status: "Status") -> str:
    found = status.holdings
    pending = f"{found.vectors:,} with vectors, {found.vectors_pending:,} still without"
    said = [
        number_of(found.chunks, "chunk"),
        number_of(found.passages, "passage"),
        pending if found.vectors_pending else "all with vectors",
    ]
    if found.links_unresolved:
        said.append(f"{number_of(found.links_unresolved, 'link')} to no document")
    if found.unused_vector_bytes:
        said.append(f"{size_text(found.unused_vector_bytes)} of unused vectors")
    if communities := found.communities_text():
        said.append(communities)
    return ", ".join(said)


def _failures(status: "Status") -> list[str]:
    number = status.holdings.files_failed
    lines = [escaped(f"{one.tree}: {one.reason}") for one in status.failures[:MAX_FAILURES]]
    rest = number - len(lines)
    return [*lines, f"and {rest:,} more (--json lists them)"] if rest > 0 else lines


def _warnings(status: "Status") -> list[str]:
    """Warnings about files of which a part cannot be found."""
    lossy = [one for one in status.warnings[:MAX_FAILURES] if one.is_loss]
    rest = status.holdings.files_with_loss - len({(one.tree, one.path) for one in lossy})
    more = [f"and {number_of(rest, 'more file')} (--json lists them)"] if rest > 0 else []
    return [*map(warning_line, lossy), *more]


def warning_line(one: "FileWarning") -> str:
    return escaped(f"{one.tree}: {one.path}: {one.text}")


def _index(status: "Status") -> str:
    disk = status.disk
    parts = ((disk.store, "store"), (disk.log, "log"), (disk.engines, "keyword engine"))
    there = [f"{size_text(size)} {name}" for size, name in parts if size]
    size = f"  {' + '.join(there)}" if there else ""
    generation = status.holdings.generation
    return f"{short(status.index_directory)}{size}" + (
        f", generation {generation}" if generation else ""
    )


def _variant(one: "VariantStatus") -> str:
    """An index of the same documents with other settings."""
    when = f", last used {_time(one.last_used)}" if one.last_used else ""
    return f"{short(one.path)}  {size_text(one.bytes)}{when}; deleted when unused for 30 days"


def _agreement(status: "Status") -> str:
    """The format the index was built with, and the expected one if it differs."""
    found = status.agreement
    schema, fingerprint = found.stored_schema, found.stored_fingerprint
    wanted = f"{found.schema}, fingerprint {found.fingerprint}"
    if schema is None:
        return wanted
    stored = f"{schema}" + (f", fingerprint {fingerprint}" if fingerprint else "")
    return stored if stored == wanted else f"{stored}; expected {wanted}"


def _keyword(status: "Status") -> str:
    found = status.keyword
    return f"{found.engine}, {found.state}"


def _model(status: "Status") -> str:
    model = status.model
    if model.problem:
        return f"none: {escaped(model.problem.splitlines()[0])}"
    place = f", from {escaped(model.place)}" if model.place else ""
    return f"{escaped(model.name)}, {model.dimension} dimensions{place}"


def _reranker(status: "Status") -> str:
    reranker = status.reranker
    if not reranker.is_on:
        return "off"
    name = escaped(reranker.name)
    return f"{name}, not usable: {escaped(reranker.problem)}" if reranker.problem else name


def _watch(watcher: "WatchStatus | None") -> str:
    if watcher is None:
        return f"no process is watching; a running server would, or run {advised('update')}"
    said = [f"{_process(watcher.pid)}{_since(watcher.since)}"]
    if watcher.mode:
        said.append(watcher.mode + (f" ({watcher.reason})" if watcher.reason else ""))
    if watcher.activity:
        said.append(watcher.activity)
    if watcher.last_scan:
        said.append(f"last full scan {_time(watcher.last_scan)}")
    return escaped(", ".join(said))


def _process(pid: int | None) -> str:
    return f"process {pid}" if pid else "a process"


def _since(moment: str | None) -> str:
    return f" since {_time(moment)}" if moment else ""


def _time(moment: str) -> str:
    """In local time; unchanged if it cannot be parsed."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return moment
