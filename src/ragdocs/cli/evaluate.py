"""`eval`: how good the search is, measured on a labelled set."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from ragdocs.cli.options import config_option, json_option
from ragdocs.cli.output import counted, shown
from ragdocs.cli.place import tell_ignored

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config

_FILE = click.Path(path_type=Path, dir_okay=False)


class _Options(TypedDict):
    config_file: Path | None
    run: Path | None
    compare: Path | None
    by: str
    rel_level: float
    ablate: bool
    near_miss: bool
    foreign: tuple[Path, ...]
    as_json: bool
    plot: Path | None


@click.command("eval")
@click.argument("folder", metavar="SET", type=click.Path(path_type=Path))
@config_option
@click.option("--run", type=_FILE, metavar="OUT.jsonl", help="Write the ranked documents there.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="OTHER",
    help="Show how another run, or another configuration (.toml), differs from this one.",
)
@click.option("--by", default="", metavar="FIELD", help="Group by this field of queries.jsonl.")
@click.option("--ablate", is_flag=True, help="Switch each part off in turn: what is it worth?")
@click.option(
    "--near-miss",
    is_flag=True,
    help="Ask again without the relevant documents: how honest is the confidence?",
)
@click.option(
    "--foreign",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="SET",
    help="With --near-miss: ask 40 questions of this set too, which the corpus does not answer; "
    "may be given several times.",
)
@click.option(
    "--rel-level",
    type=float,
    default=1.0,
    show_default=True,
    metavar="GRADE",
    help="The grade from which a document is relevant, for MRR, recall and hit.",
)
@json_option
@click.option(
    "--plot",
    type=_FILE,
    metavar="FILE.svg",
    help="Draw the figures as bars; with --near-miss, confidence against the share that was right.",
)
def evaluate(folder: Path, **options: Unpack[_Options]) -> None:
    """Measure the search on a folder with corpus/, queries.jsonl and qrels.tsv.

    The corpus is indexed in the user's cache, never in the set. Every query is asked with the
    settings in force; intervals are 95 %, by resampling the queries.

    \b
    Examples:
      ragdocs eval sets/handbook --by kind
      ragdocs eval sets/handbook --run before.jsonl
      ragdocs eval sets/handbook --compare before.jsonl --ablate
      ragdocs eval sets/handbook --near-miss
    """
    from ragdocs.evaluation.chart import check_name, report_chart, write_chart
    from ragdocs.evaluation.evaluating import Evaluation, Helpers, Wishes
    from ragdocs.evaluation.labelled_set import read_set
    from ragdocs.evaluation.run_files import write_run

    if options["plot"]:
        check_name(options["plot"])
    if options["foreign"] and not options["near_miss"]:
        raise click.UsageError("--foreign is about the confidence: give --near-miss too")
    wishes = Wishes(
        config_file=options["config_file"],
        compare=options["compare"],
        by=options["by"],
        ablate=options["ablate"],
        level=options["rel_level"],
        near_miss=options["near_miss"],
        foreign=options["foreign"],
    )
    helpers = Helpers(bring_in_step=_index, say=lambda line: click.echo(line, err=True))
    report, answers = Evaluation(read_set(folder), wishes, helpers).run()
    if options["run"]:
        write_run(options["run"], answers.ranked)
    if options["plot"]:
        write_chart(options["plot"], report_chart(report))
    if options["as_json"]:
        from ragdocs.cli.values import as_json

        click.echo(as_json(report))
        return
    from ragdocs.cli.evaluation_tables import lines

    for line in lines(report):
        click.echo(line)


def _index(config: "Config") -> None:
    """All of it, unlike before a query: a figure must not depend on how far indexing had come."""
    from ragdocs.cli.index_run import Orders, run
    from ragdocs.cli.progress import display
    from ragdocs.lifecycle import Ending

    tell_ignored(config)
    with Ending(watch_parent=False) as ending:
        with closing(display(quiet=False)) as shown_progress:
            ending.before_force(shown_progress.close)
            done = run(config, Orders(rebuild=False), ending, shown_progress)
        if ending.reason:
            click.echo("Stopped. What was indexed is kept; the next run continues.", err=True)
            raise click.exceptions.Exit(ending.exit_code)
    without = done.vectors.lacking or done.vectors.error
    if without:
        click.echo(f"note: searching by words only: {shown(without)}", err=True)
    if done.failures:
        first = done.failures[0]
        said = f"{counted(len(done.failures), 'file')} could not be indexed, first {first.path}"
        click.echo(f"note: {shown(said)}: {shown(first.reason)}", err=True)
