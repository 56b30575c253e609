"""Options that mean the same in every command that has them."""

from pathlib import Path

import click

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read this file alone, instead of the project's and the user's.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
