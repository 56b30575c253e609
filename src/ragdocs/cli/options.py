"""Options that mean the same in every command that has them."""

from pathlib import Path

import click

from ragdocs.wording import remember_typed


def _remember(_: click.Context, __: click.Parameter, given: Path | None) -> Path | None:
    if given is not None:
        remember_typed([("--config", str(given))])
    return given


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    callback=_remember,
    help="Read this file alone, instead of the project's and the user's; a folder: the project "
    "files found from there.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
