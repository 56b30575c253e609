"""`lint`: problems of the documents, as lines, JSON or SARIF."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli.indexing import OpenedIndex, reading_options
from ragdocs.errors import QueryError
from ragdocs.text import escaped, escaped_line, number_of

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.lint.findings import LintReport, UncheckedLinks

FINDINGS = 1
"""The exit status when something was found."""
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


class _Options(TypedDict):
    paths: tuple[str, ...]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    trees: tuple[str, ...]
    sarif: bool


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--select",
    multiple=True,
    metavar="RULE",
    help="Run only this rule, on every page. Repeat it for several.",
)
@click.option(
    "--ignore", multiple=True, metavar="RULE", help="Do not run this rule. Repeat it for several."
)
@click.option("--tree", "trees", multiple=True, metavar="NAME", help="Only in this tree.")
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for code scanning.")
@reading_options
@click.pass_context
def lint(context: click.Context, reading: OpenedIndex, **options: Unpack[_Options]) -> None:
    """Check the documents: broken links, orphans, near-copies and more.

    PATH is a file or folder to report on; links are checked against all documents. The rules are
    listed in docs/lint.md and can be switched in the section [lint] of the configuration. No model
    is needed.

    Exits with 0 when nothing was found, 1 when something was, 2 for wrong usage, 3 when the index
    cannot be used.

    \b
    Examples:
      ragdocs lint --docs notes
      ragdocs lint --docs notes --select broken-link --select broken-heading
      ragdocs lint --docs notes --sarif > lint.sarif
    """
    from ragdocs.lint.findings import LintRequest, RuleSelection
    from ragdocs.text import json_text

    if options["sarif"] and reading.as_json:
        raise QueryError("--json and --sarif exclude each other")
    config = reading.place.config()
    RuleSelection.of(
        config.lint, options["select"], options["ignore"]
    )  # wrong use, before any work
    request = LintRequest(
        select=options["select"],
        ignore=options["ignore"],
        trees=frozenset(options["trees"]),
        paths=options["paths"],
    )
    with reading.app(vectors=False) as app:
        report = app.lint(request)
    if options["sarif"]:
        from ragdocs.lint.sarif import to_sarif

        click.echo(json_text(to_sarif(report, _prefixes(config))))
    elif reading.as_json:
        click.echo(json_text(report))
    else:
        _show(report, _prefixes(config))
    context.exit(FINDINGS if report.findings else 0)


def _prefixes(config: "Config") -> Mapping[str, str]:
    """What comes before a tree's paths so that they lead to the files from the working directory;
    for a tree elsewhere, its name if there are several trees."""
    prefixes: dict[str, str] = {}
    for tree in config.trees:
        try:
            below = tree.root.relative_to(Path.cwd().resolve()).as_posix()
        except (OSError, ValueError):
            prefixes[tree.name] = f"{tree.name}/" if len(config.trees) > 1 else ""
        else:
            prefixes[tree.name] = "" if below == "." else f"{below}/"
    return prefixes


def _show(report: "LintReport", prefixes: Mapping[str, str]) -> None:
    for finding in report.findings:
        path = click.style(escaped_line(prefixes.get(finding.tree, "") + finding.path), bold=True)
        rule = click.style(finding.rule.value, fg=_COLOURS[finding.severity.value])
        click.echo(f"{path}:{finding.line_start}: {rule} {escaped_line(finding.message)}")
    for line in _summary(report):
        click.echo(line)
    for note in report.notes:
        click.echo(f"note: {escaped(note)}", err=True)


def _summary(report: "LintReport") -> Iterator[str]:
    documents = number_of(report.documents, "document")
    if report.findings:
        yield ""
        for rule, count in report.counts.items():
            if count:
                yield f"{count:>6,}  {rule.value}"
        by_severity = Counter(finding.severity.value for finding in report.findings)
        parts = ", ".join(number_of(by_severity[one], one) for one in _COLOURS if by_severity[one])
        yield f"Found {number_of(len(report.findings), 'problem')} in {documents}: {parts}."
    else:
        yield f"No problems found in {documents}."
    if left := ", ".join(_left(report.unchecked)):
        yield f"Links not checked: {left}."


def _left(unchecked: "UncheckedLinks") -> Iterator[str]:
    for count, words in (
        (unchecked.site, "addresses of a web site"),
        (unchecked.outside, "leading out of the tree"),
        (unchecked.attachments, "to attachments"),
        (unchecked.templates, "with a placeholder"),
    ):
        if count:
            yield f"{count:,} {words}"
