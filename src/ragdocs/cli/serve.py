"""`mcp`: the server that an MCP client starts."""

from typing import TYPE_CHECKING

import click

from ragdocs.cli.here import refuse_everything
from ragdocs.cli.place import Place, tolerant_place_options

if TYPE_CHECKING:
    from ragdocs.mcp_server.backend import Backend


@click.command("mcp")
@tolerant_place_options
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
