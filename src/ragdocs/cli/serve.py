"""`mcp`: the server that an MCP client starts."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.place import Place, place_options
from ragdocs.errors import ConfigError

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config
    from ragdocs.mcp_server.backend import Backend


@click.command("mcp")
@place_options
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="What is said on stderr. Only debug shows text of queries or documents.",
)
def serve(place: Place, log_level: str) -> None:
    """Serve the documents to an MCP client, over standard input and output.

    The index is built and kept in step in the background.

    \b
    Example:
      ragdocs mcp --docs ~/notes
    """
    from ragdocs.mcp_server.process import run

    run(lambda: _open(place), log_level)


def _open(place: Place) -> "Backend":
    from ragdocs.app import App
    from ragdocs.mcp_server.served_app import FIRST_SECONDS, ServedApp

    config = place.config()
    refuse_everything(config)
    app = App(config)
    app.service.start()
    return ServedApp(app, FIRST_SECONDS)


def refuse_everything(config: "Config") -> None:
    """Clients start servers anywhere: nobody means to index a whole disk or home by that.

    Raises ConfigError.
    """
    from ragdocs.config.problems import OriginKind

    home = Path(os.path.expanduser("~"))  # unlike Path.home, where nobody says where it is
    for tree in config.trees:
        is_everything = tree.root in (home, Path(tree.root.anchor))
        if is_everything and config.tree_origin(tree).kind is OriginKind.DEFAULT:
            raise ConfigError(
                "no documents are configured, and a home folder or a whole disk is not indexed "
                "unless it is asked for: start the server with --docs DIR"
            )
