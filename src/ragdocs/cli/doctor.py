"""`doctor`: what is wrong, what to do about it, and with --fix the doing of what is safe."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from ragdocs.cli.options import json_option
from ragdocs.cli.output import counted, shown
from ragdocs.cli.place import Place, tolerant_place_options
from ragdocs.wording import advised

if TYPE_CHECKING:
    from ragdocs.diagnosis.case import Case
    from ragdocs.diagnosis.findings import Finding, Repaired

NOT_WELL = 1
"""The exit status when warnings or errors remain."""
_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red"}
_LEVEL_WIDTH = len("warning")
_CHECK_WIDTH = len("configuration")


@click.command("doctor")
@tolerant_place_options
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely, and say what.")
@json_option
@click.pass_context
def run_doctor(context: click.Context, place: Place, fix: bool, as_json: bool) -> None:
    """Examine everything: settings, folders, every row of the index, the model, clients.

    Without --fix nothing is changed. With it, permissions are set, leftovers, damaged engine
    folders and indices that were not used for 30 days deleted, and an index that is damaged is
    rebuilt; your documents and the settings of other programs are never touched. Exits with 0
    when nothing is above a note, 1 when warnings or errors remain.

    \b
    Example:
      ragdocs doctor --fix
    """
    from ragdocs.diagnosis.doctor import open_case
    from ragdocs.diagnosis.findings import is_fine

    case = open_case(place.reading())
    try:
        remaining = _as_json(case, fix) if as_json else print_examination(case, fix=fix)
    finally:
        if case.opened:
            case.opened.close()
    context.exit(0 if is_fine(remaining) else NOT_WELL)


def print_examination(case: "Case", *, fix: bool) -> "list[Finding]":
    """Each finding as it comes: a large store takes its time. What remains is returned."""
    from ragdocs.diagnosis.doctor import examine, repair

    found = _shown(examine(case))
    if fix and any(one.repair for one in found):
        click.echo("\nRepairing ...")
        _show_repairs(repair(found))
        known = {(one.check, one.level, one.message) for one in found if not one.repair}
        found = list(examine(case))
        click.echo("\nAfter that:")
        _shown(one for one in found if (one.check, one.level, one.message) not in known)
    click.echo(f"\n{_summary(found, fix)}")
    return found


def _show_repairs(repairs: "Iterable[Repaired]") -> None:
    for one in repairs:
        mark = click.style("done", fg="green") if one.done else click.style("failed", fg="red")
        click.echo(f"{mark}: {_readable(one.message)}")


def _as_json(case: "Case", fix: bool) -> "list[Finding]":
    from ragdocs.cli.values import as_json
    from ragdocs.diagnosis.doctor import examine, repair
    from ragdocs.diagnosis.findings import is_fine

    found = list(examine(case))
    repaired = list(repair(found)) if fix else []
    remaining = list(examine(case)) if repaired else found
    answer = {
        "ok": is_fine(remaining),
        "findings": [_value(one) for one in remaining],
        "repairs": repaired,
    }
    click.echo(as_json(answer))
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


def _shown(findings: "Iterable[Finding]") -> "list[Finding]":
    kept: list[Finding] = []
    for found in findings:
        is_first = not kept or kept[-1].check != found.check
        for line in _lines(found, found.check if is_first else ""):
            click.echo(line)
        kept.append(found)
    return kept


def _lines(found: "Finding", name: str) -> Iterator[str]:
    level = click.style(found.level.value.ljust(_LEVEL_WIDTH), fg=_COLOURS[found.level.value])
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
    return shown(text if home == "/" else text.replace(home, "~/"))


def _summary(findings: "list[Finding]", fix: bool) -> str:
    levels = [found.level.value for found in findings]
    counts = [(levels.count(level), level) for level in ("error", "warning", "note")]
    said = ", ".join(counted(number, level) for number, level in counts if number)
    fixable = len({found.repair.name for found in findings if found.repair})
    if not said:
        return "All is well."
    if not fixable or fix:
        return f"{said}."
    what = "one of them" if fixable == 1 else f"{fixable} of them"
    return f"{said}. {advised('doctor --fix')} can repair {what}."
